// RUN: deplo-opt %s --assume=stored-once -p stage-transposes --split-input-file --check-each-pass | FileCheck %s
// RUN: deplo-opt %s --assume=stored-once -p stage-transposes,stage-transposes --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --assume=stored-once -p stage-transposes,blockify-launch,async-copy,pad-smem,mark-unroll,materialize-tile,elide-barriers,lower-to-cuda --split-input-file --check-each-pass | FileCheck %s --check-prefix=CUDA
// RUN: not deplo-opt %s --assume=stored-once -p stage-transposes{target=sm_1} --split-input-file 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: error: {{.*}}unknown target 'sm_1'

// Lanes are neighbours along %j: 32 rows of %in. A block copies 32 rows of 32, and a thread has four of the
// tile's rows, one at a time, so that its neighbours store neighbours.
// REMARK: remark: stage-transposes: turn: tiles of 32 by 32: 36 sectors for a warp's points become 8
// REMARK: remark: stage-transposes: turn: declined: the launch is partitioned already
// CHECK-LABEL: loop.kernel @turn
// CHECK:         tile.launch (%i_block = 16 : block, %j_block = 9 : block, %i_thread = 8 : thread, %j_thread = 32 : thread) schedule(#tile.schedule<threads = 256, serial = 4>) {
// CHECK-NEXT:      %[[slab:.+]] = tile.stage %in[%j_block * 32, %i_block * 32] : memref<288x512xf32> -> memref<32x32xf32, "shared">
// CHECK-NEXT:      loop.for %i_serial = 0 to 4 {
// CHECK-NEXT:        %v = loop.load %[[slab]][%j_thread, %i_serial * 8 + %i_thread]
// CHECK-NEXT:        loop.store %v, %out[%i_block * 32 + %i_serial * 8 + %i_thread, %j_block * 32 + %j_thread]
// A row is a word longer than what it holds: 33 are in 33 banks.
// CUDA-LABEL:  @turn
// CUDA:          kernel.shared {{.*}}1056
func.func @main(%x: tensor<288x512xf32>) -> tensor<512x288xf32> {
  %y = loop.kernel @turn(%x) : (tensor<288x512xf32>) -> tensor<512x288xf32> {
  ^bb0(%in: memref<288x512xf32>, %out: memref<512x288xf32>):
    tile.launch (%i = 512 : thread, %j = 288 : thread) {
      %v = loop.load %in[%j, %i] : memref<288x512xf32>
      loop.store %v, %out[%i, %j] : memref<512x288xf32>
    }
  }
  func.return %y : tensor<512x288xf32>
}

// -----

// Nothing divides anything: copies stand in front of the condition, stores are under it. Smaller tiles give
// each processor one.
// REMARK: remark: stage-transposes: ragged: tiles of 16 by 16: 36 sectors for a warp's points become 10
// CHECK-LABEL: loop.kernel @ragged
// CHECK:         tile.launch (%i_block = 13 : block, %j_block = 12 : block, %i_thread = 16 : thread, %j_thread = 16 : thread)
// CHECK-NEXT:      tile.stage %in[%j_block * 16, %i_block * 16] : memref<191x201xf32> -> memref<16x16xf32, "shared">
// CHECK-NEXT:      %[[in:.+]] = loop.test[%i_block * 16 + %i_thread < 201, %j_block * 16 + %j_thread < 191]
// CHECK-NEXT:      scf.if %[[in]] {
func.func @main(%x: tensor<191x201xf32>) -> tensor<201x191xf32> {
  %y = loop.kernel @ragged(%x) : (tensor<191x201xf32>) -> tensor<201x191xf32> {
  ^bb0(%in: memref<191x201xf32>, %out: memref<201x191xf32>):
    tile.launch (%i = 201 : thread, %j = 191 : thread) {
      %v = loop.load %in[%j, %i] : memref<191x201xf32>
      loop.store %v, %out[%i, %j] : memref<201x191xf32>
    }
  }
  func.return %y : tensor<201x191xf32>
}

// -----

