// A schedule that a person has edited may lack a choice, or make one that cannot be carried out: the pass declines.
// RUN: deplo-opt %s -p 'pack-operands,split-matmul-k,register-tile{target=cpu},tensor-cores{target=sm_80}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s

// CHECK: remark: pack-operands: no_tiles: declined: the schedule has no `thread_n`
func.func @main(%x: tensor<8x32xf32>, %w: tensor<16x32xf32>) -> tensor<8x16xf32> {
  %y = loop.kernel @no_tiles(%x, %w) : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x32xf32>, %w: memref<16x32xf32>, %y: memref<8x16xf32>):
    tile.launch (%i = 8 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 16, block_k = 16, thread_m = 2, vectors = avx2>) {
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %a = loop.load %x[%i, %k] : memref<8x32xf32>
        %b = loop.load %w[%j, %k] : memref<16x32xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %y[%i, %j] : memref<8x16xf32>
    }
  }
  func.return %y : tensor<8x16xf32>
}

// -----

// CHECK: remark: pack-operands: uneven: declined: block_n = 12 is no whole number of register tiles of 8
func.func @main(%x: tensor<8x32xf32>, %w: tensor<16x32xf32>) -> tensor<8x16xf32> {
  %y = loop.kernel @uneven(%x, %w) : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x32xf32>, %w: memref<16x32xf32>, %y: memref<8x16xf32>):
    tile.launch (%i = 8 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 12, block_k = 16, thread_m = 2, thread_n = 8, vectors = avx2>) {
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %a = loop.load %x[%i, %k] : memref<8x32xf32>
        %b = loop.load %w[%j, %k] : memref<16x32xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %y[%i, %j] : memref<8x16xf32>
    }
  }
  func.return %y : tensor<8x16xf32>
}

// -----

// CHECK: remark: split-matmul-k: no_blocks: declined: the schedule has no `block_m`
func.func @main(%x: tensor<8x32xf32>, %w: tensor<16x32xf32>) -> tensor<8x16xf32> {
  %y = loop.kernel @no_blocks(%x, %w) : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x32xf32>, %w: memref<16x32xf32>, %y: memref<8x16xf32>):
    tile.launch (%i = 8 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, split_k = 2>) {
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %a = loop.load %x[%i, %k] : memref<8x32xf32>
        %b = loop.load %w[%j, %k] : memref<16x32xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %y[%i, %j] : memref<8x16xf32>
    }
  }
  func.return %y : tensor<8x16xf32>
}

// -----

// CHECK: remark: split-matmul-k: no_sweep: declined: no loop of the launch reduces
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = loop.kernel @no_sweep(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x16xf32>, %y: memref<8x16xf32>):
    tile.launch (%i = 8 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 8, block_k = 8, split_k = 2>) {
      %v = loop.load %x[%i, %j] : memref<8x16xf32>
      loop.store %v, %y[%i, %j] : memref<8x16xf32>
    }
  }
  func.return %y : tensor<8x16xf32>
}

// -----

// CHECK: remark: register-tile: far: declined: no tiles of 64 divide the 8 points of i
func.func @main(%x: tensor<8x32xf32>, %w: tensor<16x32xf32>) -> tensor<8x16xf32> {
  %y = loop.kernel @far(%x, %w) : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x32xf32>, %w: memref<16x32xf32>, %y: memref<8x16xf32>):
    tile.launch (%i = 8 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, thread_m = 64, thread_n = 1>) {
      %x_smem = tile.stage %x[0, 0] : memref<8x32xf32> -> memref<8x32xf32, "shared">
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %a = loop.load %x_smem[%i, %k] : memref<8x32xf32, "shared">
        %b = loop.load %w[%j, %k] : memref<16x32xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %y[%i, %j] : memref<8x16xf32>
    }
  }
  func.return %y : tensor<8x16xf32>
}

// -----

// CHECK: remark: tensor-cores: one_element: declined: a block has one row and one column
func.func @main(%x: tensor<8x32xf32>, %w: tensor<16x32xf32>) -> tensor<8x16xf32> {
  %y = loop.kernel @one_element(%x, %w) : (tensor<8x32xf32>, tensor<16x32xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x32xf32>, %w: memref<16x32xf32>, %y: memref<8x16xf32>):
    tile.launch (%i = 8 : block, %j = 16 : block) schedule(#tile.schedule<block_m = 1, block_n = 1, thread_m = 1, thread_n = 1, mma = 1>) {
      %x_smem = tile.stage %x[%i, 0] : memref<8x32xf32> -> memref<1x32xf32, "shared">
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %a = loop.load %x_smem[0, %k] : memref<1x32xf32, "shared">
        %b = loop.load %w[%j, %k] : memref<16x32xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %y[%i, %j] : memref<8x16xf32>
    }
  }
  func.return %y : tensor<8x16xf32>
}
