// RUN: deplo-opt %s -p share-sweeps --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p share-sweeps --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p share-sweeps --split-input-file --check-each-pass >/dev/null

// A sum and a maximum over one row are one sweep that loads each element once.
// CHECK-LABEL: loop.kernel @stats
// CHECK:         %s, %m = loop.for %k = 0 to 8 reduce(add, max) -> f32, f32 {
// CHECK-NEXT:      %v = loop.load %in[%i, %k]
// CHECK-NEXT:      loop.yield %v, %v : f32, f32
// CHECK-NOT:     reduce
// REMARK: remark: share-sweeps: stats: 1 reductions joined the sweep of another
func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @stats(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
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
      %d = arith.divf %s, %m : f32
      loop.store %d, %out[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

// Declined: the second sweep needs what the first one finds; another range.
// CHECK-LABEL: loop.kernel @softmax
// CHECK-COUNT-3: reduce
// REMARK: remark: share-sweeps: softmax: declined: no two reductions run over one range independently
func.func @main(%x: tensor<8xf32>) -> tensor<f32> {
  %y = loop.kernel @softmax(%x) : (tensor<8xf32>) -> tensor<f32> {
  ^bb0(%in: memref<8xf32>, %out: memref<f32>):
    %m = loop.for %k = 0 to 8 reduce(max) -> f32 {
      %v = loop.load %in[%k] : memref<8xf32>
      loop.yield %v : f32
    }
    %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
      %v = loop.load %in[%k] : memref<8xf32>
      %w = arith.subf %v, %m : f32
      loop.yield %w : f32
    }
    %t = loop.for %k = 0 to 4 reduce(add) -> f32 {
      %v = loop.load %in[%k] : memref<8xf32>
      loop.yield %v : f32
    }
    %d = arith.divf %s, %t : f32
    loop.store %d, %out[] : memref<f32>
  }
  func.return %y : tensor<f32>
}
