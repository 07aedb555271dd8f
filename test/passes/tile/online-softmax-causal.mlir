// Causal attention on a GPU: a block of rows ends where its last row sees no further, and those with most come first.
// RUN: deplo-opt %s -p 'online-softmax{target=sm_90a}' | FileCheck %s
// RUN: deplo-opt %s -p 'online-softmax{target=sm_90a},double-buffer,pipeline-k-outer,materialize-tile' | FileCheck %s --check-prefix=KERNEL
// RUN: deplo-opt %s -p 'online-softmax{target=sm_90a},double-buffer,pipeline-k-outer,materialize-tile,choose-index-width,lower-to-cuda' -t cuda | FileCheck %s --check-prefix=CUDA
// RUN: deplo-opt %s -p 'online-softmax{target=sm_90a}' | deplo-opt -p double-buffer,pipeline-k-outer,materialize-tile,choose-index-width,lower-to-cuda --check-each-pass >/dev/null

// CHECK:        tile.launch (%i = 2 : block, %j_block = 3 : block, %i_thread = 32 : thread, %lane = 4 : thread)
// CHECK:          loop.load %x{{.*}}[%i, %i_thread - %j_block * 64 + 128, %lane * 2]
// CHECK:          loop.for %l_block = 0 to min(3, 3 - %j_block) reduce(max, weight,
// CHECK-NEXT:       tile.stage
// CHECK-NOT:      loop.test[%{{[jl]}}_block
// CHECK:            tile.wgmma

// KERNEL:       %[[MORE:.*]] = loop.test[%j_block < 2]
// KERNEL-NEXT:  scf.if %[[MORE]] {
// KERNEL:       %end = loop.index[3 - %j_block]
// KERNEL:       scf.for %l_block = {{.*}} to %end step
// KERNEL-NEXT:    kernel.mbarrier_wait
// KERNEL-NEXT:    kernel.barrier
// KERNEL-NEXT:    %[[AGAIN:.*]] = loop.test[%l_block + %j_block < 1]
// KERNEL-NEXT:    scf.if %[[AGAIN]] {

// Weights are those for the largest score so far: what there is so far is scaled, and the product adds to it.
// KERNEL:         %max_next = arith.maximumf %max_so_far, %{{.*}} : f32
// KERNEL:         %[[SCALE:.*]] = math.exp
// KERNEL-NEXT:    %[[WEIGHT:.*]] = arith.mulf %weight_so_far, %[[SCALE]] : f32
// KERNEL-NEXT:    %[[TOTAL:.*]] = arith.mulf %total_so_far, %[[SCALE]] : f32
// KERNEL:         kernel.wgmma ({{.*}}) by {{.*}} transposed plus (%[[TOTAL]],
// KERNEL-NOT:     kernel.wgmma
// KERNEL:         arith.addf %[[WEIGHT]],

