// Attention of short floats on a GPU: keys and values in chunks of 64, scores and totals in registers.
// RUN: deplo-opt %s -p 'online-softmax{target=sm_90a}' | FileCheck %s --check-prefix=GROUPS
// RUN: deplo-opt %s -p 'online-softmax{target=sm_90a},warpgroup-mma,tensor-cores' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'online-softmax{target=sm_80}' | FileCheck %s --check-prefix=WARPS
// RUN: deplo-opt %s -p 'online-softmax{rows=64 warpgroups=true buffers=3}' | FileCheck %s --check-prefix=GROUPS
// RUN: deplo-opt %s -p 'online-softmax{rows=16}' | FileCheck %s --check-prefix=WARPS
// RUN: sed -e 's/x64x/x48x/g; s/0 to 64/0 to 48/g; s/= 64 : thread/= 48 : thread/' %s | deplo-opt -p 'online-softmax{rows=64 warpgroups=true}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=SLABS
// RUN: not deplo-opt %s -p 'online-softmax{rows=24}' 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not deplo-opt %s -p 'online-softmax{rows=16 warpgroups=true}' 2>&1 | FileCheck %s --check-prefix=GROUP-ROWS
// RUN: deplo-opt %s -p 'online-softmax{target=sm_90a}' --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'online-softmax{target=sm_80}' --check-each-pass >/dev/null

// What is chosen may be said.
// ROWS: rows is one of 128, 64, 32, 16, 1, not 24
// SLABS: online-softmax: k_y_reduce: declined: its keys and values are no slabs that warpgroups multiply
// GROUP-ROWS: a warpgroup has 64 rows, not 16

// Warpgroups have 64 rows, of which there are 20, and read the slabs themselves: keys by rows, values transposed.
// GROUPS:       tile.launch (%i = 2 : block, %j_block = 1 : block, %i_thread = 32 : thread, %lane = 4 : thread) schedule(#tile.schedule<threads = 128, thread_m = 2, thread_n = 16, mma = 2, stages = 3>)
// GROUPS:         loop.test[%j_block * 64 + %i_thread < 20]
// GROUPS:         loop.load %q[%i, %i_thread, %lane * 2] :
// GROUPS-NEXT:    loop.load %q[%i, %i_thread, %lane * 2 + 1] :
// GROUPS-NEXT:    loop.load %q[%i, %i_thread, %lane * 2 + 8] :
// GROUPS:         loop.for %l_block = 0 to 2 reduce(max, weight, weight, {{.*}}, max, weight, weight
// GROUPS:           %k_smem = tile.stage %k[%i, %l_block * 64, 0] via tma swizzle 128
// GROUPS:           %v_smem = tile.stage %v[%i, %l_block * 64, 0] via tma swizzle 128
// GROUPS:           tile.wgmma ({{.*}}) by %k_smem to 32 : bf16 by memref<64x64xbf16, "shared">
// GROUPS:           loop.test[%j_block * 64 + %i_thread < 20, %l_block * 64 + %lane * 2 < 70]
// GROUPS:           tile.combine max {{.*}} over(%lane)
// GROUPS:           math.exp2 {{.*}} fastmath<afn>
// GROUPS:           tile.combine add {{.*}} over(%lane)
// GROUPS:           tile.wgmma ({{.*}}) by %v_smem transposed to 32 : bf16 by memref<64x64xbf16, "shared">
// GROUPS:         loop.store {{.*}}, %y[%i, %i_thread, %lane * 2] :
// REMARK: online-softmax: k_y_reduce: blocks of 64 rows have 64 scores of each in registers; warpgroups multiply
// REMARK: warpgroup-mma: k_y_reduce: declined: the tiles are in registers already
// REMARK: tensor-cores: k_y_reduce: declined: the tiles are in registers already

