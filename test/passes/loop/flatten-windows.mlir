// RUN: deplo-opt %s -p flatten-windows --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p flatten-windows --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p flatten-windows{target=cpu} --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=CPU
// RUN: deplo-opt %s -p flatten-windows --split-input-file --check-each-pass >/dev/null

// Weights lie place by place, and one sweep goes over the channels of each.
// REMARK: remark: flatten-windows: filtered: 3 by 2 by 16 elements are one sweep
// CPU: remark: flatten-windows: filtered: declined: a CPU gathers its windows into packs
// CHECK-LABEL: loop.kernel @k_w
// CHECK:         loop.load %w[%j, %c, %r, %t]
// CHECK:         loop.store %{{.*}}, %w_by_place[%r, %t, %j, %c] : memref<3x2x16x16xf16>
// CHECK-LABEL: loop.kernel @filtered
// CHECK:         %s = loop.for %c = 0 to 96 reduce(add) -> f32 {
// CHECK-NEXT:      loop.test[%y + %c floordiv 32 >= 1, %y + %c floordiv 32 < 9, %z + %c floordiv 16 mod 2 < 8]
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        loop.load %x[%c mod 16, %y + %c floordiv 32 - 1, %z + %c floordiv 16 mod 2]
// CHECK:           loop.load %w[%c floordiv 32, %c floordiv 16 mod 2, %j, %c mod 16] : memref<3x2x16x16xf16>
func.func @main(%x: tensor<16x8x8xf16>, %w: tensor<16x16x3x2xf16>) -> tensor<16x8x8xf32> {
  %out = loop.kernel @filtered(%x, %w) : (tensor<16x8x8xf16>, tensor<16x16x3x2xf16>) -> tensor<16x8x8xf32> {
  ^bb0(%x: memref<16x8x8xf16>, %w: memref<16x16x3x2xf16>, %out: memref<16x8x8xf32>):
    loop.for %j = 0 to 16 {
      loop.for %y = 0 to 8 {
        loop.for %z = 0 to 8 {
          %s = loop.for %c = 0 to 16 reduce(add) -> f32 {
            %s1 = loop.for %r = 0 to 3 reduce(add) -> f32 {
              %s2 = loop.for %t = 0 to 2 reduce(add) -> f32 {
                %inside = loop.test[%y + %r >= 1, %y + %r < 9, %z + %t < 8]
                %v = scf.if %inside -> (f16) {
                  %e = loop.load %x[%c, %y + %r - 1, %z + %t] : memref<16x8x8xf16>
                  scf.yield %e : f16
                } else {
                  %zero = arith.constant 0.0 : f16
                  scf.yield %zero : f16
                }
                %a = arith.extf %v : f16 to f32
                %u = loop.load %w[%j, %c, %r, %t] : memref<16x16x3x2xf16>
                %b = arith.extf %u : f16 to f32
                %p = arith.mulf %a, %b : f32
                loop.yield %p : f32
              }
              loop.yield %s2 : f32
            }
            loop.yield %s1 : f32
          }
          loop.store %s, %out[%j, %y, %z] : memref<16x8x8xf32>
        }
      }
    }
  }
  func.return %out : tensor<16x8x8xf32>
}

// -----

