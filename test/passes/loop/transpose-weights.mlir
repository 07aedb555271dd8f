// RUN: deplo-opt %s -p transpose-weights --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p transpose-weights --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p transpose-weights --split-input-file --check-each-pass >/dev/null

// A filter for each channel, of bf16: its steps go outside, and it is copied as it is multiplied.
// REMARK: remark: transpose-weights: filtered: its weights lie as its channels do
// CHECK:       %w_by_channel = loop.kernel @k_w(%w) : (tensor<8x1x3xbf16>) -> tensor<3x8xf32> {
// CHECK:         loop.for %n = 0 to 3 {
// CHECK-NEXT:      loop.for %c = 0 to 8 {
// CHECK-NEXT:        %[[V:.*]] = loop.load %w[%c, 0, %n] : memref<8x1x3xbf16>
// CHECK-NEXT:        %[[F:.*]] = arith.extf %[[V]] : bf16 to f32
// CHECK-NEXT:        loop.store %[[F]], %w_by_channel[%n, %c] : memref<3x8xf32>
// CHECK:       loop.kernel @filtered(%x, %w_by_channel) : (tensor<34x8xbf16>, tensor<3x8xf32>) -> tensor<32x8xf32>
// CHECK:           loop.load %x[%p + %n, %c] : memref<34x8xbf16>
// CHECK:           loop.load %w[%n, %c] : memref<3x8xf32>
func.func @main(%x: tensor<34x8xbf16>, %w: tensor<8x1x3xbf16>) -> tensor<32x8xf32> {
  %0 = loop.kernel @filtered(%x, %w) : (tensor<34x8xbf16>, tensor<8x1x3xbf16>) -> tensor<32x8xf32> {
  ^bb0(%x: memref<34x8xbf16>, %w: memref<8x1x3xbf16>, %out: memref<32x8xf32>):
    loop.for %p = 0 to 32 {
      loop.for %c = 0 to 8 {
        %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
          %a = loop.load %x[%p + %n, %c] : memref<34x8xbf16>
          %af = arith.extf %a : bf16 to f32
          %b = loop.load %w[%c, 0, %n] : memref<8x1x3xbf16>
          %bf = arith.extf %b : bf16 to f32
          %m = arith.mulf %af, %bf : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%p, %c] : memref<32x8xf32>
      }
    }
  }
  func.return %0 : tensor<32x8xf32>
}

// -----

// A filter that lies so already; few results of each channel; channels that come first in the image.
// REMARK: remark: transpose-weights: turned: declined: channels come last in all that it reads
// REMARK: remark: transpose-weights: few: declined: each weight is read a few times
// REMARK: remark: transpose-weights: first: declined: channels do not come last in all that its windows read
func.func @main(%x: tensor<34x8xf32>, %w: tensor<3x8xf32>, %v: tensor<8x3xf32>, %y: tensor<8x34xf32>) -> (tensor<32x8xf32>, tensor<2x8xf32>, tensor<32x8xf32>) {
  %0 = loop.kernel @turned(%x, %w) : (tensor<34x8xf32>, tensor<3x8xf32>) -> tensor<32x8xf32> {
  ^bb0(%x: memref<34x8xf32>, %w: memref<3x8xf32>, %out: memref<32x8xf32>):
    loop.for %p = 0 to 32 {
      loop.for %c = 0 to 8 {
        %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
          %a = loop.load %x[%p + %n, %c] : memref<34x8xf32>
          %b = loop.load %w[%n, %c] : memref<3x8xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%p, %c] : memref<32x8xf32>
      }
    }
  }
  %1 = loop.kernel @few(%x, %v) : (tensor<34x8xf32>, tensor<8x3xf32>) -> tensor<2x8xf32> {
  ^bb0(%x: memref<34x8xf32>, %v: memref<8x3xf32>, %out: memref<2x8xf32>):
    loop.for %p = 0 to 2 {
      loop.for %c = 0 to 8 {
        %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
          %a = loop.load %x[%p + %n, %c] : memref<34x8xf32>
          %b = loop.load %v[%c, %n] : memref<8x3xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%p, %c] : memref<2x8xf32>
      }
    }
  }
  %2 = loop.kernel @first(%y, %w) : (tensor<8x34xf32>, tensor<3x8xf32>) -> tensor<32x8xf32> {
  ^bb0(%y: memref<8x34xf32>, %w: memref<3x8xf32>, %out: memref<32x8xf32>):
    loop.for %p = 0 to 32 {
      loop.for %c = 0 to 8 {
        %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
          %a = loop.load %y[%c, %p + %n] : memref<8x34xf32>
          %b = loop.load %w[%n, %c] : memref<3x8xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%p, %c] : memref<32x8xf32>
      }
    }
  }
  func.return %0, %1, %2 : tensor<32x8xf32>, tensor<2x8xf32>, tensor<32x8xf32>
}

