// The windows of an image are packed offset by offset: what is in front of the channels needs no channel.

// RUN: deplo-opt %s -p 'collapse-rows,schedule-cpu{target=cpu:avx512},pack-operands,lower-tile-to-scf' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'collapse-rows,schedule-cpu{target=cpu:avx512},pack-operands,lower-tile-to-scf' --split-input-file --check-each-pass >/dev/null

// CHECK-LABEL: func.func @pixels
// CHECK:         scf.for %strip = %c0 to %c3
// CHECK:           scf.for %offset = %c0 to %c3
// CHECK-NEXT:      scf.for %offset_1 = %c0 to %c3
// CHECK:             scf.for %window
// CHECK-NEXT:          scf.for %[[R:.*]] = %c0 to %c16
// CHECK-NEXT:            %[[FIRST:.*]] = loop.index[%z_block * 96 + %panel * 48 + %strip * 16]
// CHECK-NEXT:            %[[HERE:.*]] = loop.index[%z_block * 96 + %panel * 48 + %strip * 16 + %[[R]]]
// CHECK-NEXT:            %[[LINE:.*]] = loop.index[%[[FIRST]] floordiv 20]
// CHECK-NEXT:            %[[END:.*]] = loop.index[%[[LINE]] * 20 + 20]
// CHECK-NEXT:            %[[PAST:.*]] = arith.cmpi sge, %[[HERE]], %[[END]]
// CHECK-NEXT:            %[[STEP:.*]] = arith.select %[[PAST]], %c1, %c0
// CHECK-NEXT:            %[[Y:.*]] = loop.index[%[[LINE]] + %[[STEP]]]
// CHECK-NEXT:            loop.test[%offset + %[[Y]] >= 1,
// CHECK:                 loop.load %x[%window, %offset + %[[Y]] - 1, %z_block * 96 + %panel * 48 + %strip * 16 + %offset_1 + %[[R]] - %[[Y]] * 20 - 1]
// Pixels past the end are 0: 16 of them at once, or all of them that a loop over 16 meets.
// CHECK:         scf.for %panel_1
// CHECK:           %[[BEGIN:.*]] = loop.index[%panel_1 * 48 + %strip_1 * 16]
// CHECK-NEXT:      %[[BEYOND:.*]] = arith.cmpi sge, %[[BEGIN]], %[[ROWS:.*]] : index
// CHECK-NEXT:      scf.if %[[BEYOND]] {
// CHECK:             vector.store
// CHECK:           } else {
// CHECK-NEXT:        %[[LAST:.*]] = loop.index[%panel_1 * 48 + %strip_1 * 16 + 15]
// CHECK-NEXT:        %[[WHOLE:.*]] = arith.cmpi slt, %[[LAST]], %[[ROWS]] : index
// CHECK-NEXT:        scf.if %[[WHOLE]] {
// CHECK-NEXT:          scf.for
// CHECK:             } else {
// CHECK:               scf.for %{{.*}} = %c0 to %c16
// CHECK:                 arith.cmpi slt, %{{.*}}, %[[ROWS]] : index
// CHECK-NEXT:            scf.if
// The weights of a pixel's window lie one after the other, and are read where they lie.
// CHECK:         loop.load %w[%{{.+}}, %{{.+}} floordiv 9, %{{.+}} floordiv 3 mod 3, %{{.+}} mod 3]
// CHECK:         vector.fma
func.func @main(%x: tensor<8x7x20xf32>, %w: tensor<16x8x3x3xf32>) -> tensor<16x7x20xf32> {
  %y = loop.kernel @pixels(%x, %w) : (tensor<8x7x20xf32>, tensor<16x8x3x3xf32>) -> tensor<16x7x20xf32> {
  ^bb0(%x: memref<8x7x20xf32>, %w: memref<16x8x3x3xf32>, %out: memref<16x7x20xf32>):
    tile.launch (%c = 16 : thread, %y = 7 : thread, %z = 20 : thread) {
      %s = loop.for %m = 0 to 8 reduce(add) -> f32 {
        %t = loop.for %n = 0 to 3 reduce(add) -> f32 {
          %u = loop.for %o = 0 to 3 reduce(add) -> f32 {
            %in = loop.test[%y + %n >= 1, %y + %n < 8, %z + %o >= 1, %z + %o < 21]
            %p = scf.if %in -> (f32) {
              %i = loop.load %x[%m, %y + %n - 1, %z + %o - 1] : memref<8x7x20xf32>
              scf.yield %i : f32
            } else {
              %zero = arith.constant 0.0 : f32
              scf.yield %zero : f32
            }
            %q = loop.load %w[%c, %m, %n, %o] : memref<16x8x3x3xf32>
            %r = arith.mulf %p, %q : f32
            loop.yield %r : f32
          }
          loop.yield %u : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c, %y, %z] : memref<16x7x20xf32>
    }
  }
  func.return %y : tensor<16x7x20xf32>
}

// -----

// A stride of 2: where the first and the last of 16 pixels are inside, two vectors are loaded and shuffled.

// CHECK-LABEL: func.func @strided
// CHECK:             %[[LOW:.*]] = loop.test[%[[L:.*]] * 2 + %offset >= 1, %panel * 96 + %strip * 32 + %offset_1 >= 1]
// CHECK-NEXT:        %[[HIGH:.*]] = loop.test[%[[L]] * 2 + %offset >= 1, %panel * 96 + %strip * 32 + %offset_1 >= -29]
// CHECK-NEXT:        %[[IN:.*]] = arith.andi %[[LOW]], %[[HIGH]] : i1
// CHECK-NEXT:        scf.if %[[IN]] {
// CHECK-NEXT:          scf.for %window
// CHECK:                 %[[C:.*]] = loop.index[%panel * 96 + %strip * 32 + %offset_1 - 1]
// CHECK-NEXT:            %[[A:.*]] = vector.load %x[%window, {{.*}}, %[[C]]] : memref<8x12x192xf32>, vector<16xf32>
// CHECK:                 %[[D:.*]] = loop.index[%panel * 96 + %strip * 32 + %offset_1 + 14]
// CHECK-NEXT:            %[[B:.*]] = vector.load %x[%window, {{.*}}, %[[D]]] : memref<8x12x192xf32>, vector<16xf32>
// CHECK-NEXT:            vector.shuffle %[[A]], %[[B]] [0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31]
// Where some are in front of the line, or all above the image, only the others are read.
// CHECK:             } else {
// CHECK-NEXT:          %[[ABOVE:.*]] = loop.index[%[[L]] * 2048 + %offset * 1024]
// CHECK-NEXT:          %[[END:.*]] = arith.minsi %c16, %[[ABOVE]]
// CHECK-NEXT:          %[[LEFT:.*]] = loop.index[(%panel * -96 - %strip * 32 - %offset_1 + 2) floordiv 2]
// CHECK-NEXT:          %[[BEGIN:.*]] = arith.maxsi %c0, %[[LEFT]]
// CHECK-NEXT:          %[[FROM:.*]] = loop.index[%[[BEGIN]] * 2]
// CHECK-NEXT:          %[[TO:.*]] = loop.index[%[[END]] * 2 - 1]
// CHECK-NEXT:          %[[LAST:.*]] = arith.maxsi %[[FROM]], %[[TO]]
// CHECK-NEXT:          %[[NO:.*]] = vector.create_mask %[[FROM]] : vector<16xi1>
// CHECK-NEXT:          %[[YES:.*]] = vector.create_mask %[[LAST]] : vector<16xi1>
// CHECK-NEXT:          %[[MASK:.*]] = arith.xori %[[NO]], %[[YES]] : vector<16xi1>
// CHECK-NEXT:          loop.index[%[[BEGIN]] * 2 - 15]
// CHECK-NEXT:          loop.index[%[[END]] * 2 - 16]
// CHECK:               %[[REST:.*]] = arith.xori
// CHECK-NEXT:          scf.for %window
// CHECK:                 %[[E:.*]] = vector.maskedload %x[{{.*}}], %[[MASK]],
// CHECK:                 %[[F:.*]] = vector.maskedload %x[{{.*}}], %[[REST]],
// CHECK-NEXT:            vector.shuffle %[[E]], %[[F]] [0, 2, 4,
func.func @main(%x: tensor<8x12x192xf32>, %w: tensor<16x8x3x3xf32>) -> tensor<16x6x96xf32> {
  %y = loop.kernel @strided(%x, %w) : (tensor<8x12x192xf32>, tensor<16x8x3x3xf32>) -> tensor<16x6x96xf32> {
  ^bb0(%x: memref<8x12x192xf32>, %w: memref<16x8x3x3xf32>, %out: memref<16x6x96xf32>):
    tile.launch (%c = 16 : thread, %y = 6 : thread, %z = 96 : thread) {
      %s = loop.for %m = 0 to 8 reduce(add) -> f32 {
        %t = loop.for %n = 0 to 3 reduce(add) -> f32 {
          %u = loop.for %o = 0 to 3 reduce(add) -> f32 {
            %in = loop.test[%y * 2 + %n >= 1, %z * 2 + %o >= 1]
            %p = scf.if %in -> (f32) {
              %i = loop.load %x[%m, %y * 2 + %n - 1, %z * 2 + %o - 1] : memref<8x12x192xf32>
              scf.yield %i : f32
            } else {
              %zero = arith.constant 0.0 : f32
              scf.yield %zero : f32
            }
            %q = loop.load %w[%c, %m, %n, %o] : memref<16x8x3x3xf32>
            %r = arith.mulf %p, %q : f32
            loop.yield %r : f32
          }
          loop.yield %u : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c, %y, %z] : memref<16x6x96xf32>
    }
  }
  func.return %y : tensor<16x6x96xf32>
}

// -----

// A stride of 4: four vectors, the last of which ends with the last pixel.

// CHECK-LABEL: func.func @patches
// CHECK:         %[[A:.*]] = vector.load %x[{{.*}}] : memref<8x24x256xf32>, vector<16xf32>
// CHECK:         loop.index[%{{.*}} + 16]
// CHECK:         %[[B:.*]] = vector.load %x
// CHECK:         loop.index[%{{.*}} + 32]
// CHECK:         %[[C:.*]] = vector.load %x
// CHECK:         loop.index[%{{.*}} + 45]
// CHECK:         %[[D:.*]] = vector.load %x
// CHECK-NEXT:    %[[AB:.*]] = vector.shuffle %[[A]], %[[B]] [0, 4, 8, 12, 16, 20, 24, 28, 0, 0, 0, 0, 0, 0, 0, 0]
// CHECK-NEXT:    %[[ABC:.*]] = vector.shuffle %[[AB]], %[[C]] [0, 1, 2, 3, 4, 5, 6, 7, 16, 20, 24, 28, 0, 0, 0, 0]
// CHECK-NEXT:    vector.shuffle %[[ABC]], %[[D]] [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 19, 23, 27, 31]
func.func @main(%x: tensor<8x24x256xf32>, %w: tensor<16x8x4x4xf32>) -> tensor<16x6x64xf32> {
  %y = loop.kernel @patches(%x, %w) : (tensor<8x24x256xf32>, tensor<16x8x4x4xf32>) -> tensor<16x6x64xf32> {
  ^bb0(%x: memref<8x24x256xf32>, %w: memref<16x8x4x4xf32>, %out: memref<16x6x64xf32>):
    tile.launch (%c = 16 : thread, %y = 6 : thread, %z = 64 : thread) {
      %s = loop.for %m = 0 to 8 reduce(add) -> f32 {
        %t = loop.for %n = 0 to 4 reduce(add) -> f32 {
          %u = loop.for %o = 0 to 4 reduce(add) -> f32 {
            %p = loop.load %x[%m, %y * 4 + %n, %z * 4 + %o] : memref<8x24x256xf32>
            %q = loop.load %w[%c, %m, %n, %o] : memref<16x8x4x4xf32>
            %r = arith.mulf %p, %q : f32
            loop.yield %r : f32
          }
          loop.yield %u : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c, %y, %z] : memref<16x6x64xf32>
    }
  }
  func.return %y : tensor<16x6x64xf32>
}

// -----

// Lines of 24 are joined: what 16 pixels are on each of two lines is read under a mask.

// CHECK-LABEL: func.func @partial
// CHECK:         %[[LINE:.*]] = loop.index[%{{.*}} floordiv 24]
// CHECK-NEXT:    %[[NEXT:.*]] = loop.index[%[[LINE]] + 1]
// CHECK:         %[[ENDS:.*]] = loop.index[%[[LINE]] * 24 + 24 - %{{.*}}]
// CHECK-NEXT:    %[[ONE:.*]] = arith.cmpi sge, %[[ENDS]], %c16
// CHECK-NEXT:    scf.if %[[ONE]] {
// CHECK:           vector.load %x
// CHECK:         } else {
// CHECK:           loop.index[%[[LINE]] * 24 + 24 - %{{.*}}]
// CHECK:           loop.index[%[[NEXT]] * 24 - %{{.*}}]
// CHECK:           scf.for %window
// CHECK:             vector.maskedload %x
// CHECK:             vector.maskedload %x
// CHECK-NEXT:        %[[A:.*]] = vector.shuffle
// CHECK:             vector.maskedload %x
// CHECK:             vector.maskedload %x
// CHECK-NEXT:        %[[B:.*]] = vector.shuffle
// CHECK-NEXT:      %[[C:.*]] = llvm.bitcast %[[A]] : vector<16xf32> to vector<16xi32>
// CHECK-NEXT:      %[[D:.*]] = llvm.bitcast %[[B]] : vector<16xf32> to vector<16xi32>
// CHECK-NEXT:      %[[BOTH:.*]] = arith.ori %[[C]], %[[D]] : vector<16xi32>
// CHECK-NEXT:      llvm.bitcast %[[BOTH]] : vector<16xi32> to vector<16xf32>
func.func @main(%x: tensor<64x12x48xf32>, %w: tensor<16x64xf32>) -> tensor<16x6x24xf32> {
  %y = loop.kernel @partial(%x, %w) : (tensor<64x12x48xf32>, tensor<16x64xf32>) -> tensor<16x6x24xf32> {
  ^bb0(%x: memref<64x12x48xf32>, %w: memref<16x64xf32>, %out: memref<16x6x24xf32>):
    tile.launch (%c = 16 : thread, %y = 6 : thread, %z = 24 : thread) {
      %s = loop.for %m = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%m, %y * 2, %z * 2] : memref<64x12x48xf32>
        %q = loop.load %w[%c, %m] : memref<16x64xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%c, %y, %z] : memref<16x6x24xf32>
    }
  }
  func.return %y : tensor<16x6x24xf32>
}
