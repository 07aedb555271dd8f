// RUN: deplo-opt %s -p 'register-tile{target=cpu}' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'register-tile{target=cpu}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p register-tile{target=sm_90a},register-tile{target=sm_90a} --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=GPU
// RUN: deplo-opt %s -p 'register-tile{target=cpu}' --split-input-file --check-each-pass >/dev/null

// x @ W^T with a bias, 6 by 10: a tile of 3 by 2 loads 5 elements for 6 products.
// CHECK-LABEL: loop.kernel @linear
// CHECK:         tile.launch (%i = 2 : thread, %j = 5 : thread) {
// CHECK:           reduce(add, add, add, add, add, add) -> f32, f32, f32, f32, f32, f32 {
// CHECK-COUNT-5:     loop.load
// CHECK-NOT:         loop.load
// CHECK:             loop.yield
// CHECK:           loop.store %{{.+}}, %out[%i * 3, %j * 2]
// CHECK:           loop.store %{{.+}}, %out[%i * 3, %j * 2 + 1]
// CHECK:           loop.store %{{.+}}, %out[%i * 3 + 2, %j * 2 + 1]
// REMARK: remark: register-tile: linear: each thread computes 3 by 2 elements
// GPU: remark: register-tile: linear: declined: the schedule gives threads no tiles
func.func @main(%x: tensor<6x8xf32>, %w: tensor<10x8xf32>, %b: tensor<10xf32>) -> tensor<6x10xf32> {
  %y = loop.kernel @linear(%x, %w, %b) : (tensor<6x8xf32>, tensor<10x8xf32>, tensor<10xf32>) -> tensor<6x10xf32> {
  ^bb0(%x: memref<6x8xf32>, %w: memref<10x8xf32>, %b: memref<10xf32>, %out: memref<6x10xf32>):
    tile.launch (%i = 6 : thread, %j = 10 : thread) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<6x8xf32>
        %q = loop.load %w[%j, %k] : memref<10x8xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      %c = loop.load %b[%j] : memref<10xf32>
      %t = arith.addf %s, %c : f32
      loop.store %t, %out[%i, %j] : memref<6x10xf32>
    }
  }
  func.return %y : tensor<6x10xf32>
}

// -----

// a @ b: neighbouring columns are neighbours in memory, so the tile is a whole vector of them.
// CHECK-LABEL: loop.kernel @matmul
// CHECK:         tile.launch (%i = 2 : thread, %j = 2 : thread) {
// REMARK: remark: register-tile: matmul: each thread computes 3 by 16 elements
func.func @main(%x: tensor<6x9xf32>, %w: tensor<9x32xf32>) -> tensor<6x32xf32> {
  %y = loop.kernel @matmul(%x, %w) : (tensor<6x9xf32>, tensor<9x32xf32>) -> tensor<6x32xf32> {
  ^bb0(%x: memref<6x9xf32>, %w: memref<9x32xf32>, %out: memref<6x32xf32>):
    tile.launch (%i = 6 : thread, %j = 32 : thread) {
      %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<6x9xf32>
        %q = loop.load %w[%k, %j] : memref<9x32xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<6x32xf32>
    }
  }
  func.return %y : tensor<6x32xf32>
}

// -----

