// Every operation of the kernel dialect prints as it was read, and comes back from the generic form.
// RUN: grep -v '^//' %s > %t.text
// RUN: deplo-opt --assume=race-free %s > %t.custom
// RUN: diff %t.text %t.custom
// RUN: deplo-opt --assume=race-free --print-op-generic %s > %t.generic
// RUN: deplo-opt --assume=race-free %t.generic > %t.back
// RUN: diff %t.text %t.back
builtin.module {
  kernel.func @k_sum(%x: memref<32x256xf32>, %n: index, %y: memref<32xf32>) blocks(32) threads(256) {
    %row = kernel.block_id
    %lane = kernel.thread_id
    %shared = kernel.shared : memref<256xf32, "shared">
    %v = loop.load %x[%row, %lane] : memref<32x256xf32>
    loop.store %v, %shared[%lane] : memref<256xf32, "shared">
    kernel.barrier
    kernel.named_barrier 1 threads 64
    %s = kernel.shuffle %v xor 16 : f32
    %ok = loop.test[%lane < 256]
    kernel.assert %ok, "a message"
    %h = arith.truncf %s : f32 to bf16
    %d0, %d1, %d2, %d3 = kernel.mma (%h, %h, %h, %h, %h, %h, %h, %h) by (%h, %h, %h, %h) : bf16
    %e0, %e1, %e2, %e3 = kernel.mma (%h, %h, %h, %h, %h, %h, %h, %h) by (%h, %h, %h, %h) plus (%d0, %d1, %d2, %d3) : bf16
    loop.store %s, %y[%row] : memref<32xf32>
  } attributes {note = "kept"}
  kernel.func @k_slabs() blocks(1) threads(128) {
    %xs = kernel.shared align 1024 : memref<2x64x64xbf16, "shared">
    %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
    %row = kernel.block_id
    %z = arith.constant 0.000000e+00 : f32
    %d0, %d1, %d2, %d3 = kernel.wgmma %xs[%row mod 2, 0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) : memref<2x64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
    %j0, %j1, %j2, %j3 = kernel.wgmma %xs[%row mod 2, 0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) leaving 3 joined : memref<2x64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
    %p0, %p1, %p2, %p3 = kernel.wgmma %xs[%row mod 2, 0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) leaving 2 : memref<2x64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
    %w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7 = kernel.wgmma_wait (%j0, %j1, %j2, %j3, %p0, %p1, %p2, %p3)
    %h = arith.truncf %d0 : f32 to bf16
    %e0, %e1, %e2, %e3 = kernel.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws[0, 0] plus (%d0, %d1, %d2, %d3) : bf16 by memref<8x64xbf16, "shared">
    %f, %f_1, %f_2, %f_3, %f_4, %f_5, %f_6, %f_7, %f_8, %f_9, %f_10, %f_11, %f_12, %f_13, %f_14, %f_15, %f_16, %f_17, %f_18, %f_19, %f_20, %f_21, %f_22, %f_23, %f_24, %f_25, %f_26, %f_27, %f_28, %f_29, %f_30, %f_31 = kernel.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %xs[%row mod 2, 0, 0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) : bf16 by memref<2x64x64xbf16, "shared">
    %ps = kernel.shared align 1024 : memref<2x64x64xbf16, "shared">
    %o, %o_1, %o_2, %o_3, %o_4, %o_5, %o_6, %o_7, %o_8, %o_9, %o_10, %o_11, %o_12, %o_13, %o_14, %o_15, %o_16, %o_17, %o_18, %o_19, %o_20, %o_21, %o_22, %o_23, %o_24, %o_25, %o_26, %o_27, %o_28, %o_29, %o_30, %o_31, %o_32, %o_33, %o_34, %o_35, %o_36, %o_37, %o_38, %o_39, %o_40, %o_41, %o_42, %o_43, %o_44, %o_45, %o_46, %o_47, %o_48, %o_49, %o_50, %o_51, %o_52, %o_53, %o_54, %o_55, %o_56, %o_57, %o_58, %o_59, %o_60, %o_61, %o_62, %o_63 = kernel.wgmma %xs[%row mod 2, 0, 0] by %ps[0, 0, 0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 128 : memref<2x64x64xbf16, "shared"> by memref<2x64x64xbf16, "shared">
  }
  kernel.func @k_narrow(%y: memref<32xf32>) blocks(32) threads(1) resident(2) index(i32) {
    %row = kernel.block_id
    %lane = kernel.thread_id
  }
  kernel.func @k_copy(%x: memref<32x256xf32>, %h: memref<8x64xf16>) blocks(32) threads(64) {
    %row = kernel.block_id
    %lane = kernel.thread_id
    %slab = kernel.shared align 16 : memref<2x256xf32, "shared">
    %halves = kernel.shared align 8 : memref<256xf16, "shared">
    %in = loop.test[%row < 8]
    kernel.async_copy %x[%row, %lane * 4] to %slab[1, %lane * 4] vector 4 : memref<32x256xf32> to memref<2x256xf32, "shared">
    kernel.async_copy %h[%row, 8] to %halves[%lane * 4] vector 4 if %in : memref<8x64xf16> to memref<256xf16, "shared">
    kernel.async_commit
    kernel.async_wait 1
    kernel.async_wait 0
  }
  kernel.func @k_bulk(%x: !kernel.tensor_map<16x64xf32>, %h: !kernel.tensor_map<1x8x64xbf16, swizzle 128>) blocks(32) threads(64) {
    %row = kernel.block_id
    %slab = kernel.shared align 128 : memref<2x16x64xf32, "shared">
    %halves = kernel.shared align 1024 : memref<8x64xbf16, "shared">
    %full = kernel.mbarriers 2
    kernel.mbarrier_init %full[1], 1
    kernel.fence
    kernel.mbarrier_expect_bytes %full[1], 5120
    kernel.bulk_copy %x[%row * 16, 0] to %slab[%row mod 2, 0, 0] barrier %full[1] : !kernel.tensor_map<16x64xf32> to memref<2x16x64xf32, "shared">
    kernel.bulk_copy %h[%row, 8, 0] to %halves[0, 0] barrier %full[%row mod 2] : !kernel.tensor_map<1x8x64xbf16, swizzle 128> to memref<8x64xbf16, "shared">
    kernel.mbarrier_wait %full[%row mod 2] parity[%row floordiv 2 mod 2]
  }
  kernel.func @k_cluster(%x: !kernel.tensor_map<8x64xf32>) blocks(32) threads(64) resident(1) cluster(2) index(i32) {
    %block = kernel.block_id
    %slab = kernel.shared align 128 : memref<2x16x64xf32, "shared">
    %full = kernel.mbarriers 2
    kernel.mbarrier_init %full[1], 1
    kernel.fence cluster
    kernel.barrier cluster
    kernel.mbarrier_expect_bytes %full[1], 4096
    kernel.bulk_copy %x[%block mod 2 * 8, 0] to %slab[1, %block mod 2 * 8, 0] barrier %full[1] multicast 2 : !kernel.tensor_map<8x64xf32> to memref<2x16x64xf32, "shared">
    kernel.barrier cluster relaxed
  }
  kernel.func @k_vector(%x: memref<4x64xf32>, %y: memref<64xf16>) blocks(4) threads(16) {
    %t = kernel.thread_id
    %a, %b = kernel.vector_load %x[1, %t * 2] : memref<4x64xf32> -> f32, f32
    %c, %d, %e, %f = kernel.vector_load %y[%t * 4] : memref<64xf16> -> f16, f16, f16, f16
    kernel.atomic_add %a, %x[3, %t] : f32, memref<4x64xf32>
    kernel.vector_store %d, %c, %f, %e to %y[%t * 4] : f16, f16, f16, f16 to memref<64xf16>
  }
  func.func @describe(%x: memref<512x64xf32>) {
    %map = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<16x64xf32>
    func.return
  }
  func.func @main(%x: memref<32x256xf32>, %n: index) -> memref<32xf32> {
    %y = kernel.alloc : memref<32xf32>
    %z = kernel.alloc at 128 : memref<32xf32>
    kernel.launch @k_sum(%x, %n, %y) blocks(32) threads(256) : memref<32x256xf32>, index, memref<32xf32>
    func.return %y : memref<32xf32>
  }
  func.func @call(%x: memref<4x4xf32>, %w: memref<4xf32>, %v: memref<4x4xcomplex<f32>>) {
    kernel.call "aten.linalg_eigh.default"(input = %x, UPLO = "L") into(%w, %v) : memref<4x4xf32>, memref<4xf32>, memref<4x4xcomplex<f32>>
    kernel.call "aten.rand.default"(size = [4]) into(%w) attributes {deplo.reason = "a reason"} : memref<4xf32>
    kernel.call "aten._linalg_check_errors.default"(info = %w, api_name = "linalg.inv", is_matrix = true) into() : memref<4xf32>
    func.return
  }
  func.func @loop(%h: memref<4xf32>, %x: memref<9x4xf32>, %hs: memref<9x4xf32>, %ys: memref<9x8xf16>) {
    kernel.loop carried(%h_1 = %h) slices(%x_t = %x) stacks(%h_t = %hs, %y_t = %ys) : memref<4xf32>, memref<9x4xf32>, memref<9x4xf32>, memref<9x8xf16> {
      kernel.launch @k_step(%h_1, %x_t, %h_t, %y_t) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<8xf16>
    }
    kernel.loop reversed carried() slices() stacks(%h_t_1 = %hs) : memref<9x4xf32> {
      kernel.launch @k_one(%h_t_1) blocks(1) threads(1) : memref<4xf32>
    } attributes {deplo.note = "kept"}
    func.return
  }
}
