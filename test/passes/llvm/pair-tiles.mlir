// RUN: deplo-opt %s -p pack-operands --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p pack-operands --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf --split-input-file | FileCheck %s --check-prefix=SCF
// RUN: deplo-opt %s -p pack-operands,'lower-tile-to-scf{vectors=false}' --split-input-file | FileCheck %s --check-prefix=PLAIN
// RUN: deplo-opt %s -p pack-operands,'lower-tile-to-scf{vectors=false}' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf,expand-math,loops-to-branches,convert-to-llvm --split-input-file >/dev/null

// Pairs of bf16 are packed as bf16, and widened where they are multiplied, which one instruction does.
// CHECK-LABEL: loop.kernel @pairs
// CHECK:         tile.pack (%{{.+}} = 16, %{{.+}} = 32) in_place : memref<16x32xbf16, "shared">
// CHECK:           loop.load %w
// CHECK:         tile.pack (%{{.+}} = 32, %{{.+}} = 32) panels 32 : memref<32x32xbf16, "shared">
// CHECK:           %[[x:.+]] = loop.load %x
// CHECK-NEXT:      %[[n:.+]] = arith.truncf %[[x]] : f32 to bf16
// CHECK:         reduce(add) -> f32
// CHECK:           arith.extf %{{.+}} : bf16 to f32
// CHECK:           arith.extf %{{.+}} : bf16 to f32
// CHECK-NEXT:      arith.mulf

// The elements of two positions lie side by side: squares of pairs are computed in a small buffer and turned. A
// round of the loop has two pairs.
// SCF-LABEL: func.func @pairs
// SCF:         arith.truncf
// SCF-NEXT:    loop.store %{{.+}}, %[[square:.+]][%{{.+}} * 32 + %{{.+}}] : memref<512xbf16>
// SCF:         %[[line:.+]] = vector.load %[[square]][%c0] : memref<512xbf16>, vector<32xbf16>
// SCF:         llvm.bitcast %[[line]] : vector<32xbf16> to vector<16xi32>
// SCF-COUNT-64: vector.shuffle {{.*}} vector<16xi32>
// SCF:         %[[turned:.+]] = llvm.bitcast %{{.+}} : vector<16xi32> to vector<32xbf16>
// SCF:         vector.store %[[turned]], %[[columns:[0-9]+]][%{{.+}}] : memref<1024xbf16>, vector<32xbf16>
// SCF:         scf.for %k{{.*}} step %c2 iter_args
// SCF:           vector.load %[[columns]][%{{.+}}] : memref<1024xbf16>, vector<32xbf16>
// SCF:           %[[pair:.+]] = vector.load %w{{.*}} vector<2xbf16>
// SCF-NEXT:      %[[bits:.+]] = llvm.bitcast %[[pair]] : vector<2xbf16> to i32
// SCF-NEXT:      vector.broadcast %[[bits]] : i32 to vector<16xi32>
// SCF:           llvm.inline_asm asm_dialect = att "vdpbf16ps $3, $2, $0", "=v,0,v,v"
// SCF-NOT:     vector.fma

