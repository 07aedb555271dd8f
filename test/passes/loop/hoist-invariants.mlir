// RUN: deplo-opt %s -p hoist-invariants --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p hoist-invariants --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p hoist-invariants --split-input-file --check-each-pass >/dev/null

// An index that is read and checked once per row, not once per element; the constant goes along.
// CHECK-LABEL: loop.kernel @rows
// CHECK:         loop.for %i = 0 to 4 {
// CHECK-NEXT:      %id = loop.load %ids[%i]
// CHECK-NEXT:      %one = arith.constant 1 : i64
// CHECK-NEXT:      %next = arith.subi %id, %one
// CHECK-NEXT:      %row = loop.checked_index %next below 9
// CHECK-NEXT:      %s = loop.for %j = 0 to 8 reduce(add)
// CHECK-NEXT:        %v = loop.load %table[%row, %j]
// REMARK: remark: hoist-invariants: rows: moved 3 operations
func.func @main(%table: tensor<9x8xf32>, %ids: tensor<4xi64>) -> tensor<4xf32> {
  %y = loop.kernel @rows(%table, %ids) : (tensor<9x8xf32>, tensor<4xi64>) -> tensor<4xf32> {
  ^bb0(%table: memref<9x8xf32>, %ids: memref<4xi64>, %out: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %s = loop.for %j = 0 to 8 reduce(add) -> f32 {
        %id = loop.load %ids[%i] : memref<4xi64>
        %one = arith.constant 1 : i64
        %next = arith.subi %id, %one : i64
        %row = loop.checked_index %next below 9 : i64
        %v = loop.load %table[%row, %j] : memref<9x8xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

// What depends on the counter stays, and so does what a condition guards.
// CHECK-LABEL: loop.kernel @guarded
// CHECK:         loop.for %j = 0 to 8 reduce(add)
// CHECK-NEXT:      %in = loop.test[%j < 3]
// CHECK-NEXT:      scf.if %in
// CHECK-NEXT:        loop.load %x[%i]
// REMARK: remark: hoist-invariants: guarded: declined: nothing is the same each time
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @guarded(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %out: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %s = loop.for %j = 0 to 8 reduce(add) -> f32 {
        %in = loop.test [%j < 3]
        %v = scf.if %in -> (f32) {
          %w = loop.load %x[%i] : memref<4xf32>
          scf.yield %w : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

// Nothing leaves a loop that may not run, nor the loops that become the axes of the launch.
// CHECK-LABEL: loop.kernel @axes
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      loop.for %i = 0 to 4 {
// CHECK-NEXT:        loop.for %j = 0 to 8 {
// CHECK-NEXT:          loop.for %k = 0 to 0 reduce(max)
// CHECK-NEXT:            loop.load %x[%i]
// CHECK:             loop.load %x[%i]
// REMARK: remark: hoist-invariants: axes: declined: %j is all that its parent does: it becomes an axis of the launch with its body
func.func @main(%x: tensor<4xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel @axes(%x) : (tensor<4xf32>) -> tensor<4x8xf32> {
  ^bb0(%x: memref<4xf32>, %out: memref<4x8xf32>):
    loop.for %i = 0 to 4 {
      loop.for %j = 0 to 8 {
        %m = loop.for %k = 0 to 0 reduce(max) -> f32 {
          %w = loop.load %x[%i] : memref<4xf32>
          loop.yield %w : f32
        }
        %v = loop.load %x[%i] : memref<4xf32>
        %s = arith.addf %m, %v : f32
        loop.store %s, %out[%i, %j] : memref<4x8xf32>
      }
    }
  }
  func.return %y : tensor<4x8xf32>
}