// -----

// No windows; a contraction; three channels.
// REMARK: remark: transpose-weights: rows: declined: it has no windows
// REMARK: remark: transpose-weights: product: declined: it is a contraction
// REMARK: remark: transpose-weights: colors: declined: its last axis has no strips
func.func @main(%x: tensor<32x8xf32>, %w: tensor<8x8xf32>, %i: tensor<36x3xf32>, %v: tensor<3x5xf32>) -> (tensor<32xf32>, tensor<32x8xf32>, tensor<32x3xf32>) {
  %0 = loop.kernel @rows(%x) : (tensor<32x8xf32>) -> tensor<32xf32> {
  ^bb0(%x: memref<32x8xf32>, %out: memref<32xf32>):
    loop.for %p = 0 to 32 {
      %a = loop.load %x[%p, 0] : memref<32x8xf32>
      loop.store %a, %out[%p] : memref<32xf32>
    }
  }
  %1 = loop.kernel @product(%x, %w) : (tensor<32x8xf32>, tensor<8x8xf32>) -> tensor<32x8xf32> {
  ^bb0(%x: memref<32x8xf32>, %w: memref<8x8xf32>, %out: memref<32x8xf32>):
    loop.for %p = 0 to 32 {
      loop.for %c = 0 to 8 {
        %s = loop.for %n = 0 to 8 reduce(add) -> f32 {
          %a = loop.load %x[%p, %n] : memref<32x8xf32>
          %b = loop.load %w[%c, %n] : memref<8x8xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%p, %c] : memref<32x8xf32>
      }
    }
  }
  %2 = loop.kernel @colors(%i, %v) : (tensor<36x3xf32>, tensor<3x5xf32>) -> tensor<32x3xf32> {
  ^bb0(%i: memref<36x3xf32>, %v: memref<3x5xf32>, %out: memref<32x3xf32>):
    loop.for %p = 0 to 32 {
      loop.for %c = 0 to 3 {
        %s = loop.for %n = 0 to 5 reduce(add) -> f32 {
          %a = loop.load %i[%p + %n, %c] : memref<36x3xf32>
          %b = loop.load %v[%c, %n] : memref<3x5xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%p, %c] : memref<32x3xf32>
      }
    }
  }
  func.return %0, %1, %2 : tensor<32xf32>, tensor<32x8xf32>, tensor<32x3xf32>
}

// -----

// The weights of a contraction over windows lie as they are summed over, a row after the other.
// REMARK: remark: transpose-weights: gradient: its weights lie as its sums do
// CHECK:       %w_by_row = loop.kernel @k_w(%w) : (tensor<16x8x3xf32>) -> tensor<8x16x3xf32> {
// CHECK:         loop.load %w[%m, %j, 2 - %n] : memref<16x8x3xf32>
// CHECK:       loop.kernel @gradient(%w_by_row, %x)
// CHECK:         loop.load %w[%j, %m, %n] : memref<8x16x3xf32>
func.func @main(%w: tensor<16x8x3xf32>, %x: tensor<16x302xf32>) -> tensor<8x300xf32> {
  %gradient_0 = loop.kernel @gradient(%w, %x) : (tensor<16x8x3xf32>, tensor<16x302xf32>) -> tensor<8x300xf32> {
  ^bb0(%w: memref<16x8x3xf32>, %x: memref<16x302xf32>, %out: memref<8x300xf32>):
    loop.for %j = 0 to 8 {
      loop.for %p = 0 to 300 {
        %s = loop.for %m = 0 to 16 reduce(add) -> f32 {
          %t = loop.for %n = 0 to 3 reduce(add) -> f32 {
            %a = loop.load %x[%m, %p + %n] : memref<16x302xf32>
            %b = loop.load %w[%m, %j, 2 - %n] : memref<16x8x3xf32>
            %c = arith.mulf %a, %b : f32
            loop.yield %c : f32
          }
          loop.yield %t : f32
        }
        loop.store %s, %out[%j, %p] : memref<8x300xf32>
      }
    }
  }
  func.return %gradient_0 : tensor<8x300xf32>
}

// -----

