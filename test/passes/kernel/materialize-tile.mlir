// RUN: deplo-opt %s -p materialize-tile --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p materialize-tile --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p materialize-tile --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p materialize-tile,assign-arena --split-input-file | FileCheck %s --check-prefix=ARENA

// Two block axes share the block's number; loops become scf.for; the host allocates and launches.
// CHECK-LABEL: kernel.func @rows(%in: memref<2x4x8xf32>, %out: memref<2x4xf32>) blocks(8) threads(1) {
// CHECK:         %block = kernel.block_id
// CHECK-NEXT:    %b = loop.index[%block floordiv 4]
// CHECK-NEXT:    %i = loop.index[%block mod 4]
// CHECK:         %s = scf.for %k = %c0 to %c8 step %c1 iter_args(
// CHECK:         loop.store %s, %out[%b, %i]
// CHECK-LABEL: func.func @main(%x: memref<2x4x8xf32>) -> memref<2x4xf32> {
// CHECK-NEXT:    %y = kernel.alloc : memref<2x4xf32>
// CHECK-NEXT:    kernel.launch @rows(%x, %y) blocks(8) threads(1)
// CHECK-NEXT:    func.return %y
// REMARK: remark: materialize-tile: rows: 8 blocks of 1 threads
func.func @main(%x: tensor<2x4x8xf32>) -> tensor<2x4xf32> {
  %y = loop.kernel @rows(%x) : (tensor<2x4x8xf32>) -> tensor<2x4xf32> {
  ^bb0(%in: memref<2x4x8xf32>, %out: memref<2x4xf32>):
    tile.launch (%b = 2 : block, %i = 4 : block) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %v = loop.load %in[%b, %i, %k] : memref<2x4x8xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%b, %i] : memref<2x4xf32>
    }
  }
  func.return %y : tensor<2x4xf32>
}

// -----

// A staged row and a sum over 64 threads: a cooperative copy, a barrier, a butterfly in each warp,
// and the two warps' sums through shared memory.
// CHECK-LABEL: kernel.func @staged
// CHECK-DAG:     %p_smem = kernel.shared : memref<2xf32, "shared">
// CHECK-DAG:     %xs = kernel.shared : memref<100xf32, "shared">
// CHECK:         scf.for %step = %c0 to %c2 step %c1 {
// CHECK-NEXT:      %[[in:.+]] = loop.test[%step * 64 + %t < 100]
// CHECK-NEXT:      scf.if %[[in]] {
// CHECK-NEXT:        loop.load %in[%r, %step * 64 + %t]
// CHECK-NEXT:        loop.store %{{.+}}, %xs[%step * 64 + %t]
// CHECK:         kernel.barrier
// CHECK:         kernel.shuffle %p xor 16 : f32
// CHECK:         kernel.shuffle %{{.+}} xor 1 : f32
// CHECK:         %[[first:.+]] = loop.test[%t mod 32 < 1]
// CHECK-NEXT:    scf.if %[[first]] {
// CHECK-NEXT:      loop.store %{{.+}}, %p_smem[%t floordiv 32]
// CHECK:         kernel.barrier
// CHECK:         %sum = scf.for %part = %c0 to %c2
func.func @main(%x: tensor<3x100xf32>) -> tensor<3x64xf32> {
  %y = loop.kernel @staged(%x) : (tensor<3x100xf32>) -> tensor<3x64xf32> {
  ^bb0(%in: memref<3x100xf32>, %out: memref<3x64xf32>):
    tile.launch (%r = 3 : block, %t = 64 : thread) schedule(#tile.schedule<threads = 64>) {
      %xs = tile.stage %in[%r, 0] : memref<3x100xf32> -> memref<100xf32, "shared">
      %p = loop.load %xs[%t] : memref<100xf32, "shared">
      %sum = tile.combine add %p over(%t) : f32
      loop.store %sum, %out[%r, %t] : memref<3x64xf32>
    }
  }
  func.return %y : tensor<3x64xf32>
}

// -----

