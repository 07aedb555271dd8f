// RUN: deplo-opt %s -p cooperative-reduce --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p cooperative-reduce --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p cooperative-reduce,blockify-launch,materialize-tile,lower-to-cuda --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'cooperative-reduce{lanes=64 vector=1 rows=1}' --split-input-file | FileCheck %s --check-prefix=ONE
// RUN: deplo-opt %s -p 'cooperative-reduce{lanes=8 rows=16 vector=2},blockify-launch,materialize-tile,vectorize-accesses,lower-to-cuda' --split-input-file --check-each-pass >/dev/null
// RUN: not deplo-opt %s -p 'cooperative-reduce{lanes=12}' --split-input-file 2>&1 | FileCheck %s --check-prefix=TWELVE
// RUN: not deplo-opt %s -p 'cooperative-reduce{vector=6}' --split-input-file 2>&1 | FileCheck %s --check-prefix=SIX
// TWELVE: error: cooperative-reduce: lanes is a power of two, at most 1024, got 12
// SIX: error: cooperative-reduce: vector is 1, 2, 4 or 8, got 6

// A norm: both sweeps are shared by 64 threads, the sum is combined, the tail of 4 is masked.
// ONE-LABEL:   loop.kernel @norm
// ONE:           tile.launch (%i = 4 : block, %lane = 64 : thread) schedule(#tile.schedule<threads = 64>) {
// ONE-NEXT:        %s_part = loop.for %k = 0 to 4 reduce(add) -> f32 {
// ONE-NEXT:          %[[in:.+]] = loop.test[%k * 64 + %lane < 196]
// ONE-NEXT:          %[[v:.+]] = scf.if %[[in]] -> (f32) {
// ONE-NEXT:            %v = loop.load %in[%i, %k * 64 + %lane]
// ONE-NEXT:            scf.yield %v : f32
// ONE-NEXT:          } else {
// ONE-NEXT:            %[[zero:.+]] = arith.constant 0.000000e+00 : f32
// ONE-NEXT:            scf.yield %[[zero]] : f32
// ONE:             %s = tile.combine add %s_part over(%lane) : f32
// ONE-NEXT:        %r = math.rsqrt %s
// ONE-NEXT:        loop.for %j = 0 to 4 {
// ONE:               loop.store %{{.+}}, %out[%i, %j * 64 + %lane]
// Left to the model, 32 threads share it in vectors: 49 of them.
// CHECK-LABEL: loop.kernel @norm
// CHECK:         tile.launch (%i = 4 : block, %lane = 32 : thread) schedule(#tile.schedule<threads = 32, vector = 4>) {
// CHECK-NEXT:      %s_part = loop.for %k = 0 to 2 reduce(add) -> f32 {
// CHECK-NEXT:        %[[in:.+]] = loop.test[%k * 32 + %lane < 49]
// CHECK-NEXT:        %[[c:.+]] = scf.if %[[in]] -> (f32) {
// CHECK-NEXT:          %s_vector = loop.for %e = 0 to 4 reduce(add) -> f32 {
// CHECK-NEXT:            %v = loop.load %in[%i, %k * 128 + %lane * 4 + %e]
// CHECK-NEXT:            loop.yield %v : f32
// CHECK-NEXT:          } attributes {vector}
// CHECK-NEXT:          scf.yield %s_vector : f32
// REMARK: remark: cooperative-reduce: norm: 32 threads share each sweep of up to 196 elements, in vectors of 4
func.func @main(%x: tensor<4x196xf32>) -> tensor<4x196xf32> {
  %y = loop.kernel @norm(%x) : (tensor<4x196xf32>) -> tensor<4x196xf32> {
  ^bb0(%in: memref<4x196xf32>, %out: memref<4x196xf32>):
    tile.launch (%i = 4 : thread) {
      %s = loop.for %k = 0 to 196 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<4x196xf32>
        loop.yield %v : f32
      }
      %r = math.rsqrt %s : f32
      loop.for %j = 0 to 196 {
        %v = loop.load %in[%i, %j] : memref<4x196xf32>
        %w = arith.mulf %v, %r : f32
        loop.store %w, %out[%i, %j] : memref<4x196xf32>
      }
    }
  }
  func.return %y : tensor<4x196xf32>
}

