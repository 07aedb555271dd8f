// The gradient of a convolution's weights: windows that lie along the lines of images are the rows of turned blocks,
// filled line by line.

// RUN: deplo-opt %s -p 'collapse-rows,schedule-cpu{target=cpu:avx512},pack-operands' --split-input-file | FileCheck %s --check-prefix=TILE
// RUN: deplo-opt %s -p 'collapse-rows,schedule-cpu{target=cpu:avx512},pack-operands,lower-tile-to-scf' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'collapse-rows,schedule-cpu{target=cpu:avx512},pack-operands,lower-tile-to-scf' --split-input-file --check-each-pass >/dev/null

// A chunk of K has whole lines of one image, and channels are joined with the places in a window.
// TILE-LABEL: loop.kernel @weights
// TILE:         tile.launch ({{.*}} %i = 16 : thread, %l = {{[0-9]+}} : thread) schedule(#tile.schedule<m = 3, n = 2, {{.*}}block_k = 128,
// TILE:           tile.pack (%l_1 = {{[0-9]+}}, %z = 128) pad 16
// TILE:           tile.pack (%i_1 = 16, %z_1 = 128) panels 16
// CHECK-LABEL: func.func @weights
// CHECK:         scf.for %r_1 = %c0
// CHECK-NEXT:      scf.for %line = %c0
// CHECK-NEXT:        scf.for %k = %c0 to %c16
// CHECK-NEXT:          loop.test[
// CHECK:                 loop.load %x[{{.*}}, %k + %r_1 mod 3 - 1]
func.func @main(%x: tensor<4x8x16x16xf32>, %g: tensor<4x16x16x16xf32>) -> tensor<16x8x3x3xf32> {
  %y = loop.kernel @weights(%g, %x) : (tensor<4x16x16x16xf32>, tensor<4x8x16x16xf32>) -> tensor<16x8x3x3xf32> {
  ^bb0(%g: memref<4x16x16x16xf32>, %x: memref<4x8x16x16xf32>, %out: memref<16x8x3x3xf32>):
    tile.launch (%i = 16 : thread, %j = 8 : thread, %k = 3 : thread, %l = 3 : thread) {
      %s = loop.for %m = 0 to 4 reduce(add) -> f32 {
        %t = loop.for %y = 0 to 16 reduce(add) -> f32 {
          %u = loop.for %z = 0 to 16 reduce(add) -> f32 {
            %inside = loop.test[%k + %y >= 1, %k + %y < 17, %l + %z >= 1, %l + %z < 17]
            %window = scf.if %inside -> (f32) {
              %p = loop.load %x[%m, %j, %k + %y - 1, %l + %z - 1] : memref<4x8x16x16xf32>
              scf.yield %p : f32
            } else {
              %zero = arith.constant 0.000000e+00 : f32
              scf.yield %zero : f32
            }
            %q = loop.load %g[%m, %i, %y, %z] : memref<4x16x16x16xf32>
            %r = arith.mulf %window, %q : f32
            loop.yield %r : f32
          }
          loop.yield %u : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%i, %j, %k, %l] : memref<16x8x3x3xf32>
    }
  }
  func.return %y : tensor<16x8x3x3xf32>
}

// -----

// What a stride keeps apart are vectors, shuffled.
// CHECK-LABEL: func.func @strided
// CHECK:         scf.for %part = %c0 to %c1
// CHECK:           vector.load %x
// CHECK:           vector.shuffle
// CHECK:           vector.store %{{.*}}, %{{.*}} {anywhere}
func.func @main(%x: tensor<4x8x33x33xf32>, %g: tensor<4x16x16x16xf32>) -> tensor<16x8x3x3xf32> {
  %y = loop.kernel @strided(%g, %x) : (tensor<4x16x16x16xf32>, tensor<4x8x33x33xf32>) -> tensor<16x8x3x3xf32> {
  ^bb0(%g: memref<4x16x16x16xf32>, %x: memref<4x8x33x33xf32>, %out: memref<16x8x3x3xf32>):
    tile.launch (%i = 16 : thread, %j = 8 : thread, %k = 3 : thread, %l = 3 : thread) {
      %s = loop.for %m = 0 to 4 reduce(add) -> f32 {
        %t = loop.for %y = 0 to 16 reduce(add) -> f32 {
          %u = loop.for %z = 0 to 16 reduce(add) -> f32 {
            %p = loop.load %x[%m, %j, %k + %y * 2, %l + %z * 2] : memref<4x8x33x33xf32>
            %q = loop.load %g[%m, %i, %y, %z] : memref<4x16x16x16xf32>
            %r = arith.mulf %p, %q : f32
            loop.yield %r : f32
          }
          loop.yield %u : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%i, %j, %k, %l] : memref<16x8x3x3xf32>
    }
  }
  func.return %y : tensor<16x8x3x3xf32>
}
