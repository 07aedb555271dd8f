// RUN: deplo-opt %s -p pack-operands --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p pack-operands --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p pack-operands --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf --split-input-file | FileCheck %s --check-prefix=SCF
// RUN: deplo-opt %s -p pack-operands,'lower-tile-to-scf{vectors=false}' --split-input-file | FileCheck %s --check-prefix=PLAIN
// RUN: deplo-opt %s -p pack-operands,'lower-tile-to-scf{vectors=false}' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf,expand-math,loops-to-branches,convert-to-llvm --split-input-file >/dev/null

// Operands that lie along K are read where they are; nothing is read past the end of the result.
// CHECK-LABEL: loop.kernel @ragged
// CHECK:         tile.launch (%i_block = 2 : block, %j_block = 2 : block, %i = 4 : thread, %j = 6 : thread)
// CHECK-NEXT:      %[[in:.+]] = loop.test[%i_block * 4 + %i < 6, %j_block * 6 + %j < 11]
// CHECK-NEXT:      scf.if %[[in]] {
// CHECK-NEXT:        loop.for %k = 0 to 80 reduce(add)
// CHECK-NEXT:          loop.load %x[%i_block * 4 + %i, %k]
// CHECK-NEXT:          loop.load %w[%j_block * 6 + %j, %k]
// CHECK-NOT:     tile.pack
// REMARK: remark: pack-operands: ragged: operands are read where they lie

// A tile over the edge reads the last row again. Sums are vectors along K, and added up at the end.
// SCF-LABEL: func.func @ragged
// SCF:         %[[ROWS:.*]] = arith.minsi %c4
// SCF:         %[[COLUMNS:.*]] = arith.minsi %c6
// SCF:         scf.for %tile_n
// SCF:           vector.store
// SCF:           scf.for %chunk
// SCF:             scf.for %tile_m
// SCF:               %[[LAST:.*]] = loop.index[%[[ROWS]] - 1]
// SCF:               arith.minsi %{{.*}}, %[[LAST]]
// SCF-COUNT-4:       vector.load %{{.*}}[%{{[^,]*}}] : memref<192xf32>
// SCF:               scf.for %k = {{.*}} step %c32 iter_args
// SCF:                 vector.load %w[%{{.*}}, %{{.*}}] : memref<11x80xf32>, vector<16xf32>
// SCF:                 vector.fma
// SCF:               scf.for %k_1 = {{.*}} step %c16 iter_args
// SCF:           scf.for %i
// SCF-NEXT:        scf.for %j
// SCF:               scf.for %lane = {{.*}} iter_args
// SCF:                 arith.addf {{.*}} fastmath<reassoc>
// SCF:         loop.store {{.*}}, %out

// PLAIN-LABEL: func.func @ragged
// PLAIN-NOT:     vector.
// PLAIN:         scf.for %lane
// PLAIN:           loop.load %x
// PLAIN:           loop.load %w
// PLAIN:           arith.mulf
func.func @main(%x: tensor<6x80xf32>, %w: tensor<11x80xf32>) -> tensor<6x11xf32> {
  %y = loop.kernel @ragged(%x, %w) : (tensor<6x80xf32>, tensor<11x80xf32>) -> tensor<6x11xf32> {
  ^bb0(%x: memref<6x80xf32>, %w: memref<11x80xf32>, %out: memref<6x11xf32>):
    tile.launch (%i = 6 : thread, %j = 11 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 6, block_k = 48, thread_m = 2, thread_n = 3, dot = 1, vectors = avx512>) {
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

// -----

// Two sums of one row, and blocks without an edge.
// CHECK-LABEL: loop.kernel @gated
// CHECK-NOT:     loop.test
// SCF-LABEL: func.func @gated
// SCF-NOT:     arith.minsi
// SCF-COUNT-4:   vector.load %{{.*}} : memref<8x32xf32>, vector<16xf32>
// SCF:         arith.mulf {{.*}} : f32
// PLAIN-LABEL: func.func @gated
func.func @main(%x: tensor<4x32xf32>, %g: tensor<8x32xf32>, %u: tensor<8x32xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel @gated(%x, %g, %u) : (tensor<4x32xf32>, tensor<8x32xf32>, tensor<8x32xf32>) -> tensor<4x8xf32> {
  ^bb0(%x: memref<4x32xf32>, %g: memref<8x32xf32>, %u: memref<8x32xf32>, %out: memref<4x8xf32>):
    tile.launch (%i = 4 : thread, %j = 8 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 8, block_k = 32, thread_m = 2, thread_n = 2, dot = 1, vectors = avx512>) {
      %a, %b = loop.for %k = 0 to 32 reduce(add, add) -> f32, f32 {
        %p = loop.load %x[%i, %k] : memref<4x32xf32>
        %q = loop.load %g[%j, %k] : memref<8x32xf32>
        %r = loop.load %u[%j, %k] : memref<8x32xf32>
        %s = arith.mulf %p, %q : f32
        %t = arith.mulf %r, %p : f32
        loop.yield %s, %t : f32, f32
      }
      %c = arith.mulf %a, %b : f32
      loop.store %c, %out[%i, %j] : memref<4x8xf32>
    }
  }
  func.return %y : tensor<4x8xf32>
}

