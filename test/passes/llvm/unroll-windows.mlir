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
