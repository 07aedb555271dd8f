// RUN: deplo-opt %s -p double-buffer --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p double-buffer,double-buffer --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p double-buffer,materialize-tile --split-input-file --check-each-pass | FileCheck %s --check-prefix=KERNEL
// RUN: deplo-opt %s -p 'double-buffer{target=sm_80}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=SM80
// RUN: deplo-opt %s -p 'double-buffer{target=sm_120}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=SM120

// Copied asynchronously, three buffers are the default; padding counts.
// CHECK:       schedule(#tile.schedule<threads = 32, stages = 3>)
// CHECK:       tile.stage %in[%b * 32, %k * 8] pad 4 buffers 3 via cp_async
// KERNEL:      kernel.shared align 16 : memref<3x32x12xf32, "shared">
// KERNEL:      scf.for %k = %c0 to %c8
// KERNEL-NOT:  kernel.barrier
// KERNEL:        kernel.async_copy {{.+}} to %s_smem[%k mod 3, %step * 16 + %t floordiv 2, %t mod 2 * 4]
// KERNEL:        kernel.async_commit
// KERNEL-NEXT:   kernel.async_wait 0
// KERNEL-NEXT:   kernel.barrier
// KERNEL-NEXT:   %buffer = loop.index[%k mod 3]
// KERNEL-NOT:  kernel.barrier
// KERNEL:        loop.load %s_smem[%buffer, %t, %e] : memref<3x32x12xf32, "shared">
// REMARK:      remark: double-buffer: three: 3 buffers of each slab, 4608 bytes in all
// REMARK:      remark: double-buffer: three: declined: they take turns already
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @three(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %s_smem = tile.stage %in[%b * 32, %k * 8] pad 4 via cp_async : memref<64x64xf32> -> memref<32x8xf32, "shared">
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

// What threads copy has two.
// CHECK:       tile.stage %in[%b * 32, %k * 8] buffers 2 :
// KERNEL:        loop.store %{{.+}}, %s_smem[%k mod 2, %step * 4 + %t floordiv 8, %t mod 8]
// REMARK:      remark: double-buffer: two: 2 buffers of each slab, 2048 bytes in all
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @two(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %s_smem = tile.stage %in[%b * 32, %k * 8] : memref<64x64xf32> -> memref<32x8xf32, "shared">
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

// The schedule says how many; there are no more than chunks.
// REMARK:      remark: double-buffer: asked: 5 buffers of each slab, 5120 bytes in all
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @asked(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, stages = 5>) {
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

// REMARK:      remark: double-buffer: one_asked: declined: the schedule says 1 buffer
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @one_asked(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, stages = 1>) {
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

// REMARK:      remark: double-buffer: nine_asked: declined: the schedule says 9 buffers, more than 8
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @nine_asked(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, stages = 9>) {
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

// REMARK:      remark: double-buffer: short: 2 buffers of each slab, 2048 bytes in all
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @short(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 2 reduce(add) -> f32 {
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

// REMARK:      remark: double-buffer: single: declined: there is one chunk only
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @single(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 1 reduce(add) -> f32 {
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

// Two of 64 KB fit sm_90a's multiprocessor, but would leave no room for a second block.
// REMARK:      remark: double-buffer: large: declined: 2 buffers of 65536 bytes exceed the 115712 of half a multiprocessor
func.func @main(%x: tensor<64x1024xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @large(%x) : (tensor<64x1024xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x1024xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 2 reduce(add) -> f32 {
        %s_smem = tile.stage %in[%b * 32, %k * 512] via cp_async : memref<64x1024xf32> -> memref<32x512xf32, "shared">
        %c = loop.for %e = 0 to 512 reduce(add) -> f32 {
          %v = loop.load %s_smem[%t, %e] : memref<32x512xf32, "shared">
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

// Who asks for them gets them, up to what a block can have.
// REMARK:      remark: double-buffer: large_asked: 2 buffers of each slab, 131072 bytes in all
// SM80:        remark: double-buffer: large_asked: 2 buffers of each slab, 131072 bytes in all
// SM120:       remark: double-buffer: large_asked: declined: 2 buffers of 65536 bytes exceed the 101376 that a block of sm_120 can have
func.func @main(%x: tensor<64x1024xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @large_asked(%x) : (tensor<64x1024xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x1024xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, stages = 2>) {
      %s = loop.for %k = 0 to 2 reduce(add) -> f32 {
        %s_smem = tile.stage %in[%b * 32, %k * 512] via cp_async : memref<64x1024xf32> -> memref<32x512xf32, "shared">
        %c = loop.for %e = 0 to 512 reduce(add) -> f32 {
          %v = loop.load %s_smem[%t, %e] : memref<32x512xf32, "shared">
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

// REMARK:      remark: double-buffer: whole: declined: no loop fills a slab anew
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @whole(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s_smem = tile.stage %in[%b * 32, 0] : memref<64x64xf32> -> memref<32x8xf32, "shared">
      %v = loop.load %s_smem[%t, 3] : memref<32x8xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}
