// The blocks and packed operands of a CPU's contraction, by choices that are given.
// RUN: deplo-opt %s -p 'tileify,legacy{block_k=32 block_m=16 block_n=32 thread_m=4 thread_n=16 vectors=avx512}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,legacy{block_k=32 block_m=16 block_n=32 in_place=1 thread_m=4 thread_n=16 vectors=avx512}' | FileCheck %s --check-prefix=PLACE
// RUN: deplo-opt %s -p 'tileify,legacy{block_k=32 block_m=32 block_n=16 thread_m=4 thread_n=16 turned=1 vectors=avx512}' | FileCheck %s --check-prefix=TURNED
// RUN: deplo-opt %s -p 'tileify,legacy{block_k=32 block_m=18 block_n=32 thread_m=4 thread_n=16 vectors=avx512},legacy{block_k=32 block_m=16 block_n=32 thread_m=4 thread_n=16 vectors=neon},legacy{block_k=32 block_m=16 block_n=32 thread_m=4 thread_n=16 vectors=avx512}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not deplo-opt %s -p 'tileify,legacy{block_m=16}' 2>&1 | FileCheck %s --check-prefix=VECTORS

// CHECK-LABEL: loop.kernel @product
// CHECK:         tile.launch (%i_block = 2 : block, %j_block = 2 : block, %i = 16 : thread, %j = 32 : thread) schedule(#tile.schedule<m = 2, n = 3, block_m = 16, block_n = 32, block_k = 32, thread_m = 4, thread_n = 16, vectors = avx512>) {
// CHECK:           tile.pack (%i_1 = 16, %k = 32) pad 16
// CHECK:           tile.pack (%j_1 = 32, %k_1 = 32) panels 16
// PLACE:           tile.pack (%i_1 = 16, %k = 32) in_place
// TURNED:        tile.launch (%i_block = 2 : block, %j_block = 2 : block, %i = 16 : thread, %j = 32 : thread) schedule(#tile.schedule<m = 3, n = 2, block_m = 32, block_n = 16
// REMARK: remark: legacy: product: declined: blocks of 18 by 32 are not made of register tiles of 4 by 16
// REMARK: remark: legacy: few: declined: 2048 multiply-adds are too few to pack operands for
// REMARK: remark: legacy: product: blocks of 16 by 32, register tiles of 4 by 16 for neon
// REMARK: remark: legacy: product: declined: its blocks read packed copies, which are made for its axes
// VECTORS: vectors is one of amx, avx512, avx2, neon, sse2, not nothing
func.func @main(%x: tensor<32x64xf32>, %w: tensor<64x64xf32>, %v: tensor<8x64xf32>) -> (tensor<32x64xf32>, tensor<4x8xf32>) {
  %y = loop.kernel @product(%x, %w) : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32> {
  ^bb0(%x: memref<32x64xf32>, %w: memref<64x64xf32>, %y: memref<32x64xf32>):
    loop.for %i = 0 to 32 {
      loop.for %j = 0 to 64 {
        %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<32x64xf32>
          %q = loop.load %w[%j, %k] : memref<64x64xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %y[%i, %j] : memref<32x64xf32>
      }
    }
  }
  %z = loop.kernel @few(%x, %v) : (tensor<32x64xf32>, tensor<8x64xf32>) -> tensor<4x8xf32> {
  ^bb0(%x: memref<32x64xf32>, %v: memref<8x64xf32>, %z: memref<4x8xf32>):
    loop.for %i = 0 to 4 {
      loop.for %j = 0 to 8 {
        %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<32x64xf32>
          %q = loop.load %v[%j, %k] : memref<8x64xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %z[%i, %j] : memref<4x8xf32>
      }
    }
  }
  func.return %y, %z : tensor<32x64xf32>, tensor<4x8xf32>
}
