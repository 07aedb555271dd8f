// RUN: deplo-opt %s -p tileify,schedule-rows{target=cpu:avx512} | FileCheck %s --check-prefix=FAST
// RUN: deplo-opt %s -p tileify,schedule-rows{target=cpu:amx} | FileCheck %s --check-prefix=SLOW

// Rows are divided by what they add up to where that takes no longer than products with its inverse: that
// depends on the core, if rows are not short.
// FAST-LABEL: @k_short
// FAST:         schedule(#tile.schedule<grain = 4096, width = 512, interleave = 1, rows = 4, divide = 1>)
// FAST-LABEL: @k_long
// FAST:         schedule(#tile.schedule<grain = 4096, width = 512, interleave = 2, rows = 2, divide = 1>)
// SLOW-LABEL: @k_short
// SLOW:         schedule(#tile.schedule<grain = 4096, width = 512, interleave = 1, rows = 4, divide = 1>)
// SLOW-LABEL: @k_long
// SLOW:         schedule(#tile.schedule<grain = 4096, width = 512, interleave = 2, rows = 2>)
builtin.module {
  func.func @main(%x: tensor<64x100xf32>, %z: tensor<64x300xf32>) -> (tensor<64x100xf32>, tensor<64x300xf32>) {
    %y = loop.kernel @k_short(%x) : (tensor<64x100xf32>) -> tensor<64x100xf32> {
    ^bb0(%x: memref<64x100xf32>, %y: memref<64x100xf32>):
      loop.for %i = 0 to 64 {
        %s = loop.for %j = 0 to 100 reduce(add) -> f32 {
          %v = loop.load %x[%i, %j] : memref<64x100xf32>
          %e = math.exp %v : f32
          loop.yield %e : f32
        }
        loop.for %j = 0 to 100 {
          %v = loop.load %x[%i, %j] : memref<64x100xf32>
          %e = math.exp %v : f32
          %q = arith.divf %e, %s : f32
          loop.store %q, %y[%i, %j] : memref<64x100xf32>
        }
      }
    }
    %w = loop.kernel @k_long(%z) : (tensor<64x300xf32>) -> tensor<64x300xf32> {
    ^bb0(%x: memref<64x300xf32>, %y: memref<64x300xf32>):
      loop.for %i = 0 to 64 {
        %s = loop.for %j = 0 to 300 reduce(add) -> f32 {
          %v = loop.load %x[%i, %j] : memref<64x300xf32>
          %e = math.exp %v : f32
          loop.yield %e : f32
        }
        loop.for %j = 0 to 300 {
          %v = loop.load %x[%i, %j] : memref<64x300xf32>
          %e = math.exp %v : f32
          %q = arith.divf %e, %s : f32
          loop.store %q, %y[%i, %j] : memref<64x300xf32>
        }
      }
    }
    func.return %y, %w : tensor<64x100xf32>, tensor<64x300xf32>
  }
}
