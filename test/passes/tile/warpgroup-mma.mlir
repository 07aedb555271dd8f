// RUN: deplo-opt %s -p warpgroup-mma --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p warpgroup-mma,tensor-cores --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p warpgroup-mma,materialize-tile --split-input-file | FileCheck %s --check-prefix=KERNEL

// One warpgroup: group %i mod 8 of warp %i floordiv 8 has a row of the first 8 of its warp's 16, and the one 8 further;
// its columns are %j * 2 and %j * 2 + 1, and those 8 further.
// CHECK-LABEL: loop.kernel @group
// CHECK:         tile.launch (%i = 32 : thread, %j = 4 : thread) schedule(#tile.schedule<{{.*}}, mma = 2, pair_m = 8, strip_n = 2, threads = 128>)
// CHECK:           %[[S:[^,]*]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[LAST:[^,]*]] = loop.for %kb = 0 to 2 reduce(add, add, add, add, add, add, add, add)
// CHECK-NEXT:        %xs = tile.stage %x[0, %kb * 64] via tma swizzle 128
// CHECK-NEXT:        %ws = tile.stage %w[0, %kb * 64] via tma swizzle 128
// CHECK-NEXT:        %[[P:[^,]*]], {{.*}} = tile.wgmma %xs by %ws to 8 : memref<64x64xbf16, "shared"> by memref<16x64xbf16, "shared">
// CHECK-NEXT:        loop.yield %[[P]],
// CHECK:           loop.store %[[S]], %y[%i floordiv 8 * 16 + %i mod 8, %j * 2]
// CHECK:           loop.store %[[LAST]], %y[%i floordiv 8 * 16 + %i mod 8 + 8, %j * 2 + 9]
// REMARK: remark: warpgroup-mma: group: 1 warpgroup, 8 sums of each thread

// A product goes on from the sums so far; it reads the slab of the chunk.
// KERNEL-LABEL: kernel.func @group
// KERNEL-DAG:     %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
// KERNEL:         scf.for %kb = {{.*}} iter_args(%[[ACC:[^ ]*]] =
// KERNEL:           kernel.mbarrier_wait
// KERNEL:           %[[N:[^,]*]], {{.*}} = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%[[ACC]], {{.*}}) : memref<64x64xbf16, "shared"> by memref<16x64xbf16, "shared">
// KERNEL-NOT:       arith.addf
// KERNEL:           scf.yield %[[N]],
func.func @main(%x: tensor<64x128xbf16>, %w: tensor<16x128xbf16>) -> tensor<64x16xf32> {
  %y = loop.kernel @group(%x, %w) : (tensor<64x128xbf16>, tensor<16x128xbf16>) -> tensor<64x16xf32> {
  ^bb0(%x: memref<64x128xbf16>, %w: memref<16x128xbf16>, %y: memref<64x16xf32>):
    tile.launch (%i = 64 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 16, block_k = 64, thread_m = 2, thread_n = 4, mma = 2>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 64] : memref<64x128xbf16> -> memref<64x64xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 64] : memref<16x128xbf16> -> memref<16x64xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<64x64xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x64xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x16xf32>
    }
  }
  func.return %y : tensor<64x16xf32>
}

// -----

// Two warpgroups, one below the other: rows of a thread are 128 apart where it has four.
// CHECK-LABEL: loop.kernel @groups
// CHECK:         tile.launch (%i = 64 : thread, %j = 4 : thread)
// CHECK:           loop.store %{{.*}}, %y[%i floordiv 8 * 16 + %i mod 8 + 136, %j * 2 + 1]
// REMARK: remark: warpgroup-mma: groups: 2 warpgroups, 8 sums of each thread
func.func @main(%x: tensor<256x128xbf16>, %w: tensor<8x128xbf16>) -> tensor<256x8xf32> {
  %y = loop.kernel @groups(%x, %w) : (tensor<256x128xbf16>, tensor<8x128xbf16>) -> tensor<256x8xf32> {
  ^bb0(%x: memref<256x128xbf16>, %w: memref<8x128xbf16>, %y: memref<256x8xf32>):
    tile.launch (%i = 256 : thread, %j = 8 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 256, block_n = 8, block_k = 64, thread_m = 4, thread_n = 2, mma = 2>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 64] : memref<256x128xbf16> -> memref<256x64xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 64] : memref<8x128xbf16> -> memref<8x64xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<256x64xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<8x64xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<256x8xf32>
    }
  }
  func.return %y : tensor<256x8xf32>
}

// -----

