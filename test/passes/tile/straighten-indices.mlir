// RUN: deplo-opt %s -p straighten-indices | FileCheck %s
// RUN: deplo-opt %s -p straighten-indices --check-each-pass >/dev/null
// RUN: deplo-opt %s -p straighten-indices --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: loop.kernel @parts
// CHECK:         loop.load %x[(%p * 6 + %i) floordiv 12, (%p * 6 + %i) floordiv 4 mod 3, (%p * 6 + %i) mod 4]
// CHECK:         loop.store %s, %y[%p]
// CHECK-LABEL: loop.kernel @turned
// CHECK:         loop.load %x[%i mod 8, %i floordiv 8 floordiv 4, %i floordiv 8 mod 4]
// CHECK:         loop.store %v, %y[%i]
// REMARK: straighten-indices: parts: 1 accesses go straight through memory
// REMARK: straighten-indices: turned: declined: all addresses show it
func.func @main(%x: tensor<8x3x4xf32>) -> (tensor<16xf32>, tensor<96xf32>) {
  %y = loop.kernel @parts(%x) : (tensor<8x3x4xf32>) -> tensor<16xf32> {
  ^bb0(%x: memref<8x3x4xf32>, %y: memref<16xf32>):
    tile.launch (%p = 16 : block) {
      %s = loop.for %i = 0 to 6 reduce(add) -> f32 {
        %v = loop.load %x[%p floordiv 2, (%p * 6 + %i) floordiv 4 mod 3, (%p * 6 + %i) mod 4] : memref<8x3x4xf32>
        loop.yield %v : f32
      }
      loop.store %s, %y[%p] : memref<16xf32>
    }
  }
  %z = loop.kernel @turned(%x) : (tensor<8x3x4xf32>) -> tensor<96xf32> {
  ^bb0(%x: memref<8x3x4xf32>, %y: memref<96xf32>):
    tile.launch (%i = 96 : block) {
      %v = loop.load %x[%i mod 8, %i floordiv 8 floordiv 4, %i floordiv 8 mod 4] : memref<8x3x4xf32>
      loop.store %v, %y[%i] : memref<96xf32>
    }
  }
  func.return %y, %z : tensor<16xf32>, tensor<96xf32>
}