// An element for each thread, and no condition: copies stand in front of all loads.
// REMARK: remark: stage-transposes: whole: tiles of 16 by 16: 68 sectors for a warp's points become 12
// CHECK-LABEL: loop.kernel @whole
// CHECK:         tile.launch
// CHECK-NEXT:      tile.stage %a[%j_block * 16, %i_block * 16]
// CHECK-NEXT:      tile.stage %b[%j_block * 16, %i_block * 16]
// CHECK-NEXT:      loop.load
// CHECK-NEXT:      loop.load
func.func @main(%x: tensor<160x256xf32>, %z: tensor<160x256xf32>) -> tensor<256x160xf32> {
  %y = loop.kernel @whole(%x, %z) : (tensor<160x256xf32>, tensor<160x256xf32>) -> tensor<256x160xf32> {
  ^bb0(%a: memref<160x256xf32>, %b: memref<160x256xf32>, %out: memref<256x160xf32>):
    tile.launch (%i = 256 : thread, %j = 160 : thread) {
      %v = loop.load %a[%j, %i] : memref<160x256xf32>
      %w = loop.load %b[%j, %i] : memref<160x256xf32>
      %s = arith.addf %v, %w : f32
      loop.store %s, %out[%i, %j] : memref<256x160xf32>
    }
  }
  func.return %y : tensor<256x160xf32>
}

// -----

// Channels go last in a batch of images. Operands of several element sizes are staged, one by one; what is
// read along its rows, or is the same for all rows, is not.
// REMARK: remark: stage-transposes: several: tiles of 32 by 32: 76 sectors for a warp's points become 18
// CHECK-LABEL: loop.kernel @several
// CHECK:         tile.launch (%n = 4 : block, %h = 12 : block, %c_block = 3 : block, %w_thread = 8 : thread, %c_thread = 32 : thread)
// CHECK-COUNT-2: tile.stage
// CHECK-NOT:     tile.stage
// CHECK-LABEL: loop.kernel @lines
// REMARK: remark: stage-transposes: lines: tiles of 2 by 14 by 16
// Lines of 14 pixels are short: a block takes several, which go on in memory.
// CHECK:         tile.launch
// CHECK-NEXT:      tile.stage %in[%n, %c_block * 16, %h_block * 2, 0] : memref<2x96x28x14xf32> -> memref<16x2x14xf32, "shared">
func.func @main(%x: tensor<4x96x12x32xf32>, %z: tensor<4x96x12x32xf16>, %b: tensor<4x12x32x96xf32>, %c: tensor<96xf32>, %s: tensor<2x96x28x14xf32>) -> (tensor<4x12x32x96xf32>, tensor<2x28x14x96xf32>) {
  %y = loop.kernel @several(%x, %z, %b, %c) : (tensor<4x96x12x32xf32>, tensor<4x96x12x32xf16>, tensor<4x12x32x96xf32>, tensor<96xf32>) -> tensor<4x12x32x96xf32> {
  ^bb0(%wide: memref<4x96x12x32xf32>, %half: memref<4x96x12x32xf16>, %straight: memref<4x12x32x96xf32>, %row: memref<96xf32>, %out: memref<4x12x32x96xf32>):
    tile.launch (%n = 4 : thread, %h = 12 : thread, %w = 32 : thread, %c = 96 : thread) {
      %v = loop.load %wide[%n, %c, %h, %w] : memref<4x96x12x32xf32>
      %u = loop.load %half[%n, %c, %h, %w] : memref<4x96x12x32xf16>
      %p = loop.load %straight[%n, %h, %w, %c] : memref<4x12x32x96xf32>
      %q = loop.load %row[%c] : memref<96xf32>
      %e = arith.extf %u : f16 to f32
      %1 = arith.addf %v, %e : f32
      %2 = arith.addf %1, %p : f32
      %3 = arith.addf %2, %q : f32
      loop.store %3, %out[%n, %h, %w, %c] : memref<4x12x32x96xf32>
    }
  }
  %t = loop.kernel @lines(%s) : (tensor<2x96x28x14xf32>) -> tensor<2x28x14x96xf32> {
  ^bb0(%in: memref<2x96x28x14xf32>, %out: memref<2x28x14x96xf32>):
    tile.launch (%n = 2 : thread, %h = 28 : thread, %w = 14 : thread, %c = 96 : thread) {
      %v = loop.load %in[%n, %c, %h, %w] : memref<2x96x28x14xf32>
      loop.store %v, %out[%n, %h, %w, %c] : memref<2x28x14x96xf32>
    }
  }
  func.return %y, %t : tensor<4x12x32x96xf32>, tensor<2x28x14x96xf32>
}

// -----

