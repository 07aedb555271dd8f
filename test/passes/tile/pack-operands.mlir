// RUN: deplo-opt %s -p pack-operands --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p pack-operands,pack-operands --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p pack-operands --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p pack-operands,lower-tile-to-scf --split-input-file | FileCheck %s --check-prefix=SCF

// Rows keep their order, columns come in panels; what is past an end is 0, and does not store.
// CHECK-LABEL: loop.kernel @ragged
// CHECK:         tile.launch (%i_block = 4 : block, %j_block = 2 : block, %i = 8 : thread, %j = 32 : thread) schedule(#tile.schedule<m = 2, n = 3,
// CHECK-NEXT:      %s = loop.for %k_block = 0 to 2 reduce(add) -> f32 {
// CHECK-NEXT:        %p_packed = tile.pack (%i_1 = 8, %k = 32) pad 16 : memref<8x32xf32, "shared"> {
// CHECK-NEXT:          %[[in:.+]] = loop.test[%i_block * 8 + %i_1 < 30, %k_block * 32 + %k < 40]
// CHECK-NEXT:          %[[p:.+]] = scf.if %[[in]] -> (f32) {
// CHECK-NEXT:            loop.load %x[%i_block * 8 + %i_1, %k_block * 32 + %k]
// CHECK:               tile.yield %[[p]] : f32
// CHECK:             %q_packed = tile.pack (%j_1 = 32, %{{.+}} = 32) panels 16 : memref<32x32xf32, "shared"> {
// CHECK:             loop.for %[[k:.+]] = 0 to 32 reduce(add) -> f32 {
// CHECK-NEXT:          loop.load %p_packed[%i, %[[k]]]
// CHECK-NEXT:          loop.load %q_packed[%j, %[[k]]]
// CHECK:             } attributes {chunk}
// CHECK:           loop.test[%i_block * 8 + %i < 30, %j_block * 32 + %j < 50]
// CHECK-NEXT:      scf.if
// CHECK-NEXT:        loop.store %s
// REMARK: remark: pack-operands: ragged: 2 operands are packed
// REMARK: remark: pack-operands: ragged: declined: its operands are packed already

// Sums are vectors while K runs, and lie in a buffer between two chunks of it.
// SCF-LABEL: func.func @ragged
// SCF-DAG:     memref.alloc() {alignment = 64 : i64} : memref<384xf32>
// SCF-DAG:     memref.alloc() {alignment = 64 : i64} : memref<1024xf32>
// SCF:         loop.transpose %w[{{.*}}] along 0 : memref<50x40xf32> -> memref<16x16xf32>
// SCF-COUNT-16: vector.load
// SCF-NOT:     vector.shuffle
// SCF:         scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// SCF-COUNT-4:   vector.fma
// SCF:         llvm.inline_asm
// SCF:         scf.for %{{.+}} =
// SCF-NEXT:      scf.for %{{.+}} =
// SCF:             loop.store
// SCF:         memref.dealloc
func.func @main(%x: tensor<30x40xf32>, %w: tensor<50x40xf32>) -> tensor<30x50xf32> {
  %y = loop.kernel @ragged(%x, %w) : (tensor<30x40xf32>, tensor<50x40xf32>) -> tensor<30x50xf32> {
  ^bb0(%x: memref<30x40xf32>, %w: memref<50x40xf32>, %out: memref<30x50xf32>):
    tile.launch (%i = 30 : thread, %j = 50 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 32, block_k = 32, thread_m = 4, thread_n = 16, vectors = avx512>) {
      %s = loop.for %k = 0 to 40 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<30x40xf32>
        %q = loop.load %w[%j, %k] : memref<50x40xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<30x50xf32>
    }
  }
  func.return %y : tensor<30x50xf32>
}

// -----

// What is computed on its way into a square is written to a buffer, and turned from there.
// CHECK-LABEL: loop.kernel @computed
// SCF-LABEL: func.func @computed
// SCF:         arith.negf
// SCF:         vector.shuffle
func.func @main(%x: tensor<30x40xf32>, %w: tensor<50x40xf32>) -> tensor<30x50xf32> {
  %y = loop.kernel @computed(%x, %w) : (tensor<30x40xf32>, tensor<50x40xf32>) -> tensor<30x50xf32> {
  ^bb0(%x: memref<30x40xf32>, %w: memref<50x40xf32>, %out: memref<30x50xf32>):
    tile.launch (%i = 30 : thread, %j = 50 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 32, block_k = 32, thread_m = 4, thread_n = 16, vectors = avx512>) {
      %s = loop.for %k = 0 to 40 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<30x40xf32>
        %q = loop.load %w[%j, %k] : memref<50x40xf32>
        %n = arith.negf %q : f32
        %r = arith.mulf %p, %n : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<30x50xf32>
    }
  }
  func.return %y : tensor<30x50xf32>
}

