// RUN: deplo-opt %s -p tileify,schedule-rows{target=cpu:avx512} | FileCheck %s
// RUN: deplo-opt %s -p tileify,schedule-rows{target=cpu:avx512},schedule-rows{target=cpu:avx2} --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'tileify,schedule-rows{target=cpu:avx512 grain=16384 prefetch=0 width=256}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=ASKED
// RUN: deplo-opt %s -p 'tileify,schedule-rows{target=cpu:avx2 width=512},blockify-launch{target=cpu},lower-tile-to-scf' --remarks 2>&1 | FileCheck %s --check-prefix=MISFIT
// RUN: deplo-opt %s -p 'tileify,schedule-rows{target=cpu:avx2 prefetch=77}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=DISTANCE
// RUN: deplo-opt %s -p 'tileify,schedule-rows{target=cpu:avx2 grain=0}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=GRAIN
// RUN: deplo-opt %s -p 'tileify,schedule-rows{target=cpu:avx2 grain=16384},blockify-launch{target=cpu}' | FileCheck %s --check-prefix=BLOCKS

// RUN: deplo-opt %s -p 'tileify,schedule-rows{target=cpu:avx2 interleave=3}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=COUNT

// COUNT: schedule-rows: k_far: declined: interleave = 3 is none of 0, 1, 2, 4, 8
// ASKED: schedule-rows: k_far: blocks of about 16384 accesses, asking for nothing ahead, in vectors of 256 bits, as asked
// MISFIT: schedule-rows: k_far: declined: width = 512 is none of 256
// MISFIT: schedule-rows: k_far: blocks of about 4096 accesses, asking for 4096 bytes ahead, in vectors of 256 bits
// MISFIT: func.func @k_far({{.*}}) attributes {deplo.kernel, deplo.schedule = #tile.schedule<prefetch = 4096, width = 256>}
// DISTANCE: schedule-rows: k_far: declined: prefetch = 77 is none of 0, 1024, 4096, 16384
// GRAIN: schedule-rows: k_far: declined: a block has at least 1 load or store
// BLOCKS: tile.launch (%i_block = 512 : block) schedule(#tile.schedule<prefetch = 4096, width = 256, serial = 2>)

