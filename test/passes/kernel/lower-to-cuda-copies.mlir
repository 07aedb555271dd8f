// RUN: deplo-opt %s --assume=race-free -p choose-index-width,lower-to-cuda --split-input-file | FileCheck %s
// RUN: deplo-opt %s --assume=race-free -p choose-index-width,lower-to-cuda -t cuda --split-input-file | FileCheck %s --check-prefix=CPP
// RUN: deplo-opt %s --assume=race-free -p choose-index-width,lower-to-cuda --split-input-file --check-each-pass >/dev/null 2>%t.err
// RUN: diff /dev/null %t.err

// Two slots: a row is on its way while the last one is added up. What is beyond the last row is zeros.
// CHECK-LABEL: cuda.func @pipeline(%x: memref<2048xf32>, %y: memref<128xf32>) blocks(2) threads(64) index(i32) {
// CHECK:       %b = kernel.block_id
// CHECK-NEXT:  %t = kernel.thread_id
// CHECK-NEXT:  %zero = arith.constant 0.000000e+00 : f32
// CHECK:       %s = kernel.shared align 16 : memref<512xf32, "shared">
// CHECK-NEXT:  kernel.async_copy %x[%b * 1024 + %t * 4] to %s[%t * 4] vector 4 : memref<2048xf32> to memref<512xf32, "shared">
// CHECK-NEXT:  kernel.async_commit
// CHECK-NEXT:  %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (f32) {
// CHECK-NEXT:  %more = loop.test[%k < 3]
// CHECK-NEXT:  kernel.async_copy %x[%b * 1024 + %k * 256 + %t * 4 + 256] to %s[(%k + 1) mod 2 * 256 + %t * 4] vector 4 if %more : memref<2048xf32> to memref<512xf32, "shared">
// CHECK-NEXT:  kernel.async_commit
// CHECK-NEXT:  kernel.async_wait 1
// CHECK-NEXT:  kernel.barrier
// CHECK-NEXT:  %v = loop.load %s[%k mod 2 * 256 - %t + 255] : memref<512xf32, "shared">
// CHECK-NEXT:  %n = arith.addf %acc, %v : f32
// CHECK-NEXT:  kernel.barrier
// CHECK-NEXT:  scf.yield %n : f32
// CHECK-NEXT:  }
// CHECK-NEXT:  kernel.async_wait 0
// CHECK-NEXT:  loop.store %sum, %y[%b * 64 + %t] : memref<128xf32>
// CPP:        __shared__ __align__(16) float s[512];
// CPP:        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((unsigned)__cvta_generic_to_shared(&s[t * 4])), "l"(&x[b * 1024 + t * 4]) : "memory");
// CPP:        asm volatile("cp.async.commit_group;" ::: "memory");
// CPP:        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" :: "r"((unsigned)__cvta_generic_to_shared(&s[(k + 1) % 2 * 256 + t * 4])), "l"(&x[b * 1024 + k * 256 + t * 4 + 256]), "r"(more ? 16 : 0) : "memory");
// CPP:        asm volatile("cp.async.commit_group;" ::: "memory");
// CPP:        asm volatile("cp.async.wait_group 1;" ::: "memory");
// CPP:        asm volatile("cp.async.wait_group 0;" ::: "memory");
kernel.func @pipeline(%x: memref<8x256xf32>, %y: memref<128xf32>) blocks(2) threads(64) {
  %b = kernel.block_id
  %t = kernel.thread_id
  %zero = arith.constant 0.000000e+00 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %s = kernel.shared align 16 : memref<2x256xf32, "shared">
  kernel.async_copy %x[%b * 4, %t * 4] to %s[0, %t * 4] vector 4 : memref<8x256xf32> to memref<2x256xf32, "shared">
  kernel.async_commit
  %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%acc = %zero) -> (f32) {
    %more = loop.test[%k < 3]
    kernel.async_copy %x[%b * 4 + %k + 1, %t * 4] to %s[(%k + 1) mod 2, %t * 4] vector 4 if %more : memref<8x256xf32> to memref<2x256xf32, "shared">
    kernel.async_commit
    kernel.async_wait 1
    kernel.barrier
    %v = loop.load %s[%k mod 2, %t * -1 + 255] : memref<2x256xf32, "shared">
    %n = arith.addf %acc, %v : f32
    kernel.barrier
    scf.yield %n : f32
  }
  kernel.async_wait 0
  loop.store %sum, %y[%b * 64 + %t] : memref<128xf32>
}
func.func @main(%x: memref<8x256xf32>) -> memref<128xf32> {
  %y = kernel.alloc : memref<128xf32>
  kernel.launch @pipeline(%x, %y) blocks(2) threads(64) : memref<8x256xf32>, memref<128xf32>
  func.return %y : memref<128xf32>
}

