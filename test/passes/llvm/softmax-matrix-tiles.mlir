// Attention of bf16 where there are matrix tiles. Queries, keys and values are packed as bf16, with whole steps of 32
// positions: 50 become 64, 70 become 96.
// RUN: deplo-opt %s -p 'tileify,online-softmax{target=cpu:amx}' --remarks 2>&1 | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,online-softmax{target=cpu:amx}' --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'tileify,online-softmax{target=cpu:amx},lower-tile-to-scf' | FileCheck %s --check-prefix=SCF
// RUN: deplo-opt %s -p 'tileify,online-softmax{target=cpu:amx},lower-tile-to-scf{vectors=false}' | FileCheck %s --check-prefix=PLAIN
// RUN: deplo-opt %s -p 'tileify,online-softmax{target=cpu:amx mma=0 thread_m=4 block_m=40}' --remarks 2>&1 | FileCheck %s --check-prefix=F32
// RUN: deplo-opt %s -p 'tileify,online-softmax{target=cpu:avx512 mma=1}' --remarks 2>&1 | FileCheck %s --check-prefix=OTHER

// F32: online-softmax: k_a_reduce: 22400 bytes of scores are computed in 1 parts of a row, as asked
// F32: tile.pack {{.*}} : memref<{{.*}}xf32, "shared">
// OTHER: online-softmax: k_a_reduce: declined: matrix tiles multiply bf16, on CPUs that have them
// OTHER: online-softmax: k_a_reduce: 22400 bytes of scores are computed in 1 parts of a row

// CHECK: remark: online-softmax: k_a_reduce: 22400 bytes of scores are computed in 1 parts of a row by matrix tiles
// CHECK: schedule(#tile.schedule<{{.*}}block_k = 96, {{.*}}pairs = 1, mma = 1, width = 512, vectors = amx>)
// CHECK: %row_packed = tile.pack (%r = 40, %p = 64) pad 32 : memref<40x64xbf16, "shared"> {
// CHECK:   loop.test[%p < 50]
// CHECK: tile.pack (%r_1 = 96, %p_1 = 64) panels 32 : memref<96x64xbf16, "shared">
// CHECK: tile.pack (%r_2 = 32, %p_2 = 96) panels 32 : memref<32x96xbf16, "shared">
// CHECK: loop.for %m{{.*}} = 0 to 64 reduce(add)
// CHECK:   arith.extf %{{.+}} : bf16 to f32

// What columns weigh by is rounded once its sum is taken, with zeros up to a whole step.
// SCF: amx.ldtilecfg
// SCF: amx.tilezero
// SCF: amx.tdpbf16ps
// SCF: math.exp
// SCF: %[[weight:.+]] = arith.truncf %{{.+}} : f32 to bf16
// SCF: loop.store %[[weight]], %factors[
// SCF: scf.for %masked
// SCF:   arith.truncf
// SCF: amx.tileload {{[0-9]}}, %factors[
// SCF: amx.tdpbf16ps

