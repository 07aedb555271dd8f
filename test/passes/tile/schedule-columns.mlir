// RUN: deplo-opt %s -p tileify,schedule-rows{target=cpu:avx512} | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,schedule-rows{target=cpu:avx512},blockify-launch{target=cpu},split-loops' | FileCheck %s --check-prefix=BLOCKS
// RUN: deplo-opt %s -p tileify,schedule-rows{target=cpu:avx512} --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'tileify,schedule-rows{target=cpu:avx512 strip=512},blockify-launch{target=cpu}' | FileCheck %s --check-prefix=ASKED
// RUN: deplo-opt %s -p 'tileify,schedule-rows{target=cpu:avx512 strip=100}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=MISFIT

// Columns come in strips: four blocks, each of which has lines of the cache enough.
// CHECK:  tile.launch (%j = 1024 : thread) schedule(#tile.schedule<grain = 4096, prefetch = 4096, width = 512, strip = 256>)
// REMARK: schedule-rows: k_columns: blocks of about 4096 accesses, asking for 4096 bytes ahead, in vectors of 512 bits, strips of 256 columns
// ASKED:  tile.launch (%j_block = 2 : block) schedule(#tile.schedule<prefetch = 4096, width = 512, serial = 512>)
// MISFIT: schedule-rows: k_columns: declined: strip = 100 is none of 16, 32, 64, 128, 256, 512, 1024
func.func @main(%x: tensor<1024x1024xf32>, %p: tensor<1024x1031xf32>, %d: tensor<1024x?xf32, #sym.extents<s0>>) -> (tensor<1024xf32>, tensor<1031xf32>, tensor<?xf32, #sym.extents<s0>>) attributes {sym.sizes = [#sym.size<"columns", 1, none, hint = 40>]} {
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

  // Where no length divides the columns, the last strip is shorter: its loop ends where the condition does.
  // BLOCKS-LABEL: @k_prime
  // BLOCKS:         tile.launch (%j_block = 5 : block) schedule(#tile.schedule<{{.*}}strip = 256, {{.*}}
  // BLOCKS-NEXT:      loop.for %j_serial = 0 to 256 {
  // BLOCKS-NEXT:        loop.test[%j_block * 256 + %j_serial < 1031]
  %q = loop.kernel @k_prime(%p) : (tensor<1024x1031xf32>) -> tensor<1031xf32> {
  ^bb0(%x: memref<1024x1031xf32>, %out: memref<1031xf32>):
    loop.for %j = 0 to 1031 {
      %s = loop.for %i = 0 to 1024 reduce(add) -> f32 {
        %v = loop.load %x[%i, %j] : memref<1024x1031xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%j] : memref<1031xf32>
    }
  }

  // So it is where their number is a size: strips are as long as suits its hint.
  // BLOCKS-LABEL: @k_size
  // BLOCKS:         tile.launch (%j_block = (s0 - 1) floordiv 32 + 1 : block) schedule(#tile.schedule<{{.*}}strip = 32,
  // BLOCKS-NEXT:      loop.for %j_serial = 0 to 32 {
  // BLOCKS-NEXT:        loop.test[%j_block * 32 + %j_serial < s0]
  %e = loop.kernel @k_size(%d) : (tensor<1024x?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>> {
  ^bb0(%x: memref<1024x?xf32, #sym.extents<s0>>, %out: memref<?xf32, #sym.extents<s0>>):
    loop.for %j = 0 to s0 {
      %s = loop.for %i = 0 to 1024 reduce(add) -> f32 {
        %v = loop.load %x[%i, %j] : memref<1024x?xf32, #sym.extents<s0>>
        loop.yield %v : f32
      }
      loop.store %s, %out[%j] : memref<?xf32, #sym.extents<s0>>
    }
  }
  func.return %y, %q, %e : tensor<1024xf32>, tensor<1031xf32>, tensor<?xf32, #sym.extents<s0>>
}
