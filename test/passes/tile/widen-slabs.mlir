// RUN: deplo-opt %s -p widen-slabs --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p widen-slabs --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p widen-slabs,async-copy,materialize-tile --split-input-file --check-each-pass >/dev/null

// A row begins where four elements do: its last copy takes two that nothing reads. Rows of 37 of what begins between
// fours, or of lines that end between them, stay as they are; so do whole ones.
// CHECK:       tile.stage %in[%b * 8, -4] : memref<32x48xf32> -> memref<8x40xf32, "shared">
// CHECK:       tile.stage %in[%b * 8, 3] : memref<32x48xf32> -> memref<8x37xf32, "shared">
// CHECK:       tile.stage %odd[0, 0] : memref<8x37xf32> -> memref<8x37xf32, "shared">
// CHECK:       tile.stage %in[%b * 8, 4] : memref<32x48xf32> -> memref<8x32xf32, "shared">
// CHECK:       loop.load %{{.*}}[3, %t] : memref<8x40xf32, "shared">
// REMARK:      remark: widen-slabs: rows: border: rows of 38 become 40, for copies of 4
// REMARK:      remark: widen-slabs: rows: declined: between: no copies are wider where it begins and rows of its source do
// REMARK:      remark: widen-slabs: rows: declined: odds: no copies are wider where it begins and rows of its source do
// REMARK:      remark: widen-slabs: rows: declined: whole: no copies are wider where it begins and rows of its source do
// REMARK:      remark: widen-slabs: rows: declined: padded: it is decided how it is filled
func.func @main(%x: tensor<32x48xf32>, %y: tensor<8x37xf32>) -> tensor<4x32xf32> {
  %z = loop.kernel @rows(%x, %y) : (tensor<32x48xf32>, tensor<8x37xf32>) -> tensor<4x32xf32> {
  ^bb0(%in: memref<32x48xf32>, %odd: memref<8x37xf32>, %out: memref<4x32xf32>):
    tile.launch (%b = 4 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %border = tile.stage %in[%b * 8, -4] : memref<32x48xf32> -> memref<8x38xf32, "shared">
      %between = tile.stage %in[%b * 8, 3] : memref<32x48xf32> -> memref<8x37xf32, "shared">
      %odds = tile.stage %odd[0, 0] : memref<8x37xf32> -> memref<8x37xf32, "shared">
      %whole = tile.stage %in[%b * 8, 4] : memref<32x48xf32> -> memref<8x32xf32, "shared">
      %padded = tile.stage %in[%b * 8, -4] pad 1 : memref<32x48xf32> -> memref<8x38xf32, "shared">
      %v = loop.load %border[3, %t] : memref<8x38xf32, "shared">
      %u = loop.load %between[3, %t] : memref<8x37xf32, "shared">
      %w = loop.load %odds[3, %t] : memref<8x37xf32, "shared">
      %q = loop.load %whole[3, %t] : memref<8x32xf32, "shared">
      %0 = arith.addf %v, %u : f32
      %1 = arith.addf %w, %q : f32
      %2 = arith.addf %0, %1 : f32
      %r = loop.load %padded[3, %t] : memref<8x38xf32, "shared">
      %3 = arith.addf %2, %r : f32
      loop.store %3, %out[%b, %t] : memref<4x32xf32>
    }
  }
  func.return %z : tensor<4x32xf32>
}

// -----

// The copy engine leaves no room in rows; threads that copy through registers take one element at a time.
// REMARK:      remark: widen-slabs: engine: declined: the copy engine is to fill its slabs
func.func @main(%x: tensor<32x48xf32>) -> tensor<4x32xf32> {
  %z = loop.kernel @engine(%x) : (tensor<32x48xf32>) -> tensor<4x32xf32> {
  ^bb0(%in: memref<32x48xf32>, %out: memref<4x32xf32>):
    tile.launch (%b = 4 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = tma>) {
      %s = tile.stage %in[%b * 8, -4] : memref<32x48xf32> -> memref<8x38xf32, "shared">
      %v = loop.load %s[3, %t] : memref<8x38xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<4x32xf32>
    }
  }
  func.return %z : tensor<4x32xf32>
}

// -----

// REMARK:      remark: widen-slabs: registers: declined: the schedule says that threads copy through registers
// REMARK:      remark: widen-slabs: nothing: declined: nothing is staged
func.func @main(%x: tensor<32x48xf32>) -> (tensor<4x32xf32>, tensor<32xf32>) {
  %z = loop.kernel @registers(%x) : (tensor<32x48xf32>) -> tensor<4x32xf32> {
  ^bb0(%in: memref<32x48xf32>, %out: memref<4x32xf32>):
    tile.launch (%b = 4 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32, transport = sync>) {
      %s = tile.stage %in[%b * 8, -4] : memref<32x48xf32> -> memref<8x38xf32, "shared">
      %v = loop.load %s[3, %t] : memref<8x38xf32, "shared">
      loop.store %v, %out[%b, %t] : memref<4x32xf32>
    }
  }
  %y = loop.kernel @nothing(%x) : (tensor<32x48xf32>) -> tensor<32xf32> {
  ^bb0(%in: memref<32x48xf32>, %out: memref<32xf32>):
    tile.launch (%t = 32 : thread) {
      %v = loop.load %in[%t, 0] : memref<32x48xf32>
      loop.store %v, %out[%t] : memref<32xf32>
    }
  }
  func.return %z, %y : tensor<4x32xf32>, tensor<32xf32>
}