// Groups of 8 lanes combine by shuffles alone; 5 threads, which are no power of two, through memory.
// CHECK-LABEL: kernel.func @groups
// CHECK-COUNT-3: kernel.shuffle
// CHECK-NOT:     kernel.shared
// CHECK-LABEL: kernel.func @five
// CHECK-NOT:     kernel.shuffle
// CHECK:         kernel.barrier
func.func @main(%x: tensor<4x8xf32>, %z: tensor<5xi8>) -> (tensor<4x8xf32>, tensor<5xi8>) {
  %y = loop.kernel @groups(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%in: memref<4x8xf32>, %out: memref<4x8xf32>):
    tile.launch (%r = 4 : thread, %t = 8 : thread) schedule(#tile.schedule<threads = 32>) {
      %p = loop.load %in[%r, %t] : memref<4x8xf32>
      %m = tile.combine max %p over(%t) : f32
      loop.store %m, %out[%r, %t] : memref<4x8xf32>
    }
  }
  %w = loop.kernel @five(%z) : (tensor<5xi8>) -> tensor<5xi8> {
  ^bb0(%in: memref<5xi8>, %out: memref<5xi8>):
    tile.launch (%t = 5 : thread) schedule(#tile.schedule<threads = 5>) {
      %p = loop.load %in[%t] : memref<5xi8>
      %m = tile.combine add %p over(%t) : i8
      loop.store %m, %out[%t] : memref<5xi8>
    }
  }
  func.return %y, %w : tensor<4x8xf32>, tensor<5xi8>
}

// -----

// A stage and a combine inside a loop wait for the last iteration's readers.
// CHECK-LABEL: kernel.func @chunks
// CHECK:         scf.for %c = %c0 to %c4 step %c1
// CHECK-NEXT:      kernel.barrier
// CHECK:           kernel.barrier
func.func @main(%x: tensor<4x40xf32>) -> tensor<40xf32> {
  %y = loop.kernel @chunks(%x) : (tensor<4x40xf32>) -> tensor<40xf32> {
  ^bb0(%in: memref<4x40xf32>, %out: memref<40xf32>):
    tile.launch (%t = 40 : thread) schedule(#tile.schedule<threads = 40>) {
      %s = loop.for %c = 0 to 4 reduce(add) -> f32 {
        %xs = tile.stage %in[0, 0] : memref<4x40xf32> -> memref<4x40xf32, "shared">
        %p = loop.load %xs[%c, %t * -1 + 39] : memref<4x40xf32, "shared">
        %m = tile.combine max %p over(%t) : f32
        loop.yield %m : f32
      }
      loop.store %s, %out[%t] : memref<40xf32>
    }
  }
  func.return %y : tensor<40xf32>
}

// -----

// What a slab would have from outside of its source is 0, be it past the end or before the start.
// CHECK-LABEL: kernel.func @outside
// CHECK:         %[[in:.+]] = loop.test[%b * 8 + %thread floordiv 8 >= 4, %b * 8 + %thread floordiv 8 < 20]
// CHECK-NEXT:    scf.if %[[in]] -> (f32) {
func.func @main(%x: tensor<16x8xf32>) -> tensor<24x8xf32> {
  %y = loop.kernel @outside(%x) : (tensor<16x8xf32>) -> tensor<24x8xf32> {
  ^bb0(%in: memref<16x8xf32>, %out: memref<24x8xf32>):
    tile.launch (%b = 3 : block, %t = 8 : thread, %u = 8 : thread) schedule(#tile.schedule<threads = 64>) {
      %xs = tile.stage %in[%b * 8 - 4, 0] : memref<16x8xf32> -> memref<8x8xf32, "shared">
      %v = loop.load %xs[7 - %t, %u] : memref<8x8xf32, "shared">
      loop.store %v, %out[%b * 8 + %t, %u] : memref<24x8xf32>
    }
  }
  func.return %y : tensor<24x8xf32>
}

// -----

