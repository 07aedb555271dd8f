// RUN: deplo-opt %s -p flatten-windows --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p flatten-windows --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p flatten-windows --split-input-file --check-each-pass >/dev/null

// Weights lie row by row of a window, the columns of all channels side by side, and one sweep goes over them.
// REMARK: remark: flatten-windows: filtered: 3 by 16 by 2 elements are one sweep, in the end over columns
// CHECK-LABEL: loop.kernel @k_w
// CHECK:         loop.load %w[%j, %c, %r, %t]
// CHECK:         loop.store %{{.*}}, %w_by_place[%r, %j, %c * 2 + %t] : memref<3x16x32xf16>
// CHECK-LABEL: loop.kernel @filtered
// CHECK:         %s = loop.for %t = 0 to 96 reduce(add) -> f32 {
// CHECK-NEXT:      loop.test[%y + %t floordiv 32 >= 1, %y + %t floordiv 32 < 9, %z + %t mod 2 < 8]
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        loop.load %x[%t floordiv 2 mod 16, %y + %t floordiv 32 - 1, %z + %t mod 2]
// CHECK:           loop.load %w[%t floordiv 32, %j, %t floordiv 2 mod 16 * 2 + %t mod 2] : memref<3x16x32xf16>
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

// Threads multiply what there is of three colors; an image with ones around it is not what is copied; a product.
// CHECK-LABEL: loop.kernel @colors
// CHECK:         loop.for %t = 0 to 9 reduce(add)
// CHECK-NEXT:      loop.load %x[%t floordiv 3, %z + %t mod 3]
// CHECK-NEXT:      loop.load %w[%j, %t] : memref<16x9xf32>
// REMARK: remark: flatten-windows: colors: 3 by 3 elements are one sweep, in the end over columns
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

// Two channels; few rows, few products, inner sweeps that are no windows, channels that rows choose, a dynamic axis.
// REMARK: remark: flatten-windows: gray: 2 by 3 elements are one sweep, in the end over columns
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

// -----

// Tensor cores take 4 columns and 4 channels: of three, the first column stands in front of a window, so that 16
// bytes begin where what it reads of a line does. It is 0, and so are the weights there.
// REMARK: remark: flatten-windows: halves: 4 by 4 elements are one sweep, in the end over columns
// CHECK-LABEL: loop.kernel @k_w
// CHECK:         loop.for %c = 0 to 4 {
// CHECK-NEXT:      loop.for %t = 0 to 4 {
// CHECK-NEXT:        loop.test[%c < 3, %t >= 1]
// CHECK-NEXT:        scf.if
// CHECK-NEXT:          loop.load %w[%j, %c, %t - 1] : memref<16x3x3xf16>
// CHECK:             loop.store %{{.*}}, %w_by_place[%j, %c * 4 + %t] : memref<16x16xf16>
// CHECK-LABEL: loop.kernel @halves
// CHECK:         loop.for %t = 0 to 16 reduce(add)
// CHECK-NEXT:      loop.test[%t floordiv 4 < 3]
// CHECK:             loop.load %x[%t floordiv 4, %z + %t mod 4] : memref<3x400xf16>
// CHECK:           %[[in:.+]] = loop.test[%t mod 4 >= 1]
// CHECK:           arith.select %[[in]]
func.func @main(%x: tensor<3x400xf16>, %w: tensor<16x3x3xf16>) -> tensor<16x397xf32> {
  %a = loop.kernel @halves(%x, %w) : (tensor<3x400xf16>, tensor<16x3x3xf16>) -> tensor<16x397xf32> {
  ^bb0(%x: memref<3x400xf16>, %w: memref<16x3x3xf16>, %out: memref<16x397xf32>):
    loop.for %j = 0 to 16 {
      loop.for %z = 0 to 397 {
        %s = loop.for %c = 0 to 3 reduce(add) -> f32 {
          %s1 = loop.for %t = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %x[%c, %z + %t + 1] : memref<3x400xf16>
            %b = arith.extf %v : f16 to f32
            %u = loop.load %w[%j, %c, %t] : memref<16x3x3xf16>
            %d = arith.extf %u : f16 to f32
            %p = arith.mulf %b, %d : f32
            loop.yield %p : f32
          }
          loop.yield %s1 : f32
        }
        loop.store %s, %out[%j, %z] : memref<16x397xf32>
      }
    }
  }
  func.return %a : tensor<16x397xf32>
}

// -----

// Two channels are too few for tensor cores, and no steps along lines of the image.
// REMARK: remark: flatten-windows: between: declined: 2 channels are too few: most of 16 would be 0
func.func @main(%x: tensor<2x400xf32>, %w: tensor<16x2x3xf32>) -> tensor<16x700xf32> {
  %a = loop.kernel @between(%x, %w) : (tensor<2x400xf32>, tensor<16x2x3xf32>) -> tensor<16x700xf32> {
  ^bb0(%x: memref<2x400xf32>, %w: memref<16x2x3xf32>, %out: memref<16x700xf32>):
    loop.for %j = 0 to 16 {
      loop.for %z = 0 to 700 {
        %s = loop.for %c = 0 to 2 reduce(add) -> f32 {
          %s1 = loop.for %t = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %x[%c, (%z + %t) floordiv 2] : memref<2x400xf32>
            %u = loop.load %w[%j, %c, %t] : memref<16x2x3xf32>
            %p = arith.mulf %v, %u : f32
            loop.yield %p : f32
          }
          loop.yield %s1 : f32
        }
        loop.store %s, %out[%j, %z] : memref<16x700xf32>
      }
    }
  }
  func.return %a : tensor<16x700xf32>
}
