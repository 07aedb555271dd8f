// RUN: deplo-opt %s -p 'online-softmax{target=cpu:avx512}' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'online-softmax{target=cpu:avx512}' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'online-softmax{target=cpu:avx512}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'online-softmax{target=cpu:avx512 thread_m=2 block_m=4 block_k=32}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=ASKED
// RUN: deplo-opt %s -p 'online-softmax{target=cpu:avx512 thread_m=2 block_m=4 block_k=32}' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'online-softmax{target=cpu:avx512 thread_n=20}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=MISFIT
// RUN: deplo-opt %s -p 'online-softmax{thread_m=2 block_m=4 block_k=32 thread_n=16 vectors=avx512}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=GIVEN
// RUN: deplo-opt %s -p 'online-softmax{rows=1}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=ALONE
// RUN: deplo-opt %s -p 'online-softmax{target=sm_80}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=GPU

// ASKED: online-softmax: attention: 20800 bytes of scores are computed in 5 parts of a row, as asked
// GIVEN: online-softmax: attention: 20800 bytes of scores are computed in 5 parts of a row
// ALONE: online-softmax: attention: declined: its rows share columns
// MISFIT: online-softmax: attention: declined: thread_n = 20 is not a multiple of the 16 elements of a vector
// MISFIT: online-softmax: attention: 20800 bytes of scores are computed in 1 parts of a row

