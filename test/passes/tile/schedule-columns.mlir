// RUN: deplo-opt %s -p tileify,schedule-rows{vectors=avx512} | FileCheck %s
// RUN: deplo-opt %s -p tileify,schedule-rows{vectors=avx512} --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'tileify,schedule-rows{vectors=avx512 strip=512},blockify-launch{target=cpu}' | FileCheck %s --check-prefix=ASKED
// RUN: deplo-opt %s -p 'tileify,schedule-rows{vectors=avx512 strip=100}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=MISFIT

// Columns come in strips: four blocks, each of which has lines of the cache enough.
// CHECK:  tile.launch (%j = 1024 : thread) schedule(#tile.schedule<grain = 4096, prefetch = 4096, width = 512, strip = 256>)
// REMARK: schedule-rows: k_columns: blocks of about 4096 accesses, asking for 4096 bytes ahead, in vectors of 512 bits, strips of 256 columns
// ASKED:  tile.launch (%j_block = 2 : block) schedule(#tile.schedule<prefetch = 4096, width = 512, serial = 512>)
// MISFIT: schedule-rows: k_columns: declined: strip = 100 is none of 16, 32, 64, 128, 256, 512, 1024
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024xf32> {
  %y = loop.kernel @k_columns(%x) : (tensor<1024x1024xf32>) -> tensor<1024xf32> {
  ^bb0(%x: memref<1024x1024xf32>, %out: memref<1024xf32>):
    loop.for %j = 0 to 1024 {
      %s = loop.for %i = 0 to 1024 reduce(add) -> f32 {
        %v = loop.load %x[%i, %j] : memref<1024x1024xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%j] : memref<1024xf32>
    }
  }
  func.return %y : tensor<1024xf32>
}
