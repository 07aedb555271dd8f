// RUN: deplo-opt %s -p dedup-loads --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p dedup-loads --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p dedup-loads --split-input-file --check-each-pass >/dev/null

// One load serves both uses; the load that nobody reads is gone.
// CHECK-LABEL: loop.kernel @square
// CHECK:         %a = loop.load %in[%i] : memref<8xf32>
// CHECK-NEXT:    %c = arith.mulf %a, %a : f32
// CHECK-NEXT:    loop.store %c
// REMARK: remark: dedup-loads: square: removed 2 operations
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = loop.kernel @square(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<8xf32>, %out: memref<8xf32>):
    loop.for %i = 0 to 8 {
      %a = loop.load %in[%i] : memref<8xf32>
      %b = loop.load %in[%i] : memref<8xf32>
      %unused = loop.load %in[0] : memref<8xf32>
      %c = arith.mulf %a, %b : f32
      loop.store %c, %out[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// -----

// A whole reduction that was made before stands for the second one; another combiner does not.
// CHECK-LABEL: loop.kernel @twice
// CHECK-COUNT-1: reduce(add)
// CHECK:         reduce(max)
// CHECK-NOT:     reduce(add)
func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @twice(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%in: memref<4x8xf32>, %out: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<4x8xf32>
        loop.yield %v : f32
      }
      %m = loop.for %k = 0 to 8 reduce(max) -> f32 {
        %v = loop.load %in[%i, %k] : memref<4x8xf32>
        loop.yield %v : f32
      }
      %t = loop.for %j = 0 to 8 reduce(add) -> f32 {
        %v = loop.load %in[%i, %j] : memref<4x8xf32>
        loop.yield %v : f32
      }
      %a = arith.addf %s, %t : f32
      %b = arith.addf %a, %m : f32
      loop.store %b, %out[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

// A value of an inner loop does not stand for one outside of it; nothing is removed.
// CHECK-LABEL: loop.kernel @scopes
// CHECK-COUNT-2: loop.load
// REMARK: remark: dedup-loads: scopes: declined: nothing is computed twice
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = loop.kernel @scopes(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<8xf32>, %out: memref<8xf32>):
    %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
      %v = loop.load %in[0] : memref<8xf32>
      loop.yield %v : f32
    }
    %w = loop.load %in[0] : memref<8xf32>
    %t = arith.addf %s, %w : f32
    loop.for %i = 0 to 8 {
      loop.store %t, %out[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// -----

// The order of the operands of a product is no difference; that of a difference is.
// CHECK-LABEL: loop.kernel @commutative
// CHECK:         %[[p:.+]] = arith.mulf
// CHECK-NEXT:    %[[d:.+]] = arith.subf %[[p]], %a
// CHECK-NEXT:    %[[e:.+]] = arith.subf %a, %[[p]]
// REMARK: remark: dedup-loads: commutative: removed 1 operations
func.func @main(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %z = loop.kernel @commutative(%x, %y) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8xf32>, %y: memref<8xf32>, %out: memref<8xf32>):
    loop.for %i = 0 to 8 {
      %a = loop.load %x[%i] : memref<8xf32>
      %b = loop.load %y[%i] : memref<8xf32>
      %p = arith.mulf %a, %b : f32
      %q = arith.mulf %b, %a : f32
      %d = arith.subf %p, %a : f32
      %e = arith.subf %a, %q : f32
      %f = arith.divf %d, %e : f32
      loop.store %f, %out[%i] : memref<8xf32>
    }
  }
  func.return %z : tensor<8xf32>
}
