// RUN: deplo-opt %s -p 'split-sweeps' --split-input-file --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'split-sweeps' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Two pieces of 16 take turns: an iteration computes a contribution of each, from neighbours.
// REMARK: remark: split-sweeps: halves: 2 pieces in an iteration
// CHECK-LABEL: loop.kernel @halves
// CHECK:         %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
// CHECK-NEXT:      %l = loop.load %x[%k]
// CHECK-NEXT:      %r = loop.load %y[%k]
// CHECK-NEXT:      %0 = arith.addf %l, %r
// CHECK-NEXT:      loop.yield %0
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<1xf32> {
  %z = loop.kernel @halves(%x, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<1xf32> {
  ^bb0(%x_1: memref<64xf32>, %y_1: memref<64xf32>, %out: memref<1xf32>):
    tile.launch (%i = 1 : block) {
      %s = loop.for %k = 0 to 128 reduce(add) -> f32 {
        %low = loop.test [%k mod 32 < 16]
        %v = scf.if %low -> (f32) {
          %l = loop.load %x_1[%k floordiv 32 * 16 + %k mod 32] : memref<64xf32>
          scf.yield %l : f32
        } else {
          %r = loop.load %y_1[%k floordiv 32 * 16 + %k mod 32 - 16] : memref<64xf32>
          scf.yield %r : f32
        }
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<1xf32>
    }
  }
  func.return %z : tensor<1xf32>
}

// -----

// Pieces of one element that alternate: no part is needed. A maximum folds in any order.
// REMARK: remark: split-sweeps: turns: 2 pieces in an iteration
// CHECK-LABEL: loop.kernel @turns
// CHECK:         loop.for %k = 0 to 64 reduce(max) -> f32 {
// CHECK-NEXT:      loop.load %x[%k]
// CHECK-NEXT:      loop.load %y[%k]
// CHECK-NEXT:      arith.maximumf
func.func @main(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<1xf32> {
  %z = loop.kernel @turns(%x, %y) : (tensor<64xf32>, tensor<64xf32>) -> tensor<1xf32> {
  ^bb0(%x_1: memref<64xf32>, %y_1: memref<64xf32>, %out: memref<1xf32>):
    tile.launch (%i = 1 : block) {
      %s = loop.for %k = 0 to 128 reduce(max) -> f32 {
        %low = loop.test [%k mod 2 < 1]
        %v = scf.if %low -> (f32) {
          %l = loop.load %x_1[%k floordiv 2] : memref<64xf32>
          scf.yield %l : f32
        } else {
          %r = loop.load %y_1[%k floordiv 2] : memref<64xf32>
          scf.yield %r : f32
        }
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<1xf32>
    }
  }
  func.return %z : tensor<1xf32>
}

// -----

// Columns of 32 share a scale.
// REMARK: remark: split-sweeps: scaled: 3 parts of 32 at once
// CHECK-LABEL: loop.kernel @scaled
// CHECK:         loop.for %k_part = 0 to 6 reduce(add) -> f32 {
// CHECK:           loop.for %k = 0 to 32 reduce(add) -> f32 {
// CHECK-NEXT:        loop.load %x[%k_part * 96 + %k]
// CHECK-NEXT:        loop.load %s[%k_part * 3]
// CHECK-NEXT:        arith.mulf
// CHECK-NEXT:        loop.load %x[%k_part * 96 + %k + 32]
// CHECK-NEXT:        loop.load %s[%k_part * 3 + 1]
// CHECK-COUNT-2:     arith.addf
// CHECK-NEXT:        loop.yield
func.func @main(%x: tensor<576xf32>, %s: tensor<18xf32>) -> tensor<1xf32> {
  %z = loop.kernel @scaled(%x, %s) : (tensor<576xf32>, tensor<18xf32>) -> tensor<1xf32> {
  ^bb0(%x_1: memref<576xf32>, %s_1: memref<18xf32>, %out: memref<1xf32>):
    tile.launch (%i = 1 : block) {
      %t = loop.for %k = 0 to 576 reduce(add) -> f32 {
        %l = loop.load %x_1[%k] : memref<576xf32>
        %r = loop.load %s_1[%k floordiv 32] : memref<18xf32>
        %v = arith.mulf %l, %r : f32
        loop.yield %v : f32
      }
      loop.store %t, %out[%i] : memref<1xf32>
    }
  }
  func.return %z : tensor<1xf32>
}

// -----

// What is folded is what is loaded, of lines: short ones come several at once, long ones do not.
// REMARK: remark: split-sweeps: lines: 2 parts of 64 at once
// REMARK: remark: split-sweeps: long: parts of 512
// CHECK-LABEL: loop.kernel @lines
// CHECK:         loop.for %k_part = 0 to 8 reduce(add) -> f32 {
// CHECK-NEXT:      loop.for %k = 0 to 64 reduce(add) -> f32 {
// CHECK-NEXT:        %l = loop.load %x[%k_part * 2, %k]
// CHECK-NEXT:        %l_1 = loop.load %x[%k_part * 2 + 1, %k]
// CHECK-NEXT:        arith.addf %l, %l_1
// CHECK-LABEL: loop.kernel @long
// CHECK:         loop.for %k_part = 0 to 2 reduce(add) -> f32 {
// CHECK-NEXT:      loop.for %k = 0 to 512 reduce(add) -> f32 {
// CHECK-NEXT:        loop.load %y[%k_part, %k]
func.func @main(%x: tensor<16x64xf32>, %y: tensor<2x512xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %a = loop.kernel @lines(%x) : (tensor<16x64xf32>) -> tensor<1xf32> {
  ^bb0(%x_1: memref<16x64xf32>, %out: memref<1xf32>):
    tile.launch (%i = 1 : block) {
      %t = loop.for %k = 0 to 1024 reduce(add) -> f32 {
        %l = loop.load %x_1[%k floordiv 64, %k mod 64] : memref<16x64xf32>
        loop.yield %l : f32
      }
      loop.store %t, %out[%i] : memref<1xf32>
    }
  }
  %b = loop.kernel @long(%y) : (tensor<2x512xf32>) -> tensor<1xf32> {
  ^bb0(%y_1: memref<2x512xf32>, %out: memref<1xf32>):
    tile.launch (%i = 1 : block) {
      %t = loop.for %k = 0 to 1024 reduce(add) -> f32 {
        %l = loop.load %y_1[%k floordiv 512, %k mod 512] : memref<2x512xf32>
        loop.yield %l : f32
      }
      loop.store %t, %out[%i] : memref<1xf32>
    }
  }
  func.return %a, %b : tensor<1xf32>, tensor<1xf32>
}

// -----

// Both at once: the halves of a row of 32, which share a scale.
// REMARK: remark: split-sweeps: packed: 2 pieces in an iteration, 4 parts of 16 at once
// CHECK-LABEL: loop.kernel @packed
// CHECK:         %t = loop.for %k = 0 to 16 reduce(add) -> f32 {
// CHECK-NEXT:      loop.load %x[%k]
// CHECK-NEXT:      loop.load %s[0]
// CHECK-NEXT:      arith.mulf
// CHECK-NEXT:      loop.load %y[%k]
// CHECK-NEXT:      loop.load %s[0]
func.func @main(%x: tensor<128xf32>, %y: tensor<64xf32>, %s: tensor<4xf32>) -> tensor<1xf32> {
  %z = loop.kernel @packed(%x, %y, %s) : (tensor<128xf32>, tensor<64xf32>, tensor<4xf32>) -> tensor<1xf32> {
  ^bb0(%x_1: memref<128xf32>, %y_1: memref<64xf32>, %s_1: memref<4xf32>, %out: memref<1xf32>):
    tile.launch (%i = 1 : block) {
      %t = loop.for %k = 0 to 128 reduce(add) -> f32 {
        %low = loop.test [%k mod 32 < 16]
        %v = scf.if %low -> (f32) {
          %l = loop.load %x_1[%k] : memref<128xf32>
          scf.yield %l : f32
        } else {
          %r = loop.load %y_1[%k floordiv 32 * 16 + %k mod 32 - 16] : memref<64xf32>
          scf.yield %r : f32
        }
        %q = loop.load %s_1[%k floordiv 32] : memref<4xf32>
        %w = arith.mulf %v, %q : f32
        loop.yield %w : f32
      }
      loop.store %t, %out[%i] : memref<1xf32>
    }
  }
  func.return %z : tensor<1xf32>
}

// -----

// REMARK: remark: split-sweeps: whole: declined: no sweep divides its counter
// REMARK: remark: split-sweeps: odd: declined: no number of pieces leaves no condition and no quotient
// REMARK: remark: split-sweeps: chunked: declined: a sweep has a loop in its body; a sweep is a chunk already, or has a limit
// REMARK: remark: split-sweeps: copied: declined: nothing is reduced
func.func @main(%x: tensor<130xf32>, %y: tensor<64xf32>) -> (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<64xf32>) {
  %a = loop.kernel @whole(%x) : (tensor<130xf32>) -> tensor<1xf32> {
  ^bb0(%x_1: memref<130xf32>, %out: memref<1xf32>):
    tile.launch (%i = 1 : block) {
      %s = loop.for %k = 0 to 130 reduce(add) -> f32 {
        %l = loop.load %x_1[%k] : memref<130xf32>
        loop.yield %l : f32
      }
      loop.store %s, %out[%i] : memref<1xf32>
    }
  }
  %b = loop.kernel @odd(%x) : (tensor<130xf32>) -> tensor<1xf32> {
  ^bb0(%x_1: memref<130xf32>, %out: memref<1xf32>):
    tile.launch (%i = 1 : block) {
      %s = loop.for %k = 0 to 130 reduce(add) -> f32 {
        %l = loop.load %x_1[%k floordiv 32] : memref<130xf32>
        loop.yield %l : f32
      }
      loop.store %s, %out[%i] : memref<1xf32>
    }
  }
  %c = loop.kernel @chunked(%y) : (tensor<64xf32>) -> tensor<1xf32> {
  ^bb0(%y_1: memref<64xf32>, %out: memref<1xf32>):
    tile.launch (%i = 1 : block) {
      %s = loop.for %k = 0 to 2 reduce(add) -> f32 {
        %t = loop.for %l = 0 to 32 reduce(add) -> f32 {
          %v = loop.load %y_1[(%k * 32 + %l) floordiv 2 * 2] : memref<64xf32>
          loop.yield %v : f32
        } attributes {chunk}
        loop.yield %t : f32
      }
      loop.store %s, %out[%i] : memref<1xf32>
    }
  }
  %d = loop.kernel @copied(%y) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%y_1: memref<64xf32>, %out: memref<64xf32>):
    tile.launch (%i = 64 : block) {
      %v = loop.load %y_1[%i floordiv 2] : memref<64xf32>
      loop.store %v, %out[%i] : memref<64xf32>
    }
  }
  func.return %a, %b, %c, %d : tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<64xf32>
}

// -----

// REMARK: remark: split-sweeps: weighted: declined: a sweep folds weights
// REMARK: remark: split-sweeps: dynamic: declined: the length of a sweep is not known
func.func @main(%x: tensor<128xf32>, %d: tensor<?xf32, #sym.extents<s0>>) -> (tensor<1xf32>, tensor<1xf32>)
    attributes {sym.sizes = [#sym.size<"seq", 2, 1000000, hint = 40000>]} {
  %a = loop.kernel @weighted(%x) : (tensor<128xf32>) -> tensor<1xf32> {
  ^bb0(%x_1: memref<128xf32>, %out: memref<1xf32>):
    tile.launch (%i = 1 : block) {
      %m, %w, %s = loop.for %k = 0 to 128 reduce(max, weight, mean) -> f32, f32, f32 {
        %l = loop.load %x_1[%k floordiv 32] : memref<128xf32>
        %one = arith.constant 1.0 : f32
        loop.yield %l, %one, %l : f32, f32, f32
      }
      loop.store %s, %out[%i] : memref<1xf32>
    }
  }
  %b = loop.kernel @dynamic(%d) : (tensor<?xf32, #sym.extents<s0>>) -> tensor<1xf32> {
  ^bb0(%d_1: memref<?xf32, #sym.extents<s0>>, %out: memref<1xf32>):
    tile.launch (%i = 1 : block) {
      %s = loop.for %k = 0 to s0 reduce(add) -> f32 {
        %l = loop.load %d_1[%k floordiv 32] : memref<?xf32, #sym.extents<s0>>
        loop.yield %l : f32
      }
      loop.store %s, %out[%i] : memref<1xf32>
    }
  }
  func.return %a, %b : tensor<1xf32>, tensor<1xf32>
}
