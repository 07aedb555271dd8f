// RUN: deplo-opt %s --split-input-file -p 'split-axes{target=cpu}' | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p 'split-axes{target=cpu}' --check-each-pass >/dev/null
// RUN: deplo-opt %s --split-input-file -p 'split-axes{target=cpu}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --split-input-file -p split-axes{target=sm_80} --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=GPU
// RUN: deplo-opt %s --split-input-file -p split-axes{target=sm_80} | FileCheck %s --check-prefix=TILES
// RUN: deplo-opt %s --split-input-file -p split-axes{target=sm_80},stage-transposes,blockify-launch --check-each-pass >/dev/null

// Channels in 2 groups of 3: the input depends on the group, the weights on the place in it as well.
// CHECK-LABEL: loop.kernel @groups
// CHECK:         tile.launch (%j_part = 2 : thread, %j = 3 : thread, %l = 8 : thread) {
// CHECK:           loop.load %x[%j_part * 4 + %m, %l]
// CHECK:           loop.load %w[%j_part * 3 + %j, %m]
// CHECK:           loop.load %u[%j]
// CHECK:           %[[N:.*]] = loop.index[%j_part * 3 + %j]
// CHECK:           arith.index_cast %[[N]]
// CHECK:           loop.store %{{.*}}, %out[%j_part * 3 + %j, %l]
// REMARK: split-axes: groups: j is split in parts of 3
// GPU: split-axes: groups: j is split in parts of 3
func.func @main(%x: tensor<8x8xf32>, %w: tensor<6x4xf32>, %u: tensor<3xf32>) -> tensor<6x8xf32> {
  %y = loop.kernel @groups(%x, %w, %u) : (tensor<8x8xf32>, tensor<6x4xf32>, tensor<3xf32>) -> tensor<6x8xf32> {
  ^bb0(%x: memref<8x8xf32>, %w: memref<6x4xf32>, %u: memref<3xf32>, %out: memref<6x8xf32>):
    tile.launch (%j = 6 : thread, %l = 8 : thread) {
      %s = loop.for %m = 0 to 4 reduce(add) -> f32 {
        %p = loop.load %x[%j floordiv 3 * 4 + %m, %l] : memref<8x8xf32>
        %q = loop.load %w[%j, %m] : memref<6x4xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      %b = loop.load %u[%j mod 3] : memref<3xf32>
      %n = arith.index_cast %j : index to i32
      %f = arith.sitofp %n : i32 to f32
      %c = arith.addf %b, %f : f32
      %t = arith.addf %s, %c : f32
      loop.store %t, %out[%j, %l] : memref<6x8xf32>
    }
  }
  func.return %y : tensor<6x8xf32>
}

// -----

// A transposed convolution with a stride of 2: each weight belongs to one phase, and phases come first.
// CHECK-LABEL: loop.kernel @phases
// CHECK:         tile.launch (%l = 2 : thread, %j = 3 : thread, %l_part = 8 : thread) {
// CHECK:           loop.load %x[%m, %l_part - %n + 1]
// CHECK:           loop.load %w[%m, %j, %n * 2 + %l]
// CHECK:           loop.store %{{.*}}, %out[%j, %l_part * 2 + %l]
// REMARK: split-axes: phases: l is split in phases
// GPU: split-axes: phases: declined: no split makes it a contraction
func.func @main(%x: tensor<5x9xf32>, %w: tensor<5x3x4xf32>) -> tensor<3x16xf32> {
  %y = loop.kernel @phases(%x, %w) : (tensor<5x9xf32>, tensor<5x3x4xf32>) -> tensor<3x16xf32> {
  ^bb0(%x: memref<5x9xf32>, %w: memref<5x3x4xf32>, %out: memref<3x16xf32>):
    tile.launch (%j = 3 : thread, %l = 16 : thread) {
      %s = loop.for %m = 0 to 5 reduce(add) -> f32 {
        %t = loop.for %n = 0 to 2 reduce(add) -> f32 {
          %p = loop.load %x[%m, %l floordiv 2 - %n + 1] : memref<5x9xf32>
          %q = loop.load %w[%m, %j, %l mod 2 + %n * 2] : memref<5x3x4xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%j, %l] : memref<3x16xf32>
    }
  }
  func.return %y : tensor<3x16xf32>
}

// -----

// CHECK-LABEL: func.func @main
// REMARK: split-axes: heads: declined: it is a contraction as it is
// REMARK: split-axes: copy: declined: no index divides an axis
// REMARK: split-axes: sum: declined: no split makes it a contraction
// REMARK: split-axes: again: declined: the launch is partitioned already
func.func @main(%x: tensor<4x8x4xf32>, %w: tensor<2x8x4xf32>, %v: tensor<6xf32>) -> (tensor<4x8x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %y = loop.kernel @heads(%x, %w) : (tensor<4x8x4xf32>, tensor<2x8x4xf32>) -> tensor<4x8x8xf32> {
  ^bb0(%x: memref<4x8x4xf32>, %w: memref<2x8x4xf32>, %out: memref<4x8x8xf32>):
    tile.launch (%h = 4 : thread, %i = 8 : thread, %j = 8 : thread) {
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %p = loop.load %x[%h, %i, %k] : memref<4x8x4xf32>
        %q = loop.load %w[%h floordiv 2, %j, %k] : memref<2x8x4xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%h, %i, %j] : memref<4x8x8xf32>
    }
  }
  %a = loop.kernel @copy(%v) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%v: memref<6xf32>, %out: memref<6xf32>):
    tile.launch (%i = 6 : thread) {
      %p = loop.load %v[%i] : memref<6xf32>
      loop.store %p, %out[%i] : memref<6xf32>
    }
  }
  %b = loop.kernel @sum(%v) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%v: memref<6xf32>, %out: memref<6xf32>):
    tile.launch (%i = 6 : thread) {
      %p = loop.load %v[%i floordiv 2] : memref<6xf32>
      loop.store %p, %out[%i] : memref<6xf32>
    }
  }
  %c = loop.kernel @again(%v) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%v: memref<6xf32>, %out: memref<6xf32>):
    tile.launch (%i = 6 : block) {
      %p = loop.load %v[%i floordiv 2] : memref<6xf32>
      loop.store %p, %out[%i] : memref<6xf32>
    }
  }
  func.return %y, %a, %b, %c : tensor<4x8x8xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// -----

