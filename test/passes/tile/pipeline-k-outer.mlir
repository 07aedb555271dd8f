// RUN: deplo-opt %s -p pipeline-k-outer --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p pipeline-k-outer,pipeline-k-outer --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p pipeline-k-outer,materialize-tile --split-input-file --check-each-pass | FileCheck %s --check-prefix=KERNEL

// Two chunks are on their way while one is computed; one barrier a chunk.
// CHECK:       } attributes {pipelined}
// KERNEL:      kernel.async_copy %in[%b * 32 + %step * 16 + %t floordiv 2, %t mod 2 * 4]
// KERNEL-SAME:   to %s_smem[0, %step * 16 + %t floordiv 2, %t mod 2 * 4] vector 4
// KERNEL:      kernel.async_commit
// KERNEL:      kernel.async_copy %in[%b * 32 + %{{.+}} * 16 + %t floordiv 2, %t mod 2 * 4 + 8]
// KERNEL-SAME:   to %s_smem[1, %
// KERNEL:      kernel.async_commit
// KERNEL:      scf.for %k = %c0 to %c8 step %c1
// KERNEL-NEXT:   kernel.async_wait 1
// KERNEL-NEXT:   kernel.barrier
// KERNEL-NEXT:   %[[more:.+]] = loop.test[%k < 6]
// KERNEL-NEXT:   scf.if %[[more]] {
// KERNEL:          kernel.async_copy {{.+}}%k * 8 + 16 + %t mod 2 * 4] to %s_smem[(%k + 2) mod 3, %
// KERNEL-NEXT:     }
// KERNEL-NEXT:   }
// KERNEL-NEXT:   kernel.async_commit
// KERNEL-NEXT:   %buffer = loop.index[%k mod 3]
// KERNEL-NOT:  kernel.barrier
// KERNEL:        loop.load %s_smem[%buffer, %t, %e]
// KERNEL-NOT:  kernel.barrier
// KERNEL:      loop.store
// REMARK:      remark: pipeline-k-outer: ahead: copies run 2 chunks ahead
// REMARK:      remark: pipeline-k-outer: ahead: declined: the loop is pipelined already
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @ahead(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %s_smem = tile.stage %in[%b * 32, %k * 8] buffers 3 via cp_async : memref<64x64xf32> -> memref<32x8xf32, "shared">
        %c = loop.for %e = 0 to 8 reduce(add) -> f32 {
          %v = loop.load %s_smem[%t, %e] : memref<32x8xf32, "shared">
          loop.yield %v : f32
        } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// What threads copy needs no wait; the barrier is for both.
// KERNEL:      loop.store %{{.+}}, %s_smem[0, %
// KERNEL-NOT:  kernel.async
// KERNEL:      scf.for %k = %c0 to %c8 step %c1
// KERNEL-NEXT:   kernel.barrier
// KERNEL-NEXT:   loop.test[%k < 7]
// KERNEL-NOT:  kernel.barrier
// KERNEL:        loop.load %s_smem[%buffer, %t, %e]
// REMARK:      remark: pipeline-k-outer: sync: copies run 1 chunks ahead
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @sync(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %s_smem = tile.stage %in[%b * 32, %k * 8] buffers 2 : memref<64x64xf32> -> memref<32x8xf32, "shared">
        %c = loop.for %e = 0 to 8 reduce(add) -> f32 {
          %v = loop.load %s_smem[%t, %e] : memref<32x8xf32, "shared">
          loop.yield %v : f32
        } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// Fewer chunks than buffers: nothing is started in the loop, but the waits count groups.
// KERNEL:      scf.for %k = %c0 to %c2 step %c1
// KERNEL-NEXT:   kernel.async_wait 3
// KERNEL-NEXT:   kernel.barrier
// KERNEL-NEXT:   kernel.async_commit
// REMARK:      remark: pipeline-k-outer: few: copies run 4 chunks ahead
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @few(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 2 reduce(add) -> f32 {
        %s_smem = tile.stage %in[%b * 32, %k * 8] buffers 5 via cp_async : memref<64x64xf32> -> memref<32x8xf32, "shared">
        %c = loop.for %e = 0 to 8 reduce(add) -> f32 {
          %v = loop.load %s_smem[%t, %e] : memref<32x8xf32, "shared">
          loop.yield %v : f32
        } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK:      remark: pipeline-k-outer: one: declined: the loop fills one buffer; there is none for a later chunk
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @one(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %s_smem = tile.stage %in[%b * 32, %k * 8] via cp_async : memref<64x64xf32> -> memref<32x8xf32, "shared">
        %c = loop.for %e = 0 to 8 reduce(add) -> f32 {
          %v = loop.load %s_smem[%t, %e] : memref<32x8xf32, "shared">
          loop.yield %v : f32
        } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK:      remark: pipeline-k-outer: nested: declined: the loop stands in another one or under a condition
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @nested(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      loop.for %r = 0 to 1 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %s_smem = tile.stage %in[%b * 32, %k * 8] buffers 2 : memref<64x64xf32> -> memref<32x8xf32, "shared">
          %c = loop.for %e = 0 to 8 reduce(add) -> f32 {
            %v = loop.load %s_smem[%t, %e] : memref<32x8xf32, "shared">
            loop.yield %v : f32
          } attributes {chunk}
          loop.yield %c : f32
        }
        loop.store %s, %out[%b, %t] : memref<2x32xf32>
      }
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK:      remark: pipeline-k-outer: apart: declined: what the loop fills does not stand together
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @apart(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %s_smem = tile.stage %in[%b * 32, %k * 8] buffers 2 : memref<64x64xf32> -> memref<32x8xf32, "shared">
        %v = loop.load %s_smem[%t, 1] : memref<32x8xf32, "shared">
        %r_smem = tile.stage %in[%b * 32, %k * 8] buffers 2 : memref<64x64xf32> -> memref<32x8xf32, "shared">
        %w = loop.load %r_smem[31 - %t, 2] : memref<32x8xf32, "shared">
        %p = arith.mulf %v, %w : f32
        loop.yield %p : f32
      }
      loop.store %s, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK:      remark: pipeline-k-outer: plain: declined: no loop fills a slab
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @plain(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %v = loop.load %in[%b, %t] : memref<64x64xf32>
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}
