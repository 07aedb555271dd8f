// What each check of the operations of matrix tiles says.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

func.func @f() {
  // expected-error@+1 {{expected the rows of up to 8 registers, 1 to 16 each, got [16, 17]}}
  amx.ldtilecfg [16, 17]
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{got [1, 2, 3, 4, 5, 6, 7, 8, 9]}}
  amx.ldtilecfg [1, 2, 3, 4, 5, 6, 7, 8, 9]
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{there are 8 registers, no number 8}}
  amx.tilezero 8
  func.return
}

// -----

func.func @f() {
  // expected-error@+1 {{sums, rows and columns must be three registers}}
  amx.tdpbf16ps 0, 4, 4
  func.return
}

// -----

func.func @f(%x: memref<64x96xf16>, %i: index) {
  // expected-error@+1 {{a tile has elements of bf16 or f32, not f16}}
  amx.tileload 4, %x[%i, %i] pitch 96 : memref<64x96xf16>
  func.return
}

// -----

func.func @f(%x: memref<64x96xbf16>, %i: index) {
  // expected-error@+1 {{1 indices into rank-2 memref<64x96xbf16>}}
  amx.tilestore 4, %x[%i] pitch 96 : memref<64x96xbf16>
  func.return
}