// -----

// The result of a row is stored by one thread.
// CHECK-LABEL: loop.kernel @sum
// CHECK:         tile.launch (%lane = 32 : thread) schedule(#tile.schedule<threads = 32, vector = 2>) {
// CHECK:           %s = tile.combine add %s_part over(%lane) : f32
// CHECK-NEXT:      %m = tile.combine max %m_part over(%lane) : f32
// CHECK:           %first = loop.test[%lane < 1]
// CHECK-NEXT:      scf.if %first {
// CHECK-NEXT:        loop.store
func.func @main(%x: tensor<64xf32>) -> tensor<f32> {
  %y = loop.kernel @sum(%x) : (tensor<64xf32>) -> tensor<f32> {
  ^bb0(%in: memref<64xf32>, %out: memref<f32>):
    tile.launch () {
      %s, %m = loop.for %k = 0 to 64 reduce(add, max) -> f32, f32 {
        %v = loop.load %in[%k] : memref<64xf32>
        loop.yield %v, %v : f32, f32
      }
      %d = arith.divf %s, %m : f32
      loop.store %d, %out[] : memref<f32>
    }
  }
  func.return %y : tensor<f32>
}

// -----

// Short rows are shared by a part of a warp; past the last of them nothing is read or stored.
// CHECK-LABEL: loop.kernel @short
// CHECK:         tile.launch (%i_block = 6 : block, %i_thread = 8 : thread, %lane = 4 : thread) schedule(#tile.schedule<threads = 32, vector = 2>) {
// CHECK-NEXT:      %s_part = loop.for %k = 0 to 1 reduce(add) -> f32 {
// CHECK-NEXT:        %[[in:.+]] = loop.test[%i_block * 8 + %i_thread < 43]
// CHECK-NEXT:        scf.if %[[in]]
// CHECK:         %inside = loop.test[%i_block * 8 + %i_thread < 43]
// CHECK-NEXT:    %w = scf.if %inside -> (f32) {
// CHECK-NEXT:      loop.load %in[%i_block * 8 + %i_thread, 9]
// CHECK:         } else {
// CHECK-NEXT:      arith.constant 0.000000e+00
// CHECK:         %first = loop.test[%i_block * 8 + %i_thread < 43, %lane < 1]
// CHECK-NEXT:    scf.if %first {
// CHECK-NEXT:      loop.store
// REMARK: remark: cooperative-reduce: short: 4 threads share each sweep of up to 8 elements, in vectors of 2; a block has 8 rows
func.func @main(%x: tensor<43x10xf32>) -> tensor<43xf32> {
  %y = loop.kernel @short(%x) : (tensor<43x10xf32>) -> tensor<43xf32> {
  ^bb0(%in: memref<43x10xf32>, %out: memref<43xf32>):
    tile.launch (%i = 43 : thread) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<43x10xf32>
        loop.yield %v : f32
      }
      %w = loop.load %in[%i, 9] : memref<43x10xf32>
      %r = arith.mulf %s, %w : f32
      loop.store %r, %out[%i] : memref<43xf32>
    }
  }
  func.return %y : tensor<43xf32>
}

// -----