// Kernels that differ in nothing but the type of a value in between are two. Nothing is left of them that
// would still use their buffers.
// CHECK-LABEL: kernel.func @low
// CHECK:         arith.trunci %{{.+}} : i64 to i8
// CHECK-LABEL: kernel.func @middle
// CHECK:         arith.trunci %{{.+}} : i64 to i16
// CHECK-LABEL: func.func @main
// CHECK:         kernel.launch @low(
// CHECK:         kernel.launch @middle(
// ARENA-LABEL: kernel.func @middle
// ARENA:         kernel.alloc at 0 : memref<4xi64>
// ARENA-NEXT:    kernel.launch @low(
func.func @main(%x: tensor<4xi64>) -> tensor<4xi64> {
  %a = loop.kernel @low(%x) : (tensor<4xi64>) -> tensor<4xi64> {
  ^bb0(%in: memref<4xi64>, %out: memref<4xi64>):
    tile.launch (%t = 4 : thread) {
      %v = loop.load %in[%t] : memref<4xi64>
      %n = arith.trunci %v : i64 to i8
      %w = arith.extsi %n : i8 to i64
      loop.store %w, %out[%t] : memref<4xi64>
    }
  }
  %b = loop.kernel @middle(%a) : (tensor<4xi64>) -> tensor<4xi64> {
  ^bb0(%in: memref<4xi64>, %out: memref<4xi64>):
    tile.launch (%t = 4 : thread) {
      %v = loop.load %in[%t] : memref<4xi64>
      %n = arith.trunci %v : i64 to i16
      %w = arith.extsi %n : i16 to i64
      loop.store %w, %out[%t] : memref<4xi64>
    }
  }
  func.return %b : tensor<4xi64>
}

// -----

// Identical kernels are one kernel, launched twice.
// CHECK-COUNT-1: kernel.func
// CHECK-COUNT-2: kernel.launch @neg(
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @neg(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%in: memref<4xf32>, %out: memref<4xf32>):
    tile.launch (%i = 4 : block) {
      %v = loop.load %in[%i] : memref<4xf32>
      %n = arith.negf %v : f32
      loop.store %n, %out[%i] : memref<4xf32>
    }
  }
  %z = loop.kernel @neg2(%y) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%in: memref<4xf32>, %out: memref<4xf32>):
    tile.launch (%i = 4 : block) {
      %v = loop.load %in[%i] : memref<4xf32>
      %n = arith.negf %v : f32
      loop.store %n, %out[%i] : memref<4xf32>
    }
  }
  func.return %z : tensor<4xf32>
}

// -----

// Declined: nothing is scheduled.
// REMARK: remark: materialize-tile: no tile.launch in @main: run tileify first
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}

// -----

// No threads are no blocks.
// CHECK-LABEL: kernel.func @nothing({{.+}}) blocks(0) threads(1)
func.func @main(%x: tensor<4x0xf32>) -> tensor<4x0xf32> {
  %y = loop.kernel @nothing(%x) : (tensor<4x0xf32>) -> tensor<4x0xf32> {
  ^bb0(%in: memref<4x0xf32>, %out: memref<4x0xf32>):
    tile.launch (%i = 4 : block, %j = 0 : thread) {
      %v = loop.load %in[%i, %j] : memref<4x0xf32>
      loop.store %v, %out[%i, %j] : memref<4x0xf32>
    }
  }
  func.return %y : tensor<4x0xf32>
}

// -----

// Sizes are index expressions of no operands; the grid is one over the sizes.
// CHECK-LABEL: kernel.func @rows(
// CHECK-SAME:    blocks((s0 - 1) floordiv 8 + 1) threads(8) {
// CHECK:         %[[n:.+]] = loop.index[s1]
// CHECK:         scf.for %k = %c0 to %[[n]] step %c1
// CHECK:         kernel.launch @rows(%x, %y) blocks((s0 - 1) floordiv 8 + 1) threads(8)
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

// A thread with 16 sums of what lies in slabs is to keep them in registers, whatever the number of blocks.
// CHECK: kernel.func @k_tiled(%x: memref<4xf32>, %y: memref<4xf32>) blocks(1) threads(4) resident(1) {
// CHECK: kernel.func @k_small(%x: memref<4xf32>, %z: memref<4xf32>) blocks(1) threads(4) {
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = loop.kernel @k_tiled(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    tile.launch (%i = 4 : thread) {
      %s:16 = loop.for %k = 0 to 2 reduce(add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add) -> f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32 {
        %xs = tile.stage %x[%k * 2] : memref<4xf32> -> memref<2xf32, "shared">
        %v = loop.load %xs[0] : memref<2xf32, "shared">
        loop.yield %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
      }
      loop.store %s#0, %y[%i] : memref<4xf32>
    }
  }
  %z = loop.kernel @k_small(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %z: memref<4xf32>):
    tile.launch (%i = 4 : thread) {
      %s:15 = loop.for %k = 0 to 2 reduce(add, add, add, add, add, add, add, add, add, add, add, add, add, add, add) -> f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32 {
        %xs = tile.stage %x[%k * 2] : memref<4xf32> -> memref<2xf32, "shared">
        %v = loop.load %xs[0] : memref<2xf32, "shared">
        loop.yield %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v, %v : f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32
      }
      loop.store %s#0, %z[%i] : memref<4xf32>
    }
  }
  func.return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// What threads before each one fold: by shuffles in a warp, between warps through a slot of each, else through memory.
