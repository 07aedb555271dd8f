// RUN: deplo-opt %s -p blockify-launch{target=sm_90a} --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p blockify-launch{target=cpu} --split-input-file | FileCheck %s --check-prefix=CPU
// RUN: deplo-opt %s -p blockify-launch,blockify-launch --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p blockify-launch{threads=32} --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p blockify-launch{target=cpu} --split-input-file --check-each-pass >/dev/null
// RUN: not deplo-opt %s -p blockify-launch{target=sm_1} --split-input-file 2>&1 | FileCheck %s --check-prefix=TARGET

// RUN: deplo-opt %s -p blockify-launch{vector=1} --split-input-file | FileCheck %s --check-prefix=ONE
// RUN: deplo-opt %s -p blockify-launch{vector=1} --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=ONE-REMARK
// RUN: deplo-opt %s -p 'blockify-launch{vector=4 threads=32},materialize-tile,vectorize-accesses,lower-to-cuda' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'blockify-launch{vector=4 threads=32}' --split-input-file | FileCheck %s --check-prefix=FOUR
// RUN: not deplo-opt %s -p blockify-launch{vector=3} --split-input-file 2>&1 | FileCheck %s --check-prefix=THREE
// THREE: error: blockify-launch: vector is 1, 2, 4 or 8, got 3

// ONE-REMARK: remark: blockify-launch: gelu: 2368 blocks of 256 threads; no vectors: the option says so

// TARGET: error: {{.*}}unknown target 'sm_1'; deplo compiles for cpu, sm_80, sm_90a, sm_100a, sm_120

// The inner axis is split, 18944 = 74 * 256; indices are recomposed. In vectors of four, half a block is left.
// ONE-LABEL: loop.kernel @gelu
// ONE:         tile.launch (%i = 32 : block, %j_block = 74 : block, %j_thread = 256 : thread) schedule(#tile.schedule<threads = 256>) {
// ONE-NEXT:      loop.load %in[%i, %j_block * 256 + %j_thread]
// ONE:           loop.store %{{.+}}, %out[%i, %j_block * 256 + %j_thread]
// CHECK-LABEL: loop.kernel @gelu
// CHECK:         tile.launch (%i = 32 : block, %j_block = 19 : block, %j_thread = 256 : thread) schedule(#tile.schedule<threads = 256, vector = 4>) {
// CHECK-NEXT:      %[[in:.+]] = loop.test[%j_block * 256 + %j_thread < 4736]
// CHECK-NEXT:      scf.if %[[in]] {
// CHECK-NEXT:        loop.for %e = 0 to 4 {
// CHECK-NEXT:          loop.load %in[%i, %j_block * 1024 + %j_thread * 4 + %e]
// CHECK:               loop.store %{{.+}}, %out[%i, %j_block * 1024 + %j_thread * 4 + %e]
// CHECK-NEXT:        } attributes {vector}
// A CPU block is about 4096 accesses: an eighth of the row, in a loop of its own; all parts are of one size.
// CPU-LABEL:   loop.kernel @gelu
// CPU:           tile.launch (%i = 32 : block, %j_block = 8 : block) schedule(#tile.schedule<serial = 2368>) {
// CPU-NEXT:        loop.for %j_serial = 0 to 2368 {
// CPU-NEXT:          loop.load %in[%i, %j_block * 2368 + %j_serial]
// REMARK: remark: blockify-launch: gelu: 608 blocks of 256 threads, in vectors of 4
// REMARK: remark: blockify-launch: gelu: declined: the launch is partitioned already
func.func @main(%x: tensor<32x18944xf32>) -> tensor<32x18944xf32> {
  %y = loop.kernel @gelu(%x) : (tensor<32x18944xf32>) -> tensor<32x18944xf32> {
  ^bb0(%in: memref<32x18944xf32>, %out: memref<32x18944xf32>):
    tile.launch (%i = 32 : thread, %j = 18944 : thread) {
      %v = loop.load %in[%i, %j] : memref<32x18944xf32>
      %e = math.exp %v : f32
      loop.store %e, %out[%i, %j] : memref<32x18944xf32>
    }
  }
  func.return %y : tensor<32x18944xf32>
}