// A causal mask, and weights of 0 where a row is masked as a whole. The last part has 130 of 160 columns.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    loop.kernel @attention(%q, %k, %v)
// CHECK:           tile.launch (%i = 2 : block, %j_block = 1 : block, %j = 20 : thread, %k_1 = 32 : thread) schedule(#tile.schedule<m = 2, n = 3, block_m = 20, block_n = 32, block_k = 160, thread_m = 10, thread_n = 32, width = 512, vectors = avx512>) {
// CHECK:             %row_packed = tile.pack (%r = 20, %p = 6) pad 16
// CHECK:             %max, %weight, %mean = loop.for %l_block = 0 to 1 reduce(max, weight, mean) -> f32, f32, f32 {
// CHECK:               %column_packed = tile.pack (%r_1 = 160, %p_1 = 6) panels 32
// CHECK:               %value_packed = tile.pack (%r_2 = 32, %p_2 = 160) panels 32
// CHECK:               loop.for %l = 0 to 160 reduce(max, weight, mean) -> f32, f32, f32 {
// CHECK-NEXT:            %score = loop.for %l_1 = 0 to 6 reduce(add) -> f32 {
// CHECK:                 %[[IN:.*]] = loop.test[%l < 130]
// CHECK-NEXT:            %[[X:.*]] = scf.if %[[IN]]
// CHECK-NEXT:              loop.test[%j - %l >= 0]
// CHECK:                 %[[ONE:.*]] = arith.constant 1.000000e+00
// CHECK-NEXT:            %[[V:.*]] = loop.load %value_packed[%k_1, %l]
// CHECK-NEXT:            loop.yield %[[X]], %[[ONE]], %[[V]] : f32, f32, f32
// CHECK-NEXT:          } attributes {chunk}
// CHECK:             loop.test[%k_1 < 5]
// CHECK:               loop.store %mean, %y[%i, %j, %k_1]
// REMARK: online-softmax: scores: declined: its rows are no softmax
// REMARK: online-softmax: attention: 20800 bytes of scores are computed in 1 parts of a row
// GPU: online-softmax: attention: declined: its factors are no bf16 or f16 that are loaded
func.func @main(%q: tensor<2x20x6xf32>, %k: tensor<2x130x6xf32>, %v: tensor<2x130x5xf32>) -> tensor<2x20x5xf32> {
  %s = loop.kernel @scores(%k, %q) : (tensor<2x130x6xf32>, tensor<2x20x6xf32>) -> tensor<2x20x130x1xf32> {
  ^bb0(%k: memref<2x130x6xf32>, %q: memref<2x20x6xf32>, %s: memref<2x20x130x1xf32>):
    tile.launch (%i = 2 : thread, %j = 20 : thread, %k_1 = 130 : thread) {
      %x_mul = loop.for %l = 0 to 6 reduce(add) -> f32 {
        %q_1 = loop.load %q[%i, %j, %l] : memref<2x20x6xf32>
        %k_2 = loop.load %k[%i, %k_1, %l] : memref<2x130x6xf32>
        %x_mul_1 = arith.mulf %q_1, %k_2 : f32
        loop.yield %x_mul_1 : f32
      }
      loop.store %x_mul, %s[%i, %j, %k_1, 0] : memref<2x20x130x1xf32>
    }
  }
  %m = loop.kernel @max(%s) : (tensor<2x20x130x1xf32>) -> tensor<2x20x1xf32> {
  ^bb0(%s: memref<2x20x130x1xf32>, %m: memref<2x20x1xf32>):
    tile.launch (%i = 2 : thread, %j = 20 : thread) {
      %x_causal = loop.for %k = 0 to 130 reduce(max) -> f32 {
        %0 = loop.test[%j - %k >= 0]
        %x_causal_1 = scf.if %0 -> (f32) {
          %s_1 = loop.load %s[%i, %j, %k, 0] : memref<2x20x130x1xf32>
          %1 = arith.constant 0.408248305 : f32
          %x_mul = arith.mulf %s_1, %1 : f32
          scf.yield %x_mul : f32
        } else {
          %2 = arith.constant 0xff800000 : f32
          scf.yield %2 : f32
        }
        loop.yield %x_causal_1 : f32
      }
      loop.store %x_causal, %m[%i, %j, 0] : memref<2x20x1xf32>
    }
  }
  %p = loop.kernel @weights(%m, %s) : (tensor<2x20x1xf32>, tensor<2x20x130x1xf32>) -> tensor<2x20x130xf32> {
  ^bb0(%m: memref<2x20x1xf32>, %s: memref<2x20x130x1xf32>, %p: memref<2x20x130xf32>):
    tile.launch (%i = 2 : thread, %j = 20 : thread) {
      %m_1 = loop.load %m[%i, %j, 0] : memref<2x20x1xf32>
      %e = loop.for %k = 0 to 130 reduce(add) -> f32 {
        %0 = loop.test[%j - %k >= 0]
        %x_causal = scf.if %0 -> (f32) {
          %s_1 = loop.load %s[%i, %j, %k, 0] : memref<2x20x130x1xf32>
          %1 = arith.constant 0.408248305 : f32
          %x_mul = arith.mulf %s_1, %1 : f32
          scf.yield %x_mul : f32
        } else {
          %2 = arith.constant 0xff800000 : f32
          scf.yield %2 : f32
        }
        %x_sub = arith.subf %x_causal, %m_1 : f32
        %e_1 = math.exp %x_sub : f32
        loop.yield %e_1 : f32
      }
      loop.for %k_1 = 0 to 130 {
        %3 = loop.test[%j - %k_1 >= 0]
        %x_causal_1 = scf.if %3 -> (f32) {
          %s_2 = loop.load %s[%i, %j, %k_1, 0] : memref<2x20x130x1xf32>
          %4 = arith.constant 0.408248305 : f32
          %x_mul_1 = arith.mulf %s_2, %4 : f32
          scf.yield %x_mul_1 : f32
        } else {
          %5 = arith.constant 0xff800000 : f32
          scf.yield %5 : f32
        }
        %x_sub_1 = arith.subf %x_causal_1, %m_1 : f32
        %e_2 = math.exp %x_sub_1 : f32
        %p_1 = arith.divf %e_2, %e : f32
        loop.store %p_1, %p[%i, %j, %k_1] : memref<2x20x130xf32>
      }
    }
  }
  %y = loop.kernel @attention(%v, %p, %m) : (tensor<2x130x5xf32>, tensor<2x20x130xf32>, tensor<2x20x1xf32>) -> tensor<2x20x5xf32> {
  ^bb0(%v: memref<2x130x5xf32>, %p: memref<2x20x130xf32>, %m: memref<2x20x1xf32>, %y: memref<2x20x5xf32>):
    tile.launch (%i = 2 : thread, %j = 20 : thread, %k = 5 : thread) {
      %m_1 = loop.load %m[%i, %j, 0] : memref<2x20x1xf32>
      %0 = arith.constant 0xff800000 : f32
      %x_eq = arith.cmpf oeq, %m_1, %0 : f32
      %x_mul = loop.for %l = 0 to 130 reduce(add) -> f32 {
        %1 = arith.constant 0.000000e+00 : f32
        %p_1 = loop.load %p[%i, %j, %l] : memref<2x20x130xf32>
        %x_select = arith.select %x_eq, %1, %p_1 : f32
        %v_1 = loop.load %v[%i, %l, %k] : memref<2x130x5xf32>
        %x_mul_1 = arith.mulf %x_select, %v_1 : f32
        loop.yield %x_mul_1 : f32
      }
      loop.store %x_mul, %y[%i, %j, %k] : memref<2x20x5xf32>
    }
  }
  func.return %y : tensor<2x20x5xf32>
}

