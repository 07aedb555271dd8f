// RUN: deplo-opt %s --assume=stored-once -p form-clusters --split-input-file | FileCheck %s
// RUN: deplo-opt %s --assume=stored-once -p form-clusters --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --assume=stored-once -p form-clusters --split-input-file | deplo-opt --assume=stored-once --split-input-file >/dev/null
// RUN: deplo-opt %S/Inputs/cluster.tile -p form-clusters,order-blocks,materialize-tile | FileCheck %s --check-prefix=KERNEL
// RUN: deplo-opt %S/Inputs/cluster.tile -p form-clusters,order-blocks,materialize-tile,elide-barriers,overlap-products,choose-index-width,lower-to-cuda --check-each-pass >/dev/null 2>%t.err
// RUN: diff /dev/null %t.err

// Each block has half of the columns brought to both; all wait for each other before buffers are filled again.
// KERNEL-LABEL: kernel.func @k_below
// KERNEL-SAME:    blocks(12) threads(128) cluster(2) {
// KERNEL:         %i_part = loop.index[%block floordiv 6]
// KERNEL:         %j = loop.index[%block floordiv 2 mod 3]
// KERNEL:         %i_in = loop.index[%block mod 2]
// KERNEL:         kernel.fence cluster
// KERNEL:         kernel.barrier cluster
// KERNEL:         kernel.mbarrier_expect_bytes %full[0], 10240
// KERNEL-NEXT:    kernel.bulk_copy %x_map[%i_part * 128 + %i_in * 64, 0] to %xs[0, 0, 0] barrier %full[0] : !kernel.tensor_map<64x64xbf16, swizzle 128>
// KERNEL-NEXT:    kernel.bulk_copy %w_map[%j * 16 + %block mod 2 * 8, 0] to %ws[0, %block mod 2 * 8, 0] barrier %full[0] multicast 2 : !kernel.tensor_map<8x64xbf16, swizzle 128>
// KERNEL:         scf.for
// KERNEL:           kernel.mbarrier_wait
// KERNEL-NEXT:      kernel.barrier cluster

// Two blocks one below the other share the slab of columns; what follows the sweep reads the rows as before.
// CHECK-LABEL: loop.kernel @below
// CHECK:         tile.launch (%i_part = 2 : block, %j = 3 : block, %i_in = 2 : cluster, %t = 32 : thread, %u = 4 : thread) schedule(#tile.schedule<m = 3, n = 4, cluster_m = 2, threads = 128>)
// CHECK:           %i = loop.index[%i_part * 2 + %i_in]
// CHECK:           tile.stage %x[%i_part * 128 + %i_in * 64, %k * 64] via tma swizzle 128 : memref<256x128xbf16> -> memref<64x64xbf16, "shared">
// CHECK:           tile.stage %w[%j * 16, %k * 64] via tma swizzle 128 multicast 2 : memref<48x128xbf16> -> memref<16x64xbf16, "shared">
// CHECK:           loop.store %{{.*}}, %y[%i * 64 + %t, %j * 16 + %u]
// REMARK: remark: form-clusters: below: clusters of 2 blocks share ws
func.func @main(%x: tensor<256x128xbf16>, %w: tensor<48x128xbf16>) -> tensor<256x48xf32> {
  %y = loop.kernel @below(%x, %w) : (tensor<256x128xbf16>, tensor<48x128xbf16>) -> tensor<256x48xf32> {
  ^bb0(%x: memref<256x128xbf16>, %w: memref<48x128xbf16>, %y: memref<256x48xf32>):
    tile.launch (%i = 4 : block, %j = 3 : block, %t = 32 : thread, %u = 4 : thread) schedule(#tile.schedule<m = 2, n = 3, cluster_m = 2, threads = 128>) {
      %s:8 = loop.for %k = 0 to 2 reduce(add, add, add, add, add, add, add, add) -> f32, f32, f32, f32, f32, f32, f32, f32 {
        %xs = tile.stage %x[%i * 64, %k * 64] via tma swizzle 128 : memref<256x128xbf16> -> memref<64x64xbf16, "shared">
        %ws = tile.stage %w[%j * 16, %k * 64] via tma swizzle 128 : memref<48x128xbf16> -> memref<16x64xbf16, "shared">
        %p:8 = tile.wgmma %xs by %ws to 8 : memref<64x64xbf16, "shared"> by memref<16x64xbf16, "shared">
        loop.yield %p#0, %p#1, %p#2, %p#3, %p#4, %p#5, %p#6, %p#7 : f32, f32, f32, f32, f32, f32, f32, f32
      }
      loop.store %s#0, %y[%i * 64 + %t, %j * 16 + %u] : memref<256x48xf32>
    }
  }
  func.return %y : tensor<256x48xf32>
}

// -----

