// RUN: deplo-opt %s --assume=stored-once -p order-blocks{target=sm_90a} --split-input-file | FileCheck %s
// RUN: deplo-opt %s --assume=stored-once -p order-blocks{target=sm_90a} --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --assume=stored-once -p order-blocks --split-input-file | deplo-opt --assume=stored-once --split-input-file >/dev/null


// A slab of the large operand is read by all rows one after the other.
// CHECK-LABEL: loop.kernel @rows
// CHECK:         tile.launch (%j = 64 : block, %i = 4 : block, %t = 8 : thread) schedule(#tile.schedule<m = 0, threads = 8>)
// CHECK:           tile.stage %x[%i * 8, %k * 8192]
// CHECK:           tile.stage %w[%j * 8, %k * 8192]
// CHECK:           loop.store %{{.*}}, %y[%i * 8 + %t, %j]
// REMARK: remark: order-blocks: rows: 132 blocks read slabs of 9699328 bytes, not 17563648: 4 rows of them count fastest
func.func @main(%x: tensor<32x32768xf32>, %w: tensor<512x32768xf32>) -> tensor<32x64xf32> {
  %y = loop.kernel @rows(%x, %w) : (tensor<32x32768xf32>, tensor<512x32768xf32>) -> tensor<32x64xf32> {
  ^bb0(%x: memref<32x32768xf32>, %w: memref<512x32768xf32>, %y: memref<32x64xf32>):
    tile.launch (%i = 4 : block, %j = 64 : block, %t = 8 : thread) schedule(#tile.schedule<m = 0, threads = 8>) {
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %xs = tile.stage %x[%i * 8, %k * 8192] : memref<32x32768xf32> -> memref<8x8192xf32, "shared">
        %ws = tile.stage %w[%j * 8, %k * 8192] : memref<512x32768xf32> -> memref<8x8192xf32, "shared">
        %a = loop.load %xs[%t, %k] : memref<8x8192xf32, "shared">
        %b = loop.load %ws[%t, %k] : memref<8x8192xf32, "shared">
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %y[%i * 8 + %t, %j] : memref<32x64xf32>
    }
  }
  func.return %y : tensor<32x64xf32>
}

// -----

// Where both axes are long, parts of rows: 8 and as many columns as fill the machine. The schedule numbers the axes.
// CHECK-LABEL: loop.kernel @parts
// CHECK:         tile.launch (%i_part = 8 : block, %j = 64 : block, %i_in = 8 : block, %t = 8 : thread) schedule(#tile.schedule<m = 3, threads = 8>)
// CHECK:           %i = loop.index[%i_part * 8 + %i_in]
// CHECK:           tile.stage %x[%i_part * 64 + %i_in * 8, %k * 8192]
// CHECK:           tile.stage %x[%j * 8, %k * 8192]
// CHECK:           loop.store %{{.*}}, %y[%i * 8 + %t, %j]
// CHECK-LABEL: loop.kernel @small
// CHECK:         tile.launch (%i = 4 : block, %j = 64 : block, %t = 8 : thread)
// REMARK: remark: order-blocks: parts: 132 blocks read slabs of 6553600 bytes, not 17563648: 8 rows of them count fastest
// REMARK: remark: order-blocks: small: declined: what it stages stays in the cache
func.func @main(%x: tensor<512x32768xf32>, %v: tensor<32x64xf32>) -> (tensor<512x64xf32>, tensor<32x64xf32>) {
  %y = loop.kernel @parts(%x) : (tensor<512x32768xf32>) -> tensor<512x64xf32> {
  ^bb0(%x: memref<512x32768xf32>, %y: memref<512x64xf32>):
    tile.launch (%i = 64 : block, %j = 64 : block, %t = 8 : thread) schedule(#tile.schedule<m = 2, threads = 8>) {
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %xs = tile.stage %x[%i * 8, %k * 8192] : memref<512x32768xf32> -> memref<8x8192xf32, "shared">
        %ws = tile.stage %x[%j * 8, %k * 8192] : memref<512x32768xf32> -> memref<8x8192xf32, "shared">
        %a = loop.load %xs[%t, %k] : memref<8x8192xf32, "shared">
        %b = loop.load %ws[%t, %k] : memref<8x8192xf32, "shared">
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %y[%i * 8 + %t, %j] : memref<512x64xf32>
    }
  }
  %z = loop.kernel @small(%v) : (tensor<32x64xf32>) -> tensor<32x64xf32> {
  ^bb0(%x: memref<32x64xf32>, %y: memref<32x64xf32>):
    tile.launch (%i = 4 : block, %j = 64 : block, %t = 8 : thread) schedule(#tile.schedule<m = 2, threads = 8>) {
      %xs = tile.stage %x[%i * 8, %j] : memref<32x64xf32> -> memref<8x1xf32, "shared">
      %a = loop.load %xs[%t, 0] : memref<8x1xf32, "shared">
      loop.store %a, %y[%i * 8 + %t, %j] : memref<32x64xf32>
    }
  }
  func.return %y, %z : tensor<512x64xf32>, tensor<32x64xf32>
}

// -----

