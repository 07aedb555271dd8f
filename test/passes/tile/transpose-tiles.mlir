// RUN: deplo-opt %s -p 'transpose-tiles' --split-input-file --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'transpose-tiles' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Two squares above each other, four of them side by side; two rows and six columns are left.
// REMARK: remark: transpose-tiles: turn: 1 loads read squares of 16 by 16 elements
// CHECK-LABEL: loop.kernel @turn
// CHECK:       loop.for %i_tile = 0 to 1 {
// CHECK-NEXT:    loop.for %j_tile = 0 to 1 {
// CHECK-NEXT:      %in_t = loop.transpose %in[%b * 70, 0] along 0 : memref<140x34xf32> -> memref<32x64xf32>
// CHECK-NEXT:      loop.for %i = 0 to 32 {
// CHECK-NEXT:        loop.for %j = 0 to 64 {
// CHECK-NEXT:          loop.load %other[%i, %b * 70 + %j]
// CHECK-NEXT:          loop.load %in_t[%i, %j]
// CHECK:               loop.store %{{.*}}, %out[%i, %b * 70 + %j]
// CHECK:       loop.for %i_1 = 0 to 32 {
// CHECK-NEXT:    loop.for %j_1 = 0 to 6 {
// CHECK:           loop.load %in[%b * 70 + %j_1 + 64, %i_1]
// CHECK:       loop.for %i_2 = 0 to 2 {
// CHECK-NEXT:    loop.for %j_2 = 0 to 70 {
// CHECK:           loop.load %in[%b * 70 + %j_2, %i_2 + 32]
func.func @main(%x: tensor<140x34xf32>, %y: tensor<34x140xf32>) -> tensor<34x140xf32> {
  %z = loop.kernel @turn(%x, %y) : (tensor<140x34xf32>, tensor<34x140xf32>) -> tensor<34x140xf32> {
  ^bb0(%in: memref<140x34xf32>, %other: memref<34x140xf32>, %out: memref<34x140xf32>):
    tile.launch (%b = 2 : block) schedule(#tile.schedule<serial = 2380>) {
      loop.for %i = 0 to 34 {
        loop.for %j = 0 to 70 {
          %v = loop.load %other[%i, %b * 70 + %j] : memref<34x140xf32>
          %w = loop.load %in[%b * 70 + %j, %i] : memref<140x34xf32>
          %s = arith.addf %v, %w : f32
          loop.store %s, %out[%i, %b * 70 + %j] : memref<34x140xf32>
        }
      }
    }
  }
  func.return %z : tensor<34x140xf32>
}

// -----

// Of 160 columns, twice 80 leave none, 128 would leave 32.
// CHECK-LABEL: loop.kernel @even
// CHECK:       loop.for %i_tile = 0 to 1 {
// CHECK-NEXT:    loop.for %j_tile = 0 to 2 {
// CHECK-NEXT:      loop.transpose %in[%j_tile * 80, 0] along 0 : memref<160x16xf32> -> memref<16x80xf32>
func.func @main(%x: tensor<160x16xf32>) -> tensor<16x160xf32> {
  %z = loop.kernel @even(%x) : (tensor<160x16xf32>) -> tensor<16x160xf32> {
  ^bb0(%in: memref<160x16xf32>, %out: memref<16x160xf32>):
    tile.launch () schedule(#tile.schedule<serial = 2560>) {
      loop.for %i = 0 to 16 {
        loop.for %j = 0 to 160 {
          %v = loop.load %in[%j, %i] : memref<160x16xf32>
          loop.store %v, %out[%i, %j] : memref<16x160xf32>
        }
      }
    }
  }
  func.return %z : tensor<16x160xf32>
}

// -----