// Three colors are three of 16 channels, with borders; an image with ones around it is not what is copied; a product.
// CHECK-LABEL: loop.kernel @colors
// CHECK:         loop.for %c = 0 to 48 reduce(add)
// CHECK-NEXT:      loop.test[%c mod 16 < 3]
// CHECK:             loop.load %x[%c mod 16, %z + %c floordiv 16]
// CHECK:           loop.test[%c mod 16 < 3]
// CHECK:             loop.load %w[%c floordiv 16, %j, %c mod 16] : memref<3x16x3xf32>
// REMARK: remark: flatten-windows: colors: 3 by 16 elements are one sweep
// REMARK: remark: flatten-windows: ones: declined: it does not sum products of two arrays, with 0 around them
// REMARK: remark: flatten-windows: product: declined: it sums over no windows
func.func @main(%x: tensor<3x400xf32>, %w: tensor<16x3x3xf32>, %x1: tensor<16x40xf32>, %w1: tensor<16x16x3xf32>, %w2: tensor<16x16xf32>) -> (tensor<16x398xf32>, tensor<16x40xf32>, tensor<16x40xf32>) {
  %a = loop.kernel @colors(%x, %w) : (tensor<3x400xf32>, tensor<16x3x3xf32>) -> tensor<16x398xf32> {
  ^bb0(%x: memref<3x400xf32>, %w: memref<16x3x3xf32>, %out: memref<16x398xf32>):
    loop.for %j = 0 to 16 {
      loop.for %z = 0 to 398 {
        %s = loop.for %c = 0 to 3 reduce(add) -> f32 {
          %s1 = loop.for %t = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %x[%c, %z + %t] : memref<3x400xf32>
            %u = loop.load %w[%j, %c, %t] : memref<16x3x3xf32>
            %p = arith.mulf %v, %u : f32
            loop.yield %p : f32
          }
          loop.yield %s1 : f32
        }
        loop.store %s, %out[%j, %z] : memref<16x398xf32>
      }
    }
  }
  %b = loop.kernel @ones(%x1, %w1) : (tensor<16x40xf32>, tensor<16x16x3xf32>) -> tensor<16x40xf32> {
  ^bb0(%x: memref<16x40xf32>, %w: memref<16x16x3xf32>, %out: memref<16x40xf32>):
    loop.for %j = 0 to 16 {
      loop.for %z = 0 to 40 {
        %s = loop.for %c = 0 to 16 reduce(add) -> f32 {
          %s1 = loop.for %t = 0 to 3 reduce(add) -> f32 {
            %inside = loop.test[%z + %t < 40]
            %v = scf.if %inside -> (f32) {
              %e = loop.load %x[%c, %z + %t] : memref<16x40xf32>
              scf.yield %e : f32
            } else {
              %one = arith.constant 1.0 : f32
              scf.yield %one : f32
            }
            %u = loop.load %w[%j, %c, %t] : memref<16x16x3xf32>
            %p = arith.mulf %v, %u : f32
            loop.yield %p : f32
          }
          loop.yield %s1 : f32
        }
        loop.store %s, %out[%j, %z] : memref<16x40xf32>
      }
    }
  }
  %d = loop.kernel @product(%x1, %w2) : (tensor<16x40xf32>, tensor<16x16xf32>) -> tensor<16x40xf32> {
  ^bb0(%x: memref<16x40xf32>, %w: memref<16x16xf32>, %out: memref<16x40xf32>):
    loop.for %j = 0 to 16 {
      loop.for %z = 0 to 40 {
        %s = loop.for %c = 0 to 16 reduce(add) -> f32 {
          %v = loop.load %x[%c, %z] : memref<16x40xf32>
          %u = loop.load %w[%j, %c] : memref<16x16xf32>
          %p = arith.mulf %v, %u : f32
          loop.yield %p : f32
        }
        loop.store %s, %out[%j, %z] : memref<16x40xf32>
      }
    }
  }
  func.return %a, %b, %d : tensor<16x398xf32>, tensor<16x40xf32>, tensor<16x40xf32>
}

// -----