// -----

// Two bytes at a time are no copy; four and eight go through L1.
// CHECK-LABEL: cuda.func @narrow(%h: memref<512xf16>, %y: memref<64xf16>) blocks(1) threads(8) index(i32) {
// CHECK-NEXT:  %t = kernel.thread_id
// CHECK-NEXT:  %s = kernel.shared align 8 : memref<64xf16, "shared">
// CHECK-NEXT:  kernel.async_copy %h[%t * 64 + 8] to %s[%t * 8] vector 2 : memref<512xf16> to memref<64xf16, "shared">
// CHECK-NEXT:  kernel.async_copy %h[%t * 64 + 16] to %s[%t * 8 + 4] vector 4 : memref<512xf16> to memref<64xf16, "shared">
// CHECK-NEXT:  kernel.async_commit
// CHECK-NEXT:  kernel.async_wait 0
// CHECK-NEXT:  %v = loop.load %s[%t * 8] : memref<64xf16, "shared">
// CHECK-NEXT:  loop.store %v, %y[%t] : memref<64xf16>
// CPP:        __shared__ __align__(8) unsigned short s[64];
// CPP:        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" :: "r"((unsigned)__cvta_generic_to_shared(&s[t * 8])), "l"(&h[t * 64 + 8]) : "memory");
// CPP:        asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" :: "r"((unsigned)__cvta_generic_to_shared(&s[t * 8 + 4])), "l"(&h[t * 64 + 16]) : "memory");
// CPP:        asm volatile("cp.async.commit_group;" ::: "memory");
// CPP:        asm volatile("cp.async.wait_group 0;" ::: "memory");
kernel.func @narrow(%h: memref<8x64xf16>, %y: memref<64xf16>) blocks(1) threads(8) {
  %t = kernel.thread_id
  %s = kernel.shared align 8 : memref<64xf16, "shared">
  kernel.async_copy %h[%t, 8] to %s[%t * 8] vector 2 : memref<8x64xf16> to memref<64xf16, "shared">
  kernel.async_copy %h[%t, 16] to %s[%t * 8 + 4] vector 4 : memref<8x64xf16> to memref<64xf16, "shared">
  kernel.async_commit
  kernel.async_wait 0
  %v = loop.load %s[%t * 8] : memref<64xf16, "shared">
  loop.store %v, %y[%t] : memref<64xf16>
}
func.func @main(%h: memref<8x64xf16>) -> memref<64xf16> {
  %y = kernel.alloc : memref<64xf16>
  kernel.launch @narrow(%h, %y) blocks(1) threads(8) : memref<8x64xf16>, memref<64xf16>
  func.return %y : memref<64xf16>
}

// -----

