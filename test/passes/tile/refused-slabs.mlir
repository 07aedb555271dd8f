// Slabs that materialize-tile will refuse, as a person may write them, stay as they are, and others do not.
// RUN: deplo-opt %s -p split-inner-for-swizzle,double-buffer,pad-smem --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s

// CHECK: remark: split-inner-for-swizzle: nested: fine: 32 bytes wide
// CHECK: remark: split-inner-for-swizzle: nested: declined: deep: it is filled in a loop inside another or under a condition
// CHECK: remark: double-buffer: nested: declined: it is filled in a loop inside another or under a condition
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @nested(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %fine = tile.stage %in[%b * 32, 0] via tma : memref<64x64xf32> -> memref<32x8xf32, "shared">
      %w = loop.load %fine[%t, 3] : memref<32x8xf32, "shared">
      loop.for %r = 0 to 1 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %deep = tile.stage %in[%b * 32, %k * 8] via tma : memref<64x64xf32> -> memref<32x8xf32, "shared">
          %v = loop.load %deep[%t, 3] : memref<32x8xf32, "shared">
          %u = arith.addf %v, %w : f32
          loop.yield %u : f32
        }
        loop.store %s, %out[%b, %t] : memref<2x32xf32>
      }
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// Rows of 126 bytes are no whole number of copies, however those of the slab are padded.
// CHECK: remark: pad-smem: odd: declined: s_smem: rows are not proven to be whole numbers of 4 bytes
func.func @main(%x: tensor<64x63xf16>) -> tensor<2x32xf16> {
  %y = loop.kernel @odd(%x) : (tensor<64x63xf16>) -> tensor<2x32xf16> {
  ^bb0(%in: memref<64x63xf16>, %out: memref<2x32xf16>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s_smem = tile.stage %in[%b * 32, 0] via cp_async : memref<64x63xf16> -> memref<32x8xf16, "shared">
      %v = loop.load %s_smem[%t, 3] : memref<32x8xf16, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf16>
    }
  }
  func.return %y : tensor<2x32xf16>
}
