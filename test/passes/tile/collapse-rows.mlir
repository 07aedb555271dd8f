// RUN: deplo-opt %s --split-input-file -p collapse-rows | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p collapse-rows --check-each-pass >/dev/null
// RUN: deplo-opt %s --split-input-file -p collapse-rows --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: loop.kernel @batch
// CHECK:         tile.launch (%i = 24 : thread, %j = 16 : thread) {
// CHECK:           loop.load %x[%i floordiv 12, %i floordiv 4 mod 3, %i mod 4, %k]
// CHECK:           loop.store %s, %out[%i floordiv 12, %i floordiv 4 mod 3, %i mod 4, %j]
// CHECK-LABEL: loop.kernel @heads
// CHECK:         tile.launch (%h = 3 : thread, %i = 4 : thread, %j = 16 : thread) {
// CHECK-LABEL: loop.kernel @dynamic
// CHECK:         tile.launch (%i = s0 * 2 : thread, %j = 16 : thread) {
// CHECK:           loop.load %x[%i floordiv s0, %i mod s0, %k]
// CHECK:           loop.store %s, %out[%i floordiv s0, %i mod s0, %j]
// REMARK: collapse-rows: batch: 3 axes are one
// REMARK: collapse-rows: heads: declined: there is no other axis in front of the rows that the columns do not depend on
// REMARK: collapse-rows: copy: declined: no reduce loop in the body
// REMARK: collapse-rows: again: declined: the launch is partitioned already
// REMARK: collapse-rows: dynamic: 2 axes are one
func.func @main(%x: tensor<2x3x4x8xf32>, %w: tensor<16x8xf32>, %u: tensor<3x16x8xf32>, %z: tensor<2x?x8xf32, #sym.extents<s0>>) -> (tensor<2x3x4x16xf32>, tensor<3x4x16xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<2x?x16xf32, #sym.extents<s0>>) attributes {sym.sizes = [#sym.size<"rows", 2, none>]} {
  %y = loop.kernel @batch(%x, %w) : (tensor<2x3x4x8xf32>, tensor<16x8xf32>) -> tensor<2x3x4x16xf32> {
  ^bb0(%x: memref<2x3x4x8xf32>, %w: memref<16x8xf32>, %out: memref<2x3x4x16xf32>):
    tile.launch (%a = 2 : thread, %b = 3 : thread, %i = 4 : thread, %j = 16 : thread) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %p = loop.load %x[%a, %b, %i, %k] : memref<2x3x4x8xf32>
        %q = loop.load %w[%j, %k] : memref<16x8xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%a, %b, %i, %j] : memref<2x3x4x16xf32>
    }
  }
  %v = loop.kernel @heads(%x, %u) : (tensor<2x3x4x8xf32>, tensor<3x16x8xf32>) -> tensor<3x4x16xf32> {
  ^bb0(%x: memref<2x3x4x8xf32>, %w: memref<3x16x8xf32>, %out: memref<3x4x16xf32>):
    tile.launch (%h = 3 : thread, %i = 4 : thread, %j = 16 : thread) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %p = loop.load %x[0, %h, %i, %k] : memref<2x3x4x8xf32>
        %q = loop.load %w[%h, %j, %k] : memref<3x16x8xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%h, %i, %j] : memref<3x4x16xf32>
    }
  }
  %c = loop.kernel @copy(%w) : (tensor<16x8xf32>) -> tensor<16x8xf32> {
  ^bb0(%w: memref<16x8xf32>, %out: memref<16x8xf32>):
    tile.launch (%i = 16 : thread, %j = 8 : thread) {
      %p = loop.load %w[%i, %j] : memref<16x8xf32>
      loop.store %p, %out[%i, %j] : memref<16x8xf32>
    }
  }
  %d = loop.kernel @again(%w) : (tensor<16x8xf32>) -> tensor<16x8xf32> {
  ^bb0(%w: memref<16x8xf32>, %out: memref<16x8xf32>):
    tile.launch (%i = 16 : block, %j = 8 : thread) {
      %p = loop.load %w[%i, %j] : memref<16x8xf32>
      loop.store %p, %out[%i, %j] : memref<16x8xf32>
    }
  }
  %e = loop.kernel @dynamic(%z, %w) : (tensor<2x?x8xf32, #sym.extents<s0>>, tensor<16x8xf32>) -> tensor<2x?x16xf32, #sym.extents<s0>> {
  ^bb0(%x: memref<2x?x8xf32, #sym.extents<s0>>, %w: memref<16x8xf32>, %out: memref<2x?x16xf32, #sym.extents<s0>>):
    tile.launch (%a = 2 : thread, %i = s0 : thread, %j = 16 : thread) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %p = loop.load %x[%a, %i, %k] : memref<2x?x8xf32, #sym.extents<s0>>
        %q = loop.load %w[%j, %k] : memref<16x8xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%a, %i, %j] : memref<2x?x16xf32, #sym.extents<s0>>
    }
  }
  func.return %y, %v, %c, %d, %e : tensor<2x3x4x16xf32>, tensor<3x4x16xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<2x?x16xf32, #sym.extents<s0>>
}

