// RUN: deplo-opt %s --split-input-file -p share-prefixes | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p share-prefixes --check-each-pass >/dev/null
// RUN: deplo-opt %s --split-input-file -p share-prefixes --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Parts of 4 of an axis of 10: what the parts before come to is loaded once, and the last part has two places.
// CHECK-LABEL: loop.kernel @running
// CHECK:         tile.launch (%j_part = 3 : thread, %l = 5 : thread) {
// CHECK:           loop.load %before[%j_part, %l]
// CHECK-NOT:       loop.load %before
// CHECK-NOT:       loop.for
// CHECK:           %[[V0:.*]] = loop.load %x[%j_part * 4, %l]
// CHECK:           %[[ZERO:.*]] = arith.constant 0.0
// CHECK:           %[[S0:.*]] = arith.addf %[[ZERO]], %[[V0]] : f32
// CHECK:           %[[Y0:.*]] = arith.addf %{{.*}}, %[[S0]]
// CHECK:           loop.store %[[Y0]], %out[%j_part * 4, %l]
// CHECK:           %[[V1:.*]] = loop.load %x[%j_part * 4 + 1, %l]
// CHECK:           %[[S1:.*]] = arith.addf %[[S0]], %[[V1]] : f32
// CHECK:           loop.store %{{.*}}, %out[%j_part * 4 + 1, %l]
// CHECK:           %[[INSIDE:.*]] = loop.test[%j_part < 2]
// CHECK:           scf.if %[[INSIDE]] {
// CHECK:             %[[V2:.*]] = loop.load %x[%j_part * 4 + 2, %l]
// CHECK:             arith.addf %[[S1]], %[[V2]] : f32
// CHECK:             %[[V3:.*]] = loop.load %x[%j_part * 4 + 3, %l]
// CHECK:             %[[RIGHT:.*]] = arith.addf %[[V2]], %[[V3]] : f32
// CHECK:             arith.addf %[[S1]], %[[RIGHT]] : f32
// CHECK:             loop.store %{{.*}}, %out[%j_part * 4 + 3, %l]
// REMARK: share-prefixes: running: j shares its sums in parts of 4
func.func @main(%x: tensor<10x5xf32>, %b: tensor<3x5xf32>) -> tensor<10x5xf32> {
  %y = loop.kernel @running(%x, %b) : (tensor<10x5xf32>, tensor<3x5xf32>) -> tensor<10x5xf32> {
  ^bb0(%x: memref<10x5xf32>, %before: memref<3x5xf32>, %out: memref<10x5xf32>):
    tile.launch (%j = 10 : thread, %l = 5 : thread) {
      %b = loop.load %before[%j floordiv 4, %l] : memref<3x5xf32>
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %until = loop.test[%j mod 4 - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%j floordiv 4 * 4 + %k, %l] : memref<10x5xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      %t = arith.addf %b, %s : f32
      loop.store %t, %out[%j, %l] : memref<10x5xf32>
    }
  }
  func.return %y : tensor<10x5xf32>
}

// -----

