// RUN: deplo-opt %s -p split-inner-for-swizzle --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p split-inner-for-swizzle,split-inner-for-swizzle --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p split-inner-for-swizzle,materialize-tile --split-input-file --check-each-pass | FileCheck %s --check-prefix=KERNEL
// RUN: deplo-opt %s -p pad-smem --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=PAD

// 32 lanes read neighbouring rows of 64 bytes: two words of each bank's turn, until their units are exchanged.
// CHECK:  tile.stage %in[%b * 32, %k * 16] via tma swizzle 64 : memref<64x64xf32> -> memref<32x16xf32, "shared">
// KERNEL: kernel.func @rows(%in_map: !kernel.tensor_map<32x16xf32, swizzle 64>,
// KERNEL: %s_smem = kernel.shared align 512 : memref<32x16xf32, "shared">
// KERNEL: loop.load %s_smem[%t, (%t floordiv 4 + %e floordiv 8) mod 2 * 8 + (%t floordiv 2 + %e floordiv 4) mod 2 * 4 + %e mod 4]
// REMARK: remark: split-inner-for-swizzle: rows: s_smem: 64 bytes wide, 16 turns of a warp become 4
// REMARK: remark: split-inner-for-swizzle: rows: declined: s_smem: it is swizzled already
// PAD:    remark: pad-smem: rows: declined: s_smem: the copy engine fills it, which leaves no room between rows
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @rows(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %s_smem = tile.stage %in[%b * 32, %k * 16] via tma : memref<64x64xf32> -> memref<32x16xf32, "shared">
        %c = loop.for %e = 0 to 16 reduce(add) -> f32 {
          %v = loop.load %s_smem[%t, %e] : memref<32x16xf32, "shared">
          loop.yield %v : f32
        } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// Rows of 256 bytes come in two boxes.
// CHECK:  tile.stage %in[%b * 32, 0] via tma swizzle 128 : memref<64x64xf32> -> memref<32x64xf32, "shared">
// KERNEL: %s_smem = kernel.shared align 1024 : memref<2x32x32xf32, "shared">
// KERNEL: kernel.mbarrier_expect_bytes %full[0], 8192
// KERNEL: kernel.bulk_copy %in_map[%b * 32, 0] to %s_smem[0, 0, 0]
// KERNEL: kernel.bulk_copy %in_map[%b * 32, 32] to %s_smem[1, 0, 0]
// KERNEL: loop.load %s_smem[1, %t, (%t floordiv 4 + 1) mod 2 * 16 + %t floordiv 2 mod 2 * 8 + (%t + 1) mod 2 * 4 + 3]
// REMARK: remark: split-inner-for-swizzle: wide: s_smem: 128 bytes wide, 32 turns of a warp become 4
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @wide(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s_smem = tile.stage %in[%b * 32, 0] via tma : memref<64x64xf32> -> memref<32x64xf32, "shared">
      %v = loop.load %s_smem[%t, 55] : memref<32x64xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// Two bytes an element, a row of 32 bytes.
// REMARK: remark: split-inner-for-swizzle: halves: s_smem: 32 bytes wide, 8 turns of a warp become 4
func.func @main(%x: tensor<64x64xf16>) -> tensor<2x32xf32> {
  %y = loop.kernel @halves(%x) : (tensor<64x64xf16>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf16>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s_smem = tile.stage %in[%b * 32, 16] via tma : memref<64x64xf16> -> memref<32x16xf16, "shared">
      %h = loop.load %s_smem[%t, 9] : memref<32x16xf16, "shared">
      %v = arith.extf %h : f16 to f32
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK: remark: split-inner-for-swizzle: columns: declined: s_smem: no swizzle saves a turn
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @columns(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s_smem = tile.stage %in[%b * 32, 0] via tma : memref<64x64xf32> -> memref<8x32xf32, "shared">
      %v = loop.load %s_smem[3, %t] : memref<8x32xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK: remark: split-inner-for-swizzle: odd: declined: s_smem: rows of 48 bytes are no whole number of 32
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @odd(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s_smem = tile.stage %in[%b * 32, 0] via tma : memref<64x64xf32> -> memref<32x12xf32, "shared">
      %v = loop.load %s_smem[%t, 11] : memref<32x12xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// REMARK: remark: split-inner-for-swizzle: threads: declined: the copy engine fills no slab
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @threads(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s_smem = tile.stage %in[%b * 32, 0] via cp_async : memref<64x64xf32> -> memref<32x8xf32, "shared">
      %v = loop.load %s_smem[%t, 3] : memref<32x8xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}
