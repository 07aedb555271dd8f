// RUN: deplo-opt %s -p schedule --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'schedule{block_m=16 block_n=16 thread_m=2 thread_n=2},schedule' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p schedule --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=MODEL
// RUN: deplo-opt %s -p 'schedule{thread_m=16 thread_n=16}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=LARGE
// RUN: deplo-opt %s -p 'schedule{block_k=1024 block_m=64 block_n=64}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=DEEP
// RUN: not deplo-opt %s -p 'schedule{block_m=16 thread_m=3}' 2>&1 | FileCheck %s --check-prefix=THIRDS
// RUN: not deplo-opt %s -p 'schedule{block_m=64 block_n=64 thread_m=1 thread_n=1}' 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: deplo-opt %s -p 'schedule{mma=1}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=MMA
// RUN: not deplo-opt %s -p 'schedule{mma=1 thread_m=3}' 2>&1 | FileCheck %s --check-prefix=PAIRS
// RUN: not deplo-opt %s -p 'schedule{mma=1 block_n=64 thread_n=8}' 2>&1 | FileCheck %s --check-prefix=LANES
// RUN: deplo-opt %s -p 'schedule{mma=2}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=GROUPS
// RUN: deplo-opt %s -p 'schedule{transport=tma block_m=512 block_n=64 thread_m=8 thread_n=8}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=TALL
// RUN: not deplo-opt %s -p 'schedule{mma=2 block_k=32}' 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: not deplo-opt %s -p 'schedule{mma=2 block_m=32}' 2>&1 | FileCheck %s --check-prefix=ROWS

// x @ W^T: the model chooses, options override it, and what is decided stays.
// CHECK-LABEL: loop.kernel @linear
// CHECK:         tile.launch (%i = 512 : thread, %j = 3584 : thread) schedule(#tile.schedule<m = 0, n = 1,
// CHECK-SAME:      block_m = 64, block_n = 128, block_k = 16, thread_m = 8, thread_n = 8, stages = 2, transport = tma>)
// REMARK: remark: schedule: linear: blocks of 16 by 16, threads of 2 by 2
// REMARK: remark: schedule: linear: declined: it has a schedule already
// MODEL: remark: schedule: linear: blocks of 64 by 128, threads of 8 by 8: 224 blocks for 132 multiprocessors, each with room for {{[0-9]+}}; about {{[0-9.]+}} kcycles
// LARGE: remark: schedule: linear: declined: threads of 256 sums need about 528 registers; {{.*}} threads of sm_90a have {{.*}} each
// DEEP: remark: schedule: linear: declined: slabs of 524288 bytes, 532480 when padded, exceed the 232448 that a block of sm_90a can have
// THIRDS: error: {{.*}}schedule: thread_m = 3 does not divide block_m = 16
// MANY: error: {{.*}}schedule: blocks of 64 by 64 with threads of 1 by 1 have 4096 threads; a block has at most 1024
// MMA: remark: schedule: linear: declined: it is no sum of products of bf16, f16 or tf32, or there are no tensor cores
// PAIRS: error: {{.*}}schedule: for mma, threads compute 2 rows and 2 columns at once, and block_k is a multiple of 16, not 3 by 4 and 32
// LANES: error: {{.*}}schedule: for mma, 4 threads share a row and 32 multiply together; blocks of 64 by 64 have threads of 2 by 8
// GROUPS: remark: schedule: linear: declined: it is no sum of products of bf16, f16 or tf32, or there are no tensor cores
// TALL: remark: schedule: linear: declined: boxes have at most 256 rows
// RUN: not deplo-opt %s -p 'schedule{mma=0 cluster_m=2}' 2>&1 | FileCheck %s --check-prefix=CLUSTER
// RUN: not deplo-opt %s -p 'schedule{mma=2 cluster_m=2 cluster_n=2}' 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not deplo-opt %s -p 'schedule{mma=2 block_n=24 cluster_m=2}' 2>&1 | FileCheck %s --check-prefix=PART
// CLUSTER: error: {{.*}}schedule: clusters share slabs that warpgroups multiply
// TWICE: error: {{.*}}schedule: clusters are along M or along N, not both
// PART: error: {{.*}}schedule: 24 rows of a slab are not shared evenly by 2 blocks
// SHORT: error: {{.*}}schedule: warpgroups multiply slabs of 64 positions of K that the copy engine fills
// ROWS: error: {{.*}}schedule: a warpgroup multiplies 64 rows at once, and 32 are not that often
func.func @main(%x: tensor<512x3584xf32>, %w: tensor<3584x3584xf32>) -> tensor<512x3584xf32> {
  %y = loop.kernel @linear(%x, %w) : (tensor<512x3584xf32>, tensor<3584x3584xf32>) -> tensor<512x3584xf32> {
  ^bb0(%x: memref<512x3584xf32>, %w: memref<3584x3584xf32>, %out: memref<512x3584xf32>):
    tile.launch (%i = 512 : thread, %j = 3584 : thread) {
      %s = loop.for %k = 0 to 3584 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<512x3584xf32>
        %q = loop.load %w[%j, %k] : memref<3584x3584xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<512x3584xf32>
    }
  }
  func.return %y : tensor<512x3584xf32>
}

