// RUN: deplo-opt %s -p join-lines --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p join-lines,schedule,join-lines --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'join-lines,schedule{mma=1 block_n=16}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=NARROW
// RUN: deplo-opt %s -p join-lines --split-input-file --check-each-pass >/dev/null

// 14 lines of 14 columns are one axis of 196, of which a block has four lines: 56 columns.
// REMARK: remark: join-lines: pixels: 14 lines of 14 are one axis
// REMARK: remark: schedule: pixels: blocks of {{[0-9]+}} by {{56|112}}, threads of {{[0-9]+}} by {{14|28}}
// REMARK: remark: join-lines: pixels: declined: it has a schedule already
// NARROW: remark: schedule: pixels: declined: blocks of 16 columns have no whole lines of 14
// CHECK-LABEL: loop.kernel @pixels
// CHECK:         tile.launch (%j = 32 : thread, %z = 196 : thread) {
// CHECK:           loop.load %x[%k, %z floordiv 14, %z mod 14 + 1]
// CHECK:           loop.load %w[%j, %k]
// CHECK:           loop.store %{{.*}}, %out[%j, %z floordiv 14, %z mod 14]
func.func @main(%pixels_x: tensor<64x14x15xf16>, %pixels_w: tensor<32x64xf16>) -> (tensor<32x14x14xf32>) {
  %pixels_y = loop.kernel @pixels(%pixels_x, %pixels_w) : (tensor<64x14x15xf16>, tensor<32x64xf16>) -> tensor<32x14x14xf32> {
  ^bb0(%x: memref<64x14x15xf16>, %w: memref<32x64xf16>, %out: memref<32x14x14xf32>):
    tile.launch (%j = 32 : thread, %y = 14 : thread, %z = 14 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%k, %y, %z + 1] : memref<64x14x15xf16>
        %q = loop.load %w[%j, %k] : memref<32x64xf16>
        %a = arith.extf %p : f16 to f32
        %b = arith.extf %q : f16 to f32
        %r = arith.mulf %a, %b : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%j, %y, %z] : memref<32x14x14xf32>
    }
  }
  func.return %pixels_y : tensor<32x14x14xf32>
}

// -----

// Every second pixel of every second line: a box of four times as many elements.
// REMARK: remark: join-lines: strided: 14 lines of 14 are one axis
// REMARK: remark: schedule: strided: blocks of
func.func @main(%strided_x: tensor<64x28x28xf16>, %strided_w: tensor<32x64xf16>) -> (tensor<32x14x14xf32>) {
  %strided_y = loop.kernel @strided(%strided_x, %strided_w) : (tensor<64x28x28xf16>, tensor<32x64xf16>) -> tensor<32x14x14xf32> {
  ^bb0(%x: memref<64x28x28xf16>, %w: memref<32x64xf16>, %out: memref<32x14x14xf32>):
    tile.launch (%j = 32 : thread, %y = 14 : thread, %z = 14 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%k, %y * 2, %z * 2] : memref<64x28x28xf16>
        %q = loop.load %w[%j, %k] : memref<32x64xf16>
        %a = arith.extf %p : f16 to f32
        %b = arith.extf %q : f16 to f32
        %r = arith.mulf %a, %b : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%j, %y, %z] : memref<32x14x14xf32>
    }
  }
  func.return %strided_y : tensor<32x14x14xf32>
}

// -----