// -----

// REMARK: remark: blockify-launch: ragged: 3 blocks of 255 threads; no vectors: neighbours are not aligned vectors
// A tail is masked; a short inner axis is threads whole, and the next one fills the block.
// CHECK-LABEL: loop.kernel @ragged
// CHECK:         tile.launch (%i_block = 3 : block, %i_thread = 51 : thread, %j = 5 : thread) schedule(#tile.schedule<threads = 255>) {
// CHECK-NEXT:      %[[in:.+]] = loop.test[%i_block * 51 + %i_thread < 131]
// CHECK-NEXT:      scf.if %[[in]] {
// CPU-LABEL:   loop.kernel @ragged
// CPU:           tile.launch () schedule(#tile.schedule<serial = 655>) {
// CPU-NEXT:        loop.for %i = 0 to 131 {
// CPU-NEXT:          loop.for %j = 0 to 5 {
func.func @main(%x: tensor<131x5xf32>) -> tensor<131x5xf32> {
  %y = loop.kernel @ragged(%x) : (tensor<131x5xf32>) -> tensor<131x5xf32> {
  ^bb0(%in: memref<131x5xf32>, %out: memref<131x5xf32>):
    tile.launch (%i = 131 : thread, %j = 5 : thread) {
      %v = loop.load %in[%i, %j] : memref<131x5xf32>
      loop.store %v, %out[%i, %j] : memref<131x5xf32>
    }
  }
  func.return %y : tensor<131x5xf32>
}

// -----

// Declined: threads that combine must stay together.
// REMARK: remark: blockify-launch: sum: declined: its threads already work together
func.func @main(%x: tensor<32xf32>) -> tensor<32xf32> {
  %y = loop.kernel @sum(%x) : (tensor<32xf32>) -> tensor<32xf32> {
  ^bb0(%in: memref<32xf32>, %out: memref<32xf32>):
    tile.launch (%t = 32 : thread) {
      %v = loop.load %in[%t] : memref<32xf32>
      %s = tile.combine add %v over(%t) : f32
      loop.store %s, %out[%t] : memref<32xf32>
    }
  }
  func.return %y : tensor<32xf32>
}

// -----

// What an axis has beyond whole vectors runs one by one, if all its accesses begin where a buffer does.
// CHECK-LABEL: loop.kernel @tail
// CHECK:         tile.launch (%i_block = 977 : block, %i_thread = 256 : thread)
// CHECK-NEXT:      %full = loop.test[%i_block * 1024 + %i_thread * 4 < 1000000]
// CHECK-NEXT:      scf.if %full {
// CHECK-NEXT:        loop.for %e = 0 to 4 {
// CHECK:             } attributes {vector}
// CHECK-NEXT:      } else {
// CHECK-NEXT:        loop.for %e_1 = 0 to 4 {
// CHECK-NEXT:          %[[in:.+]] = loop.test[%i_block * 1024 + %i_thread * 4 + %e_1 < 1000003]
// CHECK-NEXT:          scf.if %[[in]] {
// CHECK-NEXT:            loop.load %in[%i_block * 1024 + %i_thread * 4 + %e_1]
// REMARK: remark: blockify-launch: tail: 977 blocks of 256 threads, in vectors of 4
func.func @main(%x: tensor<1000003xf32>) -> tensor<1000003xf32> {
  %y = loop.kernel @tail(%x) : (tensor<1000003xf32>) -> tensor<1000003xf32> {
  ^bb0(%in: memref<1000003xf32>, %out: memref<1000003xf32>):
    tile.launch (%i = 1000003 : thread) {
      %v = loop.load %in[%i] : memref<1000003xf32>
      loop.store %v, %out[%i] : memref<1000003xf32>
    }
  }
  func.return %y : tensor<1000003xf32>
}

// -----