// What is repeated is read by loops as long as it is; a short one is not.
// CHECK-LABEL: loop.kernel @repeat
// CHECK:         tile.launch (%i = 8 : thread, %j_part = 3 : thread, %j = 64 : thread) {
// CHECK:           loop.load %x[%i mod 2, %j]
// CHECK:           loop.store %{{.*}}, %out[%i, %j_part * 64 + %j]
// REMARK: split-axes: repeat: j is split in parts of 64
// GPU: split-axes: repeat: declined: no index divides an axis
// CHECK-LABEL: loop.kernel @short
// CHECK:         tile.launch (%i = 8 : thread, %j = 192 : thread) {
// REMARK: split-axes: short: declined: no index divides an axis
func.func @main(%x: tensor<2x64xf32>, %y: tensor<2x32xf32>) -> (tensor<8x192xf32>, tensor<8x192xf32>) {
  %a = loop.kernel @repeat(%x) : (tensor<2x64xf32>) -> tensor<8x192xf32> {
  ^bb0(%x: memref<2x64xf32>, %out: memref<8x192xf32>):
    tile.launch (%i = 8 : thread, %j = 192 : thread) {
      %v = loop.load %x[%i mod 2, %j mod 64] : memref<2x64xf32>
      loop.store %v, %out[%i, %j] : memref<8x192xf32>
    }
  }
  %b = loop.kernel @short(%y) : (tensor<2x32xf32>) -> tensor<8x192xf32> {
  ^bb0(%y: memref<2x32xf32>, %out: memref<8x192xf32>):
    tile.launch (%i = 8 : thread, %j = 192 : thread) {
      %v = loop.load %y[%i mod 2, %j mod 32] : memref<2x32xf32>
      loop.store %v, %out[%i, %j] : memref<8x192xf32>
    }
  }
  func.return %a, %b : tensor<8x192xf32>, tensor<8x192xf32>
}

// -----

// Rows of a reduction stay what they are; where neighbours are read, they are split.
// CHECK-LABEL: loop.kernel @rows
// CHECK:         tile.launch (%i = 2 : thread, %j = 128 : thread) {
// REMARK: split-axes: rows: declined: no index divides an axis
// CHECK-LABEL: loop.kernel @columns
// CHECK:         tile.launch (%i = 2 : thread, %j_part = 2 : thread, %j = 64 : thread) {
// REMARK: split-axes: columns: j is split in parts of 64
func.func @main(%x: tensor<2x128x9xf32>, %m: tensor<64x9xf32>, %n: tensor<9x64xf32>) -> (tensor<2x128xf32>, tensor<2x128xf32>) {
  %a = loop.kernel @rows(%x, %m) : (tensor<2x128x9xf32>, tensor<64x9xf32>) -> tensor<2x128xf32> {
  ^bb0(%x: memref<2x128x9xf32>, %m: memref<64x9xf32>, %out: memref<2x128xf32>):
    tile.launch (%i = 2 : thread, %j = 128 : thread) {
      %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
        %p = loop.load %x[%i, %j, %k] : memref<2x128x9xf32>
        %q = loop.load %m[%j mod 64, %k] : memref<64x9xf32>
        %r = arith.addf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<2x128xf32>
    }
  }
  %b = loop.kernel @columns(%n) : (tensor<9x64xf32>) -> tensor<2x128xf32> {
  ^bb0(%n: memref<9x64xf32>, %out: memref<2x128xf32>):
    tile.launch (%i = 2 : thread, %j = 128 : thread) {
      %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
        %q = loop.load %n[%k, %j mod 64] : memref<9x64xf32>
        loop.yield %q : f32
      }
      loop.store %s, %out[%i, %j] : memref<2x128xf32>
    }
  }
  func.return %a, %b : tensor<2x128xf32>, tensor<2x128xf32>
}

