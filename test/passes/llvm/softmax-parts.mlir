// RUN: deplo-opt %s -p lower-tile-to-scf | FileCheck %s
// RUN: deplo-opt %s -p 'lower-tile-to-scf{vectors=false}' | FileCheck %s --check-prefix=PLAIN
// RUN: deplo-opt %s -p 'lower-tile-to-scf{vectors=false},canonicalize,cse,convert-to-mlir' >/dev/null

// Rows of 43 scores in parts of 32, in register tiles of 32 columns: the 11 of the last part take a tile of 16, and
// so do the last 4 of 36 columns of the result.
// CHECK-LABEL: func.func @k_matmul_reduce
// CHECK:         %[[UNIT:.*]] = arith.constant 1.562500e-02
// CHECK-NEXT:    %[[SCALE:.*]] = arith.constant 6.400000e+01
// CHECK:         scf.for %k_block
// CHECK:           scf.for %tile_m
// CHECK:             %[[WHOLE:.*]] = loop.index[(%[[LENGTH:.*]] + 15) floordiv 32]
// CHECK-NEXT:        scf.for %tile_n = %c0 to %[[WHOLE]]
// CHECK:               scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK:             %[[ALL:.*]] = loop.index[(%[[LENGTH]] + 31) floordiv 32]
// CHECK-NEXT:        scf.for %[[LAST:.*]] = %[[WHOLE]] to %[[ALL]]
// CHECK:               scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK:                 loop.index[%[[LAST]] * 128 + %{{.*}} * 32]
// CHECK-NEXT:            vector.load %column_packed
// What a row carries is scaled to its new maximum.
// CHECK:             scf.for %i =
// CHECK:               %[[BEFORE:.*]] = loop.load %maxima[%i]
// CHECK-NEXT:          %[[LARGEST:.*]] = arith.maximumf %[[BEFORE]]
// CHECK-NEXT:          loop.store %[[LARGEST]], %maxima[%i]
// CHECK:               arith.subf %[[BEFORE]]
// CHECK-NEXT:          %[[KEPT:.*]] = math.exp
// CHECK:               %[[WEIGHT:.*]] = arith.mulf %{{.*}}, %[[KEPT]]
// CHECK-NEXT:          loop.store %[[WEIGHT]], %weights[%i]
// CHECK:               scf.for
// CHECK:                 arith.mulf %{{.*}}, %[[KEPT]]
// CHECK-NEXT:            loop.store {{.*}}, %means
// CHECK:             scf.for %i_1 =
// CHECK:               arith.mulf {{.*}}, %[[UNIT]]
// CHECK:             scf.for %tile_n
// CHECK:               vector.load %means
// CHECK:             scf.for %tile_n
// CHECK:               scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK:                 vector.load %value_packed
// The weight itself is asked for, to find rows without any.
// CHECK:         %weight = arith.mulf {{.*}}, %[[SCALE]]
// CHECK:         arith.cmpf oeq, %weight
// PLAIN-LABEL: func.func @k_matmul_reduce
// PLAIN-NOT:     vector.
// PLAIN:         scf.for %column{{.*}} = %c0 to %c32
// PLAIN:         scf.for %column{{.*}} = %c0 to %c16
func.func @main(%q: tensor<6x4xf32>, %k: tensor<43x4xf32>, %v: tensor<43x36xf32>) -> tensor<6x36xf32> {
  %matmul = loop.kernel @k_matmul_reduce(%q, %k, %v) : (tensor<6x4xf32>, tensor<43x4xf32>, tensor<43x36xf32>) -> tensor<6x36xf32> {
  ^bb0(%q: memref<6x4xf32>, %k: memref<43x4xf32>, %v: memref<43x36xf32>, %matmul: memref<6x36xf32>):
    tile.launch (%i_block = 2 : block, %i = 4 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 1, n = 2, block_m = 4, block_n = 64, block_k = 32, thread_m = 4, thread_n = 32, width = 512, vectors = avx512>) {
      %row_packed = tile.pack (%r = 4, %p = 4) pad 16 : memref<4x4xf32, "shared"> {
        %0 = loop.test[%i_block * 4 + %r < 6]
        %1 = scf.if %0 -> (f32) {
          %q_1 = loop.load %q[%i_block * 4 + %r, %p] : memref<6x4xf32>
          scf.yield %q_1 : f32
        } else {
          %2 = arith.constant 0.000000e+00 : f32
          scf.yield %2 : f32
        }
        tile.yield %1 : f32
      }
      %max, %weight, %mean = loop.for %k_block = 0 to 2 reduce(max, weight, mean) -> f32, f32, f32 {
        %column_packed = tile.pack (%r_1 = 32, %p_1 = 4) panels 32 : memref<32x4xf32, "shared"> {
          %3 = loop.test[%k_block * 32 + %r_1 < 43]
          %4 = scf.if %3 -> (f32) {
            %k_1 = loop.load %k[%k_block * 32 + %r_1, %p_1] : memref<43x4xf32>
            scf.yield %k_1 : f32
          } else {
            %5 = arith.constant 0.000000e+00 : f32
            scf.yield %5 : f32
          }
          tile.yield %4 : f32
        }
        %value_packed = tile.pack (%r_2 = 64, %p_2 = 32) panels 32 : memref<64x32xf32, "shared"> {
          %6 = loop.test[%r_2 < 36, %k_block * 32 + %p_2 < 43]
          %7 = scf.if %6 -> (f32) {
            %v_1 = loop.load %v[%k_block * 32 + %p_2, %r_2] : memref<43x36xf32>
            scf.yield %v_1 : f32
          } else {
            %8 = arith.constant 0.000000e+00 : f32
            scf.yield %8 : f32
          }
          tile.yield %7 : f32
        }
        %max_1, %weight_1, %mean_1 = loop.for %k_2 = 0 to 32 reduce(max, weight, mean) -> f32, f32, f32 {
          %score = loop.for %k_3 = 0 to 4 reduce(add) -> f32 {
            %9 = loop.load %row_packed[%i, %k_3] : memref<4x4xf32, "shared">
            %10 = loop.load %column_packed[%k_2, %k_3] : memref<32x4xf32, "shared">
            %11 = arith.mulf %9, %10 : f32
            loop.yield %11 : f32
          }
          %12 = loop.test[%i_block * 4 + %i < 6, %k_block * 32 + %k_2 < 43]
          %13 = scf.if %12 -> (f32) {
            scf.yield %score : f32
          } else {
            %14 = arith.constant 0xff800000 : f32
            scf.yield %14 : f32
          }
          %15 = arith.constant 1.000000e+00 : f32
          %16 = loop.load %value_packed[%j, %k_2] : memref<64x32xf32, "shared">
          loop.yield %13, %15, %16 : f32, f32, f32
        } attributes {chunk}
        loop.yield %max_1, %weight_1, %mean_1 : f32, f32, f32
      }
      %17 = loop.test[%i_block * 4 + %i < 6, %j < 36]
      scf.if %17 {
        %18 = arith.constant 0.000000e+00 : f32
        %19 = arith.constant 0x7fc00000 : f32
        %20 = arith.cmpf oeq, %weight, %18 : f32
        %21 = arith.select %20, %19, %mean : f32
        loop.store %21, %matmul[%i_block * 4 + %i, %j] : memref<6x36xf32>
      }
    }
  }
  func.return %matmul : tensor<6x36xf32>
}