// One thread lets the copy engine fetch 16 rows; everybody waits for its bytes.
// CHECK-LABEL: cuda.func @bulk(%x: !kernel.tensor_map<1x16x64xf32>, %y: memref<256xf32>) blocks(4) threads(64) index(i32) {
// CHECK-NEXT:  %b = kernel.block_id
// CHECK-NEXT:  %t = kernel.thread_id
// CHECK-NEXT:  %s = kernel.shared align 128 : memref<2048xf32, "shared">
// CHECK-NEXT:  %full = kernel.mbarriers 2
// CHECK-NEXT:  %one = loop.test[%t < 1]
// CHECK-NEXT:  scf.if %one {
// CHECK-NEXT:  kernel.mbarrier_init %full[1], 1
// CHECK-NEXT:  kernel.fence
// CHECK-NEXT:  }
// CHECK-NEXT:  kernel.barrier
// CHECK-NEXT:  scf.if %one {
// CHECK-NEXT:  kernel.mbarrier_expect_bytes %full[1], 4096
// CHECK-NEXT:  kernel.bulk_copy %x[%b, %b * 16 - 8, 0] to %s[1024] barrier %full[1] : !kernel.tensor_map<1x16x64xf32> to memref<2048xf32, "shared">
// CHECK-NEXT:  }
// CHECK-NEXT:  kernel.mbarrier_wait %full[1] parity[0]
// CHECK-NEXT:  %v = loop.load %s[%b * 64 + %t + 1024] : memref<2048xf32, "shared">
// CHECK-NEXT:  loop.store %v, %y[%b * 64 + %t] : memref<256xf32>
// CPP:      #ifndef DEPLO_TENSOR_MAP
// CPP-NEXT: #define DEPLO_TENSOR_MAP
// CPP-NEXT: struct __align__(64) TensorMap { unsigned long long words[16]; };
// CPP-NEXT: #endif
// CPP-NEXT: // <<<4, 64>>>
// CPP-NEXT: extern "C" __global__ void __launch_bounds__(64) bulk(
// CPP-NEXT: const __grid_constant__ TensorMap x,
// CPP-NEXT: float* __restrict__ y)
// CPP-NEXT: {
// CPP-NEXT: const int b = blockIdx.x;
// CPP-NEXT: const int t = threadIdx.x;
// CPP-NEXT: __shared__ __align__(128) float s[2048];
// CPP-NEXT: __shared__ unsigned long long full[2];
// CPP-NEXT: const bool one = t < 1;
// CPP-NEXT: if (one) {
// CPP-NEXT: asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"((unsigned)__cvta_generic_to_shared(&full[1])) : "memory");
// CPP-NEXT: asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
// CPP-NEXT: }
// CPP-NEXT: __syncthreads();
// CPP-NEXT: if (one) {
// CPP-NEXT: asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], 4096;" :: "r"((unsigned)__cvta_generic_to_shared(&full[1])) : "memory");
// CPP-NEXT: asm volatile("cp.async.bulk.tensor.3d.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" :: "r"((unsigned)__cvta_generic_to_shared(&s[1024])), "l"(&x), "r"((unsigned)__cvta_generic_to_shared(&full[1])), "r"(0), "r"(b * 16 - 8), "r"(b) : "memory");
// CPP-NEXT: }
// CPP-NEXT: asm volatile("{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [%0], %1; @!done bra again; }" :: "r"((unsigned)__cvta_generic_to_shared(&full[1])), "r"(0) : "memory");
// CPP-NEXT: const float v = s[b * 64 + t + 1024];
// CPP-NEXT: y[b * 64 + t] = v;
// CPP-NEXT: }
kernel.func @bulk(%x: !kernel.tensor_map<1x16x64xf32>, %y: memref<4x64xf32>) blocks(4) threads(64) {
  %b = kernel.block_id
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  %one = loop.test[%t < 1]
  scf.if %one {
    kernel.mbarrier_init %full[1], 1
    kernel.fence
  }
  kernel.barrier
  scf.if %one {
    kernel.mbarrier_expect_bytes %full[1], 4096
    kernel.bulk_copy %x[%b, %b * 16 - 8, 0] to %s[1, 0, 0] barrier %full[1] : !kernel.tensor_map<1x16x64xf32> to memref<2x16x64xf32, "shared">
  }
  kernel.mbarrier_wait %full[1] parity[0]
  %v = loop.load %s[1, %b, %t] : memref<2x16x64xf32, "shared">
  loop.store %v, %y[%b, %t] : memref<4x64xf32>
}
func.func @main(%x: memref<4x48x64xf32>) -> memref<4x64xf32> {
  %map = kernel.tensor_map %x : memref<4x48x64xf32> to !kernel.tensor_map<1x16x64xf32>
  %y = kernel.alloc : memref<4x64xf32>
  kernel.launch @bulk(%map, %y) blocks(4) threads(64) : !kernel.tensor_map<1x16x64xf32>, memref<4x64xf32>
  func.return %y : memref<4x64xf32>
}

// -----

