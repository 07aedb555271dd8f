// RUN: deplo-opt %s -p order-blocks{target=sm_90a} --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p order-blocks{target=sm_90a} --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p order-blocks --split-input-file | deplo-opt --split-input-file >/dev/null

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
