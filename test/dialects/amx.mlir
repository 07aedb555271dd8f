// Round trip of the operations of matrix tiles.
// RUN: deplo-opt %s | deplo-opt | FileCheck %s
// RUN: deplo-opt %s --print-op-generic | deplo-opt | FileCheck %s

func.func @tiles(%x: memref<64x96xbf16>, %ws: memref<3072xbf16>, %sums: memref<512xf32>, %i: index, %k: index) {
  // CHECK:      amx.ldtilecfg [16, 16, 8, 8, 8, 8, 16, 16]
  amx.ldtilecfg [16, 16, 8, 8, 8, 8, 16, 16]
  // CHECK-NEXT: amx.tilezero 0
  amx.tilezero 0
  // CHECK-NEXT: amx.tileload 1, %sums[%i * 32 + 16] pitch 32 : memref<512xf32>
  amx.tileload 1, %sums[%i * 32 + 16] pitch 32 : memref<512xf32>
  // CHECK-NEXT: amx.tileload 4, %x[%i * 16, %k] pitch 96 : memref<64x96xbf16>
  amx.tileload 4, %x[%i * 16, %k] pitch 96 : memref<64x96xbf16>
  // CHECK-NEXT: amx.tileload 6, %ws[%k * 32] pitch 32 : memref<3072xbf16>
  amx.tileload 6, %ws[%k * 32] pitch 32 : memref<3072xbf16>
  // CHECK-NEXT: amx.tdpbf16ps 0, 4, 6
  amx.tdpbf16ps 0, 4, 6
  // CHECK-NEXT: amx.tilestore 0, %sums[%i] pitch 32 : memref<512xf32>
  amx.tilestore 0, %sums[%i] pitch 32 : memref<512xf32>
  // CHECK-NEXT: amx.tilerelease
  amx.tilerelease
  func.return
}
