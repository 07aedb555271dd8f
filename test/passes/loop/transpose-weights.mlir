// RUN: deplo-opt %s -p transpose-weights --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p transpose-weights --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p transpose-weights{target=sm_90a} --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=GPU
// RUN: deplo-opt %s -p transpose-weights --split-input-file --check-each-pass >/dev/null

// A filter for each channel, of bf16: its steps go outside, and it is copied as it is multiplied.
// REMARK: remark: transpose-weights: filtered: its weights lie as its channels do
// GPU: remark: transpose-weights: filtered: declined: on a GPU each thread has a window
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
