// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p pack-operands,'lower-tile-to-scf{vectors=false}' --split-input-file | FileCheck %s --check-prefix=PLAIN
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf,expand-math,loops-to-branches,convert-to-llvm --split-input-file | FileCheck %s --check-prefix=LLVM

// A round of the loop is a line of the cache: each row of the tile asks for one, 32 positions later or, past the
// end of the chunk, where the next tile's row stands.
// CHECK-LABEL: func.func @rows
// CHECK:         scf.for %line = %c0 to %[[whole:.+]] step %c16
// CHECK-NEXT:      %[[later:.+]] = loop.index[%line + 32]
// CHECK-NEXT:      %[[over:.+]] = arith.cmpi sge, %[[later]], %[[whole]] : index
// CHECK-NEXT:      %[[rest:.+]] = loop.index[%[[later]] - %[[whole]]]
// CHECK-NEXT:      %[[k:.+]] = arith.select %[[over]], %[[rest]], %[[later]] : index
// CHECK-NEXT:      %[[next:.+]] = arith.select %[[over]], %c1, %c0 : index
// CHECK-NEXT:      %[[row:.+]] = loop.index[%{{.+}} + %[[next]] * 2]
// CHECK-NEXT:      loop.prefetch %x[%{{.+}} + %[[row]], %{{.+}} + %[[k]]] ahead 0 : memref<5x70xf32>
// CHECK:           loop.prefetch %x
// CHECK-NOT:       loop.prefetch
// CHECK:           scf.for %{{.+}} = %line to %{{.+}} step %c2
// CHECK-COUNT-4:     vector.fma
// The positions beyond the last whole line ask for nothing.
// CHECK:         scf.for %{{.+}} = %[[whole]] to
// CHECK-NOT:     loop.prefetch

// PLAIN-LABEL: func.func @rows
// PLAIN-NOT:     loop.prefetch

// It may lie past the end, so its address is not said to be in bounds.
// LLVM-LABEL: func @rows
// LLVM:         %[[at:.+]] = llvm.getelementptr %x[
// LLVM:         %[[there:.+]] = llvm.getelementptr %[[at]][
// LLVM:         llvm.call_intrinsic "llvm.prefetch.p0"(%[[there]],
func.func @main(%x: tensor<5x70xf32>, %w: tensor<20x70xf32>) -> tensor<5x20xf32> {
  %y = loop.kernel @rows(%x, %w) : (tensor<5x70xf32>, tensor<20x70xf32>) -> tensor<5x20xf32> {
  ^bb0(%x: memref<5x70xf32>, %w: memref<20x70xf32>, %out: memref<5x20xf32>):
    tile.launch (%i = 5 : thread, %j = 20 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 16, block_k = 48, thread_m = 2, thread_n = 16, in_place = 1, ahead = 32, vectors = avx512>) {
      %s = loop.for %k = 0 to 70 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<5x70xf32>
        %q = loop.load %w[%j, %k] : memref<20x70xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<5x20xf32>
    }
  }
  func.return %y : tensor<5x20xf32>
}

// -----

// Where nothing is packed, the columns of a tile are asked for.
// CHECK-LABEL: func.func @columns
// CHECK:         scf.for %k = {{.*}} step %c32
// CHECK:           loop.index[%k + 32]
// CHECK-COUNT-3:   loop.prefetch %w
// CHECK-NOT:       loop.prefetch
// CHECK-COUNT-6:   vector.fma
// CHECK:           loop.index[%{{.+}} + 32]
// CHECK-COUNT-3:   loop.prefetch %w
// PLAIN-LABEL: func.func @columns
// PLAIN-NOT:     loop.prefetch
func.func @main(%x: tensor<6x80xf32>, %w: tensor<11x80xf32>) -> tensor<6x11xf32> {
  %y = loop.kernel @columns(%x, %w) : (tensor<6x80xf32>, tensor<11x80xf32>) -> tensor<6x11xf32> {
  ^bb0(%x: memref<6x80xf32>, %w: memref<11x80xf32>, %out: memref<6x11xf32>):
    tile.launch (%i = 6 : thread, %j = 11 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 6, block_k = 48, thread_m = 2, thread_n = 3, dot = 1, ahead = 32, vectors = avx512>) {
      %s = loop.for %k = 0 to 80 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<6x80xf32>
        %q = loop.load %w[%j, %k] : memref<11x80xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<6x11xf32>
    }
  }
  func.return %y : tensor<6x11xf32>
}
