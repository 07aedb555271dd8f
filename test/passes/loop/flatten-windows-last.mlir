// RUN: deplo-opt %s -p flatten-windows | FileCheck %s
// RUN: deplo-opt %s -p flatten-windows --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Of 64 channels, and a large image, tensor cores multiply a copy in which channels are neighbours.
// REMARK: remark: flatten-windows: many: 3 by 64 elements are one sweep, in the end over channels of a copy in which they are last
// CHECK-LABEL: loop.kernel @k_x
// CHECK:         loop.load %x[%c, %i] : memref<64x40001xf16>
// CHECK-NEXT:    loop.store %{{.*}}, %x_by_channel[%i, %c] : memref<40001x64xf16>
// CHECK-LABEL: loop.kernel @many
// CHECK:         loop.load %x[%z + %c floordiv 64, %c mod 64] : memref<40001x64xf16>
// CHECK:         loop.load %w[%c floordiv 64, %j, %c mod 64] : memref<3x256x64xf16>
func.func @main(%x: tensor<64x40001xf16>, %w: tensor<256x64x3xf16>) -> tensor<256x39999xf32> {
  %a = loop.kernel @many(%x, %w) : (tensor<64x40001xf16>, tensor<256x64x3xf16>) -> tensor<256x39999xf32> {
  ^bb0(%x: memref<64x40001xf16>, %w: memref<256x64x3xf16>, %out: memref<256x39999xf32>):
    loop.for %j = 0 to 256 {
      loop.for %z = 0 to 39999 {
        %s = loop.for %c = 0 to 64 reduce(add) -> f32 {
          %s1 = loop.for %t = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %x[%c, %z + %t] : memref<64x40001xf16>
            %b = arith.extf %v : f16 to f32
            %u = loop.load %w[%j, %c, %t] : memref<256x64x3xf16>
            %d = arith.extf %u : f16 to f32
            %p = arith.mulf %b, %d : f32
            loop.yield %p : f32
          }
          loop.yield %s1 : f32
        }
        loop.store %s, %out[%j, %z] : memref<256x39999xf32>
      }
    }
  }
  func.return %a : tensor<256x39999xf32>
}
