// RUN: deplo-opt %s -p strip-channels --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p strip-channels --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p strip-channels --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p strip-channels,schedule-rows,blockify-launch{target=cpu},split-loops --split-input-file | FileCheck %s --check-prefix=BLOCK

// Pixels come one line after the other, with 32 channels each, of which 16 are a line of the cache. A block goes over
// the whole image, so that what its windows ask at the border is known in a loop for each case.
// REMARK: remark: strip-channels: pixels: its windows slide over an image for a strip of channels at a time
// CHECK-LABEL: loop.kernel @pixels
// CHECK:         tile.launch (%c_part = 2 : thread, %p_part = 8 : thread, %p = 16 : thread, %c = 16 : thread) {
// CHECK:           loop.test[%p_part + %n >= 1, %p_part + %n < 9, %p + %m >= 1, %p + %m < 17]
// CHECK:             loop.load %x[%p_part * 16 + %n * 16 + %p + %m - 17, %c_part * 16 + %c] : memref<128x32xf32>
// CHECK:           loop.store %s, %out[%p_part * 16 + %p, %c_part * 16 + %c] : memref<128x32xf32>
// BLOCK-LABEL: loop.kernel @pixels
// BLOCK:         tile.launch (%c_part = 2 : block)
// BLOCK:         loop.for %{{.*}} = 0 to 6 {
// BLOCK:         loop.for %{{.*}} = 0 to 14 {
// BLOCK-NEXT:      loop.for %{{.*}} = 0 to 16 {
// BLOCK-NEXT:        loop.for %{{.*}} = 0 to 3 reduce(add) -> f32 {
// BLOCK-NEXT:          loop.for %{{.*}} = 0 to 3 reduce(add) -> f32 {
// BLOCK-NEXT:            loop.load %x
func.func @main(%x: tensor<128x32xf32>) -> tensor<128x32xf32> {
  %0 = loop.kernel @pixels(%x) : (tensor<128x32xf32>) -> tensor<128x32xf32> {
  ^bb0(%x: memref<128x32xf32>, %out: memref<128x32xf32>):
    tile.launch (%p = 128 : thread, %c = 32 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
        %t = loop.for %m = 0 to 3 reduce(add) -> f32 {
          %in = loop.test[%p floordiv 16 + %n >= 1, %p floordiv 16 + %n < 9, %p mod 16 + %m >= 1, %p mod 16 + %m < 17]
          %v = scf.if %in -> (f32) {
            %a = loop.load %x[%n * 16 + %p + %m - 17, %c] : memref<128x32xf32>
            scf.yield %a : f32
          } else {
            %zero = arith.constant 0.0 : f32
            scf.yield %zero : f32
          }
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%p, %c] : memref<128x32xf32>
    }
  }
  func.return %0 : tensor<128x32xf32>
}

// -----

// One strip is all channels; no line of 24 channels of bf16, but 8 of them are a vector.
// REMARK: remark: strip-channels: one: its windows slide
// REMARK: remark: strip-channels: narrow: its windows slide
// CHECK-LABEL: loop.kernel @one
// CHECK:         tile.launch (%p = 32 : thread, %c = 16 : thread) {
// CHECK-LABEL: loop.kernel @narrow
// CHECK:         tile.launch (%c_part = 3 : thread, %p = 32 : thread, %c = 8 : thread) {
func.func @main(%x: tensor<34x16xf32>, %y: tensor<34x24xbf16>) -> (tensor<32x16xf32>, tensor<32x24xbf16>) {
  %0 = loop.kernel @one(%x) : (tensor<34x16xf32>) -> tensor<32x16xf32> {
  ^bb0(%x: memref<34x16xf32>, %out: memref<32x16xf32>):
    tile.launch (%p = 32 : thread, %c = 16 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
        %a = loop.load %x[%p + %n, %c] : memref<34x16xf32>
        loop.yield %a : f32
      }
      loop.store %s, %out[%p, %c] : memref<32x16xf32>
    }
  }
  %1 = loop.kernel @narrow(%y) : (tensor<34x24xbf16>) -> tensor<32x24xbf16> {
  ^bb0(%y: memref<34x24xbf16>, %out: memref<32x24xbf16>):
    tile.launch (%p = 32 : thread, %c = 24 : thread) {
      %s = loop.for %n = 0 to 3 reduce(max) -> f32 {
        %a = loop.load %y[%p + %n, %c] : memref<34x24xbf16>
        %f = arith.extf %a : bf16 to f32
        loop.yield %f : f32
      }
      %r = arith.truncf %s : f32 to bf16
      loop.store %r, %out[%p, %c] : memref<32x24xbf16>
    }
  }
  func.return %0, %1 : tensor<32x16xf32>, tensor<32x24xbf16>
}

// -----

// REMARK: remark: strip-channels: scheduled: declined: it has a schedule already
// REMARK: remark: strip-channels: rows: declined: it has no windows
// REMARK: remark: strip-channels: odd: declined: its last axis has no strips
// REMARK: remark: strip-channels: first: declined: channels do not come last in all that its windows read
func.func @main(%x: tensor<36x16xf32>, %y: tensor<34x7xf32>, %z: tensor<16x34xf32>) -> (tensor<32x16xf32>, tensor<36x16xf32>, tensor<32x7xf32>, tensor<32x16xf32>) {
  %0 = loop.kernel @scheduled(%x) : (tensor<36x16xf32>) -> tensor<32x16xf32> {
  ^bb0(%x: memref<36x16xf32>, %out: memref<32x16xf32>):
    tile.launch (%p = 32 : block, %c = 16 : thread) schedule(#tile.schedule<threads = 16>) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
        %a = loop.load %x[%p + %n, %c] : memref<36x16xf32>
        loop.yield %a : f32
      }
      loop.store %s, %out[%p, %c] : memref<32x16xf32>
    }
  }
  %1 = loop.kernel @rows(%x) : (tensor<36x16xf32>) -> tensor<36x16xf32> {
  ^bb0(%x: memref<36x16xf32>, %out: memref<36x16xf32>):
    tile.launch (%p = 36 : thread, %c = 16 : thread) {
      %a = loop.load %x[%p, %c] : memref<36x16xf32>
      loop.store %a, %out[%p, %c] : memref<36x16xf32>
    }
  }
  %2 = loop.kernel @odd(%y) : (tensor<34x7xf32>) -> tensor<32x7xf32> {
  ^bb0(%y: memref<34x7xf32>, %out: memref<32x7xf32>):
    tile.launch (%p = 32 : thread, %c = 7 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
        %a = loop.load %y[%p + %n, %c] : memref<34x7xf32>
        loop.yield %a : f32
      }
      loop.store %s, %out[%p, %c] : memref<32x7xf32>
    }
  }
  %3 = loop.kernel @first(%z) : (tensor<16x34xf32>) -> tensor<32x16xf32> {
  ^bb0(%z: memref<16x34xf32>, %out: memref<32x16xf32>):
    tile.launch (%p = 32 : thread, %c = 16 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
        %a = loop.load %z[%c, %p + %n] : memref<16x34xf32>
        loop.yield %a : f32
      }
      loop.store %s, %out[%p, %c] : memref<32x16xf32>
    }
  }
  func.return %0, %1, %2, %3 : tensor<32x16xf32>, tensor<36x16xf32>, tensor<32x7xf32>, tensor<32x16xf32>
}
