// RUN: deplo-opt %s -p flatten-sweeps --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p flatten-sweeps --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p flatten-sweeps,flatten-sweeps --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p flatten-sweeps,split-reduce,chunk-reduce,cooperative-reduce,keep-rows,blockify-launch,materialize-tile,lower-to-cuda --split-input-file --check-each-pass >/dev/null

// Two sweeps over images and pixels of a channel, and a loop that stores: each goes over all of them.
// CHECK-LABEL: loop.kernel @norm
// CHECK:         tile.launch (%c = 5 : thread) {
// CHECK-NEXT:      %m = loop.for %k = 0 to 48 reduce(max) -> f32 {
// CHECK-NEXT:        loop.load %in[%k floordiv 12, %c, %k mod 12] : memref<4x5x12xf32>
// CHECK-NEXT:        loop.yield
// CHECK-NEXT:      }
// CHECK-NEXT:      loop.for %k_1 = 0 to 48 {
// CHECK-NEXT:        loop.load %in[%k_1 floordiv 12, %c, %k_1 mod 12] : memref<4x5x12xf32>
// CHECK:             loop.store %{{.+}}, %out[%k_1 floordiv 12, %c, %k_1 mod 12] : memref<4x5x12xf32>
// REMARK: remark: flatten-sweeps: norm: 4 by 12 elements are one sweep
// REMARK: remark: flatten-sweeps: norm: 4 by 12 elements are one sweep
func.func @main(%x: tensor<4x5x12xf32>) -> tensor<4x5x12xf32> {
  %y = loop.kernel @norm(%x) : (tensor<4x5x12xf32>) -> tensor<4x5x12xf32> {
  ^bb0(%in: memref<4x5x12xf32>, %out: memref<4x5x12xf32>):
    tile.launch (%c = 5 : thread) {
      %m = loop.for %i = 0 to 4 reduce(max) -> f32 {
        %t = loop.for %k = 0 to 12 reduce(max) -> f32 {
          %v = loop.load %in[%i, %c, %k] : memref<4x5x12xf32>
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.for %i = 0 to 4 {
        loop.for %k = 0 to 12 {
          %v = loop.load %in[%i, %c, %k] : memref<4x5x12xf32>
          %d = arith.subf %v, %m : f32
          loop.store %d, %out[%i, %c, %k] : memref<4x5x12xf32>
        }
      }
    }
  }
  func.return %y : tensor<4x5x12xf32>
}

// -----

// Three loops, the axis along memory outermost: it comes last, behind the one with the next shorter stride. What
// stood between the loops, the one loop computes.
// CHECK-LABEL: loop.kernel @turned
// CHECK:           %s = loop.for %k = 0 to 60 reduce(add) -> f32 {
// CHECK-NEXT:        loop.load %weight[%k floordiv 12] : memref<5xf32>
// CHECK-NEXT:        loop.load %in[%k floordiv 12, %c, %k floordiv 4 mod 3, %k mod 4] : memref<5x9x3x4xf32>
// REMARK: remark: flatten-sweeps: turned: 5 by 3 by 4 elements are one sweep
func.func @main(%x: tensor<5x9x3x4xf32>, %w: tensor<5xf32>) -> tensor<9xf32> {
  %y = loop.kernel @turned(%x, %w) : (tensor<5x9x3x4xf32>, tensor<5xf32>) -> tensor<9xf32> {
  ^bb0(%in: memref<5x9x3x4xf32>, %weight: memref<5xf32>, %out: memref<9xf32>):
    tile.launch (%c = 9 : thread) {
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %t = loop.for %i = 0 to 5 reduce(add) -> f32 {
          %f = loop.load %weight[%i] : memref<5xf32>
          %u = loop.for %j = 0 to 3 reduce(add) -> f32 {
            %v = loop.load %in[%i, %c, %j, %k] : memref<5x9x3x4xf32>
            %p = arith.mulf %v, %f : f32
            loop.yield %p : f32
          }
          loop.yield %u : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c] : memref<9xf32>
    }
  }
  func.return %y : tensor<9xf32>
}

// -----

// An axis of unknown extent comes first in the sweep, or is the sweep that threads share, if they should go along it.
// CHECK-LABEL: loop.kernel @batch
// CHECK:           loop.for %k = 0 to s0 * 12 reduce(add) -> f32 {
// CHECK-NEXT:        loop.load %in[%k floordiv 12, %c, %k mod 12]
// CHECK-LABEL: loop.kernel @sequence
// CHECK:           loop.for %k = 0 to s1 reduce(add) -> f32 {
// CHECK-NEXT:        loop.for %i = 0 to 12 reduce(add) -> f32 {
// CHECK-NEXT:          loop.load %in[%i, %c, %k]
// REMARK: remark: flatten-sweeps: batch: s0 by 12 elements are one sweep
// REMARK: remark: flatten-sweeps: sequence: threads share the axis of s1, each goes over 12 more
// REMARK: remark: flatten-sweeps: both: declined: the extents of several axes are not known
// REMARK: remark: flatten-sweeps: shared: declined: threads share the axis whose elements are neighbours as it is
func.func @dynamic(%a: tensor<?x5x12xf32, #sym.extents<s0>>, %b: tensor<12x5x?xf32, #sym.extents<s1>>, %d: tensor<?x5x?xf32, #sym.extents<s0, s1>>) -> (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>)
    attributes {sym.sizes = [#sym.size<"batch", 1, 64>, #sym.size<"seq", 1, 1000, hint = 40>]} {
  %0 = loop.kernel @batch(%a) : (tensor<?x5x12xf32, #sym.extents<s0>>) -> tensor<5xf32> {
  ^bb0(%in: memref<?x5x12xf32, #sym.extents<s0>>, %out: memref<5xf32>):
    tile.launch (%c = 5 : thread) {
      %s = loop.for %i = 0 to s0 reduce(add) -> f32 {
        %t = loop.for %k = 0 to 12 reduce(add) -> f32 {
          %v = loop.load %in[%i, %c, %k] : memref<?x5x12xf32, #sym.extents<s0>>
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c] : memref<5xf32>
    }
  }
  %1 = loop.kernel @sequence(%b) : (tensor<12x5x?xf32, #sym.extents<s1>>) -> tensor<5xf32> {
  ^bb0(%in: memref<12x5x?xf32, #sym.extents<s1>>, %out: memref<5xf32>):
    tile.launch (%c = 5 : thread) {
      %s = loop.for %i = 0 to 12 reduce(add) -> f32 {
        %t = loop.for %k = 0 to s1 reduce(add) -> f32 {
          %v = loop.load %in[%i, %c, %k] : memref<12x5x?xf32, #sym.extents<s1>>
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c] : memref<5xf32>
    }
  }
  %2 = loop.kernel @both(%d) : (tensor<?x5x?xf32, #sym.extents<s0, s1>>) -> tensor<5xf32> {
  ^bb0(%in: memref<?x5x?xf32, #sym.extents<s0, s1>>, %out: memref<5xf32>):
    tile.launch (%c = 5 : thread) {
      %s = loop.for %i = 0 to s0 reduce(add) -> f32 {
        %t = loop.for %k = 0 to s1 reduce(add) -> f32 {
          %v = loop.load %in[%i, %c, %k] : memref<?x5x?xf32, #sym.extents<s0, s1>>
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c] : memref<5xf32>
    }
  }
  %3 = loop.kernel @shared(%b) : (tensor<12x5x?xf32, #sym.extents<s1>>) -> tensor<5xf32> {
  ^bb0(%in: memref<12x5x?xf32, #sym.extents<s1>>, %out: memref<5xf32>):
    tile.launch (%c = 5 : thread) {
      %s = loop.for %k = 0 to s1 reduce(add) -> f32 {
        %t = loop.for %i = 0 to 12 reduce(add) -> f32 {
          %v = loop.load %in[%i, %c, %k] : memref<12x5x?xf32, #sym.extents<s1>>
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c] : memref<5xf32>
    }
  }
  func.return %0, %1, %2, %3 : tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>
}

// -----

// Declined: one axis; a fold of folds; no reduction; an axis without elements; a window; columns enough.
// REMARK: remark: flatten-sweeps: row: declined: a sweep runs over one axis
// REMARK: remark: flatten-sweeps: norms: declined: what an iteration contributes is computed from a fold of its own
// REMARK: remark: flatten-sweeps: copy: declined: no reduce loop in the body
// REMARK: remark: flatten-sweeps: empty: declined: a sweep has no iterations
func.func @main(%x: tensor<5x9x12xf32>, %z: tensor<0x9x12xf32>) -> (tensor<9xf32>, tensor<9xf32>, tensor<5x9xf32>, tensor<9xf32>) {
  %0 = loop.kernel @row(%x) : (tensor<5x9x12xf32>) -> tensor<9xf32> {
  ^bb0(%in: memref<5x9x12xf32>, %out: memref<9xf32>):
    tile.launch (%c = 9 : thread) {
      %s = loop.for %k = 0 to 12 reduce(add) -> f32 {
        %v = loop.load %in[0, %c, %k] : memref<5x9x12xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%c] : memref<9xf32>
    }
  }
  %1 = loop.kernel @norms(%x) : (tensor<5x9x12xf32>) -> tensor<9xf32> {
  ^bb0(%in: memref<5x9x12xf32>, %out: memref<9xf32>):
    tile.launch (%c = 9 : thread) {
      %s = loop.for %i = 0 to 5 reduce(add) -> f32 {
        %t = loop.for %k = 0 to 12 reduce(add) -> f32 {
          %v = loop.load %in[%i, %c, %k] : memref<5x9x12xf32>
          loop.yield %v : f32
        }
        %q = arith.mulf %t, %t : f32
        loop.yield %q : f32
      }
      loop.store %s, %out[%c] : memref<9xf32>
    }
  }
  %2 = loop.kernel @copy(%x) : (tensor<5x9x12xf32>) -> tensor<5x9xf32> {
  ^bb0(%in: memref<5x9x12xf32>, %out: memref<5x9xf32>):
    tile.launch () {
      loop.for %i = 0 to 5 {
        loop.for %k = 0 to 9 {
          %v = loop.load %in[%i, %k, 0] : memref<5x9x12xf32>
          loop.store %v, %out[%i, %k] : memref<5x9xf32>
        }
      }
    }
  }
  %3 = loop.kernel @empty(%z) : (tensor<0x9x12xf32>) -> tensor<9xf32> {
  ^bb0(%in: memref<0x9x12xf32>, %out: memref<9xf32>):
    tile.launch (%c = 9 : thread) {
      %s = loop.for %i = 0 to 0 reduce(add) -> f32 {
        %t = loop.for %k = 0 to 12 reduce(add) -> f32 {
          %v = loop.load %in[%i, %c, %k] : memref<0x9x12xf32>
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c] : memref<9xf32>
    }
  }
  func.return %0, %1, %2, %3 : tensor<9xf32>, tensor<9xf32>, tensor<5x9xf32>, tensor<9xf32>
}

// -----

// REMARK: remark: flatten-sweeps: pool: declined: a window, which one thread folds
func.func @main(%x: tensor<9x9xf32>) -> tensor<3x3xf32> {
  %0 = loop.kernel @pool(%x) : (tensor<9x9xf32>) -> tensor<3x3xf32> {
  ^bb0(%in: memref<9x9xf32>, %out: memref<3x3xf32>):
    tile.launch (%i = 3 : thread, %j = 3 : thread) {
      %s = loop.for %k = 0 to 3 reduce(max) -> f32 {
        %t = loop.for %l = 0 to 3 reduce(max) -> f32 {
          %v = loop.load %in[%i * 3 + %k, %j * 3 + %l] : memref<9x9xf32>
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%i, %j] : memref<3x3xf32>
    }
  }
  func.return %0 : tensor<3x3xf32>
}

// -----

// REMARK: remark: flatten-sweeps: columns: declined: 80000 columns keep 132 processors busy, a thread each
func.func @main(%x: tensor<2x2x9x40000xf32>) -> tensor<2x40000xf32> {
  %0 = loop.kernel @columns(%x) : (tensor<2x2x9x40000xf32>) -> tensor<2x40000xf32> {
  ^bb0(%in: memref<2x2x9x40000xf32>, %out: memref<2x40000xf32>):
    tile.launch (%i = 2 : thread, %j = 40000 : thread) {
      %s = loop.for %k = 0 to 2 reduce(add) -> f32 {
        %t = loop.for %l = 0 to 9 reduce(add) -> f32 {
          %v = loop.load %in[%k, %i, %l, %j] : memref<2x2x9x40000xf32>
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%i, %j] : memref<2x40000xf32>
    }
  }
  func.return %0 : tensor<2x40000xf32>
}
