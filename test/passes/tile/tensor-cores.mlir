// RUN: deplo-opt %s -p tensor-cores --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p tensor-cores --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p tensor-cores,materialize-tile --split-input-file | FileCheck %s --check-prefix=KERNEL

// One warp: lane %j of group %i has rows %i and %i + 8 and column %i, at positions %j * 4 to %j * 4 + 3 of 16.
// Its sums are of columns %j * 2 and %j * 2 + 1, and of those 8 further.
// CHECK-LABEL: loop.kernel @warp
// CHECK:         tile.launch (%i = 8 : thread, %j = 4 : thread) schedule(#tile.schedule<{{.*}}, mma = 1, strip_m = 1, strip_n = 2, threads = 32>)
// CHECK:           %[[S:.*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[LAST:.*]] = loop.for %kb = 0 to 2 reduce(add, add, add, add, add, add, add, add)
// CHECK:             loop.for %k = 0 to 2 reduce(add, add, add, add, add, add, add, add)
// CHECK:               %[[B:.*]] = loop.load %ws[%i, %k * 16 + %j * 4]
// CHECK:               loop.load %ws[%i, %k * 16 + %j * 4 + 3]
// CHECK:               %[[B2:.*]] = loop.load %ws[%i + 8, %k * 16 + %j * 4]
// CHECK:               %[[A:.*]] = loop.load %xs[%i, %k * 16 + %j * 4]
// CHECK:               %[[A2:.*]] = loop.load %xs[%i + 8, %k * 16 + %j * 4]
// CHECK:               %[[P0:[^,]*]], %[[P1:[^,]*]], %[[P4:[^,]*]], %[[P5:[^,]*]] = tile.mma (%[[A]], %{{.*}}, %{{.*}}, %{{.*}}, %[[A2]], %{{.*}}) by (%[[B]], %{{.*}}, %{{.*}}, %{{.*}}) : bf16
// CHECK:               %[[P2:[^,]*]], %[[P3:[^,]*]], %[[P6:[^,]*]], %[[P7:[^,]*]] = tile.mma (%[[A]], %{{.*}}) by (%[[B2]], %{{.*}}) : bf16
// CHECK:               loop.yield %[[P0]], %[[P1]], %[[P2]], %[[P3]], %[[P4]], %[[P5]], %[[P6]], %[[P7]]
// CHECK:             } attributes {chunk}
// CHECK:           loop.store %[[S]], %y[%i, %j * 2]
// CHECK:           loop.store %[[LAST]], %y[%i + 8, %j * 2 + 9]
// REMARK: remark: tensor-cores: warp: 1 warp of 1 by 2 products of matrices for each 16 of K

// A product goes on from the sums so far.
// KERNEL-LABEL: kernel.func @warp
// KERNEL:         scf.for %k = {{.*}} iter_args(%c_so_far = %s_so_far, %c_so_far_1 =
// KERNEL:           %[[N0:[^,]*]], %[[N1:[^,]*]], %[[N4:[^,]*]], %[[N5:[^,]*]] = kernel.mma ({{.*}}) by ({{.*}}) plus (%c_so_far, %c_so_far_1, %c_so_far_4, %c_so_far_5) : bf16
// KERNEL-NOT:       arith.addf
// KERNEL:           scf.yield %[[N0]], %[[N1]], %{{.*}}, %{{.*}}, %[[N4]], %[[N5]], %{{.*}}, %{{.*}} :
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @warp(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// Two warps: each has all columns.
// CHECK-LABEL: loop.kernel @warps
// CHECK:         tile.launch (%i = 16 : thread, %j = 4 : thread)
// CHECK:             loop.load %ws[%i mod 8 + 8, %k * 16 + %j * 4]
// CHECK:             loop.load %xs[%i + 16, %k * 16 + %j * 4]
// CHECK:           loop.store %{{.*}}, %y[%i + 16, %j * 2 + 9]
// REMARK: remark: tensor-cores: warps: 2 warps of 1 by 2 products of matrices for each 16 of K
func.func @main(%x: tensor<32x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<32x16xf32> {
  %y = loop.kernel @warps(%x, %w) : (tensor<32x64xbf16>, tensor<16x64xbf16>) -> tensor<32x16xf32> {
  ^bb0(%x: memref<32x64xbf16>, %w: memref<16x64xbf16>, %y: memref<32x16xf32>):
    tile.launch (%i = 32 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 32, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<32x64xbf16> -> memref<32x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<32x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<32x16xf32>
    }
  }
  func.return %y : tensor<32x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @unasked
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: unasked: declined: the schedule says nothing of matrices
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @unasked(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @done
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: done: declined: the tiles are in registers already
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @done(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 1, thread_n = 1, mma = 1, threads = 256>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @three
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: three: declined: its threads count more than rows and columns
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @three(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%z = 1 : thread, %i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 1, n = 2, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @unstaged
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: unstaged: declined: its operands are not staged
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @unstaged(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %x[%i, %kb * 32 + %k] : memref<16x64xbf16>
            %b = loop.load %w[%j, %kb * 32 + %k] : memref<16x64xbf16>
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %af, %bf : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @narrow
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: narrow: declined: for mma, 4 threads share a row and 32 multiply together; blocks of 16 by 16 have threads of 2 by 2
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @narrow(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 2, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @odd
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: odd: declined: for mma, threads compute 2 rows and 2 columns at once, and block_k is a multiple of 16, not 1 by 4 and 8
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @odd(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 1, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 8 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 8 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @largest
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: largest: declined: it folds by something else than sums
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @largest(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(max) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(max) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @sums
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: sums: declined: what it adds up are no products
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @sums(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.subf %af, %bf : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @scaled
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: scaled: declined: it multiplies f32 by bf16
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @scaled(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %q = arith.addf %af, %af : f32
            %p = arith.mulf %q, %bf : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @mixed
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: mixed: declined: it multiplies f16 by bf16
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @mixed(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %ag = arith.extf %a : bf16 to f32
            %ah = arith.truncf %ag : f32 to f16
            %af = arith.extf %ah : f16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %af, %bf : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @counted
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: counted: declined: a factor is made by 'arith.index_cast'
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @counted(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %n = arith.index_cast %i : index to i32
            %nf = arith.sitofp %n : i32 to bf16
            %m = arith.mulf %a, %nf : bf16
            %af = arith.extf %m : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %af, %bf : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @squares
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: squares: declined: its factors are not one of rows and one of columns
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @squares(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %p = arith.mulf %af, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @doubled
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: doubled: declined: the sweep does more than add up its chunks
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @doubled(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        %e = arith.addf %c, %c : f32
        loop.yield %e : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @apart
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: apart: declined: the sweep does more than add up its chunks
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @apart(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          }
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @counting
// CHECK-NOT:     tile.mma
// REMARK: remark: tensor-cores: counting: declined: the sweep does more than add up its chunks
func.func @main(%x: tensor<16x64xbf16>, %w: tensor<16x64xbf16>) -> tensor<16x16xf32> {
  %y = loop.kernel @counting(%x, %w) : (tensor<16x64xbf16>, tensor<16x64xbf16>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x64xbf16>, %w: memref<16x64xbf16>, %y: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x64xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<16x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        %t = loop.test[%i < 8]
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}