// CHECK-LABEL: loop.kernel @unasked
// CHECK-NOT:     tile.wgmma
// REMARK: remark: warpgroup-mma: unasked: declined: the schedule says nothing of warpgroups
func.func @main(%x: tensor<64x128xbf16>, %w: tensor<16x128xbf16>) -> tensor<64x16xf32> {
  %y = loop.kernel @unasked(%x, %w) : (tensor<64x128xbf16>, tensor<16x128xbf16>) -> tensor<64x16xf32> {
  ^bb0(%x: memref<64x128xbf16>, %w: memref<16x128xbf16>, %y: memref<64x16xf32>):
    tile.launch (%i = 64 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 16, block_k = 64, thread_m = 2, thread_n = 4, mma = 1>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 64] : memref<64x128xbf16> -> memref<64x64xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 64] : memref<16x128xbf16> -> memref<16x64xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<64x64xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x64xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x16xf32>
    }
  }
  func.return %y : tensor<64x16xf32>
}

// -----

// Columns are innermost in theirs: it is read transposed, and comes in two panels of 64 columns.
// CHECK-LABEL: loop.kernel @columns
// CHECK:         mma = 2, pair_m = 8, strip_n = 2, threads = 128>
// CHECK:             %ws = tile.stage %w[%kb * 64, 0] via tma swizzle 128 : memref<128x128xbf16> -> memref<64x128xbf16, "shared">
// CHECK-NEXT:        {{.*}} = tile.wgmma %xs by %ws transposed to 64 : memref<64x64xbf16, "shared"> by memref<64x128xbf16, "shared">
// REMARK: remark: warpgroup-mma: columns: 1 warpgroup, 64 sums of each thread
// KERNEL-LABEL: kernel.func @columns
// KERNEL-DAG:     %ws = kernel.shared align 1024 : memref<2x64x64xbf16, "shared">
// KERNEL:           kernel.bulk_copy %{{.*}}[%kb * 64, 0] to %ws[0, 0, 0]
// KERNEL:           kernel.bulk_copy %{{.*}}[%kb * 64, 64] to %ws[1, 0, 0]
// KERNEL:           {{.*}} = kernel.wgmma %xs[0, 0] by %ws[0, 0, 0] transposed plus ({{.*}}) of 64 by 128 : memref<64x64xbf16, "shared"> by memref<2x64x64xbf16, "shared">
func.func @main(%x: tensor<64x128xbf16>, %w: tensor<128x128xbf16>) -> tensor<64x128xf32> {
  %y = loop.kernel @columns(%x, %w) : (tensor<64x128xbf16>, tensor<128x128xbf16>) -> tensor<64x128xf32> {
  ^bb0(%x: memref<64x128xbf16>, %w: memref<128x128xbf16>, %y: memref<64x128xf32>):
    tile.launch (%i = 64 : thread, %j = 128 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 128, block_k = 64, thread_m = 2, thread_n = 32, mma = 2>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 64] : memref<64x128xbf16> -> memref<64x64xbf16, "shared">
          %ws = tile.stage %w[%kb * 64, 0] : memref<128x128xbf16> -> memref<64x128xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<64x64xbf16, "shared">
            %b = loop.load %ws[%k, %j] : memref<64x128xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x128xf32>
    }
  }
  func.return %y : tensor<64x128xf32>
}

// -----

// Too few of them for a panel: warps multiply instead, as the schedule then says.
// CHECK-LABEL: loop.kernel @strip
// CHECK:         mma = 1>
// CHECK-NOT:     tile.wgmma
// REMARK: remark: warpgroup-mma: strip: declined: rows of 32 bytes are no whole number of 128; warps may multiply
// REMARK: remark: tensor-cores: strip: 4 warps of 1 by 2 products
func.func @main(%x: tensor<64x128xbf16>, %w: tensor<128x16xbf16>) -> tensor<64x16xf32> {
  %y = loop.kernel @strip(%x, %w) : (tensor<64x128xbf16>, tensor<128x16xbf16>) -> tensor<64x16xf32> {
  ^bb0(%x: memref<64x128xbf16>, %w: memref<128x16xbf16>, %y: memref<64x16xf32>):
    tile.launch (%i = 64 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 16, block_k = 64, thread_m = 2, thread_n = 4, mma = 2>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 64] : memref<64x128xbf16> -> memref<64x64xbf16, "shared">
          %ws = tile.stage %w[%kb * 64, 0] : memref<128x16xbf16> -> memref<64x16xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<64x64xbf16, "shared">
            %b = loop.load %ws[%k, %j] : memref<64x16xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x16xf32>
    }
  }
  func.return %y : tensor<64x16xf32>
}

