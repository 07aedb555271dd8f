// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p pack-operands,tile-to-llvm --split-input-file >/dev/null

// With 32 registers a round of the loop has two positions of K; one may be left.
// CHECK-LABEL: func.func @many_registers
// CHECK:         %[[even:.+]] = loop.index[%{{.+}} floordiv 2 * 2]
// CHECK:         scf.for %{{.+}} = %c0 to %[[even]] step %c2
// CHECK-COUNT-24:  vector.fma
// CHECK:         scf.for %{{.+}} = %[[even]] to %{{.+}} step %c1
// CHECK-COUNT-12:  vector.fma
// CHECK-NOT:     vector.fma
func.func @main(%x: tensor<8x25xf32>, %w: tensor<48x25xf32>) -> tensor<8x48xf32> {
  %y = loop.kernel @many_registers(%x, %w) : (tensor<8x25xf32>, tensor<48x25xf32>) -> tensor<8x48xf32> {
  ^bb0(%x: memref<8x25xf32>, %w: memref<48x25xf32>, %out: memref<8x48xf32>):
    tile.launch (%i = 8 : thread, %j = 48 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 48, block_k = 32, thread_m = 4, thread_n = 48, vectors = avx512>) {
      %s = loop.for %k = 0 to 25 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<8x25xf32>
        %q = loop.load %w[%j, %k] : memref<48x25xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<8x48xf32>
    }
  }
  func.return %y : tensor<8x48xf32>
}

// -----

// With 16 it has one: a tile of 12 vectors of sums, 3 of columns and one for an element fills them.
// CHECK-LABEL: func.func @few_registers
// CHECK:         scf.for %k{{.*}} = %c0 to %{{.+}} step %c1 iter_args
// CHECK-COUNT-12:  vector.fma
// CHECK-NOT:     vector.fma
func.func @main(%x: tensor<8x25xf32>, %w: tensor<48x25xf32>) -> tensor<8x48xf32> {
  %y = loop.kernel @few_registers(%x, %w) : (tensor<8x25xf32>, tensor<48x25xf32>) -> tensor<8x48xf32> {
  ^bb0(%x: memref<8x25xf32>, %w: memref<48x25xf32>, %out: memref<8x48xf32>):
    tile.launch (%i = 8 : thread, %j = 48 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 48, block_k = 32, thread_m = 4, thread_n = 24, vectors = avx2>) {
      %s = loop.for %k = 0 to 25 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<8x25xf32>
        %q = loop.load %w[%j, %k] : memref<48x25xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<8x48xf32>
    }
  }
  func.return %y : tensor<8x48xf32>
}