// No vectors: f64 comes in pairs; a transposed operand; rows that begin anywhere; a condition; few elements.
// REMARK: remark: blockify-launch: pairs: 640 blocks of 256 threads, in vectors of 2
// REMARK: remark: blockify-launch: transposed: 640 blocks of 256 threads; no vectors: neighbours are not neighbours in memory
// REMARK: remark: blockify-launch: shifted: 640 blocks of 256 threads; no vectors: neighbours are not neighbours in memory
// REMARK: remark: blockify-launch: partly: 640 blocks of 256 threads; no vectors: an access stands in a loop or under a condition
// REMARK: remark: blockify-launch: few: 8 blocks of 256 threads; no vectors: 1280 elements are too few for 33792 threads
func.func @main(%x: tensor<320x640xf64>, %z: tensor<320x320xf32>) -> (tensor<320x640xf64>, tensor<320x320xf32>, tensor<320x320xf32>, tensor<320x320xf32>, tensor<4x320xf32>) {
  %0 = loop.kernel @pairs(%x) : (tensor<320x640xf64>) -> tensor<320x640xf64> {
  ^bb0(%in: memref<320x640xf64>, %out: memref<320x640xf64>):
    tile.launch (%i = 320 : thread, %j = 640 : thread) {
      %v = loop.load %in[%i, %j] : memref<320x640xf64>
      loop.store %v, %out[%i, %j] : memref<320x640xf64>
    }
  }
  %1 = loop.kernel @transposed(%z) : (tensor<320x320xf32>) -> tensor<320x320xf32> {
  ^bb0(%in: memref<320x320xf32>, %out: memref<320x320xf32>):
    tile.launch (%i = 320 : thread, %j = 320 : thread) {
      %v = loop.load %in[%j, %i] : memref<320x320xf32>
      loop.store %v, %out[%i, %j] : memref<320x320xf32>
    }
  }
  %2 = loop.kernel @shifted(%z) : (tensor<320x320xf32>) -> tensor<320x320xf32> {
  ^bb0(%in: memref<320x320xf32>, %out: memref<320x320xf32>):
    tile.launch (%i = 320 : thread, %j = 320 : thread) {
      %v = loop.load %in[%i, (%j + 1) mod 320] : memref<320x320xf32>
      loop.store %v, %out[%i, %j] : memref<320x320xf32>
    }
  }
  %3 = loop.kernel @partly(%z) : (tensor<320x320xf32>) -> tensor<320x320xf32> {
  ^bb0(%in: memref<320x320xf32>, %out: memref<320x320xf32>):
    tile.launch (%i = 320 : thread, %j = 320 : thread) {
      %t = loop.test[%j >= 4]
      %zero = arith.constant 0.0 : f32
      %v = scf.if %t -> (f32) {
        %w = loop.load %in[%i, %j - 4] : memref<320x320xf32>
        scf.yield %w : f32
      } else {
        scf.yield %zero : f32
      }
      loop.store %v, %out[%i, %j] : memref<320x320xf32>
    }
  }
  %4 = loop.kernel @few(%z) : (tensor<320x320xf32>) -> tensor<4x320xf32> {
  ^bb0(%in: memref<320x320xf32>, %out: memref<4x320xf32>):
    tile.launch (%i = 4 : thread, %j = 320 : thread) {
      %v = loop.load %in[%i, %j] : memref<320x320xf32>
      loop.store %v, %out[%i, %j] : memref<4x320xf32>
    }
  }
  func.return %0, %1, %2, %3, %4 : tensor<320x640xf64>, tensor<320x320xf32>, tensor<320x320xf32>, tensor<320x320xf32>, tensor<4x320xf32>
}

// -----

// An axis of extent 0 is no blocks.
// CHECK-LABEL: loop.kernel @nothing
// CHECK:         tile.launch (%i = 0 : block
func.func @main(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  %y = loop.kernel @nothing(%x) : (tensor<0x4xf32>) -> tensor<0x4xf32> {
  ^bb0(%in: memref<0x4xf32>, %out: memref<0x4xf32>):
    tile.launch (%i = 0 : thread, %j = 4 : thread) {
      %v = loop.load %in[%i, %j] : memref<0x4xf32>
      loop.store %v, %out[%i, %j] : memref<0x4xf32>
    }
  }
  func.return %y : tensor<0x4xf32>
}

// -----