// A sum over columns: four neighbouring columns are a vector, too few for a strip.
// CHECK-LABEL: loop.kernel @columns
// CHECK:         tile.launch (%j = 1 : thread) {
// CHECK-COUNT-4:     loop.load
// CHECK-NOT:         loop.load
// REMARK: remark: register-tile: columns: each thread computes 4 elements
func.func @main(%x: tensor<9x4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @columns(%x) : (tensor<9x4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<9x4xf32>, %out: memref<4xf32>):
    tile.launch (%j = 4 : thread) {
      %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
        %p = loop.load %x[%k, %j] : memref<9x4xf32>
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

// Windows of few elements: the largest has six.
// CHECK-LABEL: loop.kernel @windows
// CHECK:         tile.launch (%j = 15 : thread) {
// REMARK: remark: register-tile: windows: declined: windows of 6 elements are unrolled
func.func @main(%x: tensor<2x32xf32>) -> tensor<15xf32> {
  %0 = loop.kernel @windows(%x) : (tensor<2x32xf32>) -> tensor<15xf32> {
  ^bb0(%x: memref<2x32xf32>, %out: memref<15xf32>):
    tile.launch (%j = 15 : thread) {
      %s = loop.for %n = 0 to 2 reduce(add) -> f32 {
        %t = loop.for %m = 0 to 3 reduce(add) -> f32 {
          %p = loop.load %x[%n, %j * 2 + %m] : memref<2x32xf32>
          loop.yield %p : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%j] : memref<15xf32>
    }
  }
  func.return %0 : tensor<15xf32>
}

// -----

// Columns that are many get strips of them instead, swept row by row.
// CHECK-LABEL: loop.kernel @strips
// CHECK:         loop.load
// REMARK: remark: register-tile: strips: declined: a block sweeps its columns row by row
func.func @main(%x: tensor<64x1024xf32>) -> tensor<1024xf32> {
  %y = loop.kernel @strips(%x) : (tensor<64x1024xf32>) -> tensor<1024xf32> {
  ^bb0(%x: memref<64x1024xf32>, %out: memref<1024xf32>):
    tile.launch (%j = 1024 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%k, %j] : memref<64x1024xf32>
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<1024xf32>
    }
  }
  func.return %y : tensor<1024xf32>
}

// -----

// Two rows are one tile, and a block could get a strip of their columns: these get no tile. So do the columns of a
// batch of vectors times matrices.
// CHECK-LABEL: loop.kernel @rows
// CHECK:         tile.launch (%i = 1 : thread, %j = 256 : thread) {
// CHECK-NEXT:      %{{.*}}, %{{.*}} = loop.for %k = 0 to 64 reduce(add, add)
// CHECK-LABEL: loop.kernel @batch
// REMARK: remark: register-tile: rows: each thread computes 2 elements
// REMARK: remark: register-tile: batch: declined: a block sweeps its columns row by row
func.func @main(%x: tensor<2x64xf32>, %w: tensor<64x256xf32>, %b: tensor<2x64x256xf32>) -> (tensor<2x256xf32>, tensor<2x256xf32>) {
  %y = loop.kernel @rows(%x, %w) : (tensor<2x64xf32>, tensor<64x256xf32>) -> tensor<2x256xf32> {
  ^bb0(%x: memref<2x64xf32>, %w: memref<64x256xf32>, %out: memref<2x256xf32>):
    tile.launch (%i = 2 : thread, %j = 256 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<2x64xf32>
        %q = loop.load %w[%k, %j] : memref<64x256xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<2x256xf32>
    }
  }
  %z = loop.kernel @batch(%x, %b) : (tensor<2x64xf32>, tensor<2x64x256xf32>) -> tensor<2x256xf32> {
  ^bb0(%x: memref<2x64xf32>, %w: memref<2x64x256xf32>, %out: memref<2x256xf32>):
    tile.launch (%i = 2 : thread, %j = 256 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<2x64xf32>
        %q = loop.load %w[%i, %k, %j] : memref<2x64x256xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<2x256xf32>
    }
  }
  func.return %y, %z : tensor<2x256xf32>, tensor<2x256xf32>
}

// -----

// A depthwise convolution's columns are windows, not a strip.
// CHECK-LABEL: loop.kernel @depthwise
// CHECK:         tile.launch (%c = 2 : thread, %j = 56 : thread) {
// REMARK: remark: register-tile: depthwise: declined: windows of 9 elements are unrolled
func.func @main(%x: tensor<2x3x58xf32>, %w: tensor<2x3x3xf32>) -> tensor<2x56xf32> {
  %y = loop.kernel @depthwise(%x, %w) : (tensor<2x3x58xf32>, tensor<2x3x3xf32>) -> tensor<2x56xf32> {
  ^bb0(%x: memref<2x3x58xf32>, %w: memref<2x3x3xf32>, %out: memref<2x56xf32>):
    tile.launch (%c = 2 : thread, %j = 56 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
        %t = loop.for %o = 0 to 3 reduce(add) -> f32 {
          %p = loop.load %x[%c, %n, %j + %o] : memref<2x3x58xf32>
          %q = loop.load %w[%c, %n, %o] : memref<2x3x3xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c, %j] : memref<2x56xf32>
    }
  }
  func.return %y : tensor<2x56xf32>
}

// -----

// What a sweep needs is loaded before the first of the copies, so all join one sweep.
// CHECK-LABEL: loop.kernel @scaled
// CHECK:           loop.load %s[%i * 3]
// CHECK:           loop.load %s[%i * 3 + 2]
// CHECK:           loop.for %k = 0 to 9 reduce(add, add, add, add, add, add)
// CHECK-NOT:       loop.for
func.func @main(%x: tensor<6x9xf32>, %w: tensor<10x9xf32>, %s: tensor<6xf32>) -> tensor<6x10xf32> {
  %y = loop.kernel @scaled(%x, %w, %s) : (tensor<6x9xf32>, tensor<10x9xf32>, tensor<6xf32>) -> tensor<6x10xf32> {
  ^bb0(%x: memref<6x9xf32>, %w: memref<10x9xf32>, %s: memref<6xf32>, %out: memref<6x10xf32>):
    tile.launch (%i = 6 : thread, %j = 10 : thread) {
      %f = loop.load %s[%i] : memref<6xf32>
      %t = loop.for %k = 0 to 9 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<6x9xf32>
        %q = loop.load %w[%j, %k] : memref<10x9xf32>
        %r = arith.mulf %p, %q : f32
        %u = arith.mulf %r, %f : f32
        loop.yield %u : f32
      }
      loop.store %t, %out[%i, %j] : memref<6x10xf32>
    }
  }
  func.return %y : tensor<6x10xf32>
}

// -----

// Declined: prime extents, a row kernel, a second sweep, a launch that is partitioned.
// CHECK-LABEL: loop.kernel @primes
// REMARK: remark: register-tile: primes: declined: no tile of 2 to 4 divides the extents 5, 7
// REMARK: remark: register-tile: rows: declined: no reduce of a matrix product or of columns in the body
// REMARK: remark: register-tile: norm: declined: the body has a sweep that stores
// REMARK: remark: register-tile: blocks: declined: the launch is partitioned already
func.func @main(%x: tensor<5x8xf32>, %w: tensor<7x8xf32>) -> (tensor<5x7xf32>, tensor<5xf32>, tensor<5x8xf32>, tensor<5xf32>) {
  %0 = loop.kernel @primes(%x, %w) : (tensor<5x8xf32>, tensor<7x8xf32>) -> tensor<5x7xf32> {
  ^bb0(%x: memref<5x8xf32>, %w: memref<7x8xf32>, %out: memref<5x7xf32>):
    tile.launch (%i = 5 : thread, %j = 7 : thread) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<5x8xf32>
        %q = loop.load %w[%j, %k] : memref<7x8xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<5x7xf32>
    }
  }
  %1 = loop.kernel @rows(%x) : (tensor<5x8xf32>) -> tensor<5xf32> {
  ^bb0(%x: memref<5x8xf32>, %out: memref<5xf32>):
    tile.launch (%i = 5 : thread) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<5x8xf32>
        loop.yield %p : f32
      }
      loop.store %s, %out[%i] : memref<5xf32>
    }
  }
  %2 = loop.kernel @norm(%x) : (tensor<5x8xf32>) -> tensor<5x8xf32> {
  ^bb0(%x: memref<5x8xf32>, %out: memref<5x8xf32>):
    tile.launch (%i = 5 : thread) {
      loop.for %k = 0 to 8 {
        %p = loop.load %x[%i, %k] : memref<5x8xf32>
        loop.store %p, %out[%i, %k] : memref<5x8xf32>
      }
    }
  }
  %3 = loop.kernel @blocks(%x) : (tensor<5x8xf32>) -> tensor<5xf32> {
  ^bb0(%x: memref<5x8xf32>, %out: memref<5xf32>):
    tile.launch (%i = 5 : block) {
      %p = loop.load %x[%i, 0] : memref<5x8xf32>
      loop.store %p, %out[%i] : memref<5xf32>
    }
  }
  func.return %0, %1, %2, %3 : tensor<5x7xf32>, tensor<5xf32>, tensor<5x8xf32>, tensor<5xf32>
}

