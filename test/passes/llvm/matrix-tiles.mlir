// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p pack-operands,'lower-tile-to-scf{vectors=false}' --split-input-file | FileCheck %s --check-prefix=PLAIN
// RUN: deplo-opt %s -p pack-operands,'lower-tile-to-scf{vectors=false}' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf,expand-math,loops-to-branches,convert-to-llvm --split-input-file | FileCheck %s --check-prefix=LLVM

// Two tile registers of 12 rows each, two of columns: four of sums, which stay for all of K. The registers are
// configured when the function starts, and given back when it ends. Columns lie in pairs.
// CHECK-LABEL: func.func @in_place
// CHECK:         amx.ldtilecfg [12, 12, 12, 12, 12, 12, 16, 16]
// CHECK:         vector.shuffle {{.*}} [0, 16, 1, 17,
// CHECK:         amx.tilezero 0
// CHECK:         amx.tilezero 3
// CHECK:         scf.for %k{{.*}} step %c32 {
// CHECK:           amx.tileload 4, %w[{{.*}}] pitch 96 : memref<30x96xbf16>
// CHECK-NEXT:      amx.tileload 7, %[[columns:[0-9]+]][%tile_n * 3072 + %k{{.*}} * 32] pitch 64 : memref<6144xbf16>
// CHECK-NEXT:      amx.tdpbf16ps 0, 4, 7
// CHECK-NEXT:      amx.tileload 6, %[[columns]][%tile_n * 3072 + %k{{.*}} * 32 + 32] pitch 64
// CHECK-NEXT:      amx.tdpbf16ps 1, 4, 6
// CHECK:           amx.tileload 5, %w
// CHECK-NEXT:      amx.tdpbf16ps 2, 5, 7
// CHECK-NEXT:      amx.tdpbf16ps 3, 5, 6
// CHECK:         amx.tilestore 0, %[[sums:[0-9]+]][%tile_n * 32] pitch 64 : memref<1536xf32>
// CHECK:         amx.tilestore 3, %[[sums]][%tile_n * 32 + 784] pitch 64
// CHECK:         amx.tilerelease

// PLAIN-LABEL: func.func @in_place
// PLAIN:         arith.extf
// PLAIN:         arith.mulf
// PLAIN-NOT:     amx

