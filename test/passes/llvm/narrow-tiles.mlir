// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p pack-operands,'lower-tile-to-scf{vectors=false}' --split-input-file | FileCheck %s --check-prefix=PLAIN
// RUN: deplo-opt %s -p pack-operands,tile-to-llvm --split-input-file >/dev/null

// Of 70 columns, 6 are left beyond a tile of 64: the last tile has one vector. What is packed for it are rows of
// the array: strips of 16 that are there are turned, the last one is made zeros, and its 6 rows follow one by one.
// CHECK-LABEL: func.func @static
// CHECK:         scf.for %panel
// CHECK-NEXT:      scf.for %strip = %c0 to %c4
// CHECK-NEXT:        %[[end:.+]] = loop.index[%panel * 64 + %strip * 16 + 16]
// CHECK-NEXT:        %[[there:.+]] = arith.cmpi sle, %[[end]], %[[rows:.+]] : index
// CHECK-NEXT:        scf.if %[[there]] {
// CHECK:               loop.transpose %w
// CHECK:             arith.cmpi sgt, %[[end]], %[[rows]] : index
// CHECK-NEXT:        scf.if
// CHECK:               scf.for
// CHECK:                 vector.store
// CHECK:               scf.for %r
// CHECK-NEXT:            scf.for %k
// CHECK:                   loop.store
// CHECK:         scf.for %tile_m
// CHECK-NEXT:      %[[wide:.+]] = loop.index[(%{{.+}} + 47) floordiv 64]
// CHECK-NEXT:      scf.for %tile_n = %c0 to %[[wide]]
// CHECK:             scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK:           %[[all:.+]] = loop.index[(%{{.+}} + 63) floordiv 64]
// CHECK-NEXT:      scf.for %[[last:.+]] = %[[wide]] to %[[all]]
// CHECK:             scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>) {
// CHECK:               vector.load %{{.+}}[%{{.+}}] : memref<3072xf32>, vector<16xf32>
// CHECK-NEXT:          loop.load
// PLAIN-LABEL: func.func @static
// PLAIN-NOT:     vector.
// PLAIN:         scf.for %column{{.*}} = %c0 to %c64
// PLAIN:         scf.for %column{{.*}} = %c0 to %c16
func.func @main(%x: tensor<5x24xf32>, %w: tensor<70x24xf32>) -> tensor<5x70xf32> {
  %y = loop.kernel @static(%x, %w) : (tensor<5x24xf32>, tensor<70x24xf32>) -> tensor<5x70xf32> {
  ^bb0(%x: memref<5x24xf32>, %w: memref<70x24xf32>, %out: memref<5x70xf32>):
    tile.launch (%i = 5 : thread, %j = 70 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 128, block_k = 24, thread_m = 2, thread_n = 64, vectors = avx512>) {
      %s = loop.for %k = 0 to 24 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<5x24xf32>
        %q = loop.load %w[%j, %k] : memref<70x24xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<5x70xf32>
    }
  }
  func.return %y : tensor<5x70xf32>
}

// -----

// How many are left of a dynamic number of columns nobody knows: there is a tile for each number of vectors.
// CHECK-LABEL: func.func @dynamic
// CHECK:         %[[wide:.+]] = loop.index[(%[[end:.+]] + 15) floordiv 64]
// CHECK-NEXT:    scf.for %tile_n = %c0 to %[[wide]]
// CHECK:         %[[three:.+]] = loop.index[(%[[end]] + 31) floordiv 64]
// CHECK-NEXT:    scf.for %{{.+}} = %[[wide]] to %[[three]]
// CHECK:           scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK:         %[[two:.+]] = loop.index[(%[[end]] + 47) floordiv 64]
// CHECK-NEXT:    scf.for %{{.+}} = %[[three]] to %[[two]]
// CHECK:           scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK:         %[[all:.+]] = loop.index[(%[[end]] + 63) floordiv 64]
// CHECK-NEXT:    scf.for %{{.+}} = %[[two]] to %[[all]]
// CHECK:           scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>) {
func.func @main(%x: tensor<5x24xf32>, %w: tensor<?x24xf32, #sym.extents<s0>>) -> tensor<5x?xf32, #sym.extents<s0>> attributes {sym.sizes = [#sym.size<"columns", 2, 100, hint = 70>]} {
  %y = loop.kernel @dynamic(%x, %w) : (tensor<5x24xf32>, tensor<?x24xf32, #sym.extents<s0>>) -> tensor<5x?xf32, #sym.extents<s0>> {
  ^bb0(%x: memref<5x24xf32>, %w: memref<?x24xf32, #sym.extents<s0>>, %out: memref<5x?xf32, #sym.extents<s0>>):
    tile.launch (%i = 5 : thread, %j = s0 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 128, block_k = 24, thread_m = 2, thread_n = 64, vectors = avx512>) {
      %s = loop.for %k = 0 to 24 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<5x24xf32>
        %q = loop.load %w[%j, %k] : memref<?x24xf32, #sym.extents<s0>>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<5x?xf32, #sym.extents<s0>>
    }
  }
  func.return %y : tensor<5x?xf32, #sym.extents<s0>>
}