// Two halves of a result: blocks of one read what lies before the start of the other, which is 0. One of them
// is read backwards.
// REMARK: remark: stage-transposes: halves: tiles of 16 by 16: 68 sectors for a warp's points become 15
// CHECK-LABEL: loop.kernel @halves
// CHECK:           tile.stage %a[%j_block * 16, %i_block * 16] : memref<160x100xf32> -> memref<16x16xf32, "shared">
// CHECK-NEXT:      %[[b:.+]] = tile.stage %b[144 - %j_block * 16, %i_block * 16 - 100] : memref<160x150xf32> -> memref<16x16xf32, "shared">
// CHECK:           loop.load %[[b]][15 - %j_thread, %i_thread]
// CUDA-LABEL:  @halves
func.func @main(%x: tensor<160x100xf32>, %z: tensor<160x150xf32>) -> tensor<250x160xf32> {
  %y = loop.kernel @halves(%x, %z) : (tensor<160x100xf32>, tensor<160x150xf32>) -> tensor<250x160xf32> {
  ^bb0(%a: memref<160x100xf32>, %b: memref<160x150xf32>, %out: memref<250x160xf32>):
    tile.launch (%i = 250 : thread, %j = 160 : thread) {
      %first = loop.test[%i < 100]
      %v = scf.if %first -> (f32) {
        %p = loop.load %a[%j, %i] : memref<160x100xf32>
        scf.yield %p : f32
      } else {
        %q = loop.load %b[159 - %j, %i - 100] : memref<160x150xf32>
        scf.yield %q : f32
      }
      loop.store %v, %out[%i, %j] : memref<250x160xf32>
    }
  }
  func.return %y : tensor<250x160xf32>
}

// -----

// A short axis is in a tile whole, and the other one makes up for it; dynamic extents are extents.
// REMARK: remark: stage-transposes: short: tiles of 5 by 64
// REMARK: remark: stage-transposes: dynamic: tiles of 16 by 16
// CHECK-LABEL: loop.kernel @short
// CHECK:         tile.launch (%j_block = 110 : block, %i_thread = 3 : thread, %j_thread = 64 : thread)
// CHECK-NEXT:      tile.stage %in[%j_block * 64, 0] : memref<7001x5xf16> -> memref<64x5xf16, "shared">
// CHECK-LABEL: loop.kernel @dynamic
// CHECK:         tile.launch (%i_block = (s1 - 1) floordiv 16 + 1 : block, %j_block = (s0 - 1) floordiv 16 + 1 : block
func.func @main(%x: tensor<7001x5xf16>, %z: tensor<?x?xf32, #sym.extents<s0, s1>>) -> (tensor<5x7001xf16>, tensor<?x?xf32, #sym.extents<s1, s0>>) attributes {sym.sizes = [#sym.size<"n", 2, 4000, hint = 190>, #sym.size<"m", 2, 4000, hint = 200>]} {
  %y = loop.kernel @short(%x) : (tensor<7001x5xf16>) -> tensor<5x7001xf16> {
  ^bb0(%in: memref<7001x5xf16>, %out: memref<5x7001xf16>):
    tile.launch (%i = 5 : thread, %j = 7001 : thread) {
      %v = loop.load %in[%j, %i] : memref<7001x5xf16>
      loop.store %v, %out[%i, %j] : memref<5x7001xf16>
    }
  }
  %t = loop.kernel @dynamic(%z) : (tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x?xf32, #sym.extents<s1, s0>> {
  ^bb0(%in: memref<?x?xf32, #sym.extents<s0, s1>>, %out: memref<?x?xf32, #sym.extents<s1, s0>>):
    tile.launch (%i = s1 : thread, %j = s0 : thread) {
      %v = loop.load %in[%j, %i] : memref<?x?xf32, #sym.extents<s0, s1>>
      loop.store %v, %out[%i, %j] : memref<?x?xf32, #sym.extents<s1, s0>>
    }
  }
  func.return %y, %t : tensor<5x7001xf16>, tensor<?x?xf32, #sym.extents<s1, s0>>
}

// -----

// Declined: what is read along its rows; every other row, for rows between them would be copied as well; a small matrix; few columns, of which a warp reads
// whole runs.
// REMARK: remark: stage-transposes: straight: declined: no operand is read across its rows
// REMARK: remark: stage-transposes: other: declined: no slab takes fewer sectors than what is read of it
// REMARK: remark: stage-transposes: small: declined: 4096 elements are too few for 33792 threads
// REMARK: remark: stage-transposes: few: declined: 10 sectors for a warp's points would become 8
// CHECK-LABEL: loop.kernel @straight
// CHECK-NOT:   tile.stage
func.func @main(%x: tensor<256x256xf32>, %o0: tensor<400x256xf32>, %s: tensor<64x64xf32>, %f: tensor<3x20000xf32>) -> (tensor<256x256xf32>, tensor<256x200xf32>, tensor<64x64xf32>, tensor<20000x3xf32>) {
  %y = loop.kernel @straight(%x) : (tensor<256x256xf32>) -> tensor<256x256xf32> {
  ^bb0(%in: memref<256x256xf32>, %out: memref<256x256xf32>):
    tile.launch (%i = 256 : thread, %j = 256 : thread) {
      %v = loop.load %in[%i, %j] : memref<256x256xf32>
      %w = loop.load %in[%i, 3] : memref<256x256xf32>
      %u = arith.addf %v, %w : f32
      loop.store %u, %out[%i, %j] : memref<256x256xf32>
    }
  }
  %o = loop.kernel @other(%o0) : (tensor<400x256xf32>) -> tensor<256x200xf32> {
  ^bb0(%in: memref<400x256xf32>, %out: memref<256x200xf32>):
    tile.launch (%i = 256 : thread, %j = 200 : thread) {
      %v = loop.load %in[%j * 2, %i] : memref<400x256xf32>
      loop.store %v, %out[%i, %j] : memref<256x200xf32>
    }
  }
  %z = loop.kernel @small(%s) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) {
      %v = loop.load %in[%j, %i] : memref<64x64xf32>
      loop.store %v, %out[%i, %j] : memref<64x64xf32>
    }
  }
  %w = loop.kernel @few(%f) : (tensor<3x20000xf32>) -> tensor<20000x3xf32> {
  ^bb0(%in: memref<3x20000xf32>, %out: memref<20000x3xf32>):
    tile.launch (%i = 20000 : thread, %j = 3 : thread) {
      %v = loop.load %in[%j, %i] : memref<3x20000xf32>
      loop.store %v, %out[%i, %j] : memref<20000x3xf32>
    }
  }
  func.return %y, %o, %z, %w : tensor<256x256xf32>, tensor<256x200xf32>, tensor<64x64xf32>, tensor<20000x3xf32>
}

