// RUN: deplo-opt %s --assume=race-free -p materialize-tile,overlap-products --split-input-file | FileCheck %s
// RUN: deplo-opt %s --assume=race-free -p materialize-tile,overlap-products --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --assume=race-free -p materialize-tile,overlap-products,choose-index-width,lower-to-cuda --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s --assume=race-free -p materialize-tile,overlap-products,choose-index-width,lower-to-cuda -t cuda --split-input-file | FileCheck %s --check-prefix=CUDA

// The product of an iteration goes on while copies are started for a later one, which fill what the product before read.
// CHECK-LABEL: kernel.func @overlapped
// CHECK:         %[[LEFT:[^,]*]], %{{.*}} = scf.for %k =
// CHECK-NEXT:      kernel.mbarrier_wait %full[%k mod 2] parity[%k floordiv 2]
// CHECK-NEXT:      %buffer = loop.index[%k mod 2]
// CHECK:           %[[NEXT:[^,]*]], {{.*}} = kernel.wgmma %xs[%buffer, 0, 0] by %ws[%buffer, 0, 0] plus ({{.*}}) leaving 1 :
// CHECK-NEXT:      kernel.barrier
// CHECK-NEXT:      %[[MORE:.*]] = loop.test[%k < 3]
// CHECK-NEXT:      scf.if %[[MORE]] {
// CHECK:             kernel.bulk_copy
// CHECK:           scf.yield %[[NEXT]],
// CHECK:         } {rolled}
// CHECK-NEXT:    %[[DONE:[^,]*]], %{{.*}} = kernel.wgmma_wait (%[[LEFT]], {{.*}})
// CHECK:         loop.store %[[DONE]], %y
// REMARK: remark: overlap-products: overlapped: an iteration leaves 1 product on the way

// CUDA:          #pragma unroll 1
// CUDA-NEXT:     for (int k = 0; k < 4; ++k) {
// CUDA:            wgmma.commit_group.sync.aligned;
// CUDA-NEXT:       wgmma.wait_group.sync.aligned 1;
// CUDA-NEXT:       __syncthreads();
// CUDA:          asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(
func.func @main(%x: tensor<64x256xbf16>, %w: tensor<8x256xbf16>) -> tensor<64x8xf32> {
  %y = loop.kernel @overlapped(%x, %w) : (tensor<64x256xbf16>, tensor<8x256xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x256xbf16>, %w: memref<8x256xbf16>, %y: memref<64x8xf32>):
    tile.launch (%i = 32 : thread, %j = 4 : thread) {
      %a, %b, %c, %d = loop.for %k = 0 to 4 reduce(add, add, add, add) -> f32, f32, f32, f32 {
        %xs = tile.stage %x[0, %k * 64] buffers 2 via tma swizzle 128 : memref<64x256xbf16> -> memref<64x64xbf16, "shared">
        %ws = tile.stage %w[0, %k * 64] buffers 2 via tma swizzle 128 : memref<8x256xbf16> -> memref<8x64xbf16, "shared">
        %0, %1, %2, %3 = tile.wgmma %xs by %ws to 4 : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
        loop.yield %0, %1, %2, %3 : f32, f32, f32, f32
      } attributes {pipelined}
      loop.store %a, %y[%i floordiv 8 * 16 + %i mod 8, %j * 2] : memref<64x8xf32>
      loop.store %b, %y[%i floordiv 8 * 16 + %i mod 8, %j * 2 + 1] : memref<64x8xf32>
      loop.store %c, %y[%i floordiv 8 * 16 + %i mod 8 + 8, %j * 2] : memref<64x8xf32>
      loop.store %d, %y[%i floordiv 8 * 16 + %i mod 8 + 8, %j * 2 + 1] : memref<64x8xf32>
    }
  }
  func.return %y : tensor<64x8xf32>
}

// -----