// -----

// What makes a contraction comes before what is repeated.
// CHECK-LABEL: loop.kernel @groups_and_repeated
// CHECK:         tile.launch (%j_part = 2 : thread, %j = 3 : thread, %l = 128 : thread) {
// REMARK: split-axes: groups_and_repeated: j is split in parts of 3
func.func @main(%x: tensor<8x128xf32>, %w: tensor<6x4xf32>, %u: tensor<64xf32>) -> tensor<6x128xf32> {
  %y = loop.kernel @groups_and_repeated(%x, %w, %u) : (tensor<8x128xf32>, tensor<6x4xf32>, tensor<64xf32>) -> tensor<6x128xf32> {
  ^bb0(%x: memref<8x128xf32>, %w: memref<6x4xf32>, %u: memref<64xf32>, %out: memref<6x128xf32>):
    tile.launch (%j = 6 : thread, %l = 128 : thread) {
      %s = loop.for %m = 0 to 4 reduce(add) -> f32 {
        %p = loop.load %x[%j floordiv 3 * 4 + %m, %l] : memref<8x128xf32>
        %q = loop.load %w[%j, %m] : memref<6x4xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      %b = loop.load %u[%l mod 64] : memref<64xf32>
      %t = arith.addf %s, %b : f32
      loop.store %t, %out[%j, %l] : memref<6x128xf32>
    }
  }
  func.return %y : tensor<6x128xf32>
}

// -----

// A transposed matrix that is a row now, and two that are: on a GPU, tiles have rows and columns of their parts.
// Few elements, and rows that are read one after the other, are left as they are.
// GPU: split-axes: flat: i is split in parts of 160
// GPU: split-axes: batch: i is split in parts of 16000, i is split in parts of 160
// GPU: split-axes: little: declined: no split makes it a contraction
// GPU: split-axes: straight: declined: no split makes it a contraction
// TILES-LABEL: loop.kernel @flat
// TILES:         tile.launch (%i_part = 200 : thread, %i = 160 : thread) {
// TILES-NEXT:      loop.load %in[%i, %i_part]
// TILES-NEXT:      loop.store %v, %out[%i_part * 160 + %i]
// TILES-LABEL: loop.kernel @batch
// TILES:         tile.launch (%i_part = 2 : thread, %i_part_part = 100 : thread, %i = 160 : thread) {
// TILES-NEXT:      loop.load %in[%i_part, %i, %i_part_part]
func.func @main(%x: tensor<160x200xf32>, %z: tensor<2x160x100xf32>, %s: tensor<16x20xf32>) -> (tensor<32000xf32>, tensor<32000xf32>, tensor<320xf32>, tensor<32000xf32>) {
  %a = loop.kernel @flat(%x) : (tensor<160x200xf32>) -> tensor<32000xf32> {
  ^bb0(%in: memref<160x200xf32>, %out: memref<32000xf32>):
    tile.launch (%i = 32000 : thread) {
      %v = loop.load %in[%i mod 160, %i floordiv 160] : memref<160x200xf32>
      loop.store %v, %out[%i] : memref<32000xf32>
    }
  }
  %b = loop.kernel @batch(%z) : (tensor<2x160x100xf32>) -> tensor<32000xf32> {
  ^bb0(%in: memref<2x160x100xf32>, %out: memref<32000xf32>):
    tile.launch (%i = 32000 : thread) {
      %v = loop.load %in[%i floordiv 16000, %i mod 160, %i floordiv 160 mod 100] : memref<2x160x100xf32>
      loop.store %v, %out[%i] : memref<32000xf32>
    }
  }
  %c = loop.kernel @little(%s) : (tensor<16x20xf32>) -> tensor<320xf32> {
  ^bb0(%in: memref<16x20xf32>, %out: memref<320xf32>):
    tile.launch (%i = 320 : thread) {
      %v = loop.load %in[%i mod 16, %i floordiv 16] : memref<16x20xf32>
      loop.store %v, %out[%i] : memref<320xf32>
    }
  }
  %d = loop.kernel @straight(%x) : (tensor<160x200xf32>) -> tensor<32000xf32> {
  ^bb0(%in: memref<160x200xf32>, %out: memref<32000xf32>):
    tile.launch (%i = 32000 : thread) {
      %v = loop.load %in[%i floordiv 200, %i mod 200] : memref<160x200xf32>
      loop.store %v, %out[%i] : memref<32000xf32>
    }
  }
  func.return %a, %b, %c, %d : tensor<32000xf32>, tensor<32000xf32>, tensor<320xf32>, tensor<32000xf32>
}

// -----

// A size that is a multiple has phases as well, however large it is.
// CHECK-LABEL: loop.kernel @phases_of_sizes
// CHECK:         tile.launch (%l = 2 : thread, %j = 6 : thread, %l_part = s0 : thread) {
// CHECK:           loop.load %x[%m, %l_part]
// CHECK:           loop.load %w[%m, %j, %l]
// CHECK:           loop.store %{{.*}}, %out[%j, %l_part * 2 + %l]
// REMARK: split-axes: phases_of_sizes: l is split in phases
func.func @main(%x: tensor<4x?xf32, #sym.extents<s0>>, %w: tensor<4x6x2xf32>) -> tensor<6x?xf32, #sym.extents<s0 * 2>> {
  %y = loop.kernel @phases_of_sizes(%x, %w) : (tensor<4x?xf32, #sym.extents<s0>>, tensor<4x6x2xf32>) -> tensor<6x?xf32, #sym.extents<s0 * 2>> {
  ^bb0(%x: memref<4x?xf32, #sym.extents<s0>>, %w: memref<4x6x2xf32>, %out: memref<6x?xf32, #sym.extents<s0 * 2>>):
    tile.launch (%j = 6 : thread, %l = s0 * 2 : thread) {
      %s = loop.for %m = 0 to 4 reduce(add) -> f32 {
        %p = loop.load %x[%m, %l floordiv 2] : memref<4x?xf32, #sym.extents<s0>>
        %q = loop.load %w[%m, %j, %l mod 2] : memref<4x6x2xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%j, %l] : memref<6x?xf32, #sym.extents<s0 * 2>>
    }
  }
  func.return %y : tensor<6x?xf32, #sym.extents<s0 * 2>>
}

// -----

// What is repeated, of a size: the places of a part walk along memory.
// CHECK-LABEL: loop.kernel @repeats_of_sizes
// CHECK:         tile.launch (%l_part = 3 : thread, %l = s0 : thread) {
// CHECK-NEXT:      loop.load %x[%l]
// CHECK-NEXT:      loop.store %{{.*}}, %out[%l_part * s0 + %l]
// REMARK: split-axes: repeats_of_sizes: l is split in parts of s0
func.func @main(%x: tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0 * 3>> attributes {sym.sizes = [#sym.size<"n", 2, none, hint = 100>]} {
  %y = loop.kernel @repeats_of_sizes(%x) : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0 * 3>> {
  ^bb0(%x: memref<?xf32, #sym.extents<s0>>, %out: memref<?xf32, #sym.extents<s0 * 3>>):
    tile.launch (%l = s0 * 3 : thread) {
      %v = loop.load %x[%l mod s0] : memref<?xf32, #sym.extents<s0>>
      loop.store %v, %out[%l] : memref<?xf32, #sym.extents<s0 * 3>>
    }
  }
  func.return %y : tensor<?xf32, #sym.extents<s0 * 3>>
}

// -----

// Groups whose channels need something first: a CPU makes the columns an axis as well, and then packs them.
// CHECK-LABEL: loop.kernel @scaled_groups
// CHECK:         tile.launch (%j_part = 2 : thread, %j = 3 : thread) {
// CHECK:           loop.for %l = 0 to 8 {
// REMARK: split-axes: scaled_groups: j is split in parts of 3
// GPU: split-axes: scaled_groups: declined: no split makes it a contraction
func.func @main(%x: tensor<8x8xf32>, %w: tensor<6x4xf32>, %u: tensor<6xf32>) -> tensor<6x8xf32> {
  %y = loop.kernel @scaled_groups(%x, %w, %u) : (tensor<8x8xf32>, tensor<6x4xf32>, tensor<6xf32>) -> tensor<6x8xf32> {
  ^bb0(%x: memref<8x8xf32>, %w: memref<6x4xf32>, %u: memref<6xf32>, %out: memref<6x8xf32>):
    tile.launch (%j = 6 : thread) {
      %v = loop.load %u[%j] : memref<6xf32>
      %e = math.rsqrt %v : f32
      loop.for %l = 0 to 8 {
        %s = loop.for %m = 0 to 4 reduce(add) -> f32 {
          %p = loop.load %x[%j floordiv 3 * 4 + %m, %l] : memref<8x8xf32>
          %q = loop.load %w[%j, %m] : memref<6x4xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        %t = arith.mulf %s, %e : f32
        loop.store %t, %out[%j, %l] : memref<6x8xf32>
      }
    }
  }
  func.return %y : tensor<6x8xf32>
}
