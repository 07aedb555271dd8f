// RUN: deplo-opt %s -p async-copy --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p async-copy,async-copy --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p async-copy,materialize-tile --split-input-file --check-each-pass | FileCheck %s --check-prefix=KERNEL

// Rows of both are whole numbers of 16 bytes, and so is where the slab begins.
// CHECK:       schedule(#tile.schedule<threads = 32, transport = cp_async>)
// CHECK:       tile.stage %in[%b * 8, 4] via cp_async : memref<32x48xf32> -> memref<8x32xf32, "shared">
// KERNEL:      kernel.shared align 16 : memref<8x32xf32, "shared">
// KERNEL:      kernel.async_copy %in[%b * 8 + %step * 4 + %t floordiv 8, %t mod 8 * 4 + 4]
// KERNEL-SAME:   to %s_smem[%step * 4 + %t floordiv 8, %t mod 8 * 4] vector 4 :
// KERNEL:      kernel.async_commit
// KERNEL-NEXT: kernel.async_wait 0
// KERNEL-NEXT: kernel.barrier
// REMARK:      remark: async-copy: wide: s_smem: copies of up to 4 elements
// REMARK:      remark: async-copy: wide: declined: s_smem: goes by cp_async already
func.func @main(%x: tensor<32x48xf32>) -> tensor<4x32xf32> {
  %y = loop.kernel @wide(%x) : (tensor<32x48xf32>) -> tensor<4x32xf32> {
  ^bb0(%in: memref<32x48xf32>, %out: memref<4x32xf32>):
    tile.launch (%b = 4 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s_smem = tile.stage %in[%b * 8, 4] : memref<32x48xf32> -> memref<8x32xf32, "shared">
      %v = loop.load %s_smem[3, %t] : memref<8x32xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<4x32xf32>
    }
  }
  func.return %y : tensor<4x32xf32>
}

// -----

// The slab begins at a multiple of two; past the end of the source there are zeros.
// KERNEL:      %[[in:.+]] = loop.test[%b * 8 + %step * 2 + %t floordiv 16 < 30]
// KERNEL-NEXT: kernel.async_copy %in[%b * 8 + %step * 2 + %t floordiv 16, %t mod 16 * 2 + 2]
// KERNEL-SAME:   vector 2 if %[[in]] :
// REMARK:      remark: async-copy: half: s_smem: copies of up to 2 elements
func.func @main(%x: tensor<30x48xf32>) -> tensor<4x32xf32> {
  %y = loop.kernel @half(%x) : (tensor<30x48xf32>) -> tensor<4x32xf32> {
  ^bb0(%in: memref<30x48xf32>, %out: memref<4x32xf32>):
    tile.launch (%b = 4 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s_smem = tile.stage %in[%b * 8, 2] : memref<30x48xf32> -> memref<8x32xf32, "shared">
      %v = loop.load %s_smem[7, %t] : memref<8x32xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<4x32xf32>
    }
  }
  func.return %y : tensor<4x32xf32>
}

// -----

// Odd rows of two bytes: the next row begins in the middle of four. One slab can, the other cannot.
// CHECK:  tile.stage %in[0, 0] : memref<4x31xf16> -> memref<4x32xf16, "shared">
// CHECK:  tile.stage %even[0, 0] via cp_async : memref<4x32xf16> -> memref<4x32xf16, "shared">
// REMARK: async-copy: odd: declined: s_smem: rows are not proven to be whole numbers of 4 bytes, in elements of 2
// REMARK: async-copy: odd: e_smem: copies of up to 8 elements
func.func @main(%x: tensor<4x31xf16>, %z: tensor<4x32xf16>) -> tensor<32xf32> {
  %y = loop.kernel @odd(%x, %z) : (tensor<4x31xf16>, tensor<4x32xf16>) -> tensor<32xf32> {
  ^bb0(%in: memref<4x31xf16>, %even: memref<4x32xf16>, %out: memref<32xf32>):
    tile.launch (%t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s_smem = tile.stage %in[0, 0] : memref<4x31xf16> -> memref<4x32xf16, "shared">
      %e_smem = tile.stage %even[0, 0] : memref<4x32xf16> -> memref<4x32xf16, "shared">
      %v = loop.load %s_smem[3, %t] : memref<4x32xf16, "shared">
      %w = loop.load %e_smem[3, %t] : memref<4x32xf16, "shared">
      %f = arith.extf %v : f16 to f32
      %g = arith.extf %w : f16 to f32
      %h = arith.addf %f, %g : f32
      loop.store %h, %out[%t] : memref<32xf32>
    }
  }
  func.return %y : tensor<32xf32>
}

// -----

// REMARK: remark: async-copy: asked: declined: the schedule says that threads copy
func.func @main(%x: tensor<32xf32>) -> tensor<32xf32> {
  %y = loop.kernel @asked(%x) : (tensor<32xf32>) -> tensor<32xf32> {
  ^bb0(%in: memref<32xf32>, %out: memref<32xf32>):
    tile.launch (%t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = sync>) {
      %s_smem = tile.stage %in[0] : memref<32xf32> -> memref<32xf32, "shared">
      %v = loop.load %s_smem[31 - %t] : memref<32xf32, "shared">
      loop.store %v, %out[%t] : memref<32xf32>
    }
  }
  func.return %y : tensor<32xf32>
}

// -----

// REMARK: remark: async-copy: plain: declined: nothing is staged
func.func @main(%x: tensor<32xf32>) -> tensor<32xf32> {
  %y = loop.kernel @plain(%x) : (tensor<32xf32>) -> tensor<32xf32> {
  ^bb0(%in: memref<32xf32>, %out: memref<32xf32>):
    tile.launch (%t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %v = loop.load %in[%t] : memref<32xf32>
      loop.store %v, %out[%t] : memref<32xf32>
    }
  }
  func.return %y : tensor<32xf32>
}