// With one buffer there is nothing to copy while a product is on its way; two products of an iteration begin and go on
// together, added onto the variables that hold their sums.
// CUDA-LABEL:  void {{.*}} pair(
// CUDA:          for (int k = 0;
// CUDA:            wgmma.fence.sync.aligned;
// CUDA-NOT:        float
// CUDA-NOT:        wgmma.commit_group
// CUDA-NOT:        wgmma.fence
// CUDA:            wgmma.commit_group.sync.aligned;
// CUDA-NEXT:       wgmma.wait_group.sync.aligned 1;
// CUDA-NEXT:       __syncthreads();
// CUDA:          wgmma.wait_group.sync.aligned 0;
// CUDA-NEXT:     __threadfence_block();
// CHECK-LABEL: kernel.func @alone
// CHECK:         kernel.wgmma
// CHECK-NOT:     leaving
// CHECK-LABEL: kernel.func @pair
// CHECK:         kernel.wgmma %xs{{.*}} leaving 3 joined :
// CHECK:         kernel.wgmma %xs{{.*}} leaving 2 :
// CHECK-NEXT:    kernel.barrier
// CHECK:         kernel.wgmma_wait (%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
// REMARK: remark: overlap-products: alone: declined: its products need what stands behind its barrier
// REMARK: remark: overlap-products: pair: an iteration leaves 2 products on the way
func.func @main(%x: tensor<64x128xbf16>, %w: tensor<8x128xbf16>) -> (tensor<64x8xf32>, tensor<64x8xf32>) {
  %y = loop.kernel @alone(%x, %w) : (tensor<64x128xbf16>, tensor<8x128xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x128xbf16>, %w: memref<8x128xbf16>, %y: memref<64x8xf32>):
    tile.launch (%i = 32 : thread, %j = 4 : thread) {
      %a, %b, %c, %d = loop.for %k = 0 to 2 reduce(add, add, add, add) -> f32, f32, f32, f32 {
        %xs = tile.stage %x[0, %k * 64] via tma swizzle 128 : memref<64x128xbf16> -> memref<64x64xbf16, "shared">
        %ws = tile.stage %w[0, %k * 64] via tma swizzle 128 : memref<8x128xbf16> -> memref<8x64xbf16, "shared">
        %0, %1, %2, %3 = tile.wgmma %xs by %ws to 4 : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
        loop.yield %0, %1, %2, %3 : f32, f32, f32, f32
      }
      loop.store %a, %y[%i floordiv 8 * 16 + %i mod 8, %j * 2] : memref<64x8xf32>
      loop.store %b, %y[%i floordiv 8 * 16 + %i mod 8, %j * 2 + 1] : memref<64x8xf32>
      loop.store %c, %y[%i floordiv 8 * 16 + %i mod 8 + 8, %j * 2] : memref<64x8xf32>
      loop.store %d, %y[%i floordiv 8 * 16 + %i mod 8 + 8, %j * 2 + 1] : memref<64x8xf32>
    }
  }
  %z = loop.kernel @pair(%x, %w) : (tensor<64x128xbf16>, tensor<8x128xbf16>) -> tensor<64x8xf32> {
  ^bb0(%x: memref<64x128xbf16>, %w: memref<8x128xbf16>, %y: memref<64x8xf32>):
    tile.launch (%i = 32 : thread, %j = 4 : thread) {
      %a, %b, %c, %d, %e, %f, %g, %h = loop.for %k = 0 to 2 reduce(add, add, add, add, add, add, add, add) -> f32, f32, f32, f32, f32, f32, f32, f32 {
        %xs = tile.stage %x[0, %k * 64] buffers 2 via tma swizzle 128 : memref<64x128xbf16> -> memref<64x64xbf16, "shared">
        %ws = tile.stage %w[0, %k * 64] buffers 2 via tma swizzle 128 : memref<8x128xbf16> -> memref<8x64xbf16, "shared">
        %0, %1, %2, %3 = tile.wgmma %xs by %ws to 4 : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
        %4, %5, %6, %7 = tile.wgmma %xs by %ws to 4 : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
        loop.yield %0, %1, %2, %3, %4, %5, %6, %7 : f32, f32, f32, f32, f32, f32, f32, f32
      } attributes {pipelined}
      %0 = arith.addf %a, %e : f32
      %1 = arith.addf %b, %f : f32
      %2 = arith.addf %c, %g : f32
      %3 = arith.addf %d, %h : f32
      loop.store %0, %y[%i floordiv 8 * 16 + %i mod 8, %j * 2] : memref<64x8xf32>
      loop.store %1, %y[%i floordiv 8 * 16 + %i mod 8, %j * 2 + 1] : memref<64x8xf32>
      loop.store %2, %y[%i floordiv 8 * 16 + %i mod 8 + 8, %j * 2] : memref<64x8xf32>
      loop.store %3, %y[%i floordiv 8 * 16 + %i mod 8 + 8, %j * 2 + 1] : memref<64x8xf32>
    }
  }
  func.return %y, %z : tensor<64x8xf32>, tensor<64x8xf32>
}

// -----

// What stays as it is: no loop, a loop without products, barriers on both sides, a load between two products, and sums
// that an iteration begins anew.
// REMARK: remark: overlap-products: straight: declined: it has no loop
// REMARK: remark: overlap-products: counts: declined: it has no products of warpgroups
// REMARK: remark: overlap-products: guarded: declined: no one barrier stands in front of its products
// REMARK: remark: overlap-products: between: declined: something else stands between its products
// REMARK: remark: overlap-products: anew: declined: a product is read, or begins anew, in each iteration
kernel.func @straight(%y: memref<128xf32>) blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %t = kernel.thread_id
  loop.store %z, %y[%t] : memref<128xf32>
}
kernel.func @counts(%y: memref<128xf32>) blocks(1) threads(128) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0.0 : f32
  %t = kernel.thread_id
  %s = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %z) -> (f32) {
    %n = arith.addf %a, %z : f32
    scf.yield %n : f32
  }
  loop.store %s, %y[%t] : memref<128xf32>
}
kernel.func @guarded(%y: memref<128xf32>) blocks(1) threads(128) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0.0 : f32
  %t = kernel.thread_id
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
  %s:4 = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %z, %b = %z, %c = %z, %d = %z) -> (f32, f32, f32, f32) {
    kernel.barrier
    %p:4 = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%a, %b, %c, %d) : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
    kernel.barrier
    scf.yield %p#0, %p#1, %p#2, %p#3 : f32, f32, f32, f32
  }
  loop.store %s#0, %y[%t] : memref<128xf32>
}
kernel.func @between(%y: memref<128xf32>) blocks(1) threads(128) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0.0 : f32
  %t = kernel.thread_id
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
  %s:4 = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %z, %b = %z, %c = %z, %d = %z) -> (f32, f32, f32, f32) {
    kernel.barrier
    %p:4 = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%a, %b, %c, %d) : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
    loop.store %z, %y[%t] : memref<128xf32>
    %q:4 = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%p#0, %p#1, %p#2, %p#3) : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
    scf.yield %q#0, %q#1, %q#2, %q#3 : f32, f32, f32, f32
  }
}
kernel.func @anew(%y: memref<128xf32>) blocks(1) threads(128) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0.0 : f32
  %t = kernel.thread_id
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
  %s = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %z) -> (f32) {
    kernel.barrier
    %p:4 = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
    %n = arith.addf %a, %p#0 : f32
    scf.yield %n : f32
  }
  loop.store %s, %y[%t] : memref<128xf32>
}
