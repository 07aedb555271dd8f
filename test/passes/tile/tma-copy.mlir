// RUN: deplo-opt %s -p tma-copy --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p tma-copy,tma-copy --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p tma-copy,double-buffer,pipeline-k-outer,materialize-tile --split-input-file --check-each-pass | FileCheck %s --check-prefix=KERNEL
// RUN: deplo-opt %s -p 'tma-copy{target=sm_80}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=SM80

// One thread starts the copies, all wait for the phase of their buffer; thread 0 begins the phases first.
// CHECK:       tile.stage %in[%b * 32, %k * 8] via tma :
// KERNEL-LABEL: kernel.func @ring(%in_map: !kernel.tensor_map<32x8xf32>, %out: memref<2x32xf32>)
// KERNEL:        %s_smem = kernel.shared align 128 : memref<3x32x8xf32, "shared">
// KERNEL:        %full = kernel.mbarriers 3
// KERNEL-NEXT:   %[[one:.+]] = loop.test[%t < 1]
// KERNEL-NEXT:   scf.if %[[one]] {
// KERNEL-NEXT:     kernel.mbarrier_init %full[0], 1
// KERNEL-NEXT:     kernel.mbarrier_init %full[1], 1
// KERNEL-NEXT:     kernel.mbarrier_init %full[2], 1
// KERNEL-NEXT:     kernel.fence
// KERNEL-NEXT:   }
// KERNEL-NEXT:   kernel.barrier
// KERNEL:          kernel.mbarrier_expect_bytes %full[0], 1024
// KERNEL-NEXT:     kernel.bulk_copy %in_map[%b * 32, 0] to %s_smem[0, 0, 0] barrier %full[0]
// KERNEL:          kernel.bulk_copy %in_map[%b * 32, 8] to %s_smem[1, 0, 0] barrier %full[1]
// KERNEL:        scf.for %k = %c0 to %c8
// KERNEL-NEXT:     kernel.mbarrier_wait %full[%k mod 3] parity[%k floordiv 3 mod 2]
// KERNEL-NEXT:     kernel.barrier
// KERNEL-NEXT:     %[[more:.+]] = loop.test[%k < 6]
// KERNEL-NEXT:     scf.if %[[more]] {
// KERNEL-NEXT:       %[[one:.+]] = loop.test[%t < 1]
// KERNEL-NEXT:       scf.if %[[one]] {
// KERNEL-NEXT:         kernel.mbarrier_expect_bytes %full[(%k + 2) mod 3], 1024
// KERNEL-NEXT:         kernel.bulk_copy %in_map[%b * 32, %k * 8 + 16] to %s_smem[(%k + 2) mod 3, 0, 0] barrier %full[(%k + 2) mod 3]
// KERNEL-NOT:    kernel.barrier
// KERNEL:        loop.store
// KERNEL:        %x_map = kernel.tensor_map %x : memref<64x64xf32> to !kernel.tensor_map<32x8xf32>
// KERNEL:        kernel.launch @ring(%x_map, %y)
// REMARK:      remark: tma-copy: ring: s_smem: one copy for the block
// REMARK:      remark: tma-copy: ring: declined: s_smem: goes by tma already
// SM80:        remark: tma-copy: ring: declined: sm_80 has no copy engine
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @ring(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
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

// Outside of a loop there is one phase. What is past the end of the source is zeros.
// KERNEL-LABEL: kernel.func @once
// KERNEL:        kernel.bulk_copy %in_map[%b * 32, 0] to %s_smem[0, 0] barrier %full[0]
// KERNEL:        kernel.mbarrier_wait %full[0] parity[0]
// KERNEL-NOT:    kernel.barrier
// KERNEL:        loop.load %s_smem[%t, 3]
func.func @main(%x: tensor<50x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @once(%x) : (tensor<50x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<50x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s_smem = tile.stage %in[%b * 32, 0] : memref<50x64xf32> -> memref<32x8xf32, "shared">
      %v = loop.load %s_smem[%t, 3] : memref<32x8xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK: remark: tma-copy: narrow: declined: s_smem: rows of a box are multiples of 16 bytes, not 24
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @narrow(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s_smem = tile.stage %in[%b * 32, 0] : memref<64x64xf32> -> memref<32x6xf32, "shared">
      %v = loop.load %s_smem[%t, 3] : memref<32x6xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK: remark: tma-copy: long: declined: s_smem: extents of a box are 1 to 256, not 4, 260
func.func @main(%x: tensor<64x512xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @long(%x) : (tensor<64x512xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x512xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s_smem = tile.stage %in[%b * 32, 0] : memref<64x512xf32> -> memref<4x260xf32, "shared">
      %v = loop.load %s_smem[3, %t] : memref<4x260xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK: remark: tma-copy: strides: declined: s_smem: the stride of axis 0 of memref<64x62xf32> is not proven to be a multiple of 16 bytes
func.func @main(%x: tensor<64x62xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @strides(%x) : (tensor<64x62xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x62xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s_smem = tile.stage %in[%b * 32, 0] : memref<64x62xf32> -> memref<32x8xf32, "shared">
      %v = loop.load %s_smem[%t, 3] : memref<32x8xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK: remark: tma-copy: small: declined: s_smem: a box of 192 bytes does not end where the next can begin, at a multiple of 128
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @small(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s_smem = tile.stage %in[%b * 32, 0] : memref<64x64xf32> -> memref<6x8xf32, "shared">
      %v = loop.load %s_smem[%t mod 6, 3] : memref<6x8xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK: remark: tma-copy: padded: declined: s_smem: its rows are padded, the engine leaves no room between them
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @padded(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s_smem = tile.stage %in[%b * 32, 0] pad 4 : memref<64x64xf32> -> memref<32x8xf32, "shared">
      %v = loop.load %s_smem[%t, 3] : memref<32x8xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK: remark: tma-copy: nested: declined: s_smem: it is filled in a loop inside another or under a condition
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @nested(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      loop.for %r = 0 to 1 {
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
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK: remark: tma-copy: not_asked: declined: the schedule does not ask for it
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @not_asked(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s_smem = tile.stage %in[%b * 32, 0] : memref<64x64xf32> -> memref<32x8xf32, "shared">
      %v = loop.load %s_smem[%t, 3] : memref<32x8xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK: remark: tma-copy: plain: declined: nothing is staged
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @plain(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %v = loop.load %in[%b, %t] : memref<64x64xf32>
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}