// -----

// A batch of products: the batch is neither rows nor columns.
// CHECK-LABEL: loop.kernel @batched
// CHECK:         schedule(#tile.schedule<m = 1, n = 2,
func.func @main(%x: tensor<4x64x32xf32>, %w: tensor<4x32x64xf32>) -> tensor<4x64x64xf32> {
  %y = loop.kernel @batched(%x, %w) : (tensor<4x64x32xf32>, tensor<4x32x64xf32>) -> tensor<4x64x64xf32> {
  ^bb0(%x: memref<4x64x32xf32>, %w: memref<4x32x64xf32>, %out: memref<4x64x64xf32>):
    tile.launch (%b = 4 : thread, %i = 64 : thread, %j = 64 : thread) {
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %p = loop.load %x[%b, %i, %k] : memref<4x64x32xf32>
        %q = loop.load %w[%b, %k, %j] : memref<4x32x64xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%b, %i, %j] : memref<4x64x64xf32>
    }
  }
  func.return %y : tensor<4x64x64xf32>
}

// -----

// REMARK: remark: schedule: pointwise: declined: no reduce loop in the body
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = loop.kernel @pointwise(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8xf32>, %out: memref<8xf32>):
    tile.launch (%i = 8 : thread) {
      %p = loop.load %x[%i] : memref<8xf32>
      loop.store %p, %out[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// -----

// REMARK: remark: schedule: rows: declined: no reduce of operands that depend on different axes
func.func @main(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %y = loop.kernel @rows(%x) : (tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %out: memref<8xf32>):
    tile.launch (%i = 8 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<8x64xf32>
        loop.yield %p : f32
      }
      loop.store %s, %out[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// -----

// REMARK: remark: schedule: two: declined: 2 sweeps in the body; a contraction has one
func.func @main(%x: tensor<8x64xf32>) -> tensor<8xf32> {
  %y = loop.kernel @two(%x) : (tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %out: memref<8xf32>):
    tile.launch (%i = 8 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<8x64xf32>
        loop.yield %p : f32
      }
      %t = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<8x64xf32>
        %q = arith.mulf %p, %s : f32
        loop.yield %q : f32
      }
      loop.store %t, %out[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// -----

// Too little work, an operand read along its diagonals, and a condition in the sweep.
// MODEL: remark: schedule: small: declined: 4096 multiply-adds are too few to share operands for
// REMARK: remark: schedule: diagonal: declined: an operand is not read position by position
// REMARK: remark: schedule: padded: declined: the sweep has loops or conditions of its own
func.func @main(%x: tensor<16x16xf32>, %w: tensor<256x256xf32>) -> (tensor<16x16xf32>, tensor<128x128xf32>, tensor<64x64xf32>) {
  %a = loop.kernel @small(%x) : (tensor<16x16xf32>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x16xf32>, %out: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) {
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<16x16xf32>
        %q = loop.load %x[%j, %k] : memref<16x16xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<16x16xf32>
    }
  }
  %b = loop.kernel @diagonal(%w) : (tensor<256x256xf32>) -> tensor<128x128xf32> {
  ^bb0(%w: memref<256x256xf32>, %out: memref<128x128xf32>):
    tile.launch (%i = 128 : thread, %j = 128 : thread) {
      %s = loop.for %k = 0 to 128 reduce(add) -> f32 {
        %p = loop.load %w[%i + %k, %k] : memref<256x256xf32>
        %q = loop.load %w[%j, %k] : memref<256x256xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<128x128xf32>
    }
  }
  %c = loop.kernel @padded(%w) : (tensor<256x256xf32>) -> tensor<64x64xf32> {
  ^bb0(%w: memref<256x256xf32>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %in = loop.test[%i + %k < 100]
        %p = loop.load %w[%i, %k] : memref<256x256xf32>
        %q = loop.load %w[%j, %k] : memref<256x256xf32>
        %r = arith.select %in, %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<64x64xf32>
    }
  }
  func.return %a, %b, %c : tensor<16x16xf32>, tensor<128x128xf32>, tensor<64x64xf32>
}

// -----

// REMARK: remark: schedule: scaled: declined: the sweep needs what is loaded before it for each row or column
// REMARK: remark: schedule: checked: declined: it checks indices from data
func.func @main(%x: tensor<64x64xf32>, %ids: tensor<64xi64>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %a = loop.kernel @scaled(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x64xf32>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) {
      %d = loop.load %x[%i, 0] : memref<64x64xf32>
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<64x64xf32>
        %q = loop.load %x[%j, %k] : memref<64x64xf32>
        %r = arith.mulf %p, %q : f32
        %t = arith.mulf %r, %d : f32
        loop.yield %t : f32
      }
      loop.store %s, %out[%i, %j] : memref<64x64xf32>
    }
  }
  %b = loop.kernel @checked(%x, %ids) : (tensor<64x64xf32>, tensor<64xi64>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x64xf32>, %ids: memref<64xi64>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) {
      %id = loop.load %ids[%i] : memref<64xi64>
      %row = loop.checked_index %id below 64 : i64
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%row, %k] : memref<64x64xf32>
        %q = loop.load %x[%j, %k] : memref<64x64xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<64x64xf32>
    }
  }
  func.return %a, %b : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// Halves that are added up in f32: warpgroups multiply slabs, or warps matrices.
// CHECK-LABEL: loop.kernel @halves
// CHECK:         schedule(#tile.schedule<m = 0, n = 1, block_m = 128, block_n = 256, block_k = 64, thread_m = 2, thread_n = 64, mma = 2, stages = 4, transport = tma>)
// MMA: remark: schedule: halves: blocks of 128 by 128, threads of 4 by 32: {{.*}}
func.func @main(%x: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  %y = loop.kernel @halves(%x, %w) : (tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) -> tensor<4096x4096xbf16> {
  ^bb0(%x: memref<4096x4096xbf16>, %w: memref<4096x4096xbf16>, %out: memref<4096x4096xbf16>):
    tile.launch (%i = 4096 : thread, %j = 4096 : thread) {
      %s = loop.for %k = 0 to 4096 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<4096x4096xbf16>
        %q = loop.load %w[%j, %k] : memref<4096x4096xbf16>
        %f = arith.extf %p : bf16 to f32
        %g = arith.extf %q : bf16 to f32
        %r = arith.mulf %f, %g : f32
        loop.yield %r : f32
      }
      %t = arith.truncf %s : f32 to bf16
      loop.store %t, %out[%i, %j] : memref<4096x4096xbf16>
    }
  }
  func.return %y : tensor<4096x4096xbf16>
}

// -----

// Numbers in f32 that are rounded to tf32 first: warps multiply those, in chunks of half as many.
// GROUPS: remark: schedule: rounded: declined: warpgroups multiply bf16 and f16, on targets that have them
// CHECK-LABEL: loop.kernel @rounded
// CHECK:         schedule(#tile.schedule<m = 0, n = 1, block_m = 128, block_n = 128, block_k = 16, thread_m = 4, thread_n = 32, mma = 1>)
func.func @main(%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %y = loop.kernel @rounded(%x, %w) : (tensor<4096x4096xf32>, tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  ^bb0(%x: memref<4096x4096xf32>, %w: memref<4096x4096xf32>, %out: memref<4096x4096xf32>):
    tile.launch (%i = 4096 : thread, %j = 4096 : thread) {
      %s = loop.for %k = 0 to 4096 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<4096x4096xf32>
        %a = arith.truncf %p : f32 to tf32
        %f = arith.extf %a : tf32 to f32
        %q = loop.load %w[%j, %k] : memref<4096x4096xf32>
        %b = arith.truncf %q : f32 to tf32
        %g = arith.extf %b : tf32 to f32
        %r = arith.mulf %f, %g : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<4096x4096xf32>
    }
  }
  func.return %y : tensor<4096x4096xf32>
}

// -----

// Every second pixel is a box, too, twice as wide; what windows read past the end of K need not be 0, so its parts are alike.
// RUN: deplo-opt %s -p 'schedule{split_k=5}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=PARTS
// MODEL: remark: schedule: strided: blocks of
// PARTS: remark: schedule: strided: declined: K of 192 has no 5 parts that are alike, as those of windows must be
// PARTS: remark: schedule: strided: blocks of
// RUN: deplo-opt %s -p 'schedule{block_k=40}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=WHOLE
// WHOLE: remark: schedule: strided: declined: K of 192, the positions of windows, has no whole parts of 40
// RUN: deplo-opt %s -p 'schedule{block_k=96}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=BETWEEN
// BETWEEN: remark: schedule: strided: declined: parts of 96 positions of windows are no boxes
func.func @main(%x: tensor<64x64xf16>, %w: tensor<3x64x64xf16>) -> tensor<64x32xf32> {
  %y = loop.kernel @strided(%x, %w) : (tensor<64x64xf16>, tensor<3x64x64xf16>) -> tensor<64x32xf32> {
  ^bb0(%x: memref<64x64xf16>, %w: memref<3x64x64xf16>, %out: memref<64x32xf32>):
    tile.launch (%j = 64 : thread, %z = 32 : thread) {
      %s = loop.for %k = 0 to 192 reduce(add) -> f32 {
        %inside = loop.test[%z * 2 + %k floordiv 64 >= 1]
        %v = scf.if %inside -> (f16) {
          %e = loop.load %x[%k mod 64, %z * 2 + %k floordiv 64 - 1] : memref<64x64xf16>
          scf.yield %e : f16
        } else {
          %zero = arith.constant 0.0 : f16
          scf.yield %zero : f16
        }
        %a = arith.extf %v : f16 to f32
        %u = loop.load %w[%k floordiv 64, %j, %k mod 64] : memref<3x64x64xf16>
        %b = arith.extf %u : f16 to f32
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %out[%j, %z] : memref<64x32xf32>
    }
  }
  func.return %y : tensor<64x32xf32>
}

// -----

// Rows of 1001 elements are no boxes of the copy engine's; threads fill the slabs.
// GROUPS: remark: schedule: odd: declined: an operand comes in no boxes that a copy engine fills
// CHECK-LABEL: loop.kernel @odd
// CHECK-NOT:     transport
// CHECK:         loop.for %k
func.func @main(%x: tensor<512x1001xbf16>, %w: tensor<512x1001xbf16>) -> tensor<512x512xf32> {
  %y = loop.kernel @odd(%x, %w) : (tensor<512x1001xbf16>, tensor<512x1001xbf16>) -> tensor<512x512xf32> {
  ^bb0(%x: memref<512x1001xbf16>, %w: memref<512x1001xbf16>, %out: memref<512x512xf32>):
    tile.launch (%i = 512 : thread, %j = 512 : thread) {
      %s = loop.for %k = 0 to 1001 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<512x1001xbf16>
        %q = loop.load %w[%j, %k] : memref<512x1001xbf16>
        %f = arith.extf %p : bf16 to f32
        %g = arith.extf %q : bf16 to f32
        %r = arith.mulf %f, %g : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<512x512xf32>
    }
  }
  func.return %y : tensor<512x512xf32>
}

// -----

// Positions of K in heads, as attention gives them: 64 at a time are neighbours.
// GROUPS: remark: schedule: heads: blocks of
// CHECK-LABEL: loop.kernel @heads
// CHECK:         schedule(#tile.schedule<{{.*}} block_k = 64, {{.*}} mma = 2,
func.func @main(%x: tensor<4x512x128xbf16>, %w: tensor<512x512xbf16>) -> tensor<512x512xf32> {
  %y = loop.kernel @heads(%x, %w) : (tensor<4x512x128xbf16>, tensor<512x512xbf16>) -> tensor<512x512xf32> {
  ^bb0(%x: memref<4x512x128xbf16>, %w: memref<512x512xbf16>, %out: memref<512x512xf32>):
    tile.launch (%i = 512 : thread, %j = 512 : thread) {
      %s = loop.for %k = 0 to 512 reduce(add) -> f32 {
        %p = loop.load %x[%k floordiv 128, %i, %k mod 128] : memref<4x512x128xbf16>
        %q = loop.load %w[%j, %k] : memref<512x512xbf16>
        %f = arith.extf %p : bf16 to f32
        %g = arith.extf %q : bf16 to f32
        %r = arith.mulf %f, %g : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<512x512xf32>
    }
  }
  func.return %y : tensor<512x512xf32>
}

// -----

// Of heads of 32 they are not.
// GROUPS: remark: schedule: narrow: declined: warpgroups multiply rows that have K innermost by columns that have K or these
// CHECK-LABEL: loop.kernel @narrow
// CHECK:         mma = 1
func.func @main(%x: tensor<16x512x32xbf16>, %w: tensor<512x512xbf16>) -> tensor<512x512xf32> {
  %y = loop.kernel @narrow(%x, %w) : (tensor<16x512x32xbf16>, tensor<512x512xbf16>) -> tensor<512x512xf32> {
  ^bb0(%x: memref<16x512x32xbf16>, %w: memref<512x512xbf16>, %out: memref<512x512xf32>):
    tile.launch (%i = 512 : thread, %j = 512 : thread) {
      %s = loop.for %k = 0 to 512 reduce(add) -> f32 {
        %p = loop.load %x[%k floordiv 32, %i, %k mod 32] : memref<16x512x32xbf16>
        %q = loop.load %w[%j, %k] : memref<512x512xbf16>
        %f = arith.extf %p : bf16 to f32
        %g = arith.extf %q : bf16 to f32
        %r = arith.mulf %f, %g : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<512x512xf32>
    }
  }
  func.return %y : tensor<512x512xf32>
}

// -----

// Columns may be innermost, too, in whole panels.
// RUN: deplo-opt %s -p 'schedule{mma=2 block_n=96}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=PANELS
// GROUPS: remark: schedule: across: blocks of
// PANELS: remark: schedule: across: declined: columns that are innermost come in 64s, and 96 do not
// CHECK-LABEL: loop.kernel @across
// CHECK:         schedule(#tile.schedule<m = 0, n = 1, block_m = 128, block_n = 256, block_k = 64, thread_m = 2, thread_n = 64, mma = 2, stages = 4, transport = tma>)
func.func @main(%x: tensor<4096x4096xf16>, %w: tensor<4096x4096xf16>) -> tensor<4096x4096xf32> {
  %y = loop.kernel @across(%x, %w) : (tensor<4096x4096xf16>, tensor<4096x4096xf16>) -> tensor<4096x4096xf32> {
  ^bb0(%x: memref<4096x4096xf16>, %w: memref<4096x4096xf16>, %out: memref<4096x4096xf32>):
    tile.launch (%i = 4096 : thread, %j = 4096 : thread) {
      %s = loop.for %k = 0 to 4096 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<4096x4096xf16>
        %q = loop.load %w[%k, %j] : memref<4096x4096xf16>
        %f = arith.extf %p : f16 to f32
        %g = arith.extf %q : f16 to f32
        %r = arith.mulf %f, %g : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<4096x4096xf32>
    }
  }
  func.return %y : tensor<4096x4096xf32>
}

// -----

// Pixels of an image whose lines end in between are columns in no panels: warps multiply them.
// GROUPS: remark: schedule: pixels: declined: blocks of 256 columns have no whole lines of 56
// CHECK-LABEL: loop.kernel @pixels
// CHECK:         mma = 1
func.func @main(%w: tensor<64x256xbf16>, %x: tensor<8x256x56x56xbf16>) -> tensor<8x64x56x56xf32> {
  %y = loop.kernel @pixels(%w, %x) : (tensor<64x256xbf16>, tensor<8x256x56x56xbf16>) -> tensor<8x64x56x56xf32> {
  ^bb0(%w: memref<64x256xbf16>, %x: memref<8x256x56x56xbf16>, %out: memref<8x64x56x56xf32>):
    tile.launch (%b = 8 : thread, %i = 64 : thread, %j = 3136 : thread) {
      %s = loop.for %k = 0 to 256 reduce(add) -> f32 {
        %p = loop.load %w[%i, %k] : memref<64x256xbf16>
        %q = loop.load %x[%b, %k, %j floordiv 56, %j mod 56] : memref<8x256x56x56xbf16>
        %f = arith.extf %p : bf16 to f32
        %g = arith.extf %q : bf16 to f32
        %r = arith.mulf %f, %g : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%b, %i, %j floordiv 56, %j mod 56] : memref<8x64x56x56xf32>
    }
  }
  func.return %y : tensor<8x64x56x56xf32>
}
