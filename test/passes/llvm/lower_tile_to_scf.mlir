// A kernel becomes a function over a range of blocks; main becomes buffers and launches.

// RUN: deplo-opt %s --split-input-file -p lower-tile-to-scf | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p 'lower-tile-to-scf{reassociate=false}' | FileCheck %s --check-prefix=ORDERED
// RUN: deplo-opt %s --split-input-file -p lower-tile-to-scf --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK: remark: lower-tile-to-scf: k_sum: runs 6 blocks as one counted loop
// REMARK: remark: lower-tile-to-scf: no tile.launch in @nothing: run tileify first

// CHECK-LABEL: func.func @k_sum(%x: memref<6x8xf32>, %out: memref<2x3xf32>,
// CHECK-SAME:    %block_begin: index, %block_end: index, %status: memref<1xi64>)
// CHECK-SAME:    attributes {deplo.kernel} {
// CHECK-DAG:     %c0 = arith.constant 0 : index
// CHECK-DAG:     %c1 = arith.constant 1 : index
// CHECK-DAG:     %c8 = arith.constant 8 : index
// CHECK:         scf.for %block = %block_begin to %block_end step %c1 {
// CHECK-NEXT:      %i = loop.index[%block floordiv 3]
// CHECK-NEXT:      %j = loop.index[%block mod 3]
// CHECK-NEXT:      %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:      %sum = scf.for %k = %c0 to %c8 step %c1 iter_args(%sum_so_far = %[[ZERO]]) -> (f32) {
// CHECK-NEXT:        %v = loop.load %x[%i * 3 + %j, %k]
// CHECK-NEXT:        %sum_next = arith.addf %sum_so_far, %v fastmath<reassoc> : f32
// ORDERED:           %sum_next = arith.addf %sum_so_far, %v : f32
// CHECK-NEXT:        scf.yield %sum_next : f32
// CHECK:           loop.store %sum, %out[%i, %j]
// CHECK:         func.return

// The second kernel differs in name only, so it is the first one launched again.
// CHECK-NOT:   @k_same
// CHECK:       func.func @main(%x: memref<6x8xf32> {deplo.parameter = "weight"}) -> (memref<2x3xf32>, memref<2x3xf32>) {
// CHECK-NEXT:    %y = kernel.alloc : memref<2x3xf32>
// CHECK-NEXT:    kernel.launch @k_sum(%x, %y) blocks(6) threads(1) : memref<6x8xf32>, memref<2x3xf32>
// CHECK-NEXT:    %z = kernel.alloc : memref<2x3xf32>
// CHECK-NEXT:    kernel.launch @k_sum(%x, %z) blocks(6) threads(1)
// CHECK-NEXT:    func.return %y, %z : memref<2x3xf32>, memref<2x3xf32>
func.func @main(%x: tensor<6x8xf32> {deplo.parameter = "weight"}) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %y = loop.kernel @k_sum(%x) : (tensor<6x8xf32>) -> tensor<2x3xf32> {
  ^bb0(%x: memref<6x8xf32>, %out: memref<2x3xf32>):
    tile.launch (%i = 2 : block, %j = 3 : block) {
      %sum = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %v = loop.load %x[%i * 3 + %j, %k] : memref<6x8xf32>
        loop.yield %v : f32
      }
      loop.store %sum, %out[%i, %j] : memref<2x3xf32>
    }
  }
  %z = loop.kernel @k_same(%x) : (tensor<6x8xf32>) -> tensor<2x3xf32> {
  ^bb0(%x: memref<6x8xf32>, %out: memref<2x3xf32>):
    tile.launch (%i = 2 : block, %j = 3 : block) {
      %sum = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %v = loop.load %x[%i * 3 + %j, %k] : memref<6x8xf32>
        loop.yield %v : f32
      }
      loop.store %sum, %out[%i, %j] : memref<2x3xf32>
    }
  }
  func.return %y, %z : tensor<2x3xf32>, tensor<2x3xf32>
}

// -----

