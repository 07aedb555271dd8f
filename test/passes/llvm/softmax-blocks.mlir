// RUN: deplo-opt %s -p lower-tile-to-scf | FileCheck %s
// RUN: deplo-opt %s -p 'lower-tile-to-scf{vectors=false}' | FileCheck %s --check-prefix=PLAIN
// RUN: deplo-opt %s -p 'lower-tile-to-scf{vectors=false},canonicalize,cse,convert-to-mlir' >/dev/null

// A column that is left out of a row counts as 0 times its value: if that is NaN anywhere, it is summed apart for
// each register tile's rows.
// CHECK-LABEL: func.func @attention
// CHECK:         %scores = memref.alloc() {alignment = 64 : i64} : memref<3200xf32>
// CHECK:         %[[WHOLE:.*]] = arith.minsi %c304, %c300
// CHECK:         %[[UNIT:.*]] = arith.constant 0.001953125
// CHECK:         arith.maxsi
// CHECK:         arith.maxsi
// CHECK-NEXT:    %[[SHORTEST:.*]] = arith.minsi
// CHECK:         scf.for %left_out = %[[SHORTEST]] to %[[WHOLE]]
// CHECK:           loop.load %v[%i, %left_out, %c_1]
// CHECK:           arith.mulf
// CHECK:           loop.store {{.*}}, %means[%c0 * 16 + %c_1]
// CHECK:         %[[SOME:.*]] = arith.cmpf uno
// CHECK-NEXT:    scf.if %[[SOME]] {
// CHECK:           scf.for %tile_m
// CHECK:             scf.for %left_out
// The columns that some row of the block does not mask end behind the diagonal.
// CHECK:         %[[LAST:.*]] = loop.index[%c20 - 1]
// CHECK-NEXT:    %[[DIAGONAL:.*]] = loop.index[%j_block * 20 + %[[LAST]] + 1]
// CHECK-NEXT:    %[[LESS:.*]] = arith.minsi %[[WHOLE]], %[[DIAGONAL]]
// CHECK-NEXT:    %[[END:.*]] = arith.maxsi %[[LESS]], %c0
// The rows are packed once, columns and values part by part.
// CHECK:         loop.store %q_1, %row_packed
// CHECK:         %[[PARTS:.*]] = loop.index[(%[[END]] + 303) floordiv 304]
// CHECK:         scf.for %l_block = %c0 to %[[PARTS]]
// CHECK:           vector.store {{.*}}, %column_packed
// CHECK:           loop.store {{.*}}, %value_packed
// Scores of ten rows, up to where the last of them ends, if that is in the part.
// CHECK:           scf.for %[[TILE:.*]] = %c0
// CHECK:             %[[FIRST:.*]] = loop.index[%[[TILE]] * 10]
// CHECK:             %[[LEFT:.*]] = loop.index[{{.*}} - %l_block * 304]
// CHECK-NEXT:        %[[POSITIVE:.*]] = arith.maxsi %[[LEFT]], %c0
// CHECK-NEXT:        %[[LENGTH:.*]] = arith.minsi %[[POSITIVE]], %c304
// CHECK-NEXT:        %[[ANY:.*]] = arith.cmpi sgt, %[[LENGTH]], %c0
// CHECK-NEXT:        scf.if %[[ANY]] {
// CHECK:               scf.for %tile_n
// LLVM is to keep nothing else in vector registers around a register tile.
// CHECK:                 llvm.inline_asm{{.*}}"~{{[{]}}zmm0},
// CHECK:                 vector.fma
// CHECK:                 vector.store {{.*}}, %scores
// Exponents, without a condition but in a row's last vector: behind its end they are minus infinity.
// CHECK:               scf.for %j =
// CHECK:                 %[[OWN:.*]] = arith.minsi %[[LENGTH]]
// CHECK:                 %[[WHOLE_TILES:.*]] = loop.index[%[[OWN]] floordiv 16 * 16]
// CHECK:                 %[[LARGEST:.*]] = scf.for %[[C:.*]] = %c0 to %[[WHOLE_TILES]]
// CHECK-NOT:               arith.cmpi
// CHECK:                   arith.mulf
// CHECK-NEXT:              loop.store {{.*}}, %scores
// CHECK-NEXT:              arith.maximumf
// CHECK:                 %[[MAX:.*]] = scf.for %[[C:.*]] = %[[WHOLE_TILES]] to {{.*}} iter_args({{.*}} = %[[LARGEST]])
// CHECK-NEXT:              arith.cmpi slt, %[[C]], %[[OWN]]
// CHECK:                   arith.constant 0xff800000
// CHECK:                   loop.store {{.*}}, %scores
// CHECK:                 loop.store {{.*}}, %maxima[%j]
// It is one part: no row carries anything. Weights come when all rows have their maximum.
// CHECK-NOT:             %means
// CHECK:               scf.for %j_1 =
// CHECK:                 %[[ADDED:.*]] = scf.for
// CHECK:                   math.exp
// CHECK-NEXT:              arith.mulf {{.*}}, %[[UNIT]]
// CHECK-NEXT:              loop.store {{.*}}, %scores
// CHECK-NEXT:              arith.addf
// CHECK:                 arith.addf {{.*}}, %[[ADDED]]
// CHECK-NEXT:            loop.store {{.*}}, %weights[%j_1]
// CHECK:                 scf.for %masked = {{.*}} to %[[LENGTH]]
// CHECK-NEXT:              loop.store {{.*}}, %scores
// And their products with the values.
// CHECK:               scf.for %tile_n
// CHECK:                 vector.load %means
// CHECK:                 vector.fma
// CHECK:                 vector.store {{.*}}, %means
// A mean is divided by the weight of its row.
// CHECK:         %[[INVERSE:.*]] = arith.select
// CHECK:         %mean = arith.mulf {{.*}}, %[[INVERSE]]
// CHECK:         loop.store %mean, %y
// PLAIN-LABEL: func.func @attention
// PLAIN-NOT:     vector.
// PLAIN:         scf.for %left_out
// PLAIN:         loop.store {{.*}}, %scores
// PLAIN:         loop.store {{.*}}, %means
func.func @main(%q: tensor<2x40x8xf32>, %k: tensor<2x300x8xf32>, %v: tensor<2x300x16xf32>) -> tensor<2x40x16xf32> {
  %y = loop.kernel @attention(%q, %k, %v) : (tensor<2x40x8xf32>, tensor<2x300x8xf32>, tensor<2x300x16xf32>) -> tensor<2x40x16xf32> {
  ^bb0(%q: memref<2x40x8xf32>, %k: memref<2x300x8xf32>, %v: memref<2x300x16xf32>, %y: memref<2x40x16xf32>):
    tile.launch (%i = 2 : block, %j_block = 2 : block, %j = 20 : thread, %k_1 = 16 : thread) schedule(#tile.schedule<m = 2, n = 3, block_m = 20, block_n = 16, block_k = 304, thread_m = 10, thread_n = 16, vectors = avx512>) {
      %row_packed = tile.pack (%r = 20, %p = 8) pad 16 : memref<20x8xf32, "shared"> {
        %q_1 = loop.load %q[%i, %j_block * 20 + %r, %p] : memref<2x40x8xf32>
        tile.yield %q_1 : f32
      }
      %max, %weight, %mean = loop.for %l_block = 0 to 1 reduce(max, weight, mean) -> f32, f32, f32 {
        %column_packed = tile.pack (%r_1 = 304, %p_1 = 8) panels 16 : memref<304x8xf32, "shared"> {
          %0 = loop.test[%r_1 < 300]
          %1 = scf.if %0 -> (f32) {
            %k_2 = loop.load %k[%i, %r_1, %p_1] : memref<2x300x8xf32>
            scf.yield %k_2 : f32
          } else {
            %2 = arith.constant 0.000000e+00 : f32
            scf.yield %2 : f32
          }
          tile.yield %1 : f32
        }
        %value_packed = tile.pack (%r_2 = 16, %p_2 = 304) panels 16 : memref<16x304xf32, "shared"> {
          %3 = loop.test[%p_2 < 300]
          %4 = scf.if %3 -> (f32) {
            %v_1 = loop.load %v[%i, %p_2, %r_2] : memref<2x300x16xf32>
            scf.yield %v_1 : f32
          } else {
            %5 = arith.constant 0.000000e+00 : f32
            scf.yield %5 : f32
          }
          tile.yield %4 : f32
        }
        %max_1, %weight_1, %mean_1 = loop.for %l = 0 to 304 reduce(max, weight, mean) -> f32, f32, f32 {
          %score = loop.for %l_1 = 0 to 8 reduce(add) -> f32 {
            %6 = loop.load %row_packed[%j, %l_1] : memref<20x8xf32, "shared">
            %7 = loop.load %column_packed[%l, %l_1] : memref<304x8xf32, "shared">
            %8 = arith.mulf %6, %7 : f32
            loop.yield %8 : f32
          }
          %9 = loop.test[%l < 300]
          %10 = scf.if %9 -> (f32) {
            %11 = loop.test[%j_block * 20 + %j - %l >= 0]
            %x = scf.if %11 -> (f32) {
              %12 = arith.constant 0.353553385 : f32
              %scaled = arith.mulf %score, %12 : f32
              scf.yield %scaled : f32
            } else {
              %13 = arith.constant 0xff800000 : f32
              scf.yield %13 : f32
            }
            scf.yield %x : f32
          } else {
            %14 = arith.constant 0xff800000 : f32
            scf.yield %14 : f32
          }
          %15 = arith.constant 1.000000e+00 : f32
          %16 = loop.load %value_packed[%k_1, %l] : memref<16x304xf32, "shared">
          loop.yield %10, %15, %16 : f32, f32, f32
        } attributes {chunk}
        loop.yield %max_1, %weight_1, %mean_1 : f32, f32, f32
      }
      loop.store %mean, %y[%i, %j_block * 20 + %j, %k_1] : memref<2x40x16xf32>
    }
  }
  func.return %y : tensor<2x40x16xf32>
}