// Rows with a mask that several of them share, and the products of one vector with many: one operand depends on all
// axes, so that nothing is read twice, and threads share each row.
// CHECK-LABEL: loop.kernel @masked
// CHECK:         tile.launch (%h_block = 3 : block, %h_thread = 2 : thread, %i = 2 : thread, %lane = 8 : thread)
// CHECK-NEXT:      %m_part = loop.for %k = 0 to 2 reduce(max) -> f32 {
// REMARK: remark: cooperative-reduce: masked: 8 threads share each sweep of up to 64 elements, in vectors of 4; a block has 4 rows
func.func @main(%x: tensor<5x2x64xf32>, %m: tensor<2x64xf32>) -> tensor<5x2xf32> {
  %y = loop.kernel @masked(%x, %m) : (tensor<5x2x64xf32>, tensor<2x64xf32>) -> tensor<5x2xf32> {
  ^bb0(%in: memref<5x2x64xf32>, %mask: memref<2x64xf32>, %out: memref<5x2xf32>):
    tile.launch (%h = 5 : thread, %i = 2 : thread) {
      %m = loop.for %k = 0 to 64 reduce(max) -> f32 {
        %v = loop.load %in[%h, %i, %k] : memref<5x2x64xf32>
        %b = loop.load %mask[%i, %k] : memref<2x64xf32>
        %s = arith.addf %v, %b : f32
        loop.yield %s : f32
      }
      loop.store %m, %out[%h, %i] : memref<5x2xf32>
    }
  }
  func.return %y : tensor<5x2xf32>
}

// -----

// Rows of an unknown number of whole vectors are read in vectors. Where each position of a row is a sweep of its own,
// more threads share the row.
// CHECK-LABEL: loop.kernel @vectors
// CHECK:         tile.launch (%i = 3 : block, %lane = 32 : thread) schedule(#tile.schedule<threads = 32, vector = 4>) {
// CHECK:             loop.test[%k * 32 + %lane < s0 * 4]
// CHECK-LABEL: loop.kernel @deep
// CHECK:         tile.launch (%i = 3 : block, %lane = 256 : thread)
// REMARK: remark: cooperative-reduce: vectors: 32 threads share each sweep of up to s0 * 16 elements, in vectors of 4
// REMARK: remark: cooperative-reduce: deep: 256 threads share each sweep of up to s1 elements
func.func @main(%x: tensor<3x?x16xf32, #sym.extents<s0>>, %z: tensor<33x3x?xf32, #sym.extents<s1>>) -> (tensor<3xf32>, tensor<3xf32>)
    attributes {sym.sizes = [#sym.size<"batch", 1, 64, hint = 8>, #sym.size<"seq", 1, 1000, hint = 250>]} {
  %0 = loop.kernel @vectors(%x) : (tensor<3x?x16xf32, #sym.extents<s0>>) -> tensor<3xf32> {
  ^bb0(%in: memref<3x?x16xf32, #sym.extents<s0>>, %out: memref<3xf32>):
    tile.launch (%i = 3 : thread) {
      %s = loop.for %k = 0 to s0 * 16 reduce(max) -> f32 {
        %v = loop.load %in[%i, %k floordiv 16, %k mod 16] : memref<3x?x16xf32, #sym.extents<s0>>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<3xf32>
    }
  }
  %1 = loop.kernel @deep(%z) : (tensor<33x3x?xf32, #sym.extents<s1>>) -> tensor<3xf32> {
  ^bb0(%in: memref<33x3x?xf32, #sym.extents<s1>>, %out: memref<3xf32>):
    tile.launch (%i = 3 : thread) {
      %s = loop.for %k = 0 to s1 reduce(max) -> f32 {
        %t = loop.for %j = 0 to 33 reduce(max) -> f32 {
          %v = loop.load %in[%j, %i, %k] : memref<33x3x?xf32, #sym.extents<s1>>
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%i] : memref<3xf32>
    }
  }
  func.return %0, %1 : tensor<3xf32>, tensor<3xf32>
}

// -----

// Declined: no reduction; columns; a few elements; a contraction.
// REMARK: remark: cooperative-reduce: copy: declined: no reduce loop in the body
// REMARK: remark: cooperative-reduce: columns: declined: a reduction over columns: neighbouring threads read neighbours as it is
// REMARK: remark: cooperative-reduce: tiny: declined: the longest sweep has 3 iterations, which one thread runs
// REMARK: remark: cooperative-reduce: matmul: declined: a contraction: its operands depend on different axes of the launch
// REMARK: remark: cooperative-reduce: together: declined: its threads already work together
// REMARK: remark: cooperative-reduce: blocks: declined: the launch is partitioned already
func.func @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<8xf32>, tensor<64x64xf32>, tensor<32xf32>, tensor<64xf32>, tensor<8xf32>) {
  %0 = loop.kernel @copy(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) {
      %v = loop.load %in[%i, %j] : memref<64x64xf32>
      loop.store %v, %out[%i, %j] : memref<64x64xf32>
    }
  }
  %1 = loop.kernel @columns(%x) : (tensor<64x64xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<8xf32>):
    tile.launch (%i = 8 : thread) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %v = loop.load %in[%k, %i] : memref<64x64xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<8xf32>
    }
  }
  %5 = loop.kernel @tiny(%x) : (tensor<64x64xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<8xf32>):
    tile.launch (%i = 8 : thread) {
      %s = loop.for %k = 0 to 3 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<64x64xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<8xf32>
    }
  }
  %2 = loop.kernel @matmul(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %a = loop.load %in[%i, %k] : memref<64x64xf32>
        %b = loop.load %in[%j, %k] : memref<64x64xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %out[%i, %j] : memref<64x64xf32>
    }
  }
  %3 = loop.kernel @together(%x) : (tensor<64x64xf32>) -> tensor<32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<32xf32>):
    tile.launch (%t = 32 : thread) {
      %v = loop.load %in[%t, 0] : memref<64x64xf32>
      %s = tile.combine add %v over(%t) : f32
      loop.store %s, %out[%t] : memref<32xf32>
    }
  }
  %4 = loop.kernel @blocks(%x) : (tensor<64x64xf32>) -> tensor<64xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<64xf32>):
    tile.launch (%i = 64 : block) {
      %v = loop.load %in[%i, 0] : memref<64x64xf32>
      loop.store %v, %out[%i] : memref<64xf32>
    }
  }
  func.return %0, %1, %2, %3, %4, %5 : tensor<64x64xf32>, tensor<8xf32>, tensor<64x64xf32>, tensor<32xf32>, tensor<64xf32>, tensor<8xf32>
}