// CHECK-LABEL: kernel.func @in_warps
// CHECK-COUNT-3: kernel.shuffle
// CHECK-NOT:     kernel.shared
// CHECK-LABEL: kernel.func @between_warps
// CHECK:         %[[SLOTS:.*]] = kernel.shared : memref<12xf32, "shared">
// CHECK-COUNT-5: kernel.shuffle
// CHECK:         kernel.barrier
// CHECK:         loop.load %[[SLOTS]][%{{.*}} floordiv 128 * 4 + %{{.*}} mod 4]
// CHECK:         arith.select
// CHECK-COUNT-2: kernel.shuffle
// CHECK-NOT:     kernel.shuffle
// CHECK-LABEL: kernel.func @bytes
// CHECK:         kernel.shared : memref<96xi8, "shared">
// CHECK:         scf.for %part = %c0 to %c32
// CHECK-LABEL: kernel.func @columns
// CHECK:         kernel.shared : memref<256xf32, "shared">
// CHECK:         scf.for %part = %c0 to %c8
// CHECK:           loop.load %{{.*}}[%part * 32 + %{{.*}} mod 32]
func.func @main(%in_warps_in: tensor<4x8xf32>, %between_warps_in: tensor<2x3x128xf32>, %bytes_in: tensor<3x32xi8>, %columns_in: tensor<8x32xf32>) -> (tensor<4x8xf32>, tensor<2x3x128xf32>, tensor<3x32xi8>, tensor<8x32xf32>) {
  %in_warps = loop.kernel @in_warps(%in_warps_in) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%in: memref<4x8xf32>, %out: memref<4x8xf32>):
    tile.launch (%r = 4 : thread, %t = 8 : thread) schedule(#tile.schedule<threads = 32>) {
      %p = loop.load %in[%r, %t] : memref<4x8xf32>
      %b = tile.prefix add %p over(%t) : f32
      loop.store %b, %out[%r, %t] : memref<4x8xf32>
    }
  }
  %between_warps = loop.kernel @between_warps(%between_warps_in) : (tensor<2x3x128xf32>) -> tensor<2x3x128xf32> {
  ^bb0(%in: memref<2x3x128xf32>, %out: memref<2x3x128xf32>):
    tile.launch (%r = 2 : block, %s = 3 : thread, %t = 128 : thread) schedule(#tile.schedule<threads = 384>) {
      %p = loop.load %in[%r, %s, %t] : memref<2x3x128xf32>
      %b = tile.prefix add %p over(%t) : f32
      loop.store %b, %out[%r, %s, %t] : memref<2x3x128xf32>
    }
  }
  %bytes = loop.kernel @bytes(%bytes_in) : (tensor<3x32xi8>) -> tensor<3x32xi8> {
  ^bb0(%in: memref<3x32xi8>, %out: memref<3x32xi8>):
    tile.launch (%r = 3 : thread, %t = 32 : thread) schedule(#tile.schedule<threads = 96>) {
      %p = loop.load %in[%r, %t] : memref<3x32xi8>
      %b = tile.prefix add %p over(%t) : i8
      loop.store %b, %out[%r, %t] : memref<3x32xi8>
    }
  }
  %columns = loop.kernel @columns(%columns_in) : (tensor<8x32xf32>) -> tensor<8x32xf32> {
  ^bb0(%in: memref<8x32xf32>, %out: memref<8x32xf32>):
    tile.launch (%t = 8 : thread, %r = 32 : thread) schedule(#tile.schedule<threads = 256>) {
      %p = loop.load %in[%t, %r] : memref<8x32xf32>
      %b = tile.prefix add %p over(%t) : f32
      loop.store %b, %out[%t, %r] : memref<8x32xf32>
    }
  }
  func.return %in_warps, %between_warps, %bytes, %columns : tensor<4x8xf32>, tensor<2x3x128xf32>, tensor<3x32xi8>, tensor<8x32xf32>
}
