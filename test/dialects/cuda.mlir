// Every operation of the cuda dialect prints as it was read, and comes back from the generic form.
// RUN: grep -v '^//' %s > %t.text
// RUN: deplo-opt --assume=race-free %s > %t.custom
// RUN: diff %t.text %t.custom
// RUN: deplo-opt --assume=race-free --print-op-generic %s > %t.generic
// RUN: deplo-opt --assume=race-free %t.generic > %t.back
// RUN: diff %t.text %t.back
builtin.module {
  cuda.func @k_sum(%x: memref<65536xf32>, %h: memref<65536xf16>, %y: memref<65536xf32>) blocks(32) threads(256) index(i32) {
    %shared = kernel.shared : memref<256xf32, "shared">
    %kept = loop.registers : memref<8xf32, "registers">
    %row = kernel.block_id
    %lane = kernel.thread_id
    %zero = arith.constant 0.000000e+00 : f32
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2048 = arith.constant 2048 : index
    %acc = scf.for %k = %c0 to %c2048 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%row * 2048 + %k] : memref<65536xf32>
      %s = arith.addf %so_far, %v : f32
      scf.yield %s : f32
    } {unroll}
    %i = loop.index[%row floordiv 4]
    scf.for %n = %c0 to %i step %c1 {
    } {rolled}
    %c = loop.test[%i < 4, %row >= 2]
    %either = scf.if %c -> (f32) {
      scf.yield %acc : f32
    } else {
      scf.yield %zero : f32
    }
    kernel.assert %c, "few rows"
    scf.if %c {
      loop.store %either, %shared[%lane] : memref<256xf32, "shared">
    }
    kernel.barrier
    %e = math.exp %acc : f32
    %half = arith.truncf %e : f32 to f16
    loop.store %half, %h[0] : memref<65536xf16>
    %integer = arith.fptosi %e : f32 to i32
    %double = arith.uitofp %integer : i32 to f64
    %negative = arith.negf %e : f32
    %less = arith.cmpf olt, %e, %negative : f32
    %chosen = arith.select %less, %e, %negative : f32
    %other = kernel.shuffle %chosen xor 16 : f32
    %d0, %d1, %d2, %d3 = kernel.mma (%half, %half, %half, %half, %half, %half, %half, %half) by (%half, %half, %half, %half) : f16
    %e0, %e1, %e2, %e3 = kernel.mma (%half, %half, %half, %half, %half, %half, %half, %half) by (%half, %half, %half, %half) plus (%d0, %d1, %d2, %d3) : f16
  } attributes {note = "kept"}
  cuda.func @k_slabs() blocks(1) threads(128) index(i32) {
    %xs = kernel.shared align 1024 : memref<8192xbf16, "shared">
    %ws = kernel.shared align 1024 : memref<512xbf16, "shared">
    %block = kernel.block_id
    %z = arith.constant 0.000000e+00 : f32
    %d0, %d1, %d2, %d3 = kernel.wgmma %xs[%block * 4096] by %ws[0] plus (%z, %z, %z, %z) of 64 by 8 : memref<8192xbf16, "shared"> by memref<512xbf16, "shared">
    %p0, %p1, %p2, %p3 = kernel.wgmma %xs[%block * 4096] by %ws[0] plus (%z, %z, %z, %z) of 64 by 8 leaving 1 : memref<8192xbf16, "shared"> by memref<512xbf16, "shared">
    %w0, %w1, %w2, %w3 = kernel.wgmma_wait (%p0, %p1, %p2, %p3)
    %q0, %q1, %q2, %q3 = kernel.wgmma %xs[0] by %ws[0] plus (%z, %z, %z, %z) of 64 by 8 leaving 2 joined : memref<8192xbf16, "shared"> by memref<512xbf16, "shared">
    %r0, %r1, %r2, %r3 = kernel.wgmma %xs[0] by %ws[0] plus (%q0, %q1, %q2, %q3) of 64 by 8 leaving 2 : memref<8192xbf16, "shared"> by memref<512xbf16, "shared">
    %s0, %s1, %s2, %s3 = kernel.wgmma_wait (%r0, %r1, %r2, %r3)
    %h = arith.truncf %d0 : f32 to bf16
    %e0, %e1, %e2, %e3 = kernel.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws[0] plus (%d0, %d1, %d2, %d3) of 64 by 8 : bf16 by memref<512xbf16, "shared">
    %f, %f_1, %f_2, %f_3, %f_4, %f_5, %f_6, %f_7, %f_8, %f_9, %f_10, %f_11, %f_12, %f_13, %f_14, %f_15, %f_16, %f_17, %f_18, %f_19, %f_20, %f_21, %f_22, %f_23, %f_24, %f_25, %f_26, %f_27, %f_28, %f_29, %f_30, %f_31 = kernel.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %xs[%block * 4096] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 64 : bf16 by memref<8192xbf16, "shared">
    %o, %o_1, %o_2, %o_3, %o_4, %o_5, %o_6, %o_7, %o_8, %o_9, %o_10, %o_11, %o_12, %o_13, %o_14, %o_15, %o_16, %o_17, %o_18, %o_19, %o_20, %o_21, %o_22, %o_23, %o_24, %o_25, %o_26, %o_27, %o_28, %o_29, %o_30, %o_31, %o_32, %o_33, %o_34, %o_35, %o_36, %o_37, %o_38, %o_39, %o_40, %o_41, %o_42, %o_43, %o_44, %o_45, %o_46, %o_47, %o_48, %o_49, %o_50, %o_51, %o_52, %o_53, %o_54, %o_55, %o_56, %o_57, %o_58, %o_59, %o_60, %o_61, %o_62, %o_63 = kernel.wgmma %xs[%block * 4096] by %xs[0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 128 : memref<8192xbf16, "shared"> by memref<8192xbf16, "shared">
  }
  cuda.func @k_copy(%x: memref<65536xf32>) blocks(32) threads(64) index(i32) {
    %s = kernel.shared align 16 : memref<256xf32, "shared">
    %lane = kernel.thread_id
    %in = loop.test[%lane < 8]
    kernel.async_copy %x[%lane * 4] to %s[%lane * 4] vector 4 : memref<65536xf32> to memref<256xf32, "shared">
    kernel.async_copy %x[%lane] to %s[0] vector 1 if %in : memref<65536xf32> to memref<256xf32, "shared">
    kernel.async_commit
    kernel.async_wait 1
    kernel.named_barrier 15 threads 32
  }
  cuda.func @k_vector(%x: memref<65536xf32>, %y: memref<65536xf32>) blocks(4) threads(16) index(i32) {
    %t = kernel.thread_id
    %a, %b = kernel.vector_load %x[%t * 2] : memref<65536xf32> -> f32, f32
    kernel.atomic_add %a, %y[%t] : f32, memref<65536xf32>
    kernel.vector_store %b, %a to %y[%t * 2] : f32, f32 to memref<65536xf32>
  }
  cuda.func @k_bulk(%x: !kernel.tensor_map<16x64xf32>) blocks(32) threads(64) index(i32) {
    %s = kernel.shared align 128 : memref<2048xf32, "shared">
    %full = kernel.mbarriers 2
    %row = kernel.block_id
    kernel.mbarrier_init %full[1], 1
    kernel.fence
    kernel.mbarrier_expect_bytes %full[1], 4096
    kernel.bulk_copy %x[%row * 16, 0] to %s[%row mod 2 * 1024] barrier %full[1] : !kernel.tensor_map<16x64xf32> to memref<2048xf32, "shared">
    kernel.mbarrier_wait %full[%row mod 2] parity[%row floordiv 2 mod 2]
  }
  cuda.func @k_cluster(%x: !kernel.tensor_map<8x64xf32>) blocks(32) threads(64) cluster(2) index(i32) {
    %s = kernel.shared align 128 : memref<2048xf32, "shared">
    %full = kernel.mbarriers 2
    %block = kernel.block_id
    kernel.fence cluster
    kernel.barrier cluster
    kernel.bulk_copy %x[%block mod 2 * 8, 0] to %s[%block mod 2 * 512] barrier %full[1] multicast 2 : !kernel.tensor_map<8x64xf32> to memref<2048xf32, "shared">
    kernel.barrier cluster relaxed
  }
  cuda.func @k_asked(%y: memref<65536xf32>) blocks(4) threads(16) index(i32) {
    %s = kernel.shared at 0 : memref<64xf32, "shared">
    %h = kernel.shared align 16 at 256 : memref<8192xf64, "shared">
    %t = kernel.thread_id
    %v = loop.load %s[%t] : memref<64xf32, "shared">
    loop.store %v, %y[%t] : memref<65536xf32>
  }
}