// -----

// Where the rows are neighbours in memory they come in panels, too. What a factor is computed by moves along,
// from in front of the sweep as well.
// CHECK-LABEL: loop.kernel @turned
// CHECK:         %m_packed = tile.pack (%{{.+}} = 16, %{{.+}} = 16) panels 4 : memref<16x16xf32, "shared"> {
// CHECK-DAG:       loop.load %x[%[[k:.+]], %[[i:.+]]]
// CHECK-DAG:       loop.load %scale[%[[i]]]
// CHECK:           arith.mulf
// CHECK-NOT:     loop.load %scale
// CHECK:       func.return
// SCF-LABEL: func.func @turned
// SCF-NOT:     {{vector.shuffle|loop.transpose}}
// SCF:         arith.muli %{{.+}}, %{{.+}} : vector<16xi32>
func.func @main(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>, %s: tensor<16xf32>, %n: tensor<16x16xi32>) -> (tensor<16x16xf32>, tensor<16x16xi32>) {
  %y = loop.kernel @turned(%x, %w, %s) : (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16xf32>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x16xf32>, %w: memref<16x16xf32>, %scale: memref<16xf32>, %out: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 16, thread_m = 4, thread_n = 16, vectors = avx512>) {
      %f = loop.load %scale[%i] : memref<16xf32>
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %p = loop.load %x[%k, %i] : memref<16x16xf32>
        %m = arith.mulf %p, %f : f32
        %q = loop.load %w[%k, %j] : memref<16x16xf32>
        %r = arith.mulf %q, %m : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<16x16xf32>
    }
  }
  %z = loop.kernel @integers(%n) : (tensor<16x16xi32>) -> tensor<16x16xi32> {
  ^bb0(%n: memref<16x16xi32>, %out: memref<16x16xi32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 16, thread_m = 4, thread_n = 16, vectors = avx512>) {
      %s = loop.for %k = 0 to 16 reduce(add) -> i32 {
        %p = loop.load %n[%i, %k] : memref<16x16xi32>
        %q = loop.load %n[%k, %j] : memref<16x16xi32>
        %r = arith.muli %p, %q : i32
        loop.yield %r : i32
      }
      loop.store %s, %out[%i, %j] : memref<16x16xi32>
    }
  }
  func.return %y, %z : tensor<16x16xf32>, tensor<16x16xi32>
}

// -----

// Rows in place: a pack says what they are, and nobody fills it. The block is turned, too: its rows are the
// columns of the result. A tile that would reach past the last row begins earlier, and its sums are moved up.
// CHECK-LABEL: loop.kernel @stays
// CHECK:         tile.launch (%i_block = 2 : block, %j_block = 7 : block, %i = 16 : thread, %j = 8 : thread) schedule(#tile.schedule<m = 3, n = 2,
// CHECK:             %q_packed = tile.pack (%j_1 = 8, %k = 32) in_place : memref<8x32xf32, "shared"> {
// CHECK:               loop.load %w
// CHECK:             %p_packed = tile.pack (%i_1 = 16, %{{.+}} = 32) panels 16 : memref<16x32xf32, "shared"> {
// REMARK: remark: pack-operands: stays: 1 of 2 operands are packed
// SCF-LABEL: func.func @stays
// SCF:         scf.for {{.*}} iter_args({{.*}}) -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// SCF:           loop.load %w
// SCF:           vector.broadcast
// SCF-COUNT-4:   vector.fma
// SCF:         loop.load %[[sums:[0-9]+]]
// SCF-NEXT:    loop.store %{{.+}}, %[[sums]]
// SCF:         vector.shuffle
// SCF:         loop.store %{{.+}}, %out
func.func @main(%x: tensor<30x40xf32>, %w: tensor<50x40xf32>) -> tensor<30x50xf32> {
  %y = loop.kernel @stays(%x, %w) : (tensor<30x40xf32>, tensor<50x40xf32>) -> tensor<30x50xf32> {
  ^bb0(%x: memref<30x40xf32>, %w: memref<50x40xf32>, %out: memref<30x50xf32>):
    tile.launch (%i = 30 : thread, %j = 50 : thread) schedule(#tile.schedule<m = 1, n = 0, block_m = 8, block_n = 16, block_k = 32, thread_m = 4, thread_n = 16, in_place = 1, vectors = avx512>) {
      %s = loop.for %k = 0 to 40 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<30x40xf32>
        %q = loop.load %w[%j, %k] : memref<50x40xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<30x50xf32>
    }
  }
  func.return %y : tensor<30x50xf32>
}