// -----

// A counter that is read as a value becomes a `loop.index`.
// CHECK-LABEL: loop.kernel @weighted
// CHECK:         %[[k:.+]] = loop.index[%k * 32 + %lane * 2 + %e]
// CHECK-NEXT:    arith.index_cast %[[k]] : index to i64
func.func @main(%x: tensor<3x128xi64>) -> tensor<3xi64> {
  %y = loop.kernel @weighted(%x) : (tensor<3x128xi64>) -> tensor<3xi64> {
  ^bb0(%in: memref<3x128xi64>, %out: memref<3xi64>):
    tile.launch (%i = 3 : thread) {
      %s = loop.for %k = 0 to 128 reduce(add) -> i64 {
        %v = loop.load %in[%i, %k] : memref<3x128xi64>
        %w = arith.index_cast %k : index to i64
        %p = arith.muli %v, %w : i64
        loop.yield %p : i64
      }
      loop.store %s, %out[%i] : memref<3xi64>
    }
  }
  func.return %y : tensor<3xi64>
}

// -----

// Declined: threads would store one element together.
// REMARK: remark: cooperative-reduce: guarded: declined: it stores under a condition between the sweeps
func.func @main(%x: tensor<3x100xf32>) -> tensor<3xf32> {
  %y = loop.kernel @guarded(%x) : (tensor<3x100xf32>) -> tensor<3xf32> {
  ^bb0(%in: memref<3x100xf32>, %out: memref<3xf32>):
    tile.launch (%i = 3 : thread) {
      %s = loop.for %k = 0 to 100 reduce(max) -> f32 {
        %v = loop.load %in[%i, %k] : memref<3x100xf32>
        loop.yield %v : f32
      }
      %t = loop.test [%i >= 1]
      scf.if %t {
        loop.store %s, %out[%i] : memref<3xf32>
      } else {
        %n = arith.negf %s : f32
        loop.store %n, %out[%i] : memref<3xf32>
      }
    }
  }
  func.return %y : tensor<3xf32>
}

// -----

