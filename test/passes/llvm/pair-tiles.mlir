// RUN: deplo-opt %s -p pack-operands --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p pack-operands --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf --split-input-file | FileCheck %s --check-prefix=SCF
// RUN: deplo-opt %s -p pack-operands,'lower-tile-to-scf{vectors=false}' --split-input-file | FileCheck %s --check-prefix=PLAIN
// RUN: deplo-opt %s -p pack-operands,'lower-tile-to-scf{vectors=false}' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf,expand-math,convert-scf-to-cf,convert-to-llvm --split-input-file >/dev/null

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

// The elements of two positions lie side by side; a round of the loop has two pairs.
// SCF-LABEL: func.func @pairs
// SCF:         arith.truncf
// SCF-NEXT:    loop.store %{{.+}}, %[[columns:.+]][%[[r:.+]] floordiv 32 * 1024 + %pair * 64 + %[[r]] mod 32 * 2]
// SCF:         scf.for %k = {{.*}} step %c2 iter_args
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
// SCF:         scf.for %{{.+}} = %[[whole]] to
// SCF:           loop.load %x
// SCF:           loop.store
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
