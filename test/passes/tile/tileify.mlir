// RUN: deplo-opt %s -p tileify --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p tileify,tileify --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p tileify --split-input-file --check-each-pass >/dev/null

// The two free loops become axes; the reduction stays, and so does the second sweep.
// CHECK-LABEL: loop.kernel @norm
// CHECK:         tile.launch (%b = 2 : thread, %i = 4 : thread) {
// CHECK-NEXT:      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
// CHECK:           loop.for %j = 0 to 8 {
// CHECK:             loop.load %in[%b, %i, %j]
// REMARK: remark: tileify: norm: 2 free loops became thread axes
// REMARK: remark: tileify: norm: declined: the kernel has a launch already
func.func @main(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %y = loop.kernel @norm(%x) : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  ^bb0(%in: memref<2x4x8xf32>, %out: memref<2x4x8xf32>):
    loop.for %b = 0 to 2 {
      loop.for %i = 0 to 4 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %v = loop.load %in[%b, %i, %k] : memref<2x4x8xf32>
          loop.yield %v : f32
        }
        loop.for %j = 0 to 8 {
          %v = loop.load %in[%b, %i, %j] : memref<2x4x8xf32>
          %w = arith.divf %v, %s : f32
          loop.store %w, %out[%b, %i, %j] : memref<2x4x8xf32>
        }
      }
    }
  }
  func.return %y : tensor<2x4x8xf32>
}

// -----

// A kernel without free loops gets a launch without axes.
// CHECK-LABEL: loop.kernel @all
// CHECK:         tile.launch () {
// REMARK: remark: tileify: all: 0 free loops became thread axes
func.func @main(%x: tensor<8xf32>) -> tensor<f32> {
  %y = loop.kernel @all(%x) : (tensor<8xf32>) -> tensor<f32> {
  ^bb0(%in: memref<8xf32>, %out: memref<f32>):
    %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
      %v = loop.load %in[%k] : memref<8xf32>
      loop.yield %v : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// -----

// A dynamic extent becomes an axis like any other.
// CHECK:      tile.launch (%i = s0 : thread) {
// CHECK-NEXT:   loop.for %k = 0 to s1 reduce(add) -> f32 {
// REMARK: remark: tileify: rows: 1 free loops became thread axes
func.func @main(%x: tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x1xf32, #sym.extents<s0>>
    attributes {sym.sizes = [#sym.size<"batch", 1, 64, hint = 8>, #sym.size<"seq", 2, 4096, hint = 100>]} {
  %y = loop.kernel @rows(%x) : (tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x1xf32, #sym.extents<s0>> {
  ^bb0(%in: memref<?x?xf32, #sym.extents<s0, s1>>, %out: memref<?x1xf32, #sym.extents<s0>>):
    loop.for %i = 0 to s0 {
      %s = loop.for %k = 0 to s1 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<?x?xf32, #sym.extents<s0, s1>>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i, 0] : memref<?x1xf32, #sym.extents<s0>>
    }
  }
  func.return %y : tensor<?x1xf32, #sym.extents<s0>>
}

// -----

// Scalars in front of the loops are each thread's; a reduction there is not.
// CHECK-LABEL: loop.kernel @scaled
// CHECK:         tile.launch (%i = 4 : thread, %j = 8 : thread) {
// CHECK-NEXT:      %a = loop.load %s[]
// CHECK-NEXT:      %e = math.exp %a
// CHECK-NEXT:      loop.load %in[%i, %j]
// CHECK-LABEL: loop.kernel @shares
// CHECK:         tile.launch () {
// CHECK-NEXT:      loop.for %k = 0 to 4 reduce(add)
// REMARK: remark: tileify: scaled: 2 free loops became thread axes, each thread computes 2 scalars
// REMARK: remark: tileify: shares: 0 free loops became thread axes
func.func @main(%x: tensor<4x8xf32>, %s: tensor<f32>, %z: tensor<4xf32>) -> (tensor<4x8xf32>, tensor<4xf32>) {
  %y = loop.kernel @scaled(%x, %s) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32> {
  ^bb0(%in: memref<4x8xf32>, %s: memref<f32>, %out: memref<4x8xf32>):
    %a = loop.load %s[] : memref<f32>
    %e = math.exp %a : f32
    loop.for %i = 0 to 4 {
      loop.for %j = 0 to 8 {
        %v = loop.load %in[%i, %j] : memref<4x8xf32>
        %w = arith.mulf %v, %e : f32
        loop.store %w, %out[%i, %j] : memref<4x8xf32>
      }
    }
  }
  %w = loop.kernel @shares(%z) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%in: memref<4xf32>, %out: memref<4xf32>):
    %t = loop.for %k = 0 to 4 reduce(add) -> f32 {
      %v = loop.load %in[%k] : memref<4xf32>
      loop.yield %v : f32
    }
    loop.for %i = 0 to 4 {
      %v = loop.load %in[%i] : memref<4xf32>
      %w = arith.divf %v, %t : f32
      loop.store %w, %out[%i] : memref<4xf32>
    }
  }
  func.return %y, %w : tensor<4x8xf32>, tensor<4xf32>
}