// PLAIN: loop.store %{{.+}}, %factors[{{.*}}] : memref<{{[0-9]+}}xbf16>
// PLAIN-NOT: amx.t
func.func @main(%x: tensor<1x2x40x50xbf16>, %x_1: tensor<1x2x70x50xbf16>, %x_2: tensor<1x2x70x20xbf16>) -> tensor<1x2x40x20xbf16> {
  %a_sum = loop.kernel @k_a_sum_reduce(%x_1, %x) : (tensor<1x2x70x50xbf16>, tensor<1x2x40x50xbf16>) -> tensor<1x2x40x70x1xf32> {
  ^bb0(%x: memref<1x2x70x50xbf16>, %x_1: memref<1x2x40x50xbf16>, %a_sum: memref<1x2x40x70x1xf32>):
    loop.for %j = 0 to 2 {
      loop.for %k = 0 to 40 {
        loop.for %l = 0 to 70 {
          %a_mul = loop.for %m = 0 to 50 reduce(add) -> f32 {
            %x_2 = loop.load %x_1[0, %j, %k, %m] : memref<1x2x40x50xbf16>
            %a_f32 = arith.extf %x_2 : bf16 to f32
            %x_3 = loop.load %x[0, %j, %l, %m] : memref<1x2x70x50xbf16>
            %a_f32_1 = arith.extf %x_3 : bf16 to f32
            %a_mul_1 = arith.mulf %a_f32, %a_f32_1 : f32
            loop.yield %a_mul_1 : f32
          }
          loop.store %a_mul, %a_sum[0, %j, %k, %l, 0] : memref<1x2x40x70x1xf32>
        }
      }
    }
  }
  %a_select = loop.kernel @k_a_select_reduce(%a_sum) : (tensor<1x2x40x70x1xf32>) -> tensor<1x2x40x70xf32> {
  ^bb0(%a_sum: memref<1x2x40x70x1xf32>, %a_select: memref<1x2x40x70xf32>):
    loop.for %j = 0 to 2 {
      loop.for %k = 0 to 40 {
        %a_mul = loop.for %l = 0 to 70 reduce(max) -> f32 {
          %a_sum_1 = loop.load %a_sum[0, %j, %k, %l, 0] : memref<1x2x40x70x1xf32>
          %0 = arith.constant 0.141421363 : f32
          %a_mul_1 = arith.mulf %a_sum_1, %0 : f32
          loop.yield %a_mul_1 : f32
        }
        %1 = arith.constant 0xff800000 : f32
        %a_eq = arith.cmpf oeq, %a_mul, %1 : f32
        %a_exp = loop.for %l_1 = 0 to 70 reduce(add) -> f32 {
          %a_sum_2 = loop.load %a_sum[0, %j, %k, %l_1, 0] : memref<1x2x40x70x1xf32>
          %2 = arith.constant 0.141421363 : f32
          %a_mul_2 = arith.mulf %a_sum_2, %2 : f32
          %a_sub = arith.subf %a_mul_2, %a_mul : f32
          %a_exp_1 = math.exp %a_sub : f32
          loop.yield %a_exp_1 : f32
        }
        loop.for %l_2 = 0 to 70 {
          %3 = arith.constant 0.000000e+00 : f32
          %a_sum_3 = loop.load %a_sum[0, %j, %k, %l_2, 0] : memref<1x2x40x70x1xf32>
          %4 = arith.constant 0.141421363 : f32
          %a_mul_3 = arith.mulf %a_sum_3, %4 : f32
          %a_sub_1 = arith.subf %a_mul_3, %a_mul : f32
          %a_exp_2 = math.exp %a_sub_1 : f32
          %a_div = arith.divf %a_exp_2, %a_exp : f32
          %a_select_1 = arith.select %a_eq, %3, %a_div : f32
          loop.store %a_select_1, %a_select[0, %j, %k, %l_2] : memref<1x2x40x70xf32>
        }
      }
    }
  }
  %a = loop.kernel @k_a_reduce(%a_select, %x_2) : (tensor<1x2x40x70xf32>, tensor<1x2x70x20xbf16>) -> tensor<1x2x40x20xbf16> {
  ^bb0(%a_select: memref<1x2x40x70xf32>, %x: memref<1x2x70x20xbf16>, %a: memref<1x2x40x20xbf16>):
    loop.for %j = 0 to 2 {
      loop.for %k = 0 to 40 {
        loop.for %l = 0 to 20 {
          %a_mul = loop.for %m = 0 to 70 reduce(add) -> f32 {
            %a_select_1 = loop.load %a_select[0, %j, %k, %m] : memref<1x2x40x70xf32>
            %x_1 = loop.load %x[0, %j, %m, %l] : memref<1x2x70x20xbf16>
            %a_f32 = arith.extf %x_1 : bf16 to f32
            %a_mul_1 = arith.mulf %a_select_1, %a_f32 : f32
            loop.yield %a_mul_1 : f32
          }
          %a_1 = arith.truncf %a_mul : f32 to bf16
          loop.store %a_1, %a[0, %j, %k, %l] : memref<1x2x40x20xbf16>
        }
      }
    }
  }
  func.return %a : tensor<1x2x40x20xbf16>
}