// -----

// Sweeps over a window become one, whose positions say where in the window they are.
// CHECK-LABEL: loop.kernel @window
// CHECK:         loop.for %l_block = 0 to 1 reduce(add)
// CHECK:           loop.load %w[%{{.+}}, %{{.+}} floordiv 3, %{{.+}} mod 3]
// CHECK:           loop.load %x[%{{.+}} floordiv 3, %{{.+}} + %{{.+}} mod 3]
// REMARK: remark: pack-operands: copy: declined: the schedule packs nothing
func.func @main(%x: tensor<16x18xf32>, %w: tensor<8x16x3xf32>) -> (tensor<8x16xf32>, tensor<16x18xf32>) {
  %y = loop.kernel @window(%x, %w) : (tensor<16x18xf32>, tensor<8x16x3xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<16x18xf32>, %w: memref<8x16x3xf32>, %out: memref<8x16xf32>):
    tile.launch (%i = 8 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 16, block_k = 48, thread_m = 4, thread_n = 16, vectors = avx512>) {
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %t = loop.for %l = 0 to 3 reduce(add) -> f32 {
          %p = loop.load %x[%k, %j + %l] : memref<16x18xf32>
          %q = loop.load %w[%i, %k, %l] : memref<8x16x3xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%i, %j] : memref<8x16xf32>
    }
  }
  %z = loop.kernel @copy(%x) : (tensor<16x18xf32>) -> tensor<16x18xf32> {
  ^bb0(%x: memref<16x18xf32>, %out: memref<16x18xf32>):
    tile.launch (%i = 16 : block, %j = 18 : thread) {
      %p = loop.load %x[%i, %j] : memref<16x18xf32>
      loop.store %p, %out[%i, %j] : memref<16x18xf32>
    }
  }
  func.return %y, %z : tensor<8x16xf32>, tensor<16x18xf32>
}

// -----

// What is loaded in front of the sweep is for what follows it, and like that only for points inside of the result.
// CHECK-LABEL: loop.kernel @residual
// CHECK:         tile.launch
// CHECK-NEXT:      %[[SUM:.*]] = loop.for %k_block
// CHECK:           %[[IN:.*]] = loop.test[%i_block * 4 + %i < 7]
// CHECK-NEXT:      scf.if %[[IN]] {
// CHECK-NEXT:        loop.load %r[%i_block * 4 + %i, %j_block * 8 + %j]
// CHECK-NEXT:        arith.addf
func.func @main(%x: tensor<7x64xf32>, %w: tensor<16x64xf32>, %r: tensor<7x16xf32>) -> tensor<7x16xf32> {
  %y = loop.kernel @residual(%x, %w, %r) : (tensor<7x64xf32>, tensor<16x64xf32>, tensor<7x16xf32>) -> tensor<7x16xf32> {
  ^bb0(%x: memref<7x64xf32>, %w: memref<16x64xf32>, %r: memref<7x16xf32>, %y: memref<7x16xf32>):
    tile.launch (%i = 7 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 8, block_k = 64, thread_m = 4, thread_n = 8, vectors = avx2>) {
      %a = loop.load %r[%i, %j] : memref<7x16xf32>
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %b = loop.load %x[%i, %k] : memref<7x64xf32>
        %c = loop.load %w[%j, %k] : memref<16x64xf32>
        %p = arith.mulf %b, %c : f32
        loop.yield %p : f32
      }
      %t = arith.addf %a, %s : f32
      loop.store %t, %y[%i, %j] : memref<7x16xf32>
    }
  }
  func.return %y : tensor<7x16xf32>
}