// All blocks along N are one cluster, which shares the slab of rows. Others are no whole clusters, have no slab with
// as many parts, other slabs, no products or ask for nothing.
// CHECK-LABEL: loop.kernel @beside
// CHECK:         tile.launch (%i = 4 : block, %j = 2 : cluster, %t = 32 : thread, %u = 4 : thread) schedule(#tile.schedule<m = 2, n = 3, cluster_n = 2, threads = 128>)
// CHECK:           tile.stage %x[%i * 64, %k * 64] via tma swizzle 128 multicast 2
// CHECK:           tile.stage %w[%j * 16, %k * 64] via tma swizzle 128 :
// CHECK-LABEL: loop.kernel @odd
// CHECK:         tile.launch (%i = 3 : block, %j = 2 : block, %t = 32 : thread, %u = 4 : thread) schedule(#tile.schedule<threads = 128>)
// REMARK: remark: form-clusters: beside: clusters of 2 blocks share xs
// REMARK: remark: form-clusters: odd: declined: 3 blocks are no whole clusters of 2
// REMARK: remark: form-clusters: limited: declined: its slabs are not those of one loop that all blocks run equally often
// REMARK: remark: form-clusters: few: declined: a box of 512 bytes does not end where the next can begin, at a multiple of 1024
// REMARK: remark: form-clusters: alike: declined: no axis of blocks has slabs of its own and others that are the same
// REMARK: remark: form-clusters: none: declined: no warpgroups multiply slabs
// REMARK: remark: form-clusters: silent: declined: the schedule asks for none
func.func @main(%x: tensor<256x128xbf16>, %w: tensor<32x128xbf16>) -> tensor<256x32xf32> {
  %y = loop.kernel @beside(%x, %w) : (tensor<256x128xbf16>, tensor<32x128xbf16>) -> tensor<256x32xf32> {
  ^bb0(%x: memref<256x128xbf16>, %w: memref<32x128xbf16>, %y: memref<256x32xf32>):
    tile.launch (%i = 4 : block, %j = 2 : block, %t = 32 : thread, %u = 4 : thread) schedule(#tile.schedule<m = 2, n = 3, cluster_n = 2, threads = 128>) {
      %s:8 = loop.for %k = 0 to 2 reduce(add, add, add, add, add, add, add, add) -> f32, f32, f32, f32, f32, f32, f32, f32 {
        %xs = tile.stage %x[%i * 64, %k * 64] via tma swizzle 128 : memref<256x128xbf16> -> memref<64x64xbf16, "shared">
        %ws = tile.stage %w[%j * 16, %k * 64] via tma swizzle 128 : memref<32x128xbf16> -> memref<16x64xbf16, "shared">
        %p:8 = tile.wgmma %xs by %ws to 8 : memref<64x64xbf16, "shared"> by memref<16x64xbf16, "shared">
        loop.yield %p#0, %p#1, %p#2, %p#3, %p#4, %p#5, %p#6, %p#7 : f32, f32, f32, f32, f32, f32, f32, f32
      }
      loop.store %s#0, %y[%i * 64 + %t, %j * 16 + %u] : memref<256x32xf32>
    }
  }
  %a = loop.kernel @odd(%x, %w) : (tensor<256x128xbf16>, tensor<32x128xbf16>) -> tensor<256x32xf32> {
  ^bb0(%x: memref<256x128xbf16>, %w: memref<32x128xbf16>, %y: memref<256x32xf32>):
    tile.launch (%i = 3 : block, %j = 2 : block, %t = 32 : thread, %u = 4 : thread) schedule(#tile.schedule<cluster_m = 2, threads = 128>) {
      %s:8 = loop.for %k = 0 to 2 reduce(add, add, add, add, add, add, add, add) -> f32, f32, f32, f32, f32, f32, f32, f32 {
        %xs = tile.stage %x[%i * 64, %k * 64] via tma swizzle 128 : memref<256x128xbf16> -> memref<64x64xbf16, "shared">
        %ws = tile.stage %w[%j * 16, %k * 64] via tma swizzle 128 : memref<32x128xbf16> -> memref<16x64xbf16, "shared">
        %p:8 = tile.wgmma %xs by %ws to 8 : memref<64x64xbf16, "shared"> by memref<16x64xbf16, "shared">
        loop.yield %p#0, %p#1, %p#2, %p#3, %p#4, %p#5, %p#6, %p#7 : f32, f32, f32, f32, f32, f32, f32, f32
      }
      loop.store %s#0, %y[%i * 64 + %t, %j * 16 + %u] : memref<256x32xf32>
    }
  }
  %b = loop.kernel @limited(%x, %w) : (tensor<256x128xbf16>, tensor<32x128xbf16>) -> tensor<256x32xf32> {
  ^bb0(%x: memref<256x128xbf16>, %w: memref<32x128xbf16>, %y: memref<256x32xf32>):
    tile.launch (%i = 4 : block, %j = 2 : block, %t = 32 : thread, %u = 4 : thread) schedule(#tile.schedule<cluster_m = 2, threads = 128>) {
      %s:8 = loop.for %k = 0 to min(2, %i + 1) reduce(add, add, add, add, add, add, add, add) -> f32, f32, f32, f32, f32, f32, f32, f32 {
        %xs = tile.stage %x[%i * 64, %k * 64] via tma swizzle 128 : memref<256x128xbf16> -> memref<64x64xbf16, "shared">
        %ws = tile.stage %w[%j * 16, %k * 64] via tma swizzle 128 : memref<32x128xbf16> -> memref<16x64xbf16, "shared">
        %p:8 = tile.wgmma %xs by %ws to 8 : memref<64x64xbf16, "shared"> by memref<16x64xbf16, "shared">
        loop.yield %p#0, %p#1, %p#2, %p#3, %p#4, %p#5, %p#6, %p#7 : f32, f32, f32, f32, f32, f32, f32, f32
      }
      loop.store %s#0, %y[%i * 64 + %t, %j * 16 + %u] : memref<256x32xf32>
    }
  }
  %c = loop.kernel @few(%x, %w) : (tensor<256x128xbf16>, tensor<32x128xbf16>) -> tensor<256x32xf32> {
  ^bb0(%x: memref<256x128xbf16>, %w: memref<32x128xbf16>, %y: memref<256x32xf32>):
    tile.launch (%i = 4 : block, %j = 4 : block, %t = 32 : thread, %u = 4 : thread) schedule(#tile.schedule<cluster_m = 2, threads = 128>) {
      %s:4 = loop.for %k = 0 to 2 reduce(add, add, add, add) -> f32, f32, f32, f32 {
        %xs = tile.stage %x[%i * 64, %k * 64] via tma swizzle 128 : memref<256x128xbf16> -> memref<64x64xbf16, "shared">
        %ws = tile.stage %w[%j * 8, %k * 64] via tma swizzle 128 : memref<32x128xbf16> -> memref<8x64xbf16, "shared">
        %p:4 = tile.wgmma %xs by %ws to 4 : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
        loop.yield %p#0, %p#1, %p#2, %p#3 : f32, f32, f32, f32
      }
      loop.store %s#0, %y[%i * 64 + %t, %j * 8 + %u] : memref<256x32xf32>
    }
  }
  %d = loop.kernel @alike(%x, %w) : (tensor<256x128xbf16>, tensor<32x128xbf16>) -> tensor<256x32xf32> {
  ^bb0(%x: memref<256x128xbf16>, %w: memref<32x128xbf16>, %y: memref<256x32xf32>):
    tile.launch (%i = 4 : block, %j = 2 : block, %t = 32 : thread, %u = 4 : thread) schedule(#tile.schedule<cluster_m = 2, threads = 128>) {
      %s:8 = loop.for %k = 0 to 2 reduce(add, add, add, add, add, add, add, add) -> f32, f32, f32, f32, f32, f32, f32, f32 {
        %xs = tile.stage %x[0, %k * 64] via tma swizzle 128 : memref<256x128xbf16> -> memref<64x64xbf16, "shared">
        %ws = tile.stage %w[%j * 16, %k * 64] via tma swizzle 128 : memref<32x128xbf16> -> memref<16x64xbf16, "shared">
        %p:8 = tile.wgmma %xs by %ws to 8 : memref<64x64xbf16, "shared"> by memref<16x64xbf16, "shared">
        loop.yield %p#0, %p#1, %p#2, %p#3, %p#4, %p#5, %p#6, %p#7 : f32, f32, f32, f32, f32, f32, f32, f32
      }
      loop.store %s#0, %y[%i * 64 + %t, %j * 16 + %u] : memref<256x32xf32>
    }
  }
  %f = loop.kernel @none(%x) : (tensor<256x128xbf16>) -> tensor<256x32xf32> {
  ^bb0(%x: memref<256x128xbf16>, %y: memref<256x32xf32>):
    tile.launch (%i = 256 : block, %j = 32 : thread) schedule(#tile.schedule<cluster_m = 2, threads = 32>) {
      %v = loop.load %x[%i, %j] : memref<256x128xbf16>
      %w = arith.extf %v : bf16 to f32
      loop.store %w, %y[%i, %j] : memref<256x32xf32>
    }
  }
  %g = loop.kernel @silent(%x) : (tensor<256x128xbf16>) -> tensor<256x32xf32> {
  ^bb0(%x: memref<256x128xbf16>, %y: memref<256x32xf32>):
    tile.launch (%i = 256 : block, %j = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %v = loop.load %x[%i, %j] : memref<256x128xbf16>
      %w = arith.extf %v : bf16 to f32
      loop.store %w, %y[%i, %j] : memref<256x32xf32>
    }
  }
  func.return %y : tensor<256x32xf32>
}