// What no tensor core multiplies, has no lines or long ones, or counts lines and columns along one axis.
// REMARK: remark: join-lines: wide: declined: tensor cores do not multiply it
// REMARK: remark: join-lines: rows: declined: there are no lines in front of its columns
// REMARK: remark: join-lines: long: declined: no block of up to 128 columns has whole lines of 33
// REMARK: remark: join-lines: diagonal: declined: lines and columns are not counted apart
// REMARK: remark: join-lines: lone: declined: lines and columns are not counted apart
func.func @main(%wide_x: tensor<64x14x14xf32>, %wide_w: tensor<32x64xf32>, %rows_x: tensor<64x14xf16>, %rows_w: tensor<32x64xf16>, %long_x: tensor<64x14x33xf16>, %long_w: tensor<32x64xf16>, %diagonal_x: tensor<64x27xf16>, %diagonal_w: tensor<32x64xf16>, %lone_x: tensor<64x14xf16>, %lone_w: tensor<32x64xf16>) -> (tensor<32x14x14xf32>, tensor<32x14xf32>, tensor<32x14x33xf32>, tensor<32x14x14xf32>, tensor<32x14x14xf32>) {
  %wide_y = loop.kernel @wide(%wide_x, %wide_w) : (tensor<64x14x14xf32>, tensor<32x64xf32>) -> tensor<32x14x14xf32> {
  ^bb0(%x: memref<64x14x14xf32>, %w: memref<32x64xf32>, %out: memref<32x14x14xf32>):
    tile.launch (%j = 32 : thread, %y = 14 : thread, %z = 14 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%k, %y, %z] : memref<64x14x14xf32>
        %q = loop.load %w[%j, %k] : memref<32x64xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%j, %y, %z] : memref<32x14x14xf32>
    }
  }
  %rows_y = loop.kernel @rows(%rows_x, %rows_w) : (tensor<64x14xf16>, tensor<32x64xf16>) -> tensor<32x14xf32> {
  ^bb0(%x: memref<64x14xf16>, %w: memref<32x64xf16>, %out: memref<32x14xf32>):
    tile.launch (%j = 32 : thread, %z = 14 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%k, %z] : memref<64x14xf16>
        %q = loop.load %w[%j, %k] : memref<32x64xf16>
        %a = arith.extf %p : f16 to f32
        %b = arith.extf %q : f16 to f32
        %r = arith.mulf %a, %b : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%j, %z] : memref<32x14xf32>
    }
  }
  %long_y = loop.kernel @long(%long_x, %long_w) : (tensor<64x14x33xf16>, tensor<32x64xf16>) -> tensor<32x14x33xf32> {
  ^bb0(%x: memref<64x14x33xf16>, %w: memref<32x64xf16>, %out: memref<32x14x33xf32>):
    tile.launch (%j = 32 : thread, %y = 14 : thread, %z = 33 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%k, %y, %z] : memref<64x14x33xf16>
        %q = loop.load %w[%j, %k] : memref<32x64xf16>
        %a = arith.extf %p : f16 to f32
        %b = arith.extf %q : f16 to f32
        %r = arith.mulf %a, %b : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%j, %y, %z] : memref<32x14x33xf32>
    }
  }
  %diagonal_y = loop.kernel @diagonal(%diagonal_x, %diagonal_w) : (tensor<64x27xf16>, tensor<32x64xf16>) -> tensor<32x14x14xf32> {
  ^bb0(%x: memref<64x27xf16>, %w: memref<32x64xf16>, %out: memref<32x14x14xf32>):
    tile.launch (%j = 32 : thread, %y = 14 : thread, %z = 14 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%k, %y + %z] : memref<64x27xf16>
        %q = loop.load %w[%j, %k] : memref<32x64xf16>
        %a = arith.extf %p : f16 to f32
        %b = arith.extf %q : f16 to f32
        %r = arith.mulf %a, %b : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%j, %y, %z] : memref<32x14x14xf32>
    }
  }
  %lone_y = loop.kernel @lone(%lone_x, %lone_w) : (tensor<64x14xf16>, tensor<32x64xf16>) -> tensor<32x14x14xf32> {
  ^bb0(%x: memref<64x14xf16>, %w: memref<32x64xf16>, %out: memref<32x14x14xf32>):
    tile.launch (%j = 32 : thread, %y = 14 : thread, %z = 14 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%k, %z] : memref<64x14xf16>
        %q = loop.load %w[%j, %k] : memref<32x64xf16>
        %a = arith.extf %p : f16 to f32
        %b = arith.extf %q : f16 to f32
        %r = arith.mulf %a, %b : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%j, %y, %z] : memref<32x14x14xf32>
    }
  }
  func.return %wide_y, %rows_y, %long_y, %diagonal_y, %lone_y : tensor<32x14x14xf32>, tensor<32x14xf32>, tensor<32x14x33xf32>, tensor<32x14x14xf32>, tensor<32x14x14xf32>
}

// -----

// REMARK: remark: join-lines: dynamic: declined: its lines are of dynamic length or number
func.func @main(%dynamic_x: tensor<64x?x14xf16, #sym.extents<s0>>, %dynamic_w: tensor<32x64xf16>) -> (tensor<32x?x14xf32, #sym.extents<s0>>) attributes {sym.sizes = [#sym.size<"n", 1, 4096>]} {
  %dynamic_y = loop.kernel @dynamic(%dynamic_x, %dynamic_w) : (tensor<64x?x14xf16, #sym.extents<s0>>, tensor<32x64xf16>) -> tensor<32x?x14xf32, #sym.extents<s0>> {
  ^bb0(%x: memref<64x?x14xf16, #sym.extents<s0>>, %w: memref<32x64xf16>, %out: memref<32x?x14xf32, #sym.extents<s0>>):
    tile.launch (%j = 32 : thread, %y = s0 : thread, %z = 14 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%k, %y, %z] : memref<64x?x14xf16, #sym.extents<s0>>
        %q = loop.load %w[%j, %k] : memref<32x64xf16>
        %a = arith.extf %p : f16 to f32
        %b = arith.extf %q : f16 to f32
        %r = arith.mulf %a, %b : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%j, %y, %z] : memref<32x?x14xf32, #sym.extents<s0>>
    }
  }
  func.return %dynamic_y : tensor<32x?x14xf32, #sym.extents<s0>>
}