// -----

// A counter that is read as a value is another one for each element of the tile.
// CHECK-LABEL: loop.kernel @weighted
// CHECK:         %[[i:.+]] = loop.index[1]
// CHECK:         arith.index_cast %[[i]] : index to i64
func.func @main(%x: tensor<2x3xi64>, %w: tensor<2x3xi64>) -> tensor<2x2xi64> {
  %y = loop.kernel @weighted(%x, %w) : (tensor<2x3xi64>, tensor<2x3xi64>) -> tensor<2x2xi64> {
  ^bb0(%x: memref<2x3xi64>, %w: memref<2x3xi64>, %out: memref<2x2xi64>):
    tile.launch (%i = 2 : thread, %j = 2 : thread) {
      %s = loop.for %k = 0 to 3 reduce(add) -> i64 {
        %p = loop.load %x[%i, %k] : memref<2x3xi64>
        %q = loop.load %w[%j, %k] : memref<2x3xi64>
        %r = arith.muli %p, %q : i64
        %v = arith.index_cast %i : index to i64
        %t = arith.muli %r, %v : i64
        loop.yield %t : i64
      }
      loop.store %s, %out[%i, %j] : memref<2x2xi64>
    }
  }
  func.return %y : tensor<2x2xi64>
}

// -----

// Declined: the threads fold each other's values.
// REMARK: remark: register-tile: together: declined: its threads already work together
func.func @main(%x: tensor<4x32xf32>) -> tensor<32xf32> {
  %y = loop.kernel @together(%x) : (tensor<4x32xf32>) -> tensor<32xf32> {
  ^bb0(%in: memref<4x32xf32>, %out: memref<32xf32>):
    tile.launch (%t = 32 : thread) {
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %v = loop.load %in[%k, %t] : memref<4x32xf32>
        %m = tile.combine max %v over(%t) : f32
        loop.yield %m : f32
      }
      loop.store %s, %out[%t] : memref<32xf32>
    }
  }
  func.return %y : tensor<32xf32>
}