// -----

// The lines of an image go on where one ends; those of a window without a border do not, and are long here.

// CHECK-LABEL: loop.kernel @pixels
// CHECK:         tile.launch (%c = 16 : thread, %z = 140 : thread) {
// CHECK:           loop.test[%n + %z floordiv 20 >= 1, %n + %z floordiv 20 < 8, %o + %z mod 20 >= 1, %o + %z mod 20 < 21]
// CHECK:           loop.store %s, %out[%c, %z floordiv 20, %z mod 20]
// CHECK-LABEL: loop.kernel @valid
// CHECK:         tile.launch (%c = 16 : thread, %y = 7 : thread, %z = 120 : thread) {
// REMARK: collapse-rows: pixels: 2 axes are one
// REMARK: collapse-rows: valid: declined: joined columns would not lie along each other in memory
func.func @main(%x: tensor<8x7x20xf32>, %u: tensor<8x9x122xf32>, %w: tensor<16x8x3x3xf32>) -> (tensor<16x7x20xf32>, tensor<16x7x120xf32>) {
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
  %v = loop.kernel @valid(%u, %w) : (tensor<8x9x122xf32>, tensor<16x8x3x3xf32>) -> tensor<16x7x120xf32> {
  ^bb0(%x: memref<8x9x122xf32>, %w: memref<16x8x3x3xf32>, %out: memref<16x7x120xf32>):
    tile.launch (%c = 16 : thread, %y = 7 : thread, %z = 120 : thread) {
      %s = loop.for %m = 0 to 8 reduce(add) -> f32 {
        %t = loop.for %n = 0 to 3 reduce(add) -> f32 {
          %u = loop.for %o = 0 to 3 reduce(add) -> f32 {
            %p = loop.load %x[%m, %y + %n, %z + %o] : memref<8x9x122xf32>
            %q = loop.load %w[%c, %m, %n, %o] : memref<16x8x3x3xf32>
            %r = arith.mulf %p, %q : f32
            loop.yield %r : f32
          }
          loop.yield %u : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c, %y, %z] : memref<16x7x120xf32>
    }
  }
  func.return %y, %v : tensor<16x7x20xf32>, tensor<16x7x120xf32>
}

// -----

// Lines of 7 are short: it is enough that what is stored goes on.

// CHECK-LABEL: loop.kernel @short
// CHECK:         tile.launch (%c = 16 : thread, %z = 49 : thread) {
// CHECK:           loop.load %x[%m, %z floordiv 7 * 2, %z mod 7 * 2]
// CHECK:           loop.store %s, %out[%c, %z floordiv 7, %z mod 7]
// REMARK: collapse-rows: short: 2 axes are one
func.func @main(%x: tensor<8x14x14xf32>, %w: tensor<16x8xf32>) -> tensor<16x7x7xf32> {
  %y = loop.kernel @short(%x, %w) : (tensor<8x14x14xf32>, tensor<16x8xf32>) -> tensor<16x7x7xf32> {
  ^bb0(%x: memref<8x14x14xf32>, %w: memref<16x8xf32>, %out: memref<16x7x7xf32>):
    tile.launch (%c = 16 : thread, %y = 7 : thread, %z = 7 : thread) {
      %s = loop.for %m = 0 to 8 reduce(add) -> f32 {
        %p = loop.load %x[%m, %y * 2, %z * 2] : memref<8x14x14xf32>
        %q = loop.load %w[%c, %m] : memref<16x8xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%c, %y, %z] : memref<16x7x7xf32>
    }
  }
  func.return %y : tensor<16x7x7xf32>
}

// -----

// Phases of a transposed convolution: neighbouring results lie apart, so nothing is lost where a line ends. The input
// does not depend on the phase, so phases are more rows.
// CHECK-LABEL: loop.kernel @phase
// CHECK:         tile.launch (%c = 32 : thread, %z = 400 : thread) {
// CHECK:           loop.load %x[%m, %z floordiv 20, %z mod 20]
// CHECK:           loop.store %s, %out[%c mod 16, %z floordiv 20, %z mod 20 * 2 + %c floordiv 16]
// REMARK: collapse-rows: phase: 3 axes are one
func.func @main(%x: tensor<8x20x20xf32>, %w: tensor<2x16x8xf32>) -> tensor<16x20x40xf32> {
  %y = loop.kernel @phase(%x, %w) : (tensor<8x20x20xf32>, tensor<2x16x8xf32>) -> tensor<16x20x40xf32> {
  ^bb0(%x: memref<8x20x20xf32>, %w: memref<2x16x8xf32>, %out: memref<16x20x40xf32>):
    tile.launch (%r = 2 : thread, %c = 16 : thread, %y = 20 : thread, %z = 20 : thread) {
      %s = loop.for %m = 0 to 8 reduce(add) -> f32 {
        %p = loop.load %x[%m, %y, %z] : memref<8x20x20xf32>
        %q = loop.load %w[%r, %c, %m] : memref<2x16x8xf32>
        %t = arith.mulf %p, %q : f32
        loop.yield %t : f32
      }
      loop.store %s, %out[%c, %y, %z * 2 + %r] : memref<16x20x40xf32>
    }
  }
  func.return %y : tensor<16x20x40xf32>
}

// -----

// Lines whose length nobody knows are joined if everything goes on where one ends; not those of a part.

// CHECK-LABEL: loop.kernel @lines
// CHECK:         tile.launch (%c = 16 : thread, %z = s0 * 7 : thread) {
// REMARK: collapse-rows: lines: 2 axes are one
// REMARK: collapse-rows: parts: declined: joined columns would not lie along each other in memory
func.func @main(%x: tensor<8x7x?xf32, #sym.extents<s0>>, %w: tensor<16x8xf32>) -> (tensor<16x7x?xf32, #sym.extents<s0>>, tensor<16x7x?xf32, #sym.extents<s0 - 1>>) attributes {sym.sizes = [#sym.size<"width", 2, none>]} {
  %y = loop.kernel @lines(%x, %w) : (tensor<8x7x?xf32, #sym.extents<s0>>, tensor<16x8xf32>) -> tensor<16x7x?xf32, #sym.extents<s0>> {
  ^bb0(%x: memref<8x7x?xf32, #sym.extents<s0>>, %w: memref<16x8xf32>, %out: memref<16x7x?xf32, #sym.extents<s0>>):
    tile.launch (%c = 16 : thread, %y = 7 : thread, %z = s0 : thread) {
      %s = loop.for %m = 0 to 8 reduce(add) -> f32 {
        %p = loop.load %x[%m, %y, %z] : memref<8x7x?xf32, #sym.extents<s0>>
        %q = loop.load %w[%c, %m] : memref<16x8xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%c, %y, %z] : memref<16x7x?xf32, #sym.extents<s0>>
    }
  }
  %v = loop.kernel @parts(%x, %w) : (tensor<8x7x?xf32, #sym.extents<s0>>, tensor<16x8xf32>) -> tensor<16x7x?xf32, #sym.extents<s0 - 1>> {
  ^bb0(%x: memref<8x7x?xf32, #sym.extents<s0>>, %w: memref<16x8xf32>, %out: memref<16x7x?xf32, #sym.extents<s0 - 1>>):
    tile.launch (%c = 16 : thread, %y = 7 : thread, %z = s0 - 1 : thread) {
      %s = loop.for %m = 0 to 8 reduce(add) -> f32 {
        %p = loop.load %x[%m, %y, %z] : memref<8x7x?xf32, #sym.extents<s0>>
        %q = loop.load %w[%c, %m] : memref<16x8xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%c, %y, %z] : memref<16x7x?xf32, #sym.extents<s0 - 1>>
    }
  }
  func.return %y, %v : tensor<16x7x?xf32, #sym.extents<s0>>, tensor<16x7x?xf32, #sym.extents<s0 - 1>>
}