// A sweep of dynamic extent: as many threads as its hint asks for, its tail masked.
// CHECK:      tile.launch (%i = s0 : block, %lane = 32 : thread)
// CHECK-NEXT:   %s_part = loop.for %k = 0 to (s1 - 1) floordiv 32 + 1 reduce(add) -> f32 {
// CHECK-NEXT:     %[[in:.+]] = loop.test[%k * 32 + %lane < s1]
// REMARK: remark: cooperative-reduce: rows: 32 threads share each sweep of up to s1 elements
func.func @main(%x: tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x1xf32, #sym.extents<s0>>
    attributes {sym.sizes = [#sym.size<"batch", 1, 64, hint = 8>, #sym.size<"seq", 2, 4096, hint = 100>]} {
  %y = loop.kernel @rows(%x) : (tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x1xf32, #sym.extents<s0>> {
  ^bb0(%in: memref<?x?xf32, #sym.extents<s0, s1>>, %out: memref<?x1xf32, #sym.extents<s0>>):
    tile.launch (%i = s0 : thread) {
      %s = loop.for %k = 0 to s1 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<?x?xf32, #sym.extents<s0, s1>>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i, 0] : memref<?x1xf32, #sym.extents<s0>>
    }
  }
  func.return %y : tensor<?x1xf32, #sym.extents<s0>>
}

// -----

// Declined: six elements, seven apart.
// REMARK: remark: cooperative-reduce: strided: declined: the longest sweep has 6 iterations, which are not neighbours in memory
func.func @main(%x: tensor<6x7xf32>) -> tensor<3xf32> {
  %y = loop.kernel @strided(%x) : (tensor<6x7xf32>) -> tensor<3xf32> {
  ^bb0(%in: memref<6x7xf32>, %out: memref<3xf32>):
    tile.launch (%i = 3 : thread) {
      %s = loop.for %k = 0 to 6 reduce(max) -> f32 {
        %v = loop.load %in[%k, %i * 2] : memref<6x7xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<3xf32>
    }
  }
  func.return %y : tensor<3xf32>
}

// -----

// REMARK: cooperative-reduce: weighted: declined: it folds weighted means, which one thread joins
func.func @main(%x: tensor<8x64xf32>, %v: tensor<8x64xf32>) -> tensor<8xf32> {
  %y = loop.kernel @weighted(%x, %v) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %v: memref<8x64xf32>, %y: memref<8xf32>):
    tile.launch (%i = 8 : thread) {
      %m, %l, %c = loop.for %j = 0 to 64 reduce(max, weight, mean) -> f32, f32, f32 {
        %a = loop.load %x[%i, %j] : memref<8x64xf32>
        %b = loop.load %v[%i, %j] : memref<8x64xf32>
        %one = arith.constant 1.0 : f32
        loop.yield %a, %one, %b : f32, f32, f32
      }
      loop.store %c, %y[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// -----

// Each element of a row is compared with each: the lanes of a warp read the same, where there are enough points.
// CHECK-LABEL: loop.kernel @ranks
// CHECK-NOT:     tile.combine
// REMARK: cooperative-reduce: ranks: declined: neighbouring threads read the same elements as it is
func.func @main(%x: tensor<1024x128xf32>) -> tensor<1024x128xi32> {
  %y = loop.kernel @ranks(%x) : (tensor<1024x128xf32>) -> tensor<1024x128xi32> {
  ^bb0(%x: memref<1024x128xf32>, %out: memref<1024x128xi32>):
    tile.launch (%i = 1024 : thread, %j = 128 : thread) {
      %here = loop.load %x[%i, %j] : memref<1024x128xf32>
      %rank = loop.for %k = 0 to 128 reduce(add) -> i32 {
        %other = loop.load %x[%i, %k] : memref<1024x128xf32>
        %less = arith.cmpf olt, %other, %here : f32
        %one = arith.extui %less : i1 to i32
        loop.yield %one : i32
      }
      loop.store %rank, %out[%i, %j] : memref<1024x128xi32>
    }
  }
  func.return %y : tensor<1024x128xi32>
}
