// RUN: deplo-opt %s -p lower-to-cuda --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p lower-to-cuda -t cuda --split-input-file | FileCheck %s --check-prefix=CPP

// Two slots: a row is on its way while the last one is added up. What is beyond the last row is zeros.
// CHECK-LABEL: cuda.func @pipeline(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>) blocks(2) threads(64) index(i32) {
// CHECK-NEXT:  %b = cuda.block_idx
// CHECK-NEXT:  %t = cuda.thread_idx
// CHECK-NEXT:  %zero = cuda.literal 0.0 : f32
// CHECK-NEXT:  %s = cuda.shared 512 align 16 : !cuda.ptr<f32>
// CHECK-NEXT:  cuda.cp_async %x[%b * 1024 + %t * 4] to %s[%t * 4] bytes 16 : !cuda.ptr<f32, const> to !cuda.ptr<f32>
// CHECK-NEXT:  cuda.cp_async_commit
// CHECK-NEXT:  %sum = cuda.variable %zero : f32
// CHECK-NEXT:  cuda.for %k = 0 to 4 {
// CHECK-NEXT:  %more = cuda.test[%k < 3]
// CHECK-NEXT:  cuda.cp_async %x[%b * 1024 + %k * 256 + %t * 4 + 256] to %s[(%k + 1) mod 2 * 256 + %t * 4] bytes 16 if %more : !cuda.ptr<f32, const> to !cuda.ptr<f32>
// CHECK-NEXT:  cuda.cp_async_commit
// CHECK-NEXT:  cuda.cp_async_wait 1
// CHECK-NEXT:  cuda.syncthreads
// CHECK-NEXT:  %v = cuda.load %s[%k mod 2 * 256 - %t + 255] : !cuda.ptr<f32> -> f32
// CHECK-NEXT:  %n = cuda.binary "+" %sum, %v : (f32, f32) -> f32
// CHECK-NEXT:  cuda.syncthreads
// CHECK-NEXT:  cuda.assign %sum, %n : f32
// CHECK-NEXT:  }
// CHECK-NEXT:  cuda.cp_async_wait 0
// CHECK-NEXT:  cuda.store %sum, %y[%b * 64 + %t] : f32, !cuda.ptr<f32>
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
  %zero = arith.constant 0.0 : f32
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

// -----

// Two bytes at a time are no copy; four and eight go through L1.
// CHECK-LABEL: cuda.func @narrow(%h: !cuda.ptr<f16, const>, %y: !cuda.ptr<f16>) blocks(1) threads(8) index(i32) {
// CHECK-NEXT:  %t = cuda.thread_idx
// CHECK-NEXT:  %s = cuda.shared 64 align 8 : !cuda.ptr<f16>
// CHECK-NEXT:  cuda.cp_async %h[%t * 64 + 8] to %s[%t * 8] bytes 4 : !cuda.ptr<f16, const> to !cuda.ptr<f16>
// CHECK-NEXT:  cuda.cp_async %h[%t * 64 + 16] to %s[%t * 8 + 4] bytes 8 : !cuda.ptr<f16, const> to !cuda.ptr<f16>
// CHECK-NEXT:  cuda.cp_async_commit
// CHECK-NEXT:  cuda.cp_async_wait 0
// CHECK-NEXT:  %v = cuda.load %s[%t * 8] : !cuda.ptr<f16> -> f16
// CHECK-NEXT:  cuda.store %v, %y[%t] : f16, !cuda.ptr<f16>
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
