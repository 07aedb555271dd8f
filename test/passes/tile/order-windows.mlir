// RUN: deplo-opt %s -p order-windows --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p order-windows --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p order-windows --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p order-windows,schedule-rows,blockify-launch{target=cpu},stage-windows --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=STAGE

// Pixels come one line after the other, and channels last: the axis of pixels is split, and goes to the end. Then
// blocks can copy what windows read; that a pixel lies in the image is what the conditions on its line and column say.
// REMARK: remark: order-windows: pixels: its windows slide along the innermost axes now
// STAGE: remark: stage-windows: pixels: 1 operand of windows
// CHECK-LABEL: loop.kernel @pixels
// CHECK:         tile.launch (%c = 4 : thread, %p_part = 8 : thread, %p = 16 : thread) {
// CHECK:           loop.test[%p_part + %n >= 1, %p_part + %n < 9, %p + %m >= 1, %p + %m < 17]
// CHECK:           loop.store %s, %out[%p_part * 16 + %p, %c] : memref<128x4xf32>
func.func @main(%x: tensor<4x128xf32>) -> tensor<128x4xf32> {
  %0 = loop.kernel @pixels(%x) : (tensor<4x128xf32>) -> tensor<128x4xf32> {
  ^bb0(%x: memref<4x128xf32>, %out: memref<128x4xf32>):
    tile.launch (%p = 128 : thread, %c = 4 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
        %t = loop.for %m = 0 to 3 reduce(add) -> f32 {
          %in = loop.test[%p floordiv 16 + %n >= 1, %p floordiv 16 + %n < 9, %p mod 16 + %m >= 1, %p mod 16 + %m < 17]
          %v = scf.if %in -> (f32) {
            %a = loop.load %x[%c, %n * 16 + %p + %m - 17] : memref<4x128xf32>
            scf.yield %a : f32
          } else {
            %zero = arith.constant 0.0 : f32
            scf.yield %zero : f32
          }
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%p, %c] : memref<128x4xf32>
    }
  }
  func.return %0 : tensor<128x4xf32>
}

// -----

// REMARK: remark: order-windows: last: declined: its windows are of neighbours
func.func @main(%x: tensor<4x34xf32>) -> tensor<4x32xf32> {
  %0 = loop.kernel @last(%x) : (tensor<4x34xf32>) -> tensor<4x32xf32> {
  ^bb0(%x: memref<4x34xf32>, %out: memref<4x32xf32>):
    tile.launch (%c = 4 : thread, %p = 32 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
        %a = loop.load %x[%c, %p + %n] : memref<4x34xf32>
        loop.yield %a : f32
      }
      loop.store %s, %out[%c, %p] : memref<4x32xf32>
    }
  }
  func.return %0 : tensor<4x32xf32>
}

// -----

// REMARK: remark: order-windows: rows: declined: it has no windows
func.func @main(%x: tensor<4x34xf32>) -> tensor<4xf32> {
  %0 = loop.kernel @rows(%x) : (tensor<4x34xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x34xf32>, %out: memref<4xf32>):
    tile.launch (%c = 4 : thread) {
      %s = loop.for %n = 0 to 34 reduce(add) -> f32 {
        %a = loop.load %x[%c, %n] : memref<4x34xf32>
        loop.yield %a : f32
      }
      loop.store %s, %out[%c] : memref<4xf32>
    }
  }
  func.return %0 : tensor<4xf32>
}

// -----

// Windows down the columns of an array, channels side by side: these are neighbours already.
// REMARK: remark: order-windows: columns: declined: its windows are of neighbours
func.func @main(%x: tensor<34x8xf32>) -> tensor<32x8xf32> {
  %0 = loop.kernel @columns(%x) : (tensor<34x8xf32>) -> tensor<32x8xf32> {
  ^bb0(%x: memref<34x8xf32>, %out: memref<32x8xf32>):
    tile.launch (%p = 32 : thread, %c = 8 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
        %a = loop.load %x[%p + %n, %c] : memref<34x8xf32>
        loop.yield %a : f32
      }
      loop.store %s, %out[%p, %c] : memref<32x8xf32>
    }
  }
  func.return %0 : tensor<32x8xf32>
}

// -----

// Of three neighbours, each third is summed up: no order of the axes has windows of neighbours.
// REMARK: remark: order-windows: apart: declined: no order of its axes has windows of neighbours
func.func @main(%x: tensor<32x3x8xf32>) -> tensor<8x32xf32> {
  %0 = loop.kernel @apart(%x) : (tensor<32x3x8xf32>) -> tensor<8x32xf32> {
  ^bb0(%x: memref<32x3x8xf32>, %out: memref<8x32xf32>):
    tile.launch (%c = 8 : thread, %p = 32 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
        %a = loop.load %x[%p, %n, %c] : memref<32x3x8xf32>
        loop.yield %a : f32
      }
      loop.store %s, %out[%c, %p] : memref<8x32xf32>
    }
  }
  func.return %0 : tensor<8x32xf32>
}

// -----

// Windows of neighbours in an array of some size: a condition may ask for it.
// REMARK: remark: order-windows: sizes: declined: its windows are of neighbours
func.func @main(%x: tensor<4x?xf32, #sym.extents<s0>>) -> tensor<4x?xf32, #sym.extents<s0>> attributes {sym.sizes = [#sym.size<"columns", 1, none, hint = 30>]} {
  %0 = loop.kernel @sizes(%x) : (tensor<4x?xf32, #sym.extents<s0>>) -> tensor<4x?xf32, #sym.extents<s0>> {
  ^bb0(%x: memref<4x?xf32, #sym.extents<s0>>, %out: memref<4x?xf32, #sym.extents<s0>>):
    tile.launch (%c = 4 : thread, %p = s0 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
        %in = loop.test[%p + %n >= 1, %p + %n < s0 + 1]
        %a = scf.if %in -> (f32) {
          %v = loop.load %x[%c, %p + %n - 1] : memref<4x?xf32, #sym.extents<s0>>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %a : f32
      }
      loop.store %s, %out[%c, %p] : memref<4x?xf32, #sym.extents<s0>>
    }
  }
  func.return %0 : tensor<4x?xf32, #sym.extents<s0>>
}
