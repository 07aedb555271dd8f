// RUN: deplo-opt %s --split-input-file -p scan-rows | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p scan-rows --check-each-pass >/dev/null
// RUN: deplo-opt %s --split-input-file -p scan-rows,blockify-launch,materialize-tile,vectorize-accesses,elide-barriers --check-each-pass >/dev/null
// RUN: deplo-opt %s --split-input-file -p scan-rows --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Half a warp has a row, in vectors of four.
// CHECK-LABEL: loop.kernel @row
// CHECK:         tile.launch (%i_block = 256 : block, %i_thread = 2 : thread, %lane = 16 : thread) schedule(#tile.schedule<threads = 32, vector = 4>) {
// CHECK-NEXT:      %[[KEPT:.*]] = loop.registers : memref<4xf32, "registers">
// CHECK-NEXT:      loop.for %[[E:.*]] = 0 to 4 {
// CHECK-NEXT:        %[[V:.*]] = loop.load %x[%i_block * 2 + %i_thread, %lane * 4 + %[[E]]]
// CHECK-NEXT:        loop.store %[[V]], %[[KEPT]][%[[E]]]
// CHECK-NEXT:      } attributes {unroll, vector}
// CHECK-NEXT:      %[[TOTAL:.*]] = loop.for %[[N:.*]] = 0 to 4 reduce(add) -> f32 {
// CHECK:           %[[BEFORE:.*]] = tile.prefix add %[[TOTAL]] over(%lane) : f32
// CHECK-NEXT:      %[[V0:.*]] = loop.load %[[KEPT]][0]
// CHECK-NEXT:      %[[S0:.*]] = arith.addf %[[BEFORE]], %[[V0]] : f32
// CHECK-NEXT:      loop.store %[[S0]], %[[KEPT]][0]
// CHECK-NEXT:      %[[V1:.*]] = loop.load %[[KEPT]][1]
// CHECK-NEXT:      arith.addf %[[S0]], %[[V1]] : f32
// CHECK:           loop.for %[[E:.*]] = 0 to 4 {
// CHECK-NEXT:        %[[S:.*]] = loop.load %[[KEPT]][%[[E]]]
// CHECK-NEXT:        loop.store %[[S]], %out[%i_block * 2 + %i_thread, %lane * 4 + %[[E]]]
// CHECK-NEXT:      } attributes {unroll, vector}
// REMARK: scan-rows: row: 16 threads share j, 2 rows a block
func.func @main(%x: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %y = loop.kernel @row(%x) : (tensor<512x64xf32>) -> tensor<512x64xf32> {
  ^bb0(%x: memref<512x64xf32>, %out: memref<512x64xf32>):
    tile.launch (%i = 512 : thread, %j = 64 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%i, %k] : memref<512x64xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%i, %j] : memref<512x64xf32>
    }
  }
  func.return %y : tensor<512x64xf32>
}

// -----

// Parts of a column: the lanes of a warp have neighbouring columns, and the last part has fewer places.
// CHECK-LABEL: loop.kernel @parts
// CHECK:         tile.launch (%j_part = 7 : block, %lane = 4 : thread, %l_thread = 8 : thread) schedule(#tile.schedule<threads = 32>) {
// CHECK:           loop.for %[[U:.*]] = 0 to 4 {
// CHECK-NEXT:        %[[INSIDE:.*]] = loop.test[%l_thread < 5, %j_part * 16 + %lane * 4 + %[[U]] < 100]
// CHECK-NEXT:        scf.if %[[INSIDE]] {
// CHECK:               loop.load %x[%j_part * 16 + %lane * 4 + %[[U]], %l_thread]
// CHECK:             } else {
// CHECK:               arith.constant 0.0
// CHECK:           tile.prefix add %{{.*}} over(%lane) : f32
// REMARK: scan-rows: parts: 4 threads share j, 8 columns a block
func.func @main(%x: tensor<100x5xf32>) -> tensor<100x5xf32> {
  %y = loop.kernel @parts(%x) : (tensor<100x5xf32>) -> tensor<100x5xf32> {
  ^bb0(%x: memref<100x5xf32>, %out: memref<100x5xf32>):
    tile.launch (%j = 100 : thread, %l = 5 : thread) {
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %until = loop.test[%j mod 16 - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%j floordiv 16 * 16 + %k, %l] : memref<100x5xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%j, %l] : memref<100x5xf32>
    }
  }
  func.return %y : tensor<100x5xf32>
}

// -----

