// A loop over chunks copies ahead, where its slabs have buffers.
// RUN: deplo-opt %s -p 'tileify,split{axis=k by=16 into=k_block,k},stage{to=shared},fill{buffers=2 via=cp_async},pipeline{axis=k_block}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,split{axis=k by=16 into=k_block,k},stage{to=shared},fill{buffers=3},pipeline{axis=k_block},materialize-tile' --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'tileify,pipeline{axis=k},split{axis=k by=16 into=k_block,k},stage{to=shared},pipeline{axis=k_block},fill{buffers=2},pipeline{axis=k},pipeline,pipeline{axis=k_block},pipeline{axis=k_block}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK:       tile.stage %w[0, %k_block * 16] buffers 2 via cp_async
// CHECK:       } attributes {pipelined}
// REMARK: pipeline: product: declined: no loop fills a slab
// REMARK: pipeline: product: declined: the loop fills one buffer; there is none for a later chunk
// REMARK: pipeline: product: declined: no loop named k fills a slab; k_block do
// REMARK: pipeline: product: declined: no loop named nothing fills a slab; k_block do
// REMARK: pipeline: product: k_block copies ahead
// REMARK: pipeline: product: declined: the loop is pipelined already
func.func @main(%x: tensor<32x64xf32>, %w: tensor<8x64xf32>) -> tensor<32x8xf32> {
  %y = loop.kernel @product(%x, %w) : (tensor<32x64xf32>, tensor<8x64xf32>) -> tensor<32x8xf32> {
  ^bb0(%x: memref<32x64xf32>, %w: memref<8x64xf32>, %y: memref<32x8xf32>):
    loop.for %i = 0 to 32 {
      loop.for %j = 0 to 8 {
        %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
          %a = loop.load %x[%i, %k] : memref<32x64xf32>
          %b = loop.load %w[%j, %k] : memref<8x64xf32>
          %p = arith.mulf %a, %b : f32
          loop.yield %p : f32
        }
        loop.store %s, %y[%i, %j] : memref<32x8xf32>
      }
    }
  }
  func.return %y : tensor<32x8xf32>
}
