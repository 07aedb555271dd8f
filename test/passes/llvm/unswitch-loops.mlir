// RUN: deplo-opt %s -p unswitch-loops --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p unswitch-loops --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The first row comes from another array: which one it is, is asked once.
// REMARK: remark: unswitch-loops: k_rows: 1 loop
// CHECK-LABEL: @k_rows
// CHECK:         scf.for %b = %begin to %end
// CHECK-NEXT:      %first = loop.test[%b < 1]
// CHECK-NEXT:      %s = scf.if %first -> (f32) {
// CHECK-NEXT:        %[[t:.+]] = scf.for %i = %c0 to %c4 step %c1 iter_args
// CHECK-NEXT:          loop.load %x[%i]
// CHECK-NEXT:          arith.addf
// CHECK-NEXT:          scf.yield
// CHECK-NEXT:        }
// CHECK-NEXT:        scf.yield %[[t]] : f32
// CHECK-NEXT:      } else {
// CHECK-NEXT:        scf.for
// CHECK-NEXT:          loop.load %y[%b - 1, %i{{.*}}]
// CHECK:           loop.store %s, %z[%b]
func.func @k_rows(%x: memref<4xf32>, %y: memref<9x4xf32>, %z: memref<10xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %b = %begin to %end step %c1 {
    %s = scf.for %i = %c0 to %c4 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %first = loop.test[%b < 1]
      %v = scf.if %first -> (f32) {
        %token = loop.load %x[%i] : memref<4xf32>
        scf.yield %token : f32
      } else {
        %patch = loop.load %y[%b - 1, %i] : memref<9x4xf32>
        scf.yield %patch : f32
      }
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %s, %z[%b] : memref<10xf32>
  }
  func.return
}

// -----

// Of three arrays: the second question is left in one of the loops, and asked in front of that.
// REMARK: remark: unswitch-loops: k_three: 1 loop
// CHECK-LABEL: @k_three
// CHECK:         scf.if
// CHECK-NEXT:      scf.for
// CHECK-NEXT:        loop.load %x
// CHECK:         } else {
// CHECK:           scf.if
// CHECK-NEXT:        scf.for
// CHECK-NEXT:          loop.load %y
// CHECK:           } else {
// CHECK-NEXT:        scf.for
// CHECK-NEXT:          loop.load %w
func.func @k_three(%x: memref<4xf32>, %y: memref<4x4xf32>, %w: memref<10x4xf32>, %z: memref<10x4xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %b = %begin to %end step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      %first = loop.test[%b < 1]
      %v = scf.if %first -> (f32) {
        %token = loop.load %x[%i] : memref<4xf32>
        scf.yield %token : f32
      } else {
        %few = loop.test[%b < 5]
        %u = scf.if %few -> (f32) {
          %patch = loop.load %y[%b - 1, %i] : memref<4x4xf32>
          scf.yield %patch : f32
        } else {
          %rest = loop.load %w[%b, %i] : memref<10x4xf32>
          scf.yield %rest : f32
        }
        scf.yield %u : f32
      }
      loop.store %v, %z[%b, %i] : memref<10x4xf32>
    }
  }
  func.return
}

// -----

// What the counter decides stays, and what only chooses between values.
// REMARK: remark: unswitch-loops: k_stays: declined: no branch in it is decided in front of it
// CHECK-LABEL: @k_stays
// CHECK:         scf.for %b
// CHECK-NEXT:      scf.for %i
// CHECK-NEXT:        loop.test
// CHECK-NEXT:        scf.if
func.func @k_stays(%x: memref<4xf32>, %z: memref<10x4xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  scf.for %b = %begin to %end step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      %in = loop.test[%i < 3]
      %v = scf.if %in -> (f32) {
        %token = loop.load %x[%i] : memref<4xf32>
        scf.yield %token : f32
      } else {
        scf.yield %zero : f32
      }
      %first = loop.test[%b < 1]
      %f = scf.if %first -> (f32) {
        scf.yield %one : f32
      } else {
        scf.yield %zero : f32
      }
      %s = arith.addf %v, %f : f32
      loop.store %s, %z[%b, %i] : memref<10x4xf32>
    }
  }
  func.return
}

// -----

// What is asked in the other branch again is known there, too.
// CHECK-LABEL: @k_again
// CHECK:         scf.if %first {
// CHECK:           loop.load %x[%i]
// CHECK:         } else {
// CHECK-NEXT:      scf.for
// CHECK-NOT:         scf.if
// CHECK:             loop.load %y[0]
func.func @k_again(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>, %b: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %first = loop.test[%b < 1]
    %v = scf.if %first -> (f32) {
      %u = loop.load %x[%i] : memref<4xf32>
      scf.yield %u : f32
    } else {
      %again = loop.test[%b < 1]
      %w = scf.if %again -> (f32) {
        %u = loop.load %y[%i] : memref<4xf32>
        scf.yield %u : f32
      } else {
        %u = loop.load %y[0] : memref<4xf32>
        scf.yield %u : f32
      }
      scf.yield %w : f32
    }
    loop.store %v, %z[%i] : memref<4xf32>
  }
  func.return
}