// Elements may be smaller than 4 bytes.
// REMARK: remark: transpose-tiles: halves: 1 loads read squares of 16 by 16 elements
// REMARK: remark: transpose-tiles: flags: 1 loads read squares of 16 by 16 elements
// CHECK-LABEL: loop.kernel @halves
// CHECK:           loop.transpose %in[0, 0] along 0 : memref<64x16xbf16> -> memref<16x64xbf16>
// CHECK-LABEL: loop.kernel @flags
// CHECK:           loop.transpose %in[0, 0] along 0 : memref<64x16xi1> -> memref<16x64xi1>
func.func @main(%x: tensor<64x16xbf16>, %y: tensor<64x16xi1>) -> (tensor<16x64xbf16>, tensor<16x64xi1>) {
  %a = loop.kernel @halves(%x) : (tensor<64x16xbf16>) -> tensor<16x64xbf16> {
  ^bb0(%in: memref<64x16xbf16>, %out: memref<16x64xbf16>):
    tile.launch () schedule(#tile.schedule<serial = 1024>) {
      loop.for %i = 0 to 16 {
        loop.for %j = 0 to 64 {
          %v = loop.load %in[%j, %i] : memref<64x16xbf16>
          loop.store %v, %out[%i, %j] : memref<16x64xbf16>
        }
      }
    }
  }
  %b = loop.kernel @flags(%y) : (tensor<64x16xi1>) -> tensor<16x64xi1> {
  ^bb0(%in: memref<64x16xi1>, %out: memref<16x64xi1>):
    tile.launch () schedule(#tile.schedule<serial = 1024>) {
      loop.for %i = 0 to 16 {
        loop.for %j = 0 to 64 {
          %v = loop.load %in[%j, %i] : memref<64x16xi1>
          loop.store %v, %out[%i, %j] : memref<16x64xi1>
        }
      }
    }
  }
  func.return %a, %b : tensor<16x64xbf16>, tensor<16x64xi1>
}

// -----

// REMARK: remark: transpose-tiles: rows: declined: no two loops read an array down its columns
// REMARK: remark: transpose-tiles: wide: declined: elements have more than 4 bytes
// REMARK: remark: transpose-tiles: small: declined: a block of 64 by 8 has no square of 16
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf64>, %s: tensor<8x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf64>, tensor<64x8xf32>) {
  %a = loop.kernel @rows(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<64x64xf32>):
    tile.launch () schedule(#tile.schedule<serial = 4096>) {
      loop.for %i = 0 to 64 {
        loop.for %j = 0 to 64 {
          %v = loop.load %in[%i, %j] : memref<64x64xf32>
          loop.store %v, %out[%i, %j] : memref<64x64xf32>
        }
      }
    }
  }
  %b = loop.kernel @wide(%w) : (tensor<64x64xf64>) -> tensor<64x64xf64> {
  ^bb0(%in: memref<64x64xf64>, %out: memref<64x64xf64>):
    tile.launch () schedule(#tile.schedule<serial = 4096>) {
      loop.for %i = 0 to 64 {
        loop.for %j = 0 to 64 {
          %v = loop.load %in[%j, %i] : memref<64x64xf64>
          loop.store %v, %out[%i, %j] : memref<64x64xf64>
        }
      }
    }
  }
  %c = loop.kernel @small(%s) : (tensor<8x64xf32>) -> tensor<64x8xf32> {
  ^bb0(%in: memref<8x64xf32>, %out: memref<64x8xf32>):
    tile.launch () schedule(#tile.schedule<serial = 512>) {
      loop.for %i = 0 to 64 {
        loop.for %j = 0 to 8 {
          %v = loop.load %in[%j, %i] : memref<8x64xf32>
          loop.store %v, %out[%i, %j] : memref<64x8xf32>
        }
      }
    }
  }
  func.return %a, %b, %c : tensor<64x64xf32>, tensor<64x64xf64>, tensor<64x8xf32>
}

// -----