// PLAIN-LABEL: func.func @pairs
// PLAIN:         arith.extf
// PLAIN:         arith.mulf
// PLAIN-NOT:     inline_asm
func.func @main(%x: tensor<30x64xf32>, %w: tensor<50x64xbf16>) -> tensor<30x50xf32> {
  %y = loop.kernel @pairs(%x, %w) : (tensor<30x64xf32>, tensor<50x64xbf16>) -> tensor<30x50xf32> {
  ^bb0(%x: memref<30x64xf32>, %w: memref<50x64xbf16>, %out: memref<30x50xf32>):
    tile.launch (%i = 30 : thread, %j = 50 : thread) schedule(#tile.schedule<m = 1, n = 0, block_m = 16, block_n = 32, block_k = 32, thread_m = 4, thread_n = 32, in_place = 1, pairs = 1, vectors = avx512>) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<30x64xf32>
        %n = arith.truncf %p : f32 to bf16
        %a = arith.extf %n : bf16 to f32
        %q = loop.load %w[%j, %k] : memref<50x64xbf16>
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

// Columns that are neighbours in the array: vectors of them at two positions become one of pairs. What is left of
// them beyond whole vectors is stored one by one.
// SCF-LABEL: func.func @columns
// SCF:         scf.for %pair = %c0 to
// SCF-NEXT:      scf.for %rows = %c0 to %[[whole:.+]] step %c1
// SCF:             %[[a:.+]] = vector.load %x{{.*}} vector<16xbf16>
// SCF:             %[[b:.+]] = vector.load %x{{.*}} vector<16xbf16>
// SCF-NEXT:        %[[both:.+]] = vector.shuffle %[[a]], %[[b]] [0, 16, 1, 17, {{.*}}, 15, 31] : vector<16xbf16>, vector<16xbf16>
// SCF:             vector.store %[[both]]
// SCF:         %[[rest:.+]] = loop.index[%[[whole]] * 16]
// SCF:           scf.for %{{.+}} = %[[rest]] to
// SCF:             loop.load %x
// SCF:             loop.store
func.func @main(%x: tensor<64x50xbf16>, %w: tensor<30x64xbf16>) -> tensor<30x50xf32> {
  %y = loop.kernel @columns(%x, %w) : (tensor<64x50xbf16>, tensor<30x64xbf16>) -> tensor<30x50xf32> {
  ^bb0(%x: memref<64x50xbf16>, %w: memref<30x64xbf16>, %out: memref<30x50xf32>):
    tile.launch (%i = 30 : thread, %j = 50 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 64, block_k = 32, thread_m = 4, thread_n = 32, in_place = 1, pairs = 1, vectors = avx512>) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%k, %j] : memref<64x50xbf16>
        %a = arith.extf %p : bf16 to f32
        %q = loop.load %w[%i, %k] : memref<30x64xbf16>
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

// Windows lie as halves of pairs, 16 columns at one position and 16 at the next: a shuffle makes them pairs. Rows are
// packed as they lie along K. Of 15 positions, the last one is followed by a 0.
// CHECK-LABEL: loop.kernel @windows
// CHECK:         tile.pack (%{{.+}} = 4, %{{.+}} = 16) pad 32 : memref<4x16xbf16, "shared">
// CHECK:         tile.pack (%{{.+}} = 32, %{{.+}} = 16) panels 32 : memref<32x16xbf16, "shared">

// SCF-LABEL: func.func @windows
// SCF:         loop.store %q, %[[rows:[0-9]+]][%r * 48 + %k] : memref<192xbf16>
// SCF:         loop.store %p, %[[columns:[0-9]+]][{{.*}} floordiv 2 * 64 + {{.*}} mod 2 * 16 + {{.*}}] : memref<512xbf16>
// SCF:         %[[end:.+]] = loop.index[(%[[length:[0-9]+]] + 1) floordiv 2 * 2]
// SCF:         scf.for %k{{.*}} = %[[length]] to %[[end]]
// SCF-NEXT:      %[[zero:.+]] = arith.constant 0.0
// SCF-NEXT:      loop.store %[[zero]], %[[columns]]
// SCF:         scf.for %k
// SCF:           %[[both:.+]] = vector.load %[[columns]][%{{.+}}] : memref<512xbf16>, vector<32xbf16>
// SCF:           vector.shuffle %[[both]], %[[both]] [0, 16, 1, 17, {{.*}}, 15, 31]
// SCF:           vector.load %[[rows]][%{{.+}}] : memref<192xbf16>, vector<2xbf16>
// SCF:           vdpbf16ps
func.func @main(%x: tensor<5x34xbf16>, %w: tensor<4x5x3xbf16>) -> tensor<4x32xf32> {
  %y = loop.kernel @windows(%x, %w) : (tensor<5x34xbf16>, tensor<4x5x3xbf16>) -> tensor<4x32xf32> {
  ^bb0(%x: memref<5x34xbf16>, %w: memref<4x5x3xbf16>, %out: memref<4x32xf32>):
    tile.launch (%i = 4 : thread, %j = 32 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 32, block_k = 16, thread_m = 4, thread_n = 32, pairs = 1, vectors = avx512>) {
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
