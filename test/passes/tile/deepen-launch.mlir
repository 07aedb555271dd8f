// RUN: deplo-opt %s -p 'deepen-launch{target=cpu}' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'deepen-launch{target=cpu}' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'deepen-launch{target=cpu}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p deepen-launch{target=sm_80} --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=GPU
// RUN: deplo-opt %s -p deepen-launch{target=sm_80} --split-input-file | FileCheck %s --check-prefix=SPREAD
// RUN: deplo-opt %s -p deepen-launch{target=sm_80} --split-input-file --check-each-pass >/dev/null

// CHECK-LABEL: loop.kernel @rows
// CHECK:         tile.launch (%i = 8 : thread, %j = 16 : thread) {
// CHECK-NEXT:      %m = loop.load %max[%i]
// CHECK-NEXT:      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
// CHECK:           loop.store %s, %out[%i, %j]
// REMARK: deepen-launch: rows: its columns are an axis
// REMARK: deepen-launch: scaled: declined: no reduce loop in the body
// REMARK: deepen-launch: again: declined: the launch is partitioned already
// REMARK: deepen-launch: two: declined: its body does not end with its one free loop
// A GPU's threads repeat scalars, not sweeps: `scaled` has a thread for each element, `two` for each row.
// GPU: deepen-launch: rows: its columns are an axis
// GPU: deepen-launch: scaled: its columns are an axis
// GPU: deepen-launch: again: declined: the launch is partitioned already
// GPU: deepen-launch: two: declined: its body does not end with its one free loop
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

// -----

// Rows that are looked up have a thread for each element of each channel, which checks the row again; but a
// check in front of a loop that never runs is not to be lost.
// SPREAD-LABEL: loop.kernel @gather
// SPREAD:         tile.launch (%i = 4 : thread, %c = 3 : thread, %j = 16 : thread) {
// SPREAD-NEXT:      %id = loop.load %ids[%i]
// SPREAD-NEXT:      %row = loop.checked_index %id below 10
// SPREAD-NEXT:      %s = loop.load %scale[%c]
// SPREAD-NEXT:      %v = loop.load %table[%row, %c, %j]
// SPREAD-LABEL: loop.kernel @nothing
// SPREAD:         tile.launch (%i = 4 : thread) {
// SPREAD:           loop.checked_index
// GPU: deepen-launch: gather: its columns are an axis
// GPU: deepen-launch: nothing: declined: more than scalars stand in front of its loop
func.func @main(%ids: tensor<4xi64>, %table: tensor<10x3x16xf32>, %scale: tensor<3xf32>, %none: tensor<10x0xf32>) -> (tensor<4x3x16xf32>, tensor<4x0xf32>) {
  %y = loop.kernel @gather(%ids, %table, %scale) : (tensor<4xi64>, tensor<10x3x16xf32>, tensor<3xf32>) -> tensor<4x3x16xf32> {
  ^bb0(%ids: memref<4xi64>, %table: memref<10x3x16xf32>, %scale: memref<3xf32>, %out: memref<4x3x16xf32>):
    tile.launch (%i = 4 : thread) {
      %id = loop.load %ids[%i] : memref<4xi64>
      %row = loop.checked_index %id below 10 : i64
      loop.for %c = 0 to 3 {
        %s = loop.load %scale[%c] : memref<3xf32>
        loop.for %j = 0 to 16 {
          %v = loop.load %table[%row, %c, %j] : memref<10x3x16xf32>
          %w = arith.mulf %v, %s : f32
          loop.store %w, %out[%i, %c, %j] : memref<4x3x16xf32>
        }
      }
    }
  }
  %z = loop.kernel @nothing(%ids, %none) : (tensor<4xi64>, tensor<10x0xf32>) -> tensor<4x0xf32> {
  ^bb0(%ids: memref<4xi64>, %table: memref<10x0xf32>, %out: memref<4x0xf32>):
    tile.launch (%i = 4 : thread) {
      %id = loop.load %ids[%i] : memref<4xi64>
      %row = loop.checked_index %id below 10 : i64
      loop.for %j = 0 to 0 {
        %v = loop.load %table[%row, %j] : memref<10x0xf32>
        loop.store %v, %out[%i, %j] : memref<4x0xf32>
      }
    }
  }
  func.return %y, %z : tensor<4x3x16xf32>, tensor<4x0xf32>
}
