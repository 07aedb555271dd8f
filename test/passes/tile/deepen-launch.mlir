// RUN: deplo-opt %s -p deepen-launch --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p deepen-launch --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p deepen-launch --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p deepen-launch{target=sm_80} --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=GPU

// CHECK-LABEL: loop.kernel @rows
// CHECK:         tile.launch (%i = 8 : thread, %j = 16 : thread) {
// CHECK-NEXT:      %m = loop.load %max[%i]
// CHECK-NEXT:      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
// CHECK:           loop.store %s, %out[%i, %j]
// REMARK: deepen-launch: rows: its columns are an axis
// REMARK: deepen-launch: scaled: declined: no reduce loop in the body
// REMARK: deepen-launch: again: declined: it has a schedule already
// REMARK: deepen-launch: two: declined: its body does not end with its one free loop
// GPU: deepen-launch: rows: declined: the target is a GPU
func.func @main(%x: tensor<8x32xf32>, %w: tensor<32x16xf32>, %m: tensor<8xf32>) -> (tensor<8x16xf32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>) {
  %y = loop.kernel @rows(%x, %w, %m) : (tensor<8x32xf32>, tensor<32x16xf32>, tensor<8xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x32xf32>, %w: memref<32x16xf32>, %max: memref<8xf32>, %out: memref<8x16xf32>):
    tile.launch (%i = 8 : thread) {
      %m = loop.load %max[%i] : memref<8xf32>
      loop.for %j = 0 to 16 {
        %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<8x32xf32>
          %n = arith.subf %p, %m : f32
          %q = loop.load %w[%k, %j] : memref<32x16xf32>
          %r = arith.mulf %n, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %out[%i, %j] : memref<8x16xf32>
      }
    }
  }
  %z = loop.kernel @scaled(%x, %m) : (tensor<8x32xf32>, tensor<8xf32>) -> tensor<8x32xf32> {
  ^bb0(%x: memref<8x32xf32>, %max: memref<8xf32>, %out: memref<8x32xf32>):
    tile.launch (%i = 8 : thread) {
      %m = loop.load %max[%i] : memref<8xf32>
      loop.for %j = 0 to 32 {
        %p = loop.load %x[%i, %j] : memref<8x32xf32>
        %r = arith.mulf %p, %m : f32
        loop.store %r, %out[%i, %j] : memref<8x32xf32>
      }
    }
  }
  %u = loop.kernel @again(%x) : (tensor<8x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%x: memref<8x32xf32>, %out: memref<8x32xf32>):
    tile.launch (%i = 8 : block) {
      loop.for %j = 0 to 32 {
        %p = loop.load %x[%i, %j] : memref<8x32xf32>
        loop.store %p, %out[%i, %j] : memref<8x32xf32>
      }
    }
  }
  %v = loop.kernel @two(%x) : (tensor<8x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%x: memref<8x32xf32>, %out: memref<8x32xf32>):
    tile.launch (%i = 8 : thread) {
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<8x32xf32>
        loop.yield %p : f32
      }
      loop.for %j = 0 to 32 {
        loop.store %s, %out[%i, %j] : memref<8x32xf32>
      }
    }
  }
  func.return %y, %z, %u, %v : tensor<8x16xf32>, tensor<8x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>
}