// CUDA:         const int end = 3 - j_block;
// CUDA:         for (int l_block = 0; l_block < end; ++l_block) {
func.func @main(%x: tensor<2x130x64xbf16>, %x_1: tensor<2x130x64xbf16>, %x_2: tensor<2x130x64xbf16>) -> tensor<2x130x64xbf16> {
  %y_sum = loop.kernel @k_y_sum_reduce(%x_1, %x) : (tensor<2x130x64xbf16>, tensor<2x130x64xbf16>) -> tensor<2x130x130x1xf32> {
  ^bb0(%x: memref<2x130x64xbf16>, %x_1: memref<2x130x64xbf16>, %y_sum: memref<2x130x130x1xf32>):
    tile.launch (%i = 2 : thread, %j = 130 : thread, %k = 130 : thread) {
      %y_mul = loop.for %l = 0 to 64 reduce(add) -> f32 {
        %x_2 = loop.load %x_1[%i, %j, %l] : memref<2x130x64xbf16>
        %y_f32 = arith.extf %x_2 : bf16 to f32
        %x_3 = loop.load %x[%i, %k, %l] : memref<2x130x64xbf16>
        %y_f32_1 = arith.extf %x_3 : bf16 to f32
        %y_mul_1 = arith.mulf %y_f32, %y_f32_1 : f32
        loop.yield %y_mul_1 : f32
      }
      loop.store %y_mul, %y_sum[%i, %j, %k, 0] : memref<2x130x130x1xf32>
    }
  }
  %y_select = loop.kernel @k_y_select_reduce(%y_sum) : (tensor<2x130x130x1xf32>) -> tensor<2x130x130xbf16> {
  ^bb0(%y_sum: memref<2x130x130x1xf32>, %y_select: memref<2x130x130xbf16>):
    tile.launch (%i = 2 : thread, %j = 130 : thread) {
      %y_causal = loop.for %k = 0 to 130 reduce(max) -> f32 {
        %0 = loop.test[%j - %k >= 0]
        %y_causal_1 = scf.if %0 -> (f32) {
          %y_sum_1 = loop.load %y_sum[%i, %j, %k, 0] : memref<2x130x130x1xf32>
          %1 = arith.constant 1.250000e-01 : f32
          %y_mul = arith.mulf %y_sum_1, %1 : f32
          scf.yield %y_mul : f32
        } else {
          %2 = arith.constant 0xff800000 : f32
          scf.yield %2 : f32
        }
        loop.yield %y_causal_1 : f32
      }
      %3 = arith.constant 0xff800000 : f32
      %y_eq = arith.cmpf oeq, %y_causal, %3 : f32
      %y_exp = loop.for %k_1 = 0 to 130 reduce(add) -> f32 {
        %4 = loop.test[%j - %k_1 >= 0]
        %y_causal_2 = scf.if %4 -> (f32) {
          %y_sum_2 = loop.load %y_sum[%i, %j, %k_1, 0] : memref<2x130x130x1xf32>
          %5 = arith.constant 1.250000e-01 : f32
          %y_mul_1 = arith.mulf %y_sum_2, %5 : f32
          scf.yield %y_mul_1 : f32
        } else {
          scf.yield %3 : f32
        }
        %y_sub = arith.subf %y_causal_2, %y_causal : f32
        %y_exp_1 = math.exp %y_sub : f32
        loop.yield %y_exp_1 : f32
      }
      loop.for %k_2 = 0 to 130 {
        %6 = arith.constant 0.000000e+00 : f32
        %7 = loop.test[%j - %k_2 >= 0]
        %y_causal_3 = scf.if %7 -> (f32) {
          %y_sum_3 = loop.load %y_sum[%i, %j, %k_2, 0] : memref<2x130x130x1xf32>
          %8 = arith.constant 1.250000e-01 : f32
          %y_mul_2 = arith.mulf %y_sum_3, %8 : f32
          scf.yield %y_mul_2 : f32
        } else {
          scf.yield %3 : f32
        }
        %y_sub_1 = arith.subf %y_causal_3, %y_causal : f32
        %y_exp_2 = math.exp %y_sub_1 : f32
        %y_div = arith.divf %y_exp_2, %y_exp : f32
        %y_select_1 = arith.select %y_eq, %6, %y_div : f32
        %y_select_2 = arith.truncf %y_select_1 : f32 to bf16
        loop.store %y_select_2, %y_select[%i, %j, %k_2] : memref<2x130x130xbf16>
      }
    }
  }
  %y = loop.kernel @k_y_reduce(%y_select, %x_2) : (tensor<2x130x130xbf16>, tensor<2x130x64xbf16>) -> tensor<2x130x64xbf16> {
  ^bb0(%y_select: memref<2x130x130xbf16>, %x: memref<2x130x64xbf16>, %y: memref<2x130x64xbf16>):
    tile.launch (%i = 2 : thread, %j = 130 : thread, %k = 64 : thread) {
      %y_mul = loop.for %l = 0 to 130 reduce(add) -> f32 {
        %y_select_1 = loop.load %y_select[%i, %j, %l] : memref<2x130x130xbf16>
        %y_f32 = arith.extf %y_select_1 : bf16 to f32
        %x_1 = loop.load %x[%i, %l, %k] : memref<2x130x64xbf16>
        %y_f32_1 = arith.extf %x_1 : bf16 to f32
        %y_mul_1 = arith.mulf %y_f32, %y_f32_1 : f32
        loop.yield %y_mul_1 : f32
      }
      %y_1 = arith.truncf %y_mul : f32 to bf16
      loop.store %y_1, %y[%i, %j, %k] : memref<2x130x64xbf16>
    }
  }
  func.return %y : tensor<2x130x64xbf16>
}