// On a CPU, reading a transposed operand takes rectangles: 1024 = 32 * 32 rows, 2 * 512 columns.
// CPU-LABEL:   loop.kernel @transpose
// CPU:           tile.launch (%i_block = 32 : block, %j_block = 2 : block) schedule(#tile.schedule<serial = 16384>) {
// CPU-NEXT:        loop.for %i_serial = 0 to 32 {
// CPU-NEXT:          loop.for %j_serial = 0 to 512 {
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %y = loop.kernel @transpose(%x) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  ^bb0(%in: memref<1024x1024xf32>, %out: memref<1024x1024xf32>):
    tile.launch (%i = 1024 : thread, %j = 1024 : thread) {
      %v = loop.load %in[%j, %i] : memref<1024x1024xf32>
      loop.store %v, %out[%i, %j] : memref<1024x1024xf32>
    }
  }
  func.return %y : tensor<1024x1024xf32>
}

// -----

// On a CPU, columns that are reduced are shared out in strips: of 1000 columns, 5 strips of 200.
// CPU-LABEL:   loop.kernel @columns
// CPU:           tile.launch (%i = 2 : block, %j_block = 5 : block) schedule(#tile.schedule<serial = 200>) {
// CPU-NEXT:        loop.for %j_serial = 0 to 200 {
// CPU:                 loop.load %in[%i, %k, %j_block * 200 + %j_serial]
func.func @main(%x: tensor<2x64x1000xf32>) -> tensor<2x1000xf32> {
  %y = loop.kernel @columns(%x) : (tensor<2x64x1000xf32>) -> tensor<2x1000xf32> {
  ^bb0(%in: memref<2x64x1000xf32>, %out: memref<2x1000xf32>):
    tile.launch (%i = 2 : thread, %j = 1000 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k, %j] : memref<2x64x1000xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i, %j] : memref<2x1000xf32>
    }
  }
  func.return %y : tensor<2x1000xf32>
}

// -----

// A counter that is read as a value becomes a `loop.index`.
// CHECK-LABEL: loop.kernel @positions
// CHECK:         %[[i:.+]] = loop.index[%i_block * 256 + %i_thread]
// CHECK-NEXT:    arith.index_cast %[[i]] : index to i64
func.func @main() -> tensor<500xi64> {
  %y = loop.kernel @positions() : () -> tensor<500xi64> {
  ^bb0(%out: memref<500xi64>):
    tile.launch (%i = 500 : thread) {
      %v = arith.index_cast %i : index to i64
      loop.store %v, %out[%i] : memref<500xi64>
    }
  }
  func.return %y : tensor<500xi64>
}

// -----

// A dynamic axis: as many threads, or on a CPU serial steps, as its hint says; what is past its end is masked.
// CHECK:      tile.launch (%i_block = (s0 - 1) floordiv 8 + 1 : block, %i_thread = 8 : thread)
// CHECK-NEXT:   %[[in:.+]] = loop.test[%i_block * 8 + %i_thread < s0]
// CHECK-NEXT:   scf.if %[[in]] {
// CHECK:          loop.load %in[%i_block * 8 + %i_thread, %k]
// CPU:      tile.launch (%i_block = (s0 - 1) floordiv 8 + 1 : block)
// CPU-NEXT:   loop.for %i_serial = 0 to 8 {
// CPU-NEXT:     %[[in:.+]] = loop.test[%i_block * 8 + %i_serial < s0]
// REMARK: remark: blockify-launch: rows: (s0 - 1) floordiv 8 + 1 blocks of 8 threads; no vectors: the body has loops
func.func @main(%x: tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x1xf32, #sym.extents<s0>>
    attributes {sym.sizes = [#sym.size<"batch", 1, 64, hint = 8>, #sym.size<"seq", 2, 4096, hint = 100>]} {
  %y = loop.kernel @rows(%x) : (tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x1xf32, #sym.extents<s0>> {
  ^bb0(%in: memref<?x?xf32, #sym.extents<s0, s1>>, %out: memref<?x1xf32, #sym.extents<s0>>):
    tile.launch (%i = s0 : thread) {
      %s = loop.for %k = 0 to s1 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<?x?xf32, #sym.extents<s0, s1>>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i, 0] : memref<?x1xf32, #sym.extents<s0>>
    }
  }
  func.return %y : tensor<?x1xf32, #sym.extents<s0>>
}

// -----

// REMARK: remark: blockify-launch: one: 1 blocks of 1 threads; no vectors: there is one element
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %y = loop.kernel @one(%x) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%in: memref<f32>, %out: memref<f32>):
    tile.launch () {
      %v = loop.load %in[] : memref<f32>
      %n = arith.negf %v : f32
      loop.store %n, %out[] : memref<f32>
    }
  }
  func.return %y : tensor<f32>
}