// Parts that a dynamic axis ends in stay as they were; what a condition says at the last point of a part holds in
// all of it. A condition that begins rows does not.
// REMARK: remark: transpose-tiles: ends: 1 loads read squares of 16 by 16 elements
// REMARK: remark: transpose-tiles: begins: declined: its condition does more than end rows and columns
// CHECK-LABEL: loop.kernel @ends
// CHECK:         loop.for %i_tile = 0 to 1 {
// CHECK-NEXT:      loop.for %j_tile = 0 to 2 {
// CHECK-NEXT:        %[[whole:.+]] = loop.test[%b * 64 + %j_tile * 32 < s0 - 31]
// CHECK-NEXT:        scf.if %[[whole]] {
// CHECK-NEXT:          loop.transpose %in[%b * 64 + %j_tile * 32, 0] along 0 : memref<?x32xf32, #sym.extents<s0>> -> memref<32x32xf32>
// CHECK-NEXT:          loop.for %i = 0 to 32 {
// CHECK-NEXT:            loop.for %j = 0 to 32 {
// CHECK-NEXT:              loop.load %in_t[%i, %j]
// CHECK:             } else {
// CHECK-NEXT:          %[[some:.+]] = loop.test[%b * 64 + %j_tile * 32 < s0]
// CHECK-NEXT:          scf.if %[[some]] {
// CHECK-NEXT:            loop.for %i_tile_1 = 0 to 2 {
// CHECK-NEXT:              loop.for %j_tile_1 = 0 to 2 {
// CHECK-NEXT:                loop.test[%b * 64 + %j_tile * 32 + %j_tile_1 * 16 < s0 - 15]
// CHECK-NEXT:                scf.if
// CHECK-NEXT:                  loop.transpose %in[%b * 64 + %j_tile * 32 + %j_tile_1 * 16, %i_tile_1 * 16] along 0 : memref<?x32xf32, #sym.extents<s0>> -> memref<16x16xf32>
// CHECK:                     } else {
// CHECK-NEXT:                  loop.test[%b * 64 + %j_tile * 32 + %j_tile_1 * 16 < s0]
// CHECK-NEXT:                  scf.if
// CHECK-NEXT:                    loop.for
// CHECK-NEXT:                      loop.for %[[j:.+]] = 0 to 16 {
// CHECK-NEXT:                        loop.test[%b * 64 + %j_tile * 32 + %j_tile_1 * 16 + %[[j]] < s0]
// CHECK-NEXT:                        scf.if
// CHECK-NEXT:                          loop.load %in[%b * 64 + %j_tile * 32 + %j_tile_1 * 16 + %[[j]], %{{.+}}]
func.func @main(%x: tensor<?x32xf32, #sym.extents<s0>>) -> (tensor<32x?xf32, #sym.extents<s0>>, tensor<32x?xf32, #sym.extents<s0>>) attributes {sym.sizes = [#sym.size<"rows", 2, 500, hint = 70>]} {
  %z = loop.kernel @ends(%x) : (tensor<?x32xf32, #sym.extents<s0>>) -> tensor<32x?xf32, #sym.extents<s0>> {
  ^bb0(%in: memref<?x32xf32, #sym.extents<s0>>, %out: memref<32x?xf32, #sym.extents<s0>>):
    tile.launch (%b = (s0 - 1) floordiv 64 + 1 : block) schedule(#tile.schedule<serial = 2048>) {
      loop.for %i = 0 to 32 {
        loop.for %j = 0 to 64 {
          %in_it = loop.test[%b * 64 + %j < s0]
          scf.if %in_it {
            %v = loop.load %in[%b * 64 + %j, %i] : memref<?x32xf32, #sym.extents<s0>>
            loop.store %v, %out[%i, %b * 64 + %j] : memref<32x?xf32, #sym.extents<s0>>
          }
        }
      }
    }
  }
  %y = loop.kernel @begins(%x) : (tensor<?x32xf32, #sym.extents<s0>>) -> tensor<32x?xf32, #sym.extents<s0>> {
  ^bb0(%in: memref<?x32xf32, #sym.extents<s0>>, %out: memref<32x?xf32, #sym.extents<s0>>):
    tile.launch (%b = (s0 - 1) floordiv 64 + 2 : block) schedule(#tile.schedule<serial = 2048>) {
      loop.for %i = 0 to 32 {
        loop.for %j = 0 to 64 {
          %in_it = loop.test[%b * 64 + %j >= 64, %b * 64 + %j - 64 < s0]
          scf.if %in_it {
            %v = loop.load %in[%b * 64 + %j - 64, %i] : memref<?x32xf32, #sym.extents<s0>>
            loop.store %v, %out[%i, %b * 64 + %j - 64] : memref<32x?xf32, #sym.extents<s0>>
          }
        }
      }
    }
  }
  func.return %z, %y : tensor<32x?xf32, #sym.extents<s0>>, tensor<32x?xf32, #sym.extents<s0>>
}

// -----

// The index from data is known for each point only: no square can be turned in front of them.
// REMARK: remark: transpose-tiles: chosen: declined: no two loops read an array down its columns
// CHECK-LABEL: loop.kernel @chosen
// CHECK-NOT:   loop.transpose
func.func @main(%x: tensor<16x5x16xf32>, %ids: tensor<16xi64>) -> tensor<16x16xf32> {
  %z = loop.kernel @chosen(%x, %ids) : (tensor<16x5x16xf32>, tensor<16xi64>) -> tensor<16x16xf32> {
  ^bb0(%in: memref<16x5x16xf32>, %which: memref<16xi64>, %out: memref<16x16xf32>):
    tile.launch () schedule(#tile.schedule<serial = 256>) {
      loop.for %i = 0 to 16 {
        loop.for %j = 0 to 16 {
          %id = loop.load %which[%j] : memref<16xi64>
          %row = loop.checked_index %id below 5 : i64
          %v = loop.load %in[%j, %row, %i] : memref<16x5x16xf32>
          loop.store %v, %out[%i, %j] : memref<16x16xf32>
        }
      }
    }
  }
  func.return %z : tensor<16x16xf32>
}