// Where a call says how many places there are.
// CHECK-LABEL: loop.kernel @sizes
// CHECK:         tile.launch (%j_part{{.*}} : block, %lane = 64 : thread) schedule(#tile.schedule<threads = 64>) {
// CHECK:           loop.test[{{.*}}%lane{{.*}} < s0]
// REMARK: scan-rows: sizes: 64 threads share j, 1 rows a block
func.func @main(%x: tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>> attributes {sym.sizes = [#sym.size<"n", 1, none>]} {
  %y = loop.kernel @sizes(%x) : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>> {
  ^bb0(%x: memref<?xf32, #sym.extents<s0>>, %out: memref<?xf32, #sym.extents<s0>>):
    tile.launch (%j = s0 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %until = loop.test[%j mod 64 - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%j floordiv 64 * 64 + %k] : memref<?xf32, #sym.extents<s0>>
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

// What is the same in a row, and checked or read, is so for rows that there are.
// CHECK-LABEL: loop.kernel @rows
// CHECK:         tile.launch (%i_thread = 4 : thread, %lane = 8 : thread)
// CHECK:           %[[INSIDE:.*]] = loop.test[%{{.*}} < 3]
// CHECK-NEXT:      %[[B:.*]] = scf.if %[[INSIDE]] -> (f32) {
// CHECK-NEXT:        loop.load %before[%{{.*}}]
// CHECK:           arith.addf %[[B]], %{{.*}} : f32
// REMARK: scan-rows: rows: 8 threads share j, 4 rows a block
func.func @main(%x: tensor<3x32xf32>, %b: tensor<3xf32>) -> tensor<3x32xf32> {
  %y = loop.kernel @rows(%x, %b) : (tensor<3x32xf32>, tensor<3xf32>) -> tensor<3x32xf32> {
  ^bb0(%x: memref<3x32xf32>, %before: memref<3xf32>, %out: memref<3x32xf32>):
    tile.launch (%i = 3 : thread, %j = 32 : thread) {
      %b = loop.load %before[%i] : memref<3xf32>
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%i, %k] : memref<3x32xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      %t = arith.addf %b, %s : f32
      loop.store %t, %out[%i, %j] : memref<3x32xf32>
    }
  }
  func.return %y : tensor<3x32xf32>
}

// -----

// Why threads do not share a fold.
// CHECK-LABEL: func.func @main
// REMARK: scan-rows: blocks: declined: the launch is partitioned already
// REMARK: scan-rows: few: declined: a part has 6 places, each of which folds alone
// REMARK: scan-rows: masked: declined: what is past the place is not the identity
// REMARK: scan-rows: lengths: declined: its reductions differ in length
// REMARK: scan-rows: total: declined: no reduction ends at the place of an axis
// REMARK: scan-rows: long: declined: a thread would keep 129 registers of terms
func.func @main(%a16: tensor<16xf32>, %a6: tensor<6xf32>, %a4128x2: tensor<4128x2xf32>) -> (tensor<16xf32>, tensor<6xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<4128x2xf32>) {
  %blocks = loop.kernel @blocks(%a16) : (tensor<16xf32>) -> tensor<16xf32> {
  ^bb0(%x: memref<16xf32>, %out: memref<16xf32>):
    tile.launch (%j = 16 : block) {
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k] : memref<16xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<16xf32>
    }
  }
  %few = loop.kernel @few(%a6) : (tensor<6xf32>) -> tensor<6xf32> {
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
      loop.store %s, %out[%j] : memref<6xf32>
    }
  }
  %masked = loop.kernel @masked(%a16) : (tensor<16xf32>) -> tensor<16xf32> {
  ^bb0(%x: memref<16xf32>, %out: memref<16xf32>):
    tile.launch (%j = 16 : thread) {
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k] : memref<16xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 1.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<16xf32>
    }
  }
  %lengths = loop.kernel @lengths(%a16) : (tensor<16xf32>) -> tensor<16xf32> {
  ^bb0(%x: memref<16xf32>, %out: memref<16xf32>):
    tile.launch (%j = 16 : thread) {
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k] : memref<16xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      %r = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %until = loop.test[%j floordiv 2 - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k] : memref<16xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<16xf32>
    }
  }
  %total = loop.kernel @total(%a16) : (tensor<16xf32>) -> tensor<16xf32> {
  ^bb0(%x: memref<16xf32>, %out: memref<16xf32>):
    tile.launch (%j = 16 : thread) {
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %v = loop.load %x[%k] : memref<16xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%j] : memref<16xf32>
    }
  }
  %long = loop.kernel @long(%a4128x2) : (tensor<4128x2xf32>) -> tensor<4128x2xf32> {
  ^bb0(%x: memref<4128x2xf32>, %out: memref<4128x2xf32>):
    tile.launch (%j = 4128 : thread, %l = 2 : thread) {
      %s = loop.for %k = 0 to 4128 reduce(add) -> f32 {
        %until = loop.test[%j - %k >= 0]
        %p = scf.if %until -> (f32) {
          %v = loop.load %x[%k, %l] : memref<4128x2xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %p : f32
      }
      loop.store %s, %out[%j, %l] : memref<4128x2xf32>
    }
  }
  func.return %blocks, %few, %masked, %lengths, %total, %long : tensor<16xf32>, tensor<6xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<4128x2xf32>
}