// LLVM-LABEL: llvm.func @in_place
// LLVM:         llvm.call_intrinsic "llvm.x86.ldtilecfg"
// LLVM:         llvm.call_intrinsic "llvm.x86.tilezero"
// LLVM:         llvm.call_intrinsic "llvm.x86.tileloadd64"{{.*}} : (i8, !llvm.ptr, i64) -> ()
// LLVM:         llvm.call_intrinsic "llvm.x86.tdpbf16ps"
// LLVM:         llvm.call_intrinsic "llvm.x86.tilestored64"
// LLVM:         llvm.call_intrinsic "llvm.x86.tilerelease"
func.func @main(%x: tensor<96x50xbf16>, %w: tensor<30x96xbf16>) -> tensor<30x50xf32> {
  %y = loop.kernel @in_place(%x, %w) : (tensor<96x50xbf16>, tensor<30x96xbf16>) -> tensor<30x50xf32> {
  ^bb0(%x: memref<96x50xbf16>, %w: memref<30x96xbf16>, %out: memref<30x50xf32>):
    tile.launch (%i = 30 : thread, %j = 50 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 24, block_n = 64, block_k = 96, thread_m = 24, thread_n = 32, in_place = 1, pairs = 1, mma = 1, vectors = amx>) {
      %s = loop.for %k = 0 to 96 reduce(add) -> f32 {
        %p = loop.load %x[%k, %j] : memref<96x50xbf16>
        %a = arith.extf %p : bf16 to f32
        %q = loop.load %w[%i, %k] : memref<30x96xbf16>
        %b = arith.extf %q : bf16 to f32
        %r = arith.mulf %a, %b : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<30x50xf32>
    }
  }
  func.return %y : tensor<30x50xf32>
}

// -----

// The second of two chunks of 32 positions has 18 of them: zeros follow, in rows and in columns. Sums go to memory in
// between. A row of a tile register is a line of the cache, so packed rows begin at one.
// CHECK-LABEL: func.func @ragged
// CHECK:         amx.ldtilecfg [8, 8, 8, 8, 8, 8, 16, 16]
// CHECK:         loop.store %n, %[[rows:[0-9]+]][%r{{.*}} * 64 + %k] : memref<512xbf16>
// CHECK:         %[[end:.+]] = loop.index[(%[[length:[0-9]+]] + 31) floordiv 32 * 32]
// CHECK:           scf.for %k{{.*}} = %[[length]] to %[[end]]
// CHECK:             %[[zero:.+]] = arith.constant 0.0
// CHECK-NEXT:        loop.store %[[zero]], %[[rows]][%r{{.*}} * 64 + %k{{.*}}] : memref<512xbf16>
// CHECK:         amx.tileload 0, %[[sums:[0-9]+]]
// CHECK:         amx.tileload 2, %[[rows]][%tile_m * 512 + %k{{.*}}] pitch 64 : memref<512xbf16>
// CHECK:         amx.tdpbf16ps 0, 2, 7
// CHECK:         amx.tilestore 1, %[[sums]]
// PLAIN-LABEL: func.func @ragged
// LLVM-LABEL: llvm.func @ragged
func.func @main(%x: tensor<8x50xf32>, %w: tensor<20x50xbf16>) -> tensor<8x20xf32> {
  %y = loop.kernel @ragged(%x, %w) : (tensor<8x50xf32>, tensor<20x50xbf16>) -> tensor<8x20xf32> {
  ^bb0(%x: memref<8x50xf32>, %w: memref<20x50xbf16>, %out: memref<8x20xf32>):
    tile.launch (%i = 8 : thread, %j = 20 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 32, block_k = 32, thread_m = 8, thread_n = 32, pairs = 1, mma = 1, vectors = amx>) {
      %s = loop.for %k = 0 to 50 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<8x50xf32>
        %n = arith.truncf %p : f32 to bf16
        %a = arith.extf %n : bf16 to f32
        %q = loop.load %w[%j, %k] : memref<20x50xbf16>
        %b = arith.extf %q : bf16 to f32
        %r = arith.mulf %a, %b : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<8x20xf32>
    }
  }
  func.return %y : tensor<8x20xf32>
}

// -----

// Windows are written as halves of pairs, and then made pairs where they lie. All of K, 15 positions, is one chunk.
// CHECK-LABEL: func.func @windows
// CHECK:         loop.store %p, %[[columns:[0-9]+]][{{.*}} floordiv 2 * 64 + {{.*}} mod 2 * 16 + {{.*}}] : memref<1024xbf16>
// CHECK:         scf.for %strip
// CHECK-NEXT:      loop.index
// CHECK-NEXT:      %[[both:.+]] = vector.load %[[columns]]
// CHECK-NEXT:      %[[pairs:.+]] = vector.shuffle %[[both]], %[[both]] [0, 16, 1, 17, {{.*}}, 15, 31]
// CHECK:           vector.store %[[pairs]], %[[columns]]
// CHECK:         amx.tdpbf16ps
// PLAIN-LABEL: func.func @windows
// LLVM-LABEL: llvm.func @windows
func.func @main(%x: tensor<5x34xbf16>, %w: tensor<4x5x3xbf16>) -> tensor<4x32xf32> {
  %y = loop.kernel @windows(%x, %w) : (tensor<5x34xbf16>, tensor<4x5x3xbf16>) -> tensor<4x32xf32> {
  ^bb0(%x: memref<5x34xbf16>, %w: memref<4x5x3xbf16>, %out: memref<4x32xf32>):
    tile.launch (%i = 4 : thread, %j = 32 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 32, block_k = 32, thread_m = 4, thread_n = 32, pairs = 1, mma = 1, vectors = amx>) {
      %s = loop.for %c = 0 to 5 reduce(add) -> f32 {
        %t = loop.for %k = 0 to 3 reduce(add) -> f32 {
          %p = loop.load %x[%c, %j + %k] : memref<5x34xbf16>
          %a = arith.extf %p : bf16 to f32
          %q = loop.load %w[%i, %c, %k] : memref<4x5x3xbf16>
          %b = arith.extf %q : bf16 to f32
          %r = arith.mulf %a, %b : f32
          loop.yield %r : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%i, %j] : memref<4x32xf32>
    }
  }
  func.return %y : tensor<4x32xf32>
}