// -----

// Rows are read along K only.
// CHECK-LABEL: loop.kernel @across
// CHECK-NOT:     tile.wgmma
// REMARK: remark: warpgroup-mma: across: declined: K is not the innermost axis of a slab of rows; warps may multiply
func.func @main(%x: tensor<128x64xbf16>, %w: tensor<16x128xbf16>) -> tensor<64x16xf32> {
  %y = loop.kernel @across(%x, %w) : (tensor<128x64xbf16>, tensor<16x128xbf16>) -> tensor<64x16xf32> {
  ^bb0(%x: memref<128x64xbf16>, %w: memref<16x128xbf16>, %y: memref<64x16xf32>):
    tile.launch (%i = 64 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 16, block_k = 64, thread_m = 2, thread_n = 4, mma = 2>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[%kb * 64, 0] : memref<128x64xbf16> -> memref<64x64xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 64] : memref<16x128xbf16> -> memref<16x64xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%k, %i] : memref<64x64xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x64xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x16xf32>
    }
  }
  func.return %y : tensor<64x16xf32>
}

// -----

// Columns in another order than that of their slab.
// CHECK-LABEL: loop.kernel @turned
// CHECK-NOT:     tile.wgmma
// REMARK: remark: warpgroup-mma: turned: declined: neither K nor columns are the innermost axis of a slab of columns; warps may multiply
func.func @main(%x: tensor<64x128xbf16>, %w: tensor<16x128xbf16>) -> tensor<64x16xf32> {
  %y = loop.kernel @turned(%x, %w) : (tensor<64x128xbf16>, tensor<16x128xbf16>) -> tensor<64x16xf32> {
  ^bb0(%x: memref<64x128xbf16>, %w: memref<16x128xbf16>, %y: memref<64x16xf32>):
    tile.launch (%i = 64 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 16, block_k = 64, thread_m = 2, thread_n = 4, mma = 2>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 64] : memref<64x128xbf16> -> memref<64x64xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 64] : memref<16x128xbf16> -> memref<16x64xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<64x64xbf16, "shared">
            %b = loop.load %ws[(%j + 8) mod 16, %k] : memref<16x64xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x16xf32>
    }
  }
  func.return %y : tensor<64x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @short
// CHECK-NOT:     tile.wgmma
// REMARK: remark: warpgroup-mma: short: declined: rows of 64 bytes are no whole number of 128; warps may multiply
func.func @main(%x: tensor<64x128xbf16>, %w: tensor<16x128xbf16>) -> tensor<64x16xf32> {
  %y = loop.kernel @short(%x, %w) : (tensor<64x128xbf16>, tensor<16x128xbf16>) -> tensor<64x16xf32> {
  ^bb0(%x: memref<64x128xbf16>, %w: memref<16x128xbf16>, %y: memref<64x16xf32>):
    tile.launch (%i = 64 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 16, block_k = 32, thread_m = 2, thread_n = 4, mma = 2>) {
      %s = loop.for %kb = 0 to 4 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 32] : memref<64x128xbf16> -> memref<64x32xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 32] : memref<16x128xbf16> -> memref<16x32xbf16, "shared">
          %c = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<64x32xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x32xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x16xf32>
    }
  }
  func.return %y : tensor<64x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @few
// CHECK-NOT:     tile.wgmma
// REMARK: remark: warpgroup-mma: few: declined: for mma, 4 threads share a row and 128 multiply together; blocks of 32 by 16 have threads of 2 by 4; warps may multiply
func.func @main(%x: tensor<32x128xbf16>, %w: tensor<16x128xbf16>) -> tensor<32x16xf32> {
  %y = loop.kernel @few(%x, %w) : (tensor<32x128xbf16>, tensor<16x128xbf16>) -> tensor<32x16xf32> {
  ^bb0(%x: memref<32x128xbf16>, %w: memref<16x128xbf16>, %y: memref<32x16xf32>):
    tile.launch (%i = 32 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 32, block_n = 16, block_k = 64, thread_m = 2, thread_n = 4, mma = 2>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 64] : memref<32x128xbf16> -> memref<32x64xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 64] : memref<16x128xbf16> -> memref<16x64xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<32x64xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x64xbf16, "shared">
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

// CHECK-LABEL: loop.kernel @padded
// CHECK-NOT:     tile.wgmma
// REMARK: remark: warpgroup-mma: padded: declined: a slab is filled some other way already; warps may multiply
func.func @main(%x: tensor<64x128xbf16>, %w: tensor<16x128xbf16>) -> tensor<64x16xf32> {
  %y = loop.kernel @padded(%x, %w) : (tensor<64x128xbf16>, tensor<16x128xbf16>) -> tensor<64x16xf32> {
  ^bb0(%x: memref<64x128xbf16>, %w: memref<16x128xbf16>, %y: memref<64x16xf32>):
    tile.launch (%i = 64 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 16, block_k = 64, thread_m = 2, thread_n = 4, mma = 2>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 64] pad 8 : memref<64x128xbf16> -> memref<64x64xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 64] : memref<16x128xbf16> -> memref<16x64xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<64x64xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x64xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x16xf32>
    }
  }
  func.return %y : tensor<64x16xf32>
}