// -----

// Declined: rows that memory says; a sweep for each element; a contraction; threads that work together.
// REMARK: remark: stage-transposes: table: declined: no operand is read across its rows
// REMARK: remark: stage-transposes: sweep: declined: its body has loops
// REMARK: remark: stage-transposes: product: declined: it is a contraction
// REMARK: remark: stage-transposes: together: declined: its threads already work together
func.func @main(%x: tensor<256x256xf32>, %n: tensor<256xi64>) -> (tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>, tensor<4xf32>) {
  %y = loop.kernel @table(%x, %n) : (tensor<256x256xf32>, tensor<256xi64>) -> tensor<256x256xf32> {
  ^bb0(%in: memref<256x256xf32>, %rows: memref<256xi64>, %out: memref<256x256xf32>):
    tile.launch (%i = 256 : thread, %j = 256 : thread) {
      %r = loop.load %rows[%j] : memref<256xi64>
      %k = loop.checked_index %r below 256 : i64
      %v = loop.load %in[%k, %i] : memref<256x256xf32>
      loop.store %v, %out[%i, %j] : memref<256x256xf32>
    }
  }
  %z = loop.kernel @sweep(%x) : (tensor<256x256xf32>) -> tensor<256x256xf32> {
  ^bb0(%in: memref<256x256xf32>, %out: memref<256x256xf32>):
    tile.launch (%i = 256 : thread, %j = 256 : thread) {
      %v = loop.load %in[%j, %i] : memref<256x256xf32>
      %s = loop.for %k = 0 to 3 reduce(add) -> f32 {
        %e = loop.load %in[%k, %j] : memref<256x256xf32>
        %p = arith.mulf %v, %e : f32
        loop.yield %p : f32
      }
      loop.store %s, %out[%i, %j] : memref<256x256xf32>
    }
  }
  %w = loop.kernel @product(%x) : (tensor<256x256xf32>) -> tensor<256x256xf32> {
  ^bb0(%in: memref<256x256xf32>, %out: memref<256x256xf32>):
    tile.launch (%i = 256 : thread, %j = 256 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 16>) {
      %s = loop.for %k = 0 to 256 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<256x256xf32>
        %u = loop.load %in[%k, %j] : memref<256x256xf32>
        %p = arith.mulf %v, %u : f32
        loop.yield %p : f32
      }
      loop.store %s, %out[%i, %j] : memref<256x256xf32>
    }
  }
  %t = loop.kernel @together(%x) : (tensor<256x256xf32>) -> tensor<4xf32> {
  ^bb0(%in: memref<256x256xf32>, %out: memref<4xf32>):
    tile.launch (%i = 4 : thread, %j = 256 : thread) {
      %v = loop.load %in[%j, %i] : memref<256x256xf32>
      %s = tile.combine add %v over(%j) : f32
      loop.store %s, %out[%i] : memref<4xf32>
    }
  }
  func.return %y, %z, %w, %t : tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>, tensor<4xf32>
}