// -----

// A schedule says which rows and columns a block computes; K is chunked already.
// CHECK-LABEL: loop.kernel @product
// CHECK:         tile.launch (%i_block = 3 : block, %j_block = 2 : block, %i_thread = 16 : thread, %j_thread = 32 : thread)
// REMARK: remark: blockify-launch: product: 6 blocks as the schedule says
func.func @main(%x: tensor<40x32xf32>, %w: tensor<64x32xf32>) -> tensor<40x64xf32> {
  %y = loop.kernel @product(%x, %w) : (tensor<40x32xf32>, tensor<64x32xf32>) -> tensor<40x64xf32> {
  ^bb0(%x: memref<40x32xf32>, %w: memref<64x32xf32>, %out: memref<40x64xf32>):
    tile.launch (%i = 40 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 32, thread_m = 1, thread_n = 1>) {
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<40x32xf32>
        %q = loop.load %w[%j, %k] : memref<64x32xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<40x64xf32>
    }
  }
  func.return %y : tensor<40x64xf32>
}

// -----

// The schedule asks for single elements, where the model would take vectors.
// CHECK-LABEL: loop.kernel @single
// CHECK:         tile.launch (%i_block = 4096 : block, %i_thread = 256 : thread) schedule(#tile.schedule<threads = 256>)
// REMARK: remark: blockify-launch: single: 4096 blocks of 256 threads; no vectors: the schedule says so
func.func @main(%x: tensor<1048576xf32>) -> tensor<1048576xf32> {
  %y = loop.kernel @single(%x) : (tensor<1048576xf32>) -> tensor<1048576xf32> {
  ^bb0(%in: memref<1048576xf32>, %out: memref<1048576xf32>):
    tile.launch (%i = 1048576 : thread) schedule(#tile.schedule<vector = 1>) {
      %v = loop.load %in[%i] : memref<1048576xf32>
      %n = arith.negf %v : f32
      loop.store %n, %out[%i] : memref<1048576xf32>
    }
  }
  func.return %y : tensor<1048576xf32>
}

// -----

// No part of a row is whole lines of the cache and divides it, so the last one is shorter.
// CPU-LABEL: loop.kernel @shorter
// CPU:         tile.launch (%i = 32 : block, %j_block = 10 : block) schedule(#tile.schedule<serial = 1920>) {
// CPU-NEXT:      loop.for %j_serial = 0 to 1920 {
// CPU-NEXT:        %[[in:.+]] = loop.test[%j_block * 1920 + %j_serial < 18946]
// CPU-NEXT:        scf.if %[[in]] {
func.func @main(%x: tensor<32x18946xf32>) -> tensor<32x18946xf32> {
  %y = loop.kernel @shorter(%x) : (tensor<32x18946xf32>) -> tensor<32x18946xf32> {
  ^bb0(%in: memref<32x18946xf32>, %out: memref<32x18946xf32>):
    tile.launch (%i = 32 : thread, %j = 18946 : thread) {
      %v = loop.load %in[%i, %j] : memref<32x18946xf32>
      %e = math.exp %v : f32
      loop.store %e, %out[%i, %j] : memref<32x18946xf32>
    }
  }
  func.return %y : tensor<32x18946xf32>
}

// -----