// -----

// Rows of 65 elements do not begin at multiples of 16 bytes.
// CHECK-LABEL: loop.kernel @odd
// CHECK-NOT:     tile.wgmma
// REMARK: remark: warpgroup-mma: odd: declined: the stride of axis 0 of {{.*}} is not proven to be a multiple of 16 bytes; warps may multiply
func.func @main(%x: tensor<64x130xbf16>, %w: tensor<16x130xbf16>) -> tensor<64x16xf32> {
  %y = loop.kernel @odd(%x, %w) : (tensor<64x130xbf16>, tensor<16x130xbf16>) -> tensor<64x16xf32> {
  ^bb0(%x: memref<64x130xbf16>, %w: memref<16x130xbf16>, %y: memref<64x16xf32>):
    tile.launch (%i = 64 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 16, block_k = 64, thread_m = 2, thread_n = 4, mma = 2>) {
      %s = loop.for %kb = 0 to 3 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 64] : memref<64x130xbf16> -> memref<64x64xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 64] : memref<16x130xbf16> -> memref<16x64xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<64x64xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x64xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x16xf32>
    }
  }
  func.return %y : tensor<64x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @negated
// CHECK-NOT:     tile.wgmma
// REMARK: remark: warpgroup-mma: negated: declined: a factor is computed after it is loaded; warps may multiply
func.func @main(%x: tensor<64x128xbf16>, %w: tensor<16x128xbf16>) -> tensor<64x16xf32> {
  %y = loop.kernel @negated(%x, %w) : (tensor<64x128xbf16>, tensor<16x128xbf16>) -> tensor<64x16xf32> {
  ^bb0(%x: memref<64x128xbf16>, %w: memref<16x128xbf16>, %y: memref<64x16xf32>):
    tile.launch (%i = 64 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 16, block_k = 64, thread_m = 2, thread_n = 4, mma = 2>) {
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 64] : memref<64x128xbf16> -> memref<64x64xbf16, "shared">
          %ws = tile.stage %w[0, %kb * 64] : memref<16x128xbf16> -> memref<16x64xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<64x64xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x64xbf16, "shared">
            %na = arith.negf %a : bf16
            %af = arith.extf %na : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x16xf32>
    }
  }
  func.return %y : tensor<64x16xf32>
}

// -----

// CHECK-LABEL: loop.kernel @constant
// CHECK-NOT:     tile.wgmma
// REMARK: remark: warpgroup-mma: constant: declined: a slab stays the same for all of K; warps may multiply
func.func @main(%x: tensor<64x128xbf16>, %w: tensor<16x128xbf16>) -> tensor<64x16xf32> {
  %y = loop.kernel @constant(%x, %w) : (tensor<64x128xbf16>, tensor<16x128xbf16>) -> tensor<64x16xf32> {
  ^bb0(%x: memref<64x128xbf16>, %w: memref<16x128xbf16>, %y: memref<64x16xf32>):
    tile.launch (%i = 64 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 64, block_n = 16, block_k = 64, thread_m = 2, thread_n = 4, mma = 2>) {
      %ws = tile.stage %w[0, 0] : memref<16x128xbf16> -> memref<16x64xbf16, "shared">
      %s = loop.for %kb = 0 to 2 reduce(add) -> f32 {
          %xs = tile.stage %x[0, %kb * 64] : memref<64x128xbf16> -> memref<64x64xbf16, "shared">
          %c = loop.for %k = 0 to 64 reduce(add) -> f32 {
            %a = loop.load %xs[%i, %k] : memref<64x64xbf16, "shared">
            %b = loop.load %ws[%j, %k] : memref<16x64xbf16, "shared">
            %af = arith.extf %a : bf16 to f32
            %bf = arith.extf %b : bf16 to f32
            %p = arith.mulf %bf, %af : f32
            loop.yield %p : f32
          } attributes {chunk}
        loop.yield %c : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x16xf32>
    }
  }
  func.return %y : tensor<64x16xf32>
}