// Few channels or rows, few products, inner sweeps that are no windows, channels that rows choose, a dynamic axis.
// REMARK: remark: flatten-windows: gray: declined: 2 channels are too few: most of 16 would be 0
// REMARK: remark: flatten-windows: narrow: declined: 8 rows of weights are fewer than 16
// REMARK: remark: flatten-windows: short: declined: its products are too few to share operands for
// REMARK: remark: flatten-windows: lines: declined: its inner sweeps have more than 64 positions: no windows
// REMARK: remark: flatten-windows: groups: declined: no factor depends on one axis that the other one does not
// REMARK: remark: flatten-windows: dynamic: declined: it sums over an axis of dynamic extent
func.func @main(%x: tensor<16x40xf32>, %w: tensor<8x16x3xf32>, %w1: tensor<16x16x3xf32>, %x2: tensor<16x90xf32>, %w2: tensor<16x16x70xf32>, %x3: tensor<32x40xf32>, %x4: tensor<?x40xf32, #sym.extents<s0>>, %w4: tensor<16x?x3xf32, #sym.extents<s0>>, %x5: tensor<2x400xf32>, %w5: tensor<16x2x3xf32>) -> (tensor<8x38xf32>, tensor<16x2xf32>, tensor<16x20xf32>, tensor<16x38xf32>, tensor<16x38xf32>, tensor<16x398xf32>) attributes {sym.sizes = [#sym.size<"n", 1, 4096>]} {
  %g = loop.kernel @gray(%x5, %w5) : (tensor<2x400xf32>, tensor<16x2x3xf32>) -> tensor<16x398xf32> {
  ^bb0(%x: memref<2x400xf32>, %w: memref<16x2x3xf32>, %out: memref<16x398xf32>):
    loop.for %j = 0 to 16 {
      loop.for %z = 0 to 398 {
        %s = loop.for %c = 0 to 2 reduce(add) -> f32 {
          %s1 = loop.for %t = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %x[%c, %z + %t] : memref<2x400xf32>
            %u = loop.load %w[%j, %c, %t] : memref<16x2x3xf32>
            %p = arith.mulf %v, %u : f32
            loop.yield %p : f32
          }
          loop.yield %s1 : f32
        }
        loop.store %s, %out[%j, %z] : memref<16x398xf32>
      }
    }
  }
  %a = loop.kernel @narrow(%x, %w) : (tensor<16x40xf32>, tensor<8x16x3xf32>) -> tensor<8x38xf32> {
  ^bb0(%x: memref<16x40xf32>, %w: memref<8x16x3xf32>, %out: memref<8x38xf32>):
    loop.for %j = 0 to 8 {
      loop.for %z = 0 to 38 {
        %s = loop.for %c = 0 to 16 reduce(add) -> f32 {
          %s1 = loop.for %t = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %x[%c, %z + %t] : memref<16x40xf32>
            %u = loop.load %w[%j, %c, %t] : memref<8x16x3xf32>
            %p = arith.mulf %v, %u : f32
            loop.yield %p : f32
          }
          loop.yield %s1 : f32
        }
        loop.store %s, %out[%j, %z] : memref<8x38xf32>
      }
    }
  }
  %b = loop.kernel @short(%x, %w1) : (tensor<16x40xf32>, tensor<16x16x3xf32>) -> tensor<16x2xf32> {
  ^bb0(%x: memref<16x40xf32>, %w: memref<16x16x3xf32>, %out: memref<16x2xf32>):
    loop.for %j = 0 to 16 {
      loop.for %z = 0 to 2 {
        %s = loop.for %c = 0 to 16 reduce(add) -> f32 {
          %s1 = loop.for %t = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %x[%c, %z + %t] : memref<16x40xf32>
            %u = loop.load %w[%j, %c, %t] : memref<16x16x3xf32>
            %p = arith.mulf %v, %u : f32
            loop.yield %p : f32
          }
          loop.yield %s1 : f32
        }
        loop.store %s, %out[%j, %z] : memref<16x2xf32>
      }
    }
  }
  %d = loop.kernel @lines(%x2, %w2) : (tensor<16x90xf32>, tensor<16x16x70xf32>) -> tensor<16x20xf32> {
  ^bb0(%x: memref<16x90xf32>, %w: memref<16x16x70xf32>, %out: memref<16x20xf32>):
    loop.for %j = 0 to 16 {
      loop.for %z = 0 to 20 {
        %s = loop.for %c = 0 to 16 reduce(add) -> f32 {
          %s1 = loop.for %t = 0 to 70 reduce(add) -> f32 {
            %v = loop.load %x[%c, %z + %t] : memref<16x90xf32>
            %u = loop.load %w[%j, %c, %t] : memref<16x16x70xf32>
            %p = arith.mulf %v, %u : f32
            loop.yield %p : f32
          }
          loop.yield %s1 : f32
        }
        loop.store %s, %out[%j, %z] : memref<16x20xf32>
      }
    }
  }
  %e = loop.kernel @groups(%x3, %w1) : (tensor<32x40xf32>, tensor<16x16x3xf32>) -> tensor<16x38xf32> {
  ^bb0(%x: memref<32x40xf32>, %w: memref<16x16x3xf32>, %out: memref<16x38xf32>):
    loop.for %j = 0 to 16 {
      loop.for %z = 0 to 38 {
        %s = loop.for %c = 0 to 16 reduce(add) -> f32 {
          %s1 = loop.for %t = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %x[%j floordiv 8 * 16 + %c, %z + %t] : memref<32x40xf32>
            %u = loop.load %w[%j, %c, %t] : memref<16x16x3xf32>
            %p = arith.mulf %v, %u : f32
            loop.yield %p : f32
          }
          loop.yield %s1 : f32
        }
        loop.store %s, %out[%j, %z] : memref<16x38xf32>
      }
    }
  }
  %f = loop.kernel @dynamic(%x4, %w4) : (tensor<?x40xf32, #sym.extents<s0>>, tensor<16x?x3xf32, #sym.extents<s0>>) -> tensor<16x38xf32> {
  ^bb0(%x: memref<?x40xf32, #sym.extents<s0>>, %w: memref<16x?x3xf32, #sym.extents<s0>>, %out: memref<16x38xf32>):
    loop.for %j = 0 to 16 {
      loop.for %z = 0 to 38 {
        %s = loop.for %c = 0 to s0 reduce(add) -> f32 {
          %s1 = loop.for %t = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %x[%c, %z + %t] : memref<?x40xf32, #sym.extents<s0>>
            %u = loop.load %w[%j, %c, %t] : memref<16x?x3xf32, #sym.extents<s0>>
            %p = arith.mulf %v, %u : f32
            loop.yield %p : f32
          }
          loop.yield %s1 : f32
        }
        loop.store %s, %out[%j, %z] : memref<16x38xf32>
      }
    }
  }
  func.return %a, %b, %d, %e, %f, %g : tensor<8x38xf32>, tensor<16x2xf32>, tensor<16x20xf32>, tensor<16x38xf32>, tensor<16x38xf32>, tensor<16x398xf32>
}
