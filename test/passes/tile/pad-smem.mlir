// RUN: deplo-opt %s -p pad-smem --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p pad-smem,pad-smem --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p pad-smem,materialize-tile --split-input-file --check-each-pass | FileCheck %s --check-prefix=SHARED

// The lanes of a warp read 32 rows of 32 words: all of one bank, until rows are a word longer.
// CHECK:      tile.stage %in[0, 0] pad 1 : memref<32x32xf32> -> memref<32x32xf32, "shared">
// SHARED:     kernel.shared : memref<32x33xf32, "shared">
// SHARED-DAG: loop.load %{{.+}}[%t, 3] : memref<32x33xf32, "shared">
// REMARK: remark: pad-smem: rows: s_smem: 1 more, 32 turns of a warp become 1
// REMARK: remark: pad-smem: rows: declined: s_smem: it is padded already
func.func @main(%x: tensor<32x32xf32>) -> tensor<32xf32> {
  %y = loop.kernel @rows(%x) : (tensor<32x32xf32>) -> tensor<32xf32> {
  ^bb0(%in: memref<32x32xf32>, %out: memref<32xf32>):
    tile.launch (%t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s_smem = tile.stage %in[0, 0] : memref<32x32xf32> -> memref<32x32xf32, "shared">
      %v = loop.load %s_smem[%t, 3] : memref<32x32xf32, "shared">
      loop.store %v, %out[%t] : memref<32xf32>
    }
  }
  func.return %y : tensor<32xf32>
}

// -----

// Neighbours in one row are in banks of their own, and one word for all lanes is no conflict.
// REMARK: remark: pad-smem: row: declined: s_smem: no padding saves a turn
func.func @main(%x: tensor<32x32xf32>) -> tensor<32xf32> {
  %y = loop.kernel @row(%x) : (tensor<32x32xf32>) -> tensor<32xf32> {
  ^bb0(%in: memref<32x32xf32>, %out: memref<32xf32>):
    tile.launch (%t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s_smem = tile.stage %in[0, 0] : memref<32x32xf32> -> memref<32x32xf32, "shared">
      %v = loop.load %s_smem[3, %t] : memref<32x32xf32, "shared">
      %w = loop.load %s_smem[4, 4] : memref<32x32xf32, "shared">
      %z = arith.addf %v, %w : f32
      loop.store %z, %out[%t] : memref<32xf32>
    }
  }
  func.return %y : tensor<32xf32>
}

// -----

// REMARK: remark: pad-smem: plain: declined: nothing is staged
func.func @main(%x: tensor<32xf32>) -> tensor<32xf32> {
  %y = loop.kernel @plain(%x) : (tensor<32xf32>) -> tensor<32xf32> {
  ^bb0(%in: memref<32xf32>, %out: memref<32xf32>):
    tile.launch (%t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %v = loop.load %in[%t] : memref<32xf32>
      loop.store %v, %out[%t] : memref<32xf32>
    }
  }
  func.return %y : tensor<32xf32>
}

// -----

// Copies of 16 bytes leave four lanes in a bank, of 8 bytes two, of 4 bytes one: what is copied once may take
// more copies. Copied again and again, eight of 8 bytes and two turns are fewer than 16 of 4 bytes and one.
// REMARK: remark: pad-smem: once: s_smem: 1 more, 32 turns of a warp become 1
// REMARK: remark: pad-smem: again: s_smem: 2 more, 32 turns of a warp become 2
func.func @main(%x: tensor<64x32xf32>) -> (tensor<32x32xf32>, tensor<32x32xf32>) {
  %y = loop.kernel @once(%x) : (tensor<64x32xf32>) -> tensor<32x32xf32> {
  ^bb0(%in: memref<64x32xf32>, %out: memref<32x32xf32>):
    tile.launch (%u = 8 : thread, %t = 32 : thread) schedule(#tile.schedule<threads = 256>) {
      %s_smem = tile.stage %in[0, 0] via cp_async : memref<64x32xf32> -> memref<32x32xf32, "shared">
      loop.for %r = 0 to 4 {
        %v = loop.load %s_smem[%t, %r * 8 + %u] : memref<32x32xf32, "shared">
        loop.store %v, %out[%r * 8 + %u, %t] : memref<32x32xf32>
      }
    }
  }
  %z = loop.kernel @again(%x) : (tensor<64x32xf32>) -> tensor<32x32xf32> {
  ^bb0(%in: memref<64x32xf32>, %out: memref<32x32xf32>):
    tile.launch (%u = 8 : thread, %t = 32 : thread) schedule(#tile.schedule<threads = 256>) {
      loop.for %r = 0 to 4 {
        %m = loop.for %c = 0 to 2 reduce(max) -> f32 {
          %s_smem = tile.stage %in[%c * 32, 0] via cp_async : memref<64x32xf32> -> memref<32x32xf32, "shared">
          %n = loop.for %e = 0 to 4 reduce(max) -> f32 {
            %v = loop.load %s_smem[%t, %e * 8 + %u] : memref<32x32xf32, "shared">
            loop.yield %v : f32
          }
          loop.yield %n : f32
        }
        loop.store %m, %out[%r * 8 + %u, %t] : memref<32x32xf32>
      }
    }
  }
  func.return %y, %z : tensor<32x32xf32>, tensor<32x32xf32>
}

// -----

// Eight threads load vectors of four at once, of two rows: in rows of 32 words these meet, in rows of 48 they do
// not. The same elements one by one would take the fewest turns in rows of 33.
// REMARK: remark: pad-smem: vectors: s_smem: 16 more, 8 turns of a warp become 4
func.func @main(%x: tensor<8x32xf32>) -> tensor<8x4xf32> {
  %y = loop.kernel @vectors(%x) : (tensor<8x32xf32>) -> tensor<8x4xf32> {
  ^bb0(%in: memref<8x32xf32>, %out: memref<8x4xf32>):
    tile.launch (%i = 8 : thread, %j = 4 : thread) schedule(#tile.schedule<threads = 32>) {
      %s_smem = tile.stage %in[0, 0] : memref<8x32xf32> -> memref<8x32xf32, "shared">
      %a = loop.load %s_smem[%i, %j * 4] : memref<8x32xf32, "shared">
      %b = loop.load %s_smem[%i, %j * 4 + 1] : memref<8x32xf32, "shared">
      %c = loop.load %s_smem[%i, %j * 4 + 2] : memref<8x32xf32, "shared">
      %d = loop.load %s_smem[%i, %j * 4 + 3] : memref<8x32xf32, "shared">
      %ab = arith.addf %a, %b : f32
      %cd = arith.addf %c, %d : f32
      %s = arith.addf %ab, %cd : f32
      loop.store %s, %out[%i, %j] : memref<8x4xf32>
    }
  }
  func.return %y : tensor<8x4xf32>
}
