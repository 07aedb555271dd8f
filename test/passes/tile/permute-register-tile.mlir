// RUN: deplo-opt %s -p permute-register-tile --split-input-file | FileCheck %s --check-prefixes=CHECK,SCALAR
// RUN: deplo-opt %s -p permute-register-tile{vector=4},register-tile{target=sm_90a} --split-input-file | FileCheck %s --check-prefixes=CHECK,VECTOR
// RUN: deplo-opt %s -p permute-register-tile,permute-register-tile --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A warp reads rows of %bs: its lanes meet in no bank if they read neighbours, or vectors of neighbours.
// CHECK-LABEL: loop.kernel @columns
// SCALAR:        schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 128, block_k = 16, thread_m = 1, thread_n = 8, strip_n = 1>)
// VECTOR:        schedule(#tile.schedule<{{.*}}, strip_n = 4, threads = 128>)
// VECTOR:          loop.load %{{.*}}[%{{.*}}, %j * 4] :
// VECTOR:          loop.load %{{.*}}[%{{.*}}, %j * 4 + 1] :
// VECTOR:          loop.load %{{.*}}[%{{.*}}, %j * 4 + 3] :
// VECTOR:          loop.load %{{.*}}[%{{.*}}, %j * 4 + 64] :
// VECTOR:          loop.load %{{.*}}[%{{.*}}, %j * 4 + 67] :
// VECTOR:        loop.store %{{.*}}, %out[%i, %j * 4 + 67]
// REMARK: remark: permute-register-tile: columns: strips of 1 along n
// REMARK: remark: permute-register-tile: columns: declined: the schedule has its strips
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x128xf32>) -> tensor<8x128xf32> {
  %y = loop.kernel @columns(%x, %w) : (tensor<8x16xf32>, tensor<16x128xf32>) -> tensor<8x128xf32> {
  ^bb0(%x: memref<8x16xf32>, %w: memref<16x128xf32>, %out: memref<8x128xf32>):
    tile.launch (%i = 8 : thread, %j = 128 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 128, block_k = 16, thread_m = 1, thread_n = 8>) {
      %as = tile.stage %x[0, 0] : memref<8x16xf32> -> memref<8x16xf32, "shared">
      %bs = tile.stage %w[0, 0] : memref<16x128xf32> -> memref<16x128xf32, "shared">
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %p = loop.load %as[%i, %k] : memref<8x16xf32, "shared">
        %q = loop.load %bs[%k, %j] : memref<16x128xf32, "shared">
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<8x128xf32>
    }
  }
  func.return %y : tensor<8x128xf32>
}

// -----

// Nothing to choose: single elements, and no tiles at all.
// CHECK-LABEL: loop.kernel @single
// CHECK-NOT:     strip
// REMARK: remark: permute-register-tile: single: declined: each thread computes a single element
// REMARK: remark: permute-register-tile: pointwise: declined: the schedule gives threads no tiles
func.func @main(%x: tensor<8x16xf32>) -> (tensor<8x8xf32>, tensor<8x16xf32>) {
  %y = loop.kernel @single(%x) : (tensor<8x16xf32>) -> tensor<8x8xf32> {
  ^bb0(%x: memref<8x16xf32>, %out: memref<8x8xf32>):
    tile.launch (%i = 8 : thread, %j = 8 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 8, block_k = 16, thread_m = 1, thread_n = 1>) {
      %as = tile.stage %x[0, 0] : memref<8x16xf32> -> memref<8x16xf32, "shared">
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %p = loop.load %as[%i, %k] : memref<8x16xf32, "shared">
        %q = loop.load %as[%j, %k] : memref<8x16xf32, "shared">
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<8x8xf32>
    }
  }
  %z = loop.kernel @pointwise(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x16xf32>, %out: memref<8x16xf32>):
    tile.launch (%i = 8 : thread, %j = 16 : thread) {
      %p = loop.load %x[%i, %j] : memref<8x16xf32>
      loop.store %p, %out[%i, %j] : memref<8x16xf32>
    }
  }
  func.return %y, %z : tensor<8x8xf32>, tensor<8x16xf32>
}

// -----

// Rows that a thread computes: no lane of a warp reads another row, so neighbours are as good as any.
// REMARK: remark: permute-register-tile: rows: declined: neighbouring elements cost a warp the least
// REMARK: remark: permute-register-tile: unstaged: declined: nothing is staged
func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x32xf32>) -> (tensor<8x32xf32>, tensor<8x32xf32>) {
  %y = loop.kernel @rows(%x, %w) : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%x: memref<8x16xf32>, %w: memref<16x32xf32>, %out: memref<8x32xf32>):
    tile.launch (%i = 8 : thread, %j = 32 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 32, block_k = 16, thread_m = 4, thread_n = 1>) {
      %as = tile.stage %x[0, 0] : memref<8x16xf32> -> memref<8x16xf32, "shared">
      %bs = tile.stage %w[0, 0] : memref<16x32xf32> -> memref<16x32xf32, "shared">
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %p = loop.load %as[%i, %k] : memref<8x16xf32, "shared">
        %q = loop.load %bs[%k, %j] : memref<16x32xf32, "shared">
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<8x32xf32>
    }
  }
  %z = loop.kernel @unstaged(%x, %w) : (tensor<8x16xf32>, tensor<16x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%x: memref<8x16xf32>, %w: memref<16x32xf32>, %out: memref<8x32xf32>):
    tile.launch (%i = 8 : thread, %j = 32 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 32, block_k = 16, thread_m = 4, thread_n = 1>) {
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<8x16xf32>
        %q = loop.load %w[%k, %j] : memref<16x32xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<8x32xf32>
    }
  }
  func.return %y, %z : tensor<8x32xf32>, tensor<8x32xf32>
}