// Thread axes are loops inside the block; each combiner starts at its identity.
// CHECK-LABEL: func.func @k_threads
// CHECK:         scf.for %i = %block_begin to %block_end step %c1 {
// CHECK-NEXT:      scf.for %t = %c0 to %c4 step %c1 {
// CHECK-NEXT:        %[[LOW:.*]] = arith.constant -2147483648 : i32
// CHECK-NEXT:        %[[ONE:.*]] = arith.constant 1 : i32
// CHECK-NEXT:        scf.for %k = %c0 to %c8 step %c1 iter_args(%{{.*}} = %[[LOW]], %{{.*}} = %[[ONE]]) -> (i32, i32)
// CHECK:               arith.maxsi
// CHECK:               arith.muli
// CHECK:       kernel.launch @k_threads({{.*}}) blocks(2) threads(1)
func.func @main(%x: tensor<2x4x8xi32>) -> (tensor<2x4xi32>, tensor<2x4xi32>) {
  %m, %p = loop.kernel @k_threads(%x) : (tensor<2x4x8xi32>) -> (tensor<2x4xi32>, tensor<2x4xi32>) {
  ^bb0(%x: memref<2x4x8xi32>, %m: memref<2x4xi32>, %p: memref<2x4xi32>):
    tile.launch (%i = 2 : block, %t = 4 : thread) {
      %a, %b = loop.for %k = 0 to 8 reduce(max, mul) -> i32, i32 {
        %v = loop.load %x[%i, %t, %k] : memref<2x4x8xi32>
        loop.yield %v, %v : i32, i32
      }
      loop.store %a, %m[%i, %t] : memref<2x4xi32>
      loop.store %b, %p[%i, %t] : memref<2x4xi32>
    }
  }
  func.return %m, %p : tensor<2x4xi32>, tensor<2x4xi32>
}

// -----

// An index from data is checked, and made safe to use.
// CHECK-LABEL: func.func @k_gather
// CHECK:         %id = loop.load
// CHECK:         %[[WIDE:.*]] = arith.extsi %id : i32 to i64
// CHECK:         %[[OK:.*]] = arith.cmpi ult, %[[WIDE]], %{{.*}} : i64
// CHECK-NEXT:    kernel.assert %[[OK]], "index out of range: expected 0 <= index < 5"
// CHECK:         %[[SAFE:.*]] = arith.select %[[OK]], %[[WIDE]], %{{.*}} : i64
// CHECK-NEXT:    %row = arith.index_cast %[[SAFE]] : i64 to index
func.func @main(%ids: tensor<3xi32>, %x: tensor<5xf32>) -> tensor<3xf32> {
  %y = loop.kernel @k_gather(%ids, %x) : (tensor<3xi32>, tensor<5xf32>) -> tensor<3xf32> {
  ^bb0(%ids: memref<3xi32>, %x: memref<5xf32>, %out: memref<3xf32>):
    tile.launch (%i = 3 : block) {
      %id = loop.load %ids[%i] : memref<3xi32>
      %row = loop.checked_index %id below 5 : i32
      %v = loop.load %x[%row] : memref<5xf32>
      loop.store %v, %out[%i] : memref<3xf32>
    }
  }
  func.return %y : tensor<3xf32>
}

// -----

// Nothing to compute is no blocks.
// CHECK-LABEL: func.func @main
// CHECK:         kernel.launch @k_empty({{.*}}) blocks(0) threads(1)
func.func @main(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  %y = loop.kernel @k_empty(%x) : (tensor<0x4xf32>) -> tensor<0x4xf32> {
  ^bb0(%x: memref<0x4xf32>, %out: memref<0x4xf32>):
    tile.launch (%i = 0 : block) {
      loop.for %j = 0 to 4 {
        %v = loop.load %x[%i, %j] : memref<0x4xf32>
        loop.store %v, %out[%i, %j] : memref<0x4xf32>
      }
    }
  }
  func.return %y : tensor<0x4xf32>
}

// -----