// Neighbours at once: a vector of C++, its components by name.
// CHECK-LABEL: cuda.func @vectors(%x: memref<256xf32>, %h: memref<64xbf16>, %y: memref<256xf32>) blocks(4) threads(16) index(i32) {
// CHECK-NEXT:  %b = kernel.block_id
// CHECK-NEXT:  %t = kernel.thread_id
// CHECK-NEXT:  %p, %q, %r, %u = kernel.vector_load %x[%b * 64 + %t * 4] : memref<256xf32> -> f32, f32, f32, f32
// CHECK-NEXT:  %g, %k = kernel.vector_load %h[%t * 2 + 32] : memref<64xbf16> -> bf16, bf16
// CHECK-NEXT:  kernel.vector_store %u, %r, %q, %p to %y[%b * 64 + %t * 4] : f32, f32, f32, f32 to memref<256xf32>
// CPP:      // <<<4, 16>>>
// CPP-NEXT: extern "C" __global__ void __launch_bounds__(16) vectors(
// CPP-NEXT: const float* __restrict__ x,
// CPP-NEXT: const unsigned short* __restrict__ h,
// CPP-NEXT: float* __restrict__ y)
// CPP-NEXT: {
// CPP-NEXT: const int b = blockIdx.x;
// CPP-NEXT: const int t = threadIdx.x;
// CPP-NEXT: const float4 p_vector = *reinterpret_cast<const float4*>(&x[b * 64 + t * 4]);
// CPP-NEXT: const ushort2 g_vector = *reinterpret_cast<const ushort2*>(&h[t * 2 + 32]);
// CPP-NEXT: *reinterpret_cast<float4*>(&y[b * 64 + t * 4]) = float4{p_vector.w, p_vector.z, p_vector.y, p_vector.x};
// CPP-NEXT: }
kernel.func @vectors(%x: memref<4x64xf32>, %h: memref<64xbf16>, %y: memref<4x64xf32>) blocks(4) threads(16) {
  %b = kernel.block_id
  %t = kernel.thread_id
  %p, %q, %r, %u = kernel.vector_load %x[%b, %t * 4] : memref<4x64xf32> -> f32, f32, f32, f32
  %g, %k = kernel.vector_load %h[%t * 2 + 32] : memref<64xbf16> -> bf16, bf16
  kernel.vector_store %u, %r, %q, %p to %y[%b, %t * 4] : f32, f32, f32, f32 to memref<4x64xf32>
}
func.func @main(%x: memref<4x64xf32>, %h: memref<64xbf16>) -> memref<4x64xf32> {
  %y = kernel.alloc : memref<4x64xf32>
  kernel.launch @vectors(%x, %h, %y) blocks(4) threads(16) : memref<4x64xf32>, memref<64xbf16>, memref<4x64xf32>
  func.return %y : memref<4x64xf32>
}

// -----

// More shared memory than a kernel may declare is asked for by its launch, each part where it is aligned.
// CHECK-LABEL: cuda.func @large
// CHECK:       %s = kernel.shared at 0 : memref<12289xf32, "shared">
// CHECK:       %u = kernel.shared align 16 at 49168 : memref<4xf32, "shared">
// CPP-LABEL:   __global__ void __launch_bounds__(32) large(
// CPP:         {
// CPP-NEXT:        extern __shared__ __align__(16) unsigned char large_shared[];
// CPP:             float* const s = (float*)(large_shared + 0);
// CPP:             float* const u = (float*)(large_shared + 49168);
// CPP:             u[t] = w;
kernel.func @large(%x: memref<32xf32>, %y: memref<32xf32>) blocks(1) threads(32) {
  %t = kernel.thread_id
  %s = kernel.shared : memref<12289xf32, "shared">
  %u = kernel.shared align 16 : memref<4xf32, "shared">
  %v = loop.load %x[%t] : memref<32xf32>
  loop.store %v, %s[%t * 384] : memref<12289xf32, "shared">
  kernel.barrier
  %four = loop.test[%t < 4]
  scf.if %four {
    %w = loop.load %s[%t * -384 + 11904] : memref<12289xf32, "shared">
    loop.store %w, %u[%t] : memref<4xf32, "shared">
  }
  kernel.barrier
  %z = loop.load %u[%t mod 4] : memref<4xf32, "shared">
  loop.store %z, %y[%t] : memref<32xf32>
}
func.func @main(%x: memref<32xf32>) -> memref<32xf32> {
  %y = kernel.alloc : memref<32xf32>
  kernel.launch @large(%x, %y) blocks(1) threads(32) : memref<32xf32>, memref<32xf32>
  func.return %y : memref<32xf32>
}

// -----