// Nothing to change: one axis, a number of blocks that is not known, nothing staged, and columns that are short already.
// REMARK: remark: order-blocks: line: declined: its blocks have one axis
// REMARK: remark: order-blocks: dynamic: declined: how many blocks there are is not known
// REMARK: remark: order-blocks: plain: declined: nothing is staged
// REMARK: remark: order-blocks: short: declined: another order saves too little
func.func @main(%x: tensor<512x32768xf32>, %d: tensor<?x32768xf32, #sym.extents<s0>>) -> (tensor<512x1xf32>, tensor<?x2xf32, #sym.extents<s0>>, tensor<4x1xf32>, tensor<512x2xf32>) attributes {sym.sizes = [#sym.size<"rows", 1, 4096, hint = 2048>]} {
  %y = loop.kernel @line(%x) : (tensor<512x32768xf32>) -> tensor<512x1xf32> {
  ^bb0(%x: memref<512x32768xf32>, %y: memref<512x1xf32>):
    tile.launch (%i = 512 : block, %t = 8 : thread) {
      %xs = tile.stage %x[%i, 0] : memref<512x32768xf32> -> memref<8xf32, "shared">
      %a = loop.load %xs[%t] : memref<8xf32, "shared">
      %s = tile.combine add %a over(%t) : f32
      loop.store %s, %y[%i, 0] : memref<512x1xf32>
    }
  }
  %z = loop.kernel @dynamic(%d) : (tensor<?x32768xf32, #sym.extents<s0>>) -> tensor<?x2xf32, #sym.extents<s0>> {
  ^bb0(%d: memref<?x32768xf32, #sym.extents<s0>>, %z: memref<?x2xf32, #sym.extents<s0>>):
    tile.launch (%i = s0 : block, %j = 2 : block, %t = 8 : thread) {
      %xs = tile.stage %d[%i, %j * 8] : memref<?x32768xf32, #sym.extents<s0>> -> memref<8xf32, "shared">
      %a = loop.load %xs[%t] : memref<8xf32, "shared">
      %s = tile.combine add %a over(%t) : f32
      loop.store %s, %z[%i, %j] : memref<?x2xf32, #sym.extents<s0>>
    }
  }
  %p = loop.kernel @plain(%x) : (tensor<512x32768xf32>) -> tensor<4x1xf32> {
  ^bb0(%x: memref<512x32768xf32>, %p: memref<4x1xf32>):
    tile.launch (%i = 4 : block) {
      %a = loop.load %x[%i, 0] : memref<512x32768xf32>
      loop.store %a, %p[%i, 0] : memref<4x1xf32>
    }
  }
  %q = loop.kernel @short(%x) : (tensor<512x32768xf32>) -> tensor<512x2xf32> {
  ^bb0(%x: memref<512x32768xf32>, %q: memref<512x2xf32>):
    tile.launch (%i = 512 : block, %j = 2 : block, %t = 8 : thread) {
      %xs = tile.stage %x[%i, %j * 8] : memref<512x32768xf32> -> memref<8xf32, "shared">
      %a = loop.load %xs[%t] : memref<8xf32, "shared">
      %s = tile.combine add %a over(%t) : f32
      loop.store %s, %q[%i, %j] : memref<512x2xf32>
    }
  }
  func.return %y, %z, %p, %q : tensor<512x1xf32>, tensor<?x2xf32, #sym.extents<s0>>, tensor<4x1xf32>, tensor<512x2xf32>
}

// -----

// Clusters are ordered as blocks are; the axis within them counts fastest. A slab that each block has its own of is
// counted for all of them.
// CHECK-LABEL: loop.kernel @clusters
// CHECK:         tile.launch (%j = 64 : block, %i = 4 : block, %c = 2 : cluster, %t = 8 : thread)
// CHECK:           tile.stage %x[%i * 16 + %c * 8, %k * 8192]
// CHECK:           loop.store %{{.*}}, %y[%i * 16 + %c * 8 + %t, %j]
// REMARK: remark: order-blocks: clusters: 132 blocks read slabs of 6553600 bytes, not 17825792: 4 rows of them count fastest
func.func @main(%x: tensor<64x32768xf32>, %w: tensor<512x32768xf32>) -> tensor<64x64xf32> {
  %y = loop.kernel @clusters(%x, %w) : (tensor<64x32768xf32>, tensor<512x32768xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x32768xf32>, %w: memref<512x32768xf32>, %y: memref<64x64xf32>):
    tile.launch (%i = 4 : block, %j = 64 : block, %c = 2 : cluster, %t = 8 : thread) schedule(#tile.schedule<threads = 8>) {
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %xs = tile.stage %x[%i * 16 + %c * 8, %k * 8192] : memref<64x32768xf32> -> memref<8x8192xf32, "shared">
        %ws = tile.stage %w[%j * 8, %k * 8192] : memref<512x32768xf32> -> memref<8x8192xf32, "shared">
        %a = loop.load %xs[%t, %k] : memref<8x8192xf32, "shared">
        %b = loop.load %ws[%t, %k] : memref<8x8192xf32, "shared">
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %y[%i * 16 + %c * 8 + %t, %j] : memref<64x64xf32>
    }
  }
  func.return %y : tensor<64x64xf32>
}