// Warps have 16 rows, and lanes load what they multiply by.
// WARPS:        tile.launch (%i = 2 : block, %j_block = 2 : block, %i_thread = 8 : thread, %lane = 4 : thread) schedule(#tile.schedule<threads = 32, thread_m = 2, thread_n = 16, mma = 1>)
// WARPS:            %k_smem = tile.stage %k[%i, %l_block * 64, 0] :
// WARPS:            loop.load %k_smem[%i_thread mod 8, %lane * 4] :
// WARPS:            tile.mma
// WARPS:            loop.load %v_smem[%lane * 2, %i_thread mod 8] :
// WARPS:            tile.mma
func.func @main(%q: tensor<2x20x64xbf16>, %k: tensor<2x70x64xbf16>, %v: tensor<2x70x64xbf16>) -> tensor<2x20x64xbf16> {
  %y_sum = loop.kernel @k_y_sum_reduce(%k, %q) : (tensor<2x70x64xbf16>, tensor<2x20x64xbf16>) -> tensor<2x20x70x1xf32> {
  ^bb0(%k: memref<2x70x64xbf16>, %q: memref<2x20x64xbf16>, %y_sum: memref<2x20x70x1xf32>):
    tile.launch (%i = 2 : thread, %j = 20 : thread, %k_1 = 70 : thread) {
      %y_mul = loop.for %l = 0 to 64 reduce(add) -> f32 {
        %q_1 = loop.load %q[%i, %j, %l] : memref<2x20x64xbf16>
        %y_f32 = arith.extf %q_1 : bf16 to f32
        %k_2 = loop.load %k[%i, %k_1, %l] : memref<2x70x64xbf16>
        %y_f32_1 = arith.extf %k_2 : bf16 to f32
        %y_mul_1 = arith.mulf %y_f32, %y_f32_1 : f32
        loop.yield %y_mul_1 : f32
      }
      loop.store %y_mul, %y_sum[%i, %j, %k_1, 0] : memref<2x20x70x1xf32>
    }
  }
  %y_select = loop.kernel @k_y_select_reduce(%y_sum) : (tensor<2x20x70x1xf32>) -> tensor<2x20x70xbf16> {
  ^bb0(%y_sum: memref<2x20x70x1xf32>, %y_select: memref<2x20x70xbf16>):
    tile.launch (%i = 2 : thread, %j = 20 : thread) {
      %y_mul = loop.for %k = 0 to 70 reduce(max) -> f32 {
        %y_sum_1 = loop.load %y_sum[%i, %j, %k, 0] : memref<2x20x70x1xf32>
        %0 = arith.constant 1.250000e-01 : f32
        %y_mul_1 = arith.mulf %y_sum_1, %0 : f32
        loop.yield %y_mul_1 : f32
      }
      %1 = arith.constant 0xff800000 : f32
      %y_eq = arith.cmpf oeq, %y_mul, %1 : f32
      %y_exp = loop.for %k_1 = 0 to 70 reduce(add) -> f32 {
        %y_sum_2 = loop.load %y_sum[%i, %j, %k_1, 0] : memref<2x20x70x1xf32>
        %2 = arith.constant 1.250000e-01 : f32
        %y_mul_2 = arith.mulf %y_sum_2, %2 : f32
        %y_sub = arith.subf %y_mul_2, %y_mul : f32
        %y_exp_1 = math.exp %y_sub : f32
        loop.yield %y_exp_1 : f32
      }
      loop.for %k_2 = 0 to 70 {
        %3 = arith.constant 0.000000e+00 : f32
        %y_sum_3 = loop.load %y_sum[%i, %j, %k_2, 0] : memref<2x20x70x1xf32>
        %4 = arith.constant 1.250000e-01 : f32
        %y_mul_3 = arith.mulf %y_sum_3, %4 : f32
        %y_sub_1 = arith.subf %y_mul_3, %y_mul : f32
        %y_exp_2 = math.exp %y_sub_1 : f32
        %y_div = arith.divf %y_exp_2, %y_exp : f32
        %y_select_1 = arith.select %y_eq, %3, %y_div : f32
        %y_select_2 = arith.truncf %y_select_1 : f32 to bf16
        loop.store %y_select_2, %y_select[%i, %j, %k_2] : memref<2x20x70xbf16>
      }
    }
  }
  %y = loop.kernel @k_y_reduce(%y_select, %v) : (tensor<2x20x70xbf16>, tensor<2x70x64xbf16>) -> tensor<2x20x64xbf16> {
  ^bb0(%y_select: memref<2x20x70xbf16>, %v: memref<2x70x64xbf16>, %y: memref<2x20x64xbf16>):
    tile.launch (%i = 2 : thread, %j = 20 : thread, %k = 64 : thread) {
      %y_mul = loop.for %l = 0 to 70 reduce(add) -> f32 {
        %y_select_1 = loop.load %y_select[%i, %j, %l] : memref<2x20x70xbf16>
        %y_f32 = arith.extf %y_select_1 : bf16 to f32
        %v_1 = loop.load %v[%i, %l, %k] : memref<2x70x64xbf16>
        %y_f32_1 = arith.extf %v_1 : bf16 to f32
        %y_mul_1 = arith.mulf %y_f32, %y_f32_1 : f32
        loop.yield %y_mul_1 : f32
      }
      %y_1 = arith.truncf %y_mul : f32 to bf16
      loop.store %y_1, %y[%i, %j, %k] : memref<2x20x64xbf16>
    }
  }
  func.return %y : tensor<2x20x64xbf16>
}