// Eight neighbours: words, as C++ has no vectors of more than four; two halves or four bytes in each.
// CPP-LABEL:   __global__ void __launch_bounds__(16) eight(
// CPP:         const uint4 a_vector = *reinterpret_cast<const uint4*>(&h[t * 8]);
// CPP-NEXT:    const unsigned short a = (unsigned short)a_vector.x;
// CPP-NEXT:    const unsigned short b = (unsigned short)(a_vector.x >> 16);
// CPP:         const unsigned short hh = (unsigned short)(a_vector.w >> 16);
// CPP-NEXT:    *reinterpret_cast<uint4*>(&g[t * 8]) = uint4{(unsigned)hh | (unsigned)a << 16, (unsigned)b | (unsigned)c << 16,
// CPP-NEXT:    const uint2 i_vector = *reinterpret_cast<const uint2*>(&x[t * 8]);
// CPP-NEXT:    const bool i = (i_vector.x >> 0 & 255) != 0;
// CPP-NEXT:    const bool j = (i_vector.x >> 8 & 255) != 0;
// CPP:         *reinterpret_cast<uint2*>(&y[t * 8]) = uint2{(unsigned)(unsigned char)j | (unsigned)(unsigned char)i << 8 |
kernel.func @eight(%h: memref<128xf16>, %x: memref<128xi1>, %g: memref<128xf16>, %y: memref<128xi1>) blocks(1) threads(16) {
  %t = kernel.thread_id
  %a, %b, %c, %d, %e, %f, %gg, %hh = kernel.vector_load %h[%t * 8] : memref<128xf16> -> f16, f16, f16, f16, f16, f16, f16, f16
  kernel.vector_store %hh, %a, %b, %c, %d, %e, %f, %gg to %g[%t * 8] : f16, f16, f16, f16, f16, f16, f16, f16 to memref<128xf16>
  %i, %j, %k, %l, %m, %n, %o, %p = kernel.vector_load %x[%t * 8] : memref<128xi1> -> i1, i1, i1, i1, i1, i1, i1, i1
  kernel.vector_store %j, %i, %l, %k, %n, %m, %p, %o to %y[%t * 8] : i1, i1, i1, i1, i1, i1, i1, i1 to memref<128xi1>
}
func.func @main(%h: memref<128xf16>, %x: memref<128xi1>) -> (memref<128xf16>, memref<128xi1>) {
  %g = kernel.alloc : memref<128xf16>
  %y = kernel.alloc : memref<128xi1>
  kernel.launch @eight(%h, %x, %g, %y) blocks(1) threads(16) : memref<128xf16>, memref<128xi1>, memref<128xf16>, memref<128xi1>
  func.return %g, %y : memref<128xf16>, memref<128xi1>
}

// -----

// Elements of registers are written where they are read; those that change before are variables.
// CPP-LABEL:   __global__ void __launch_bounds__(4) taken(
// CPP:         float own[2];
// CPP-NEXT:    const float2 a_vector = *reinterpret_cast<const float2*>(&x[t * 2]);
// CPP-NEXT:    own[0] = a_vector.y;
// CPP-NEXT:    own[1] = a_vector.x;
// CPP-NEXT:    *reinterpret_cast<float2*>(&y[t * 2]) = float2{own[0], own[1]};
// CPP-NEXT:    const float e = own[0];
// CPP-NEXT:    own[0] = a_vector.x;
// CPP-NEXT:    *reinterpret_cast<float2*>(&y[t * 2 + 8]) = float2{e, own[0]};
// CPP-NEXT:    y[t + 16] = own[0];
kernel.func @taken(%x: memref<8xf32>, %y: memref<20xf32>) blocks(1) threads(4) {
  %t = kernel.thread_id
  %own = loop.registers : memref<2xf32, "registers">
  %a, %b = kernel.vector_load %x[%t * 2] : memref<8xf32> -> f32, f32
  loop.store %b, %own[0] : memref<2xf32, "registers">
  loop.store %a, %own[1] : memref<2xf32, "registers">
  %c = loop.load %own[0] : memref<2xf32, "registers">
  %d = loop.load %own[1] : memref<2xf32, "registers">
  kernel.vector_store %c, %d to %y[%t * 2] : f32, f32 to memref<20xf32>
  %e = loop.load %own[0] : memref<2xf32, "registers">
  loop.store %a, %own[0] : memref<2xf32, "registers">
  %f = loop.load %own[0] : memref<2xf32, "registers">
  kernel.vector_store %e, %f to %y[%t * 2 + 8] : f32, f32 to memref<20xf32>
  loop.store %f, %y[%t + 16] : memref<20xf32>
}
func.func @main(%x: memref<8xf32>) -> memref<20xf32> {
  %y = kernel.alloc : memref<20xf32>
  kernel.launch @taken(%x, %y) blocks(1) threads(4) : memref<8xf32>, memref<20xf32>
  func.return %y : memref<20xf32>
}