// Rows that come side by side: a block has a multiple of four, and the last one ends under a condition.
// CPU-LABEL: @side_by_side
// CPU:         tile.launch (%i_block = 5 : block) schedule(#tile.schedule<width = 512, interleave = 1, rows = 4, serial = 4>) {
// CPU-NEXT:      loop.for %i_serial = 0 to 4 {
// CPU-NEXT:        loop.test[%i_block * 4 + %i_serial < 17]
func.func @main(%x: tensor<17x8xf32>) -> tensor<17x8xf32> {
  %z = loop.kernel @side_by_side(%x) : (tensor<17x8xf32>) -> tensor<17x8xf32> {
  ^bb0(%a: memref<17x8xf32>, %out: memref<17x8xf32>):
    tile.launch (%i = 17 : thread) schedule(#tile.schedule<grain = 48, width = 512, interleave = 1, rows = 4>) {
      loop.for %j = 0 to 8 {
        %0 = loop.load %a[%i, %j] : memref<17x8xf32>
        loop.store %0, %out[%i, %j] : memref<17x8xf32>
      }
    }
  }
  func.return %z : tensor<17x8xf32>
}

// -----

// What is the same for all neighbours, such as the row that is looked up, stands in front of their loop; in the
// tail, where there may be none, it does not.
// REMARK: remark: blockify-launch: lookup: 16 blocks of 256 threads; no vectors: 4096 elements are too few for 33792 threads
// FOUR-LABEL: loop.kernel @lookup
// FOUR:         %row = loop.checked_index
// FOUR:         loop.for %e = 0 to 4 {
// FOUR-NEXT:      loop.load %table[%row, %j * 4 + %e]
// FOUR:         } attributes {vector}
// FOUR-LABEL: loop.kernel @halves
// FOUR:         %full = loop.test
// FOUR-NEXT:    scf.if %full {
// FOUR-NEXT:      %s = loop.load %scale[]
// FOUR-NEXT:      loop.for %e{{.*}} = 0 to 4 {
// FOUR-NEXT:        loop.load %in[%j_block * 128 + %j_thread * 4 + %e]
// FOUR:         } else {
// FOUR-NEXT:      loop.for %e{{.*}} = 0 to 4 {
func.func @main(%ids: tensor<64xi64>, %table: tensor<10x64xf32>, %x: tensor<130xf32>, %scale: tensor<f32>) -> (tensor<64x64xf32>, tensor<130xf32>) {
  %y = loop.kernel @lookup(%ids, %table) : (tensor<64xi64>, tensor<10x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%ids: memref<64xi64>, %table: memref<10x64xf32>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) {
      %id = loop.load %ids[%i] : memref<64xi64>
      %row = loop.checked_index %id below 10 : i64
      %v = loop.load %table[%row, %j] : memref<10x64xf32>
      loop.store %v, %out[%i, %j] : memref<64x64xf32>
    }
  }
  %z = loop.kernel @halves(%x, %scale) : (tensor<130xf32>, tensor<f32>) -> tensor<130xf32> {
  ^bb0(%in: memref<130xf32>, %scale: memref<f32>, %out: memref<130xf32>):
    tile.launch (%j = 130 : thread) {
      %s = loop.load %scale[] : memref<f32>
      %v = loop.load %in[%j] : memref<130xf32>
      %w = arith.mulf %v, %s : f32
      loop.store %w, %out[%j] : memref<130xf32>
    }
  }
  func.return %y, %z : tensor<64x64xf32>, tensor<130xf32>
}

// -----

// Names of axes that a person gave: one that vectors have, and one that no step could write.
// FOUR-LABEL: loop.kernel @named
// FOUR:         tile.launch (%e_block = 32 : block, %e_thread = 2 : thread, %i = 16 : thread)
// FOUR-NEXT:      loop.for %e_inner = 0 to 4 {
func.func @main(%x: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = loop.kernel @named(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x64xf32>, %y: memref<64x64xf32>):
    tile.launch (%e = 64 : thread, %my.axis = 64 : thread) {
      %v = loop.load %x[%e, %my.axis] : memref<64x64xf32>
      %w = arith.negf %v : f32
      loop.store %w, %y[%e, %my.axis] : memref<64x64xf32>
    }
  }
  func.return %y : tensor<64x64xf32>
}