// REMARK: remark: transpose-weights: straight: declined: its weights lie as they are summed over
func.func @main(%w: tensor<8x16x3xf32>, %x: tensor<16x302xf32>) -> tensor<8x300xf32> {
  %straight_0 = loop.kernel @straight(%w, %x) : (tensor<8x16x3xf32>, tensor<16x302xf32>) -> tensor<8x300xf32> {
  ^bb0(%w: memref<8x16x3xf32>, %x: memref<16x302xf32>, %out: memref<8x300xf32>):
    loop.for %j = 0 to 8 {
      loop.for %p = 0 to 300 {
        %s = loop.for %m = 0 to 16 reduce(add) -> f32 {
          %t = loop.for %n = 0 to 3 reduce(add) -> f32 {
            %a = loop.load %x[%m, %p + %n] : memref<16x302xf32>
            %b = loop.load %w[%j, %m, %n] : memref<8x16x3xf32>
            %c = arith.mulf %a, %b : f32
            loop.yield %c : f32
          }
          loop.yield %t : f32
        }
        loop.store %s, %out[%j, %p] : memref<8x300xf32>
      }
    }
  }
  func.return %straight_0 : tensor<8x300xf32>
}

// -----

// REMARK: remark: transpose-weights: short: declined: each weight is read a few times
func.func @main(%w: tensor<16x8x3xf32>, %x: tensor<16x20xf32>) -> tensor<8x18xf32> {
  %short_0 = loop.kernel @short(%w, %x) : (tensor<16x8x3xf32>, tensor<16x20xf32>) -> tensor<8x18xf32> {
  ^bb0(%w: memref<16x8x3xf32>, %x: memref<16x20xf32>, %out: memref<8x18xf32>):
    loop.for %j = 0 to 8 {
      loop.for %p = 0 to 18 {
        %s = loop.for %m = 0 to 16 reduce(add) -> f32 {
          %t = loop.for %n = 0 to 3 reduce(add) -> f32 {
            %a = loop.load %x[%m, %p + %n] : memref<16x20xf32>
            %b = loop.load %w[%m, %j, 2 - %n] : memref<16x8x3xf32>
            %c = arith.mulf %a, %b : f32
            loop.yield %c : f32
          }
          loop.yield %t : f32
        }
        loop.store %s, %out[%j, %p] : memref<8x18xf32>
      }
    }
  }
  func.return %short_0 : tensor<8x18xf32>
}

// -----

// REMARK: remark: transpose-weights: narrow: declined: its rows are few
func.func @main(%w: tensor<16x3x3xf32>, %x: tensor<16x302xf32>) -> tensor<3x300xf32> {
  %narrow_0 = loop.kernel @narrow(%w, %x) : (tensor<16x3x3xf32>, tensor<16x302xf32>) -> tensor<3x300xf32> {
  ^bb0(%w: memref<16x3x3xf32>, %x: memref<16x302xf32>, %out: memref<3x300xf32>):
    loop.for %j = 0 to 3 {
      loop.for %p = 0 to 300 {
        %s = loop.for %m = 0 to 16 reduce(add) -> f32 {
          %t = loop.for %n = 0 to 3 reduce(add) -> f32 {
            %a = loop.load %x[%m, %p + %n] : memref<16x302xf32>
            %b = loop.load %w[%m, %j, 2 - %n] : memref<16x3x3xf32>
            %c = arith.mulf %a, %b : f32
            loop.yield %c : f32
          }
          loop.yield %t : f32
        }
        loop.store %s, %out[%j, %p] : memref<3x300xf32>
      }
    }
  }
  func.return %narrow_0 : tensor<3x300xf32>
}

// -----

// REMARK: remark: transpose-weights: sizes: declined: the number of its weights is dynamic
func.func @main(%w: tensor<?x8x3xf32, #sym.extents<s0>>, %x: tensor<?x302xf32, #sym.extents<s0>>) -> tensor<8x300xf32> attributes {sym.sizes = [#sym.size<"channels", 2, none>]} {
  %sizes_0 = loop.kernel @sizes(%w, %x) : (tensor<?x8x3xf32, #sym.extents<s0>>, tensor<?x302xf32, #sym.extents<s0>>) -> tensor<8x300xf32> {
  ^bb0(%w: memref<?x8x3xf32, #sym.extents<s0>>, %x: memref<?x302xf32, #sym.extents<s0>>, %out: memref<8x300xf32>):
    loop.for %j = 0 to 8 {
      loop.for %p = 0 to 300 {
        %s = loop.for %m = 0 to s0 reduce(add) -> f32 {
          %t = loop.for %n = 0 to 3 reduce(add) -> f32 {
            %a = loop.load %x[%m, %p + %n] : memref<?x302xf32, #sym.extents<s0>>
            %b = loop.load %w[%m, %j, 2 - %n] : memref<?x8x3xf32, #sym.extents<s0>>
            %c = arith.mulf %a, %b : f32
            loop.yield %c : f32
          }
          loop.yield %t : f32
        }
        loop.store %s, %out[%j, %p] : memref<8x300xf32>
      }
    }
  }
  func.return %sizes_0 : tensor<8x300xf32>
}
