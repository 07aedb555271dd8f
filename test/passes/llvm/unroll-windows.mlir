// RUN: deplo-opt %s -p unroll-windows | FileCheck %s
// RUN: deplo-opt %s -p unroll-windows --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The rows and columns of a window, in a loop over results.
// REMARK: remark: unroll-windows: k_window: 2 loops
// CHECK-LABEL: @k_window
// CHECK:       scf.for %j =
// CHECK-NOT:   scf.for
// CHECK-COUNT-4: arith.addf
// CHECK-NOT:   arith.addf
// CHECK:       loop.store %{{.*}}, %y[%j]
func.func @k_window(%x: memref<9x9xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  scf.for %j = %begin to %end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %h = %c0 to %c2 step %c1 iter_args(%sum = %zero) -> (f32) {
      %t = scf.for %w = %c0 to %c2 step %c1 iter_args(%so_far = %zero) -> (f32) {
        %v = loop.load %x[%h, %j + %w] : memref<9x9xf32>
        %next = arith.mulf %so_far, %v : f32
        scf.yield %next : f32
      }
      %a = arith.addf %sum, %t : f32
      %b = arith.addf %a, %t : f32
      scf.yield %b : f32
    }
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}

// Why a reduction stays a loop.
// REMARK: remark: unroll-windows: k_long: declined: 9 steps are more than 8
// REMARK: remark: unroll-windows: k_unknown: declined: the number of steps is not known
// REMARK: remark: unroll-windows: k_alone: declined: it is in no loop
// REMARK: remark: unroll-windows: k_nest: declined: 9 steps are more than 8; a loop is left inside
// REMARK: remark: unroll-windows: k_none: declined: nothing is reduced
func.func @k_long(%x: memref<9xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %begin to %end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %w = %c0 to %c9 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%w] : memref<9xf32>
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_unknown(%x: memref<9xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %j = %begin to %end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %w = %c0 to %end step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%w] : memref<9xf32>
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_alone(%x: memref<9xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %w = %c0 to %c2 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%w] : memref<9xf32>
    %next = arith.addf %so_far, %v : f32
    scf.yield %next : f32
  }
  loop.store %s, %y[0] : memref<8xf32>
  func.return
}
func.func @k_nest(%x: memref<9xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %begin to %end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %h = %c0 to %c2 step %c1 iter_args(%sum = %zero) -> (f32) {
      %t = scf.for %w = %c0 to %c9 step %c1 iter_args(%so_far = %sum) -> (f32) {
        %v = loop.load %x[%w] : memref<9xf32>
        %next = arith.addf %so_far, %v : f32
        scf.yield %next : f32
      }
      scf.yield %t : f32
    }
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_none(%x: memref<9xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %v = loop.load %x[0] : memref<9xf32>
  loop.store %v, %y[0] : memref<8xf32>
  func.return
}

// Copies that would be too much code.
// REMARK: remark: unroll-windows: k_much: declined: 8 copies are 336 operations
func.func @k_much(%x: memref<9xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %begin to %end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %w = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%w] : memref<9xf32>
      %a0 = arith.addf %so_far, %v : f32
      %a1 = arith.addf %a0, %v : f32
      %a2 = arith.addf %a1, %v : f32
      %a3 = arith.addf %a2, %v : f32
      %a4 = arith.addf %a3, %v : f32
      %a5 = arith.addf %a4, %v : f32
      %a6 = arith.addf %a5, %v : f32
      %a7 = arith.addf %a6, %v : f32
      %a8 = arith.addf %a7, %v : f32
      %a9 = arith.addf %a8, %v : f32
      %a10 = arith.addf %a9, %v : f32
      %a11 = arith.addf %a10, %v : f32
      %a12 = arith.addf %a11, %v : f32
      %a13 = arith.addf %a12, %v : f32
      %a14 = arith.addf %a13, %v : f32
      %a15 = arith.addf %a14, %v : f32
      %a16 = arith.addf %a15, %v : f32
      %a17 = arith.addf %a16, %v : f32
      %a18 = arith.addf %a17, %v : f32
      %a19 = arith.addf %a18, %v : f32
      %a20 = arith.addf %a19, %v : f32
      %a21 = arith.addf %a20, %v : f32
      %a22 = arith.addf %a21, %v : f32
      %a23 = arith.addf %a22, %v : f32
      %a24 = arith.addf %a23, %v : f32
      %a25 = arith.addf %a24, %v : f32
      %a26 = arith.addf %a25, %v : f32
      %a27 = arith.addf %a26, %v : f32
      %a28 = arith.addf %a27, %v : f32
      %a29 = arith.addf %a28, %v : f32
      %a30 = arith.addf %a29, %v : f32
      %a31 = arith.addf %a30, %v : f32
      %a32 = arith.addf %a31, %v : f32
      %a33 = arith.addf %a32, %v : f32
      %a34 = arith.addf %a33, %v : f32
      %a35 = arith.addf %a34, %v : f32
      %a36 = arith.addf %a35, %v : f32
      %a37 = arith.addf %a36, %v : f32
      %a38 = arith.addf %a37, %v : f32
      %a39 = arith.addf %a38, %v : f32
      scf.yield %a39 : f32
    }
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}