// -----

// Without such a guard, a row of minus infinities has no mean.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    loop.kernel @mean(%q, %k, %v)
// CHECK:           loop.test[%j < 5]
// CHECK:           %[[ZERO:.*]] = arith.constant 0.000000e+00
// CHECK-NEXT:      %[[NAN:.*]] = arith.constant 0x7fc00000
// CHECK-NEXT:      %[[NONE:.*]] = arith.cmpf oeq, %weight, %[[ZERO]]
// CHECK-NEXT:      arith.select %[[NONE]], %[[NAN]], %mean
// REMARK: online-softmax: mean: 10400 bytes
func.func @main(%q: tensor<20x6xf32>, %k: tensor<130x6xf32>, %v: tensor<130x5xf32>) -> tensor<20x5xf32> {
  %s = loop.kernel @scores(%k, %q) : (tensor<130x6xf32>, tensor<20x6xf32>) -> tensor<20x130x1xf32> {
  ^bb0(%k: memref<130x6xf32>, %q: memref<20x6xf32>, %s: memref<20x130x1xf32>):
    tile.launch (%i = 20 : thread, %j = 130 : thread) {
      %t = loop.for %k_1 = 0 to 6 reduce(add) -> f32 {
        %q_1 = loop.load %q[%i, %k_1] : memref<20x6xf32>
        %k_2 = loop.load %k[%j, %k_1] : memref<130x6xf32>
        %t_1 = arith.mulf %q_1, %k_2 : f32
        loop.yield %t_1 : f32
      }
      loop.store %t, %s[%i, %j, 0] : memref<20x130x1xf32>
    }
  }
  %p = loop.kernel @weights(%s) : (tensor<20x130x1xf32>) -> tensor<20x130xf32> {
  ^bb0(%s: memref<20x130x1xf32>, %p: memref<20x130xf32>):
    tile.launch (%i = 20 : thread) {
      %mul = loop.for %j = 0 to 130 reduce(max) -> f32 {
        %s_1 = loop.load %s[%i, %j, 0] : memref<20x130x1xf32>
        %0 = arith.constant 5.000000e-01 : f32
        %mul_1 = arith.mulf %s_1, %0 : f32
        loop.yield %mul_1 : f32
      }
      %e = loop.for %j_1 = 0 to 130 reduce(add) -> f32 {
        %s_2 = loop.load %s[%i, %j_1, 0] : memref<20x130x1xf32>
        %1 = arith.constant 5.000000e-01 : f32
        %mul_2 = arith.mulf %s_2, %1 : f32
        %p_sub = arith.subf %mul_2, %mul : f32
        %e_1 = math.exp %p_sub : f32
        loop.yield %e_1 : f32
      }
      loop.for %j_2 = 0 to 130 {
        %s_3 = loop.load %s[%i, %j_2, 0] : memref<20x130x1xf32>
        %2 = arith.constant 5.000000e-01 : f32
        %mul_3 = arith.mulf %s_3, %2 : f32
        %p_sub_1 = arith.subf %mul_3, %mul : f32
        %e_2 = math.exp %p_sub_1 : f32
        %p_1 = arith.divf %e_2, %e : f32
        loop.store %p_1, %p[%i, %j_2] : memref<20x130xf32>
      }
    }
  }
  %mul = loop.kernel @mean(%v, %p) : (tensor<130x5xf32>, tensor<20x130xf32>) -> tensor<20x5xf32> {
  ^bb0(%v: memref<130x5xf32>, %p: memref<20x130xf32>, %mul: memref<20x5xf32>):
    tile.launch (%i = 20 : thread, %j = 5 : thread) {
      %t = loop.for %k = 0 to 130 reduce(add) -> f32 {
        %p_1 = loop.load %p[%i, %k] : memref<20x130xf32>
        %v_1 = loop.load %v[%k, %j] : memref<130x5xf32>
        %t_1 = arith.mulf %p_1, %v_1 : f32
        loop.yield %t_1 : f32
      }
      %0 = arith.constant 2.000000e+00 : f32
      %mul_1 = arith.mulf %t, %0 : f32
      loop.store %mul_1, %mul[%i, %j] : memref<20x5xf32>
    }
  }
  func.return %mul : tensor<20x5xf32>
}
