// A schedule may ask for pairs where there are none.
// RUN: not deplo-opt %s -p pack-operands,lower-tile-to-scf 2>&1 | FileCheck %s
// CHECK: @narrow multiplies other factors than bf16; it has no `pairs`
func.func @main(%x: tensor<32x64xf32>, %w: tensor<64x64xf32>) -> tensor<32x64xf32> {
  %y = loop.kernel @narrow(%x, %w) : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32> {
  ^bb0(%x: memref<32x64xf32>, %w: memref<64x64xf32>, %out: memref<32x64xf32>):
    tile.launch (%i = 32 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 32, block_n = 64, block_k = 64, thread_m = 4, thread_n = 32, in_place = 1, pairs = 1, vectors = avx512>) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<32x64xf32>
        %q = loop.load %w[%j, %k] : memref<64x64xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<32x64xf32>
    }
  }
  func.return %y : tensor<32x64xf32>
}