// Sizes are index expressions of no operands.
// CHECK-LABEL: func.func @rows(
// CHECK:         %[[n:.+]] = loop.index[s1]
// CHECK:         scf.for %b = %block_begin to %block_end
// CHECK:         scf.for %k = %c0 to %[[n]] step %c1
// CHECK:         kernel.launch @rows(%x, %y) blocks((s0 - 1) floordiv 8 + 1) threads(1)
func.func @main(%x: tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x1xf32, #sym.extents<s0>>
    attributes {sym.sizes = [#sym.size<"batch", 1, 64, hint = 8>, #sym.size<"seq", 2, 4096, hint = 100>]} {
  %y = loop.kernel @rows(%x) : (tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x1xf32, #sym.extents<s0>> {
  ^bb0(%in: memref<?x?xf32, #sym.extents<s0, s1>>, %out: memref<?x1xf32, #sym.extents<s0>>):
    tile.launch (%b = (s0 - 1) floordiv 8 + 1 : block, %t = 8 : thread) schedule(#tile.schedule<threads = 8>) {
      %in_range = loop.test[%b * 8 + %t < s0]
      scf.if %in_range {
        %s = loop.for %k = 0 to s1 reduce(add) -> f32 {
          %v = loop.load %in[%b * 8 + %t, %k] : memref<?x?xf32, #sym.extents<s0, s1>>
          loop.yield %v : f32
        }
        loop.store %s, %out[%b * 8 + %t, 0] : memref<?x1xf32, #sym.extents<s0>>
      }
    }
  }
  func.return %y : tensor<?x1xf32, #sym.extents<s0>>
}

// -----

// CHECK: func.func @nothing
func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}

// -----

// What a block computes first: sums come side by side, four of twelve.
// CHECK-LABEL: func.func @k_scores
// CHECK:         %scores = memref.alloc() {{.*}} : memref<1x1x12xf32>
// CHECK:         scf.for %i = %block_begin to %block_end
// CHECK:           scf.for %c = %c0 to %c3 step %c1 {
// CHECK:             [[SUMS:%.*]], {{%.*}}, {{%.*}}, {{%.*}} = scf.for %k = %c0 to %c8
// CHECK:             loop.store {{.*}}, %scores[{{%.*}}, 0, {{%.*}}]
// CHECK:           scf.for
// CHECK-NEXT:        loop.load %scores[0, 0, {{%.*}}]
// CHECK:         memref.dealloc %scores
func.func @main(%x: tensor<4x12x8xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k_scores(%x) : (tensor<4x12x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x12x8xf32>, %y: memref<4xf32>):
    tile.launch (%i = 4 : block) {
      %scores = tile.pack (%r = 1, %j = 12) : memref<1x12xf32, "shared"> {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %v = loop.load %x[%i, %j, %k] : memref<4x12x8xf32>
          loop.yield %v : f32
        }
        tile.yield %s : f32
      }
      %m = loop.for %j = 0 to 12 reduce(max) -> f32 {
        %v = loop.load %scores[0, %j] : memref<1x12xf32, "shared">
        loop.yield %v : f32
      }
      loop.store %m, %y[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

// The blocks of clusters are blocks like others: they are counted with them.
// CHECK-LABEL: func.func @k_clusters(
// CHECK:         scf.for %block = %block_begin to %block_end
// CHECK-NEXT:      loop.index[%block floordiv 4]
// CHECK-NEXT:      loop.index[%block mod 4]
// CHECK:         kernel.launch @k_clusters({{.*}}) blocks(8) threads(1)
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %y = loop.kernel @k_clusters(%x) : (tensor<8x16xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x16xf32>, %y: memref<8x16xf32>):
    tile.launch (%i = 2 : block, %c = 4 : cluster, %j = 16 : thread) {
      %v = loop.load %x[%i * 4 + %c, %j] : memref<8x16xf32>
      loop.store %v, %y[%i * 4 + %c, %j] : memref<8x16xf32>
    }
  }
  func.return %y : tensor<8x16xf32>
}