// Where a call says how many places there are, the last part has a loop over those that it has.
// CHECK-LABEL: loop.kernel @sizes
// CHECK:         tile.launch (%j_part = (s0 - 1) floordiv 4 + 1 : thread) {
// CHECK:           %[[WHOLE:.*]] = loop.test[%j_part < s0 floordiv 4]
// CHECK:           scf.if %[[WHOLE]] {
// CHECK-NOT:         loop.for
// CHECK-COUNT-4:     loop.store %{{.*}}, %out[%j_part * 4{{.*}}]
// CHECK:           } else {
// CHECK:             loop.for %[[PLACE:.*]] = 0 to s0 mod 4 {
// CHECK:               loop.for %[[TERM:.*]] = 0 to 4 reduce(add) -> f32 {
// CHECK:                 loop.test[%[[PLACE]] - %[[TERM]] >= 0]
// CHECK:               loop.store %{{.*}}, %out[%j_part * 4 + %[[PLACE]]]
// REMARK: share-prefixes: sizes: j shares its sums in parts of 4
func.func @main(%x: tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>> attributes {sym.sizes = [#sym.size<"n", 1, none>]} {
  %y = loop.kernel @sizes(%x) : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>> {
  ^bb0(%x: memref<?xf32, #sym.extents<s0>>, %out: memref<?xf32, #sym.extents<s0>>):
    tile.launch (%j = s0 : thread) {
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %until = loop.test[%j mod 4 - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%j floordiv 4 * 4 + %k] : memref<?xf32, #sym.extents<s0>>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<?xf32, #sym.extents<s0>>
    }
  }
  func.return %y : tensor<?xf32, #sym.extents<s0>>
}

// -----

// A whole axis is one part; two folds are shared side by side.
// CHECK-LABEL: loop.kernel @both
// CHECK:         tile.launch (%i = 2 : thread, %j_part = 1 : thread) {
// CHECK-COUNT-3: arith.maxsi
// CHECK-NOT:     arith.maxsi
// REMARK: share-prefixes: both: j shares its sums in parts of 3
func.func @main(%x: tensor<2x3xi32>) -> (tensor<2x3xi32>, tensor<2x3xi32>) {
  %y, %z = loop.kernel @both(%x) : (tensor<2x3xi32>) -> (tensor<2x3xi32>, tensor<2x3xi32>) {
  ^bb0(%x: memref<2x3xi32>, %out: memref<2x3xi32>, %most: memref<2x3xi32>):
    tile.launch (%i = 2 : thread, %j = 3 : thread) {
      %s, %m = loop.for %k = 0 to 3 reduce(mul, max) -> i32, i32 {
        %until = loop.test[%j - %k >= 0]
        %p, %q = scf.if %until -> (i32, i32) {
          %v = loop.load %x[%i, %k] : memref<2x3xi32>
          scf.yield %v, %v : i32, i32
        } else {
          %one = arith.constant 1 : i32
          %least = arith.constant -2147483648 : i32
          scf.yield %one, %least : i32, i32
        }
        loop.yield %p, %q : i32, i32
      }
      loop.store %s, %out[%i, %j] : memref<2x3xi32>
      loop.store %m, %most[%i, %j] : memref<2x3xi32>
    }
  }
  func.return %y, %z : tensor<2x3xi32>, tensor<2x3xi32>
}

// -----

// Why a reduction is none of what is before a place.
// CHECK-LABEL: func.func @main
// REMARK: share-prefixes: blocks: declined: the launch is partitioned already
// REMARK: share-prefixes: below: declined: a condition is not that a term is at or before the place
// REMARK: share-prefixes: masked: declined: what is past the place is not the identity
// REMARK: share-prefixes: distance: declined: a term depends on the place
// REMARK: share-prefixes: computed: declined: a term has no condition
// REMARK: share-prefixes: total: declined: no reduction ends at the place of an axis
// REMARK: share-prefixes: lengths: declined: its reductions differ in length
// REMARK: share-prefixes: long: declined: its places would become 1{{.*}} operations
// REMARK: share-prefixes: weights: declined: it folds weights
func.func @main(%x: tensor<6xf32>, %l: tensor<200xf32>) -> (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<200xf32>, tensor<6xf32>) {
  %blocks = loop.kernel @blocks(%x) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%x: memref<6xf32>, %out: memref<6xf32>):
    tile.launch (%j = 6 : block) {
      %s = loop.for %k = 0 to 6 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k] : memref<6xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<6xf32>
    }
  }
  %below = loop.kernel @below(%x) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%x: memref<6xf32>, %out: memref<6xf32>):
    tile.launch (%j = 6 : thread) {
      %s = loop.for %k = 0 to 6 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 1]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k] : memref<6xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<6xf32>
    }
  }
  %masked = loop.kernel @masked(%x) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%x: memref<6xf32>, %out: memref<6xf32>):
    tile.launch (%j = 6 : thread) {
      %s = loop.for %k = 0 to 6 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k] : memref<6xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 1.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<6xf32>
    }
  }
  %distance = loop.kernel @distance(%x) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%x: memref<6xf32>, %out: memref<6xf32>):
    tile.launch (%j = 6 : thread) {
      %s = loop.for %k = 0 to 6 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%j - %k] : memref<6xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<6xf32>
    }
  }
  %computed = loop.kernel @computed(%x) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%x: memref<6xf32>, %out: memref<6xf32>):
    tile.launch (%j = 6 : thread) {
      %s = loop.for %k = 0 to 6 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k] : memref<6xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        %q = math.exp %p : f32
        loop.yield %q : f32
      }
      loop.store %s, %out[%j] : memref<6xf32>
    }
  }
  %total = loop.kernel @total(%x) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%x: memref<6xf32>, %out: memref<6xf32>):
    tile.launch (%j = 6 : thread) {
      %s = loop.for %k = 0 to 6 reduce(add) -> f32 {
        %v = loop.load %x[%k] : memref<6xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%j] : memref<6xf32>
    }
  }
  %lengths = loop.kernel @lengths(%x) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%x: memref<6xf32>, %out: memref<6xf32>):
    tile.launch (%j = 6 : thread) {
      %s = loop.for %k = 0 to 6 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k] : memref<6xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      %t = loop.for %k = 0 to 3 reduce(add) -> f32 {
        %v = loop.load %x[%j floordiv 2 + %k] : memref<6xf32>
        loop.yield %v : f32
      }
      %u = arith.addf %s, %t : f32
      loop.store %u, %out[%j] : memref<6xf32>
    }
  }
  %long = loop.kernel @long(%l) : (tensor<200xf32>) -> tensor<200xf32> {
  ^bb0(%x: memref<200xf32>, %out: memref<200xf32>):
    tile.launch (%j = 200 : thread) {
      %s = loop.for %k = 0 to 200 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k] : memref<200xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<200xf32>
    }
  }
  %weights = loop.kernel @weights(%x) : (tensor<6xf32>) -> tensor<6xf32> {
  ^bb0(%x: memref<6xf32>, %out: memref<6xf32>):
    tile.launch (%j = 6 : thread) {
      %m, %w, %s = loop.for %k = 0 to 6 reduce(max, weight, mean) -> f32, f32, f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k] : memref<6xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p, %p, %p : f32, f32, f32
      }
      loop.store %s, %out[%j] : memref<6xf32>
    }
  }
  func.return %blocks, %below, %masked, %distance, %computed, %total, %lengths, %long, %weights : tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<200xf32>, tensor<6xf32>
}
