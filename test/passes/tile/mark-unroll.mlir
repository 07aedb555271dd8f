// RUN: deplo-opt %s -p mark-unroll --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p mark-unroll --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p mark-unroll,mark-unroll --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=TWICE
// TWICE: remark: mark-unroll: short: declined: its short loops are marked already
// RUN: deplo-opt %s -p mark-unroll,tile-to-cuda -t cuda --split-input-file | FileCheck %s --check-prefix=CPP

// The innermost loop is short; the one around it holds a loop.
// CHECK:      loop.for %i = 0 to 4 {
// CHECK:        loop.for %k = 0 to 8 reduce(add) -> f32 {
// CHECK:        } attributes {unroll}
// CHECK-NOT:  } attributes {unroll}
// CPP:        for (int i = 0; i < 4; ++i) {
// CPP:            #pragma unroll
// CPP-NEXT:       for (int k = 0; k < 8; ++k) {
// REMARK: remark: mark-unroll: short: 1 loop
func.func @main(%x: tensor<2x4x8xf32>) -> tensor<2x4xf32> {
  %y = loop.kernel @short(%x) : (tensor<2x4x8xf32>) -> tensor<2x4xf32> {
  ^bb0(%in: memref<2x4x8xf32>, %out: memref<2x4xf32>):
    tile.launch (%b = 2 : block) schedule(#tile.schedule<threads = 1>) {
      loop.for %i = 0 to 4 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %v = loop.load %in[%b, %i, %k] : memref<2x4x8xf32>
          loop.yield %v : f32
        }
        loop.store %s, %out[%b, %i] : memref<2x4xf32>
      }
    }
  }
  func.return %y : tensor<2x4xf32>
}

// -----

// Too many iterations, and a number of them that is known only at the call.
// REMARK: remark: mark-unroll: long: declined: no innermost loop has 2 to 64 iterations
// REMARK: remark: mark-unroll: dynamic: declined: no innermost loop has 2 to 64 iterations
func.func @main(%x: tensor<2x65xf32>, %d: tensor<2x?xf32, #sym.extents<s0>>) -> (tensor<2xf32>, tensor<2xf32>) {
  %y = loop.kernel @long(%x) : (tensor<2x65xf32>) -> tensor<2xf32> {
  ^bb0(%in: memref<2x65xf32>, %out: memref<2xf32>):
    tile.launch (%b = 2 : block) schedule(#tile.schedule<threads = 1>) {
      %s = loop.for %k = 0 to 65 reduce(add) -> f32 {
        %v = loop.load %in[%b, %k] : memref<2x65xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%b] : memref<2xf32>
    }
  }
  %z = loop.kernel @dynamic(%d) : (tensor<2x?xf32, #sym.extents<s0>>) -> tensor<2xf32> {
  ^bb0(%in: memref<2x?xf32, #sym.extents<s0>>, %out: memref<2xf32>):
    tile.launch (%b = 2 : block) schedule(#tile.schedule<threads = 1>) {
      %s = loop.for %k = 0 to s0 reduce(add) -> f32 {
        %v = loop.load %in[%b, %k] : memref<2x?xf32, #sym.extents<s0>>
        loop.yield %v : f32
      }
      loop.store %s, %out[%b] : memref<2xf32>
    }
  }
  func.return %y, %z : tensor<2xf32>, tensor<2xf32>
}