// 4 MiB do not lie in a core's own cache, 32 KiB do; what reduces nothing writes as much as it reads.
// REMARK: remark: schedule-rows: k_far: blocks of about 4096 accesses, asking for 4096 bytes ahead, in vectors of 512 bits
// REMARK: schedule-rows: k_chains: blocks of about 4096 accesses, asking for nothing ahead, in vectors of 512 bits, 4 at once
// REMARK: remark: schedule-rows: k_far: declined: it has a schedule already
// CHECK:      loop.kernel @k_far
// CHECK:      tile.launch (%i = 1024 : thread) schedule(#tile.schedule<grain = 4096, prefetch = 4096, width = 512>)
// CHECK:      loop.kernel @k_near
// CHECK:      tile.launch (%i = 8 : thread) schedule(#tile.schedule<grain = 4096, width = 512>)
// CHECK:      loop.kernel @k_elements
// CHECK:      tile.launch (%i = 1048576 : thread) schedule(#tile.schedule<grain = 4096, width = 512>)
// A long chain of operations for each element: several at once.
// CHECK:      loop.kernel @k_chains
// CHECK:      tile.launch (%i = 1048576 : thread) schedule(#tile.schedule<grain = 4096, width = 512, interleave = 4>)
// Windows of four elements, which are folded a vector of windows at a time: four times as many accesses.
// CHECK:      loop.kernel @k_windows
// CHECK:      tile.launch (%i = 4093 : thread) schedule(#tile.schedule<grain = 16384, width = 512>)
// Those of neighbouring rows read the same: rows of them are computed side by side.
// CHECK:      loop.kernel @k_overlap
// CHECK:      tile.launch (%i = 6 : thread, %j = 8 : thread) schedule(#tile.schedule<grain = 12288, width = 512, interleave = 1, rows = 4>)
// CHECK:      loop.kernel @k_apart
// CHECK:      tile.launch (%i = 3 : thread, %j = 8 : thread) schedule(#tile.schedule<grain = 12288, width = 512>)
builtin.module {
  func.func @main(%x: tensor<1024x4096xf32>, %y: tensor<8x4096xf32>, %z: tensor<1048576xf32>) -> (tensor<1024xf32>, tensor<8xf32>, tensor<1048576xf32>, tensor<1048576xf32>, tensor<4093xf32>, tensor<6x8xf32>, tensor<3x8xf32>) {
    %a = loop.kernel @k_far(%x) : (tensor<1024x4096xf32>) -> tensor<1024xf32> {
    ^bb0(%x: memref<1024x4096xf32>, %out: memref<1024xf32>):
      loop.for %i = 0 to 1024 {
        %s = loop.for %k = 0 to 4096 reduce(add) -> f32 {
          %v = loop.load %x[%i, %k] : memref<1024x4096xf32>
          loop.yield %v : f32
        }
        loop.store %s, %out[%i] : memref<1024xf32>
      }
    }
    %b = loop.kernel @k_near(%y) : (tensor<8x4096xf32>) -> tensor<8xf32> {
    ^bb0(%y: memref<8x4096xf32>, %out: memref<8xf32>):
      loop.for %i = 0 to 8 {
        %s = loop.for %k = 0 to 4096 reduce(add) -> f32 {
          %v = loop.load %y[%i, %k] : memref<8x4096xf32>
          loop.yield %v : f32
        }
        loop.store %s, %out[%i] : memref<8xf32>
      }
    }
    %c = loop.kernel @k_elements(%z) : (tensor<1048576xf32>) -> tensor<1048576xf32> {
    ^bb0(%z: memref<1048576xf32>, %out: memref<1048576xf32>):
      loop.for %i = 0 to 1048576 {
        %v = loop.load %z[%i] : memref<1048576xf32>
        loop.store %v, %out[%i] : memref<1048576xf32>
      }
    }
    %d = loop.kernel @k_chains(%z) : (tensor<1048576xf32>) -> tensor<1048576xf32> {
    ^bb0(%z: memref<1048576xf32>, %out: memref<1048576xf32>):
      loop.for %i = 0 to 1048576 {
        %v = loop.load %z[%i] : memref<1048576xf32>
        %e = math.exp %v : f32
        loop.store %e, %out[%i] : memref<1048576xf32>
      }
    }
    %e = loop.kernel @k_windows(%z) : (tensor<1048576xf32>) -> tensor<4093xf32> {
    ^bb0(%z: memref<1048576xf32>, %out: memref<4093xf32>):
      loop.for %i = 0 to 4093 {
        %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
          %v = loop.load %z[%i + %k] : memref<1048576xf32>
          loop.yield %v : f32
        }
        loop.store %s, %out[%i] : memref<4093xf32>
      }
    }
    %f = loop.kernel @k_overlap(%y) : (tensor<8x4096xf32>) -> tensor<6x8xf32> {
    ^bb0(%y: memref<8x4096xf32>, %out: memref<6x8xf32>):
      loop.for %i = 0 to 6 {
        loop.for %j = 0 to 8 {
          %s = loop.for %k = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %y[%i + %k, %j] : memref<8x4096xf32>
            loop.yield %v : f32
          }
          loop.store %s, %out[%i, %j] : memref<6x8xf32>
        }
      }
    }
    %g = loop.kernel @k_apart(%y) : (tensor<8x4096xf32>) -> tensor<3x8xf32> {
    ^bb0(%y: memref<8x4096xf32>, %out: memref<3x8xf32>):
      loop.for %i = 0 to 3 {
        loop.for %j = 0 to 8 {
          %s = loop.for %k = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %y[%i * 2 + %k, %j] : memref<8x4096xf32>
            loop.yield %v : f32
          }
          loop.store %s, %out[%i, %j] : memref<3x8xf32>
        }
      }
    }
    func.return %a, %b, %c, %d, %e, %f, %g : tensor<1024xf32>, tensor<8xf32>, tensor<1048576xf32>, tensor<1048576xf32>, tensor<4093xf32>, tensor<6x8xf32>, tensor<3x8xf32>
  }
}