// -----

// What the schedule of a staged launch says: strips of 2 columns, 8 apart. What is not staged yet waits.
// CHECK-LABEL: loop.kernel @strips
// CHECK:         tile.launch (%i = 8 : thread, %j = 4 : thread) schedule(#tile.schedule<{{.*}}, strip_n = 2, threads = 32>)
// CHECK:           loop.store %{{.+}}, %out[%i, %j * 2] :
// CHECK:           loop.store %{{.+}}, %out[%i, %j * 2 + 1] :
// CHECK:           loop.store %{{.+}}, %out[%i, %j * 2 + 8] :
// CHECK:           loop.store %{{.+}}, %out[%i, %j * 2 + 9] :
// GPU: remark: register-tile: strips: each thread computes 4 elements
// GPU: remark: register-tile: strips: declined: the tiles are in registers already
// GPU: remark: register-tile: waits: declined: on a GPU the operands must be staged first
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x16xf32> {
  %y = loop.kernel @strips(%x) : (tensor<8x4xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x4xf32>, %out: memref<8x16xf32>):
    tile.launch (%i = 8 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 16, block_k = 4, thread_m = 1, thread_n = 4, strip_n = 2>) {
      %xs = tile.stage %x[0, 0] : memref<8x4xf32> -> memref<8x4xf32, "shared">
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %p = loop.load %xs[%i, %k] : memref<8x4xf32, "shared">
        loop.yield %p : f32
      }
      loop.store %s, %out[%i, %j] : memref<8x16xf32>
    }
  }
  func.return %y : tensor<8x16xf32>
}

// -----

func.func @main(%x: tensor<8x4xf32>) -> tensor<8x16xf32> {
  %y = loop.kernel @waits(%x) : (tensor<8x4xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x4xf32>, %out: memref<8x16xf32>):
    tile.launch (%i = 8 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 8, block_n = 16, block_k = 4, thread_m = 1, thread_n = 4>) {
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<8x4xf32>
        loop.yield %p : f32
      }
      loop.store %s, %out[%i, %j] : memref<8x16xf32>
    }
  }
  func.return %y : tensor<8x16xf32>
}

// -----

// The windows of an image with its channels last: a block copies what it reads first (`stage-windows`).
// REMARK: remark: register-tile: channels: declined: windows of 3 elements are unrolled
func.func @main(%x: tensor<15x8xf32>) -> tensor<8x15xf32> {
  %0 = loop.kernel @channels(%x) : (tensor<15x8xf32>) -> tensor<8x15xf32> {
  ^bb0(%x: memref<15x8xf32>, %out: memref<8x15xf32>):
    tile.launch (%c = 8 : thread, %j = 15 : thread) {
      %s = loop.for %m = 0 to 3 reduce(add) -> f32 {
        %in = loop.test[%j + %m >= 1, %j + %m < 16]
        %v = scf.if %in -> (f32) {
          %p = loop.load %x[%j + %m - 1, %c] : memref<15x8xf32>
          scf.yield %p : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %v : f32
      }
      loop.store %s, %out[%c, %j] : memref<8x15xf32>
    }
  }
  func.return %0 : tensor<8x15xf32>
}

// -----

// One row by a matrix: a block sweeps a strip of its columns, which is no tile.
// REMARK: remark: register-tile: vector: declined: a block could get a strip of its columns
func.func @main(%x: tensor<1x100xf32>, %b: tensor<100x700xf32>) -> tensor<1x700xf32> {
  %y = loop.kernel @vector(%x, %b) : (tensor<1x100xf32>, tensor<100x700xf32>) -> tensor<1x700xf32> {
  ^bb0(%x: memref<1x100xf32>, %b: memref<100x700xf32>, %out: memref<1x700xf32>):
    tile.launch (%i = 1 : thread, %j = 700 : thread) {
      %s = loop.for %k = 0 to 100 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<1x100xf32>
        %q = loop.load %b[%k, %j] : memref<100x700xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<1x700xf32>
    }
  }
  func.return %y : tensor<1x700xf32>
}
