// RUN: deplo-opt %s -p chunk-matmul-k,blockify-launch,stage-inputs --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p chunk-matmul-k,blockify-launch,stage-inputs,stage-inputs --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p chunk-matmul-k,blockify-launch,stage-inputs --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p blockify-launch,stage-inputs --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=WHOLE

// Both operands of a chunk are copied; the threads of the block read the copies.
// CHECK-LABEL: loop.kernel @linear
// CHECK:         %s = loop.for %k_block = 0 to 4 reduce(add) -> f32 {
// CHECK-NEXT:      %x_smem = tile.stage %x[%i_block * 16, %k_block * 16] : memref<32x64xf32> -> memref<16x16xf32, "shared">
// CHECK-NEXT:      %w_smem = tile.stage %w[%j_block * 32, %k_block * 16] : memref<64x64xf32> -> memref<32x16xf32, "shared">
// CHECK-NEXT:      loop.for %k = 0 to 16 reduce(add) -> f32 {
// CHECK-NEXT:        loop.load %x_smem[%i_thread, %k]
// CHECK-NEXT:        loop.load %w_smem[%j_thread, %k]
// REMARK: remark: stage-inputs: linear: slabs of 3072 bytes
// REMARK: remark: stage-inputs: linear: declined: its operands are staged already
// WHOLE: remark: stage-inputs: linear: declined: there is no chunked reduce loop
func.func @main(%x: tensor<32x64xf32>, %w: tensor<64x64xf32>) -> tensor<32x64xf32> {
  %y = loop.kernel @linear(%x, %w) : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32> {
  ^bb0(%x: memref<32x64xf32>, %w: memref<64x64xf32>, %out: memref<32x64xf32>):
    tile.launch (%i = 32 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 32, block_k = 16, thread_m = 2, thread_n = 2>) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<32x64xf32>
        %q = loop.load %w[%j, %k] : memref<64x64xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<32x64xf32>
    }
  }
  func.return %y : tensor<32x64xf32>
}

// -----

// Ragged everywhere: all threads copy and sum, those inside store; slabs are 0 past the end of K, so its mask goes.
// CHECK-LABEL: loop.kernel @ragged
// CHECK:         %[[in:.+]] = loop.test[%i_block * 16 + %i_thread < 30, %j_block * 32 + %j_thread < 50]
// CHECK-NEXT:    %s = loop.for %k_block = 0 to 3 reduce(add) -> f32 {
// CHECK-NOT:       loop.test
// CHECK:           } attributes {chunk}
// CHECK:         scf.if %[[in]] {
// CHECK-NEXT:      loop.store %s
func.func @main(%x: tensor<30x40xf32>, %w: tensor<50x40xf32>) -> tensor<30x50xf32> {
  %y = loop.kernel @ragged(%x, %w) : (tensor<30x40xf32>, tensor<50x40xf32>) -> tensor<30x50xf32> {
  ^bb0(%x: memref<30x40xf32>, %w: memref<50x40xf32>, %out: memref<30x50xf32>):
    tile.launch (%i = 30 : thread, %j = 50 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 32, block_k = 16, thread_m = 2, thread_n = 2>) {
      %s = loop.for %k = 0 to 40 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<30x40xf32>
        %q = loop.load %w[%j, %k] : memref<50x40xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<30x50xf32>
    }
  }
  func.return %y : tensor<30x50xf32>
}

// -----

// K ends before the rows of %x do: there the slab is not 0, and the mask stays.
// CHECK-LABEL: loop.kernel @sliced
// CHECK:           %x_smem = tile.stage
// CHECK:             loop.test[%k_block * 16 + %k < 40]
// CHECK:             scf.if
func.func @main(%x: tensor<32x48xf32>, %w: tensor<64x40xf32>) -> tensor<32x64xf32> {
  %y = loop.kernel @sliced(%x, %w) : (tensor<32x48xf32>, tensor<64x40xf32>) -> tensor<32x64xf32> {
  ^bb0(%x: memref<32x48xf32>, %w: memref<64x40xf32>, %out: memref<32x64xf32>):
    tile.launch (%i = 32 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 32, block_k = 16, thread_m = 2, thread_n = 2>) {
      %s = loop.for %k = 0 to 40 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<32x48xf32>
        %q = loop.load %w[%j, %k] : memref<64x40xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<32x64xf32>
    }
  }
  func.return %y : tensor<32x64xf32>
}

// -----

// A maximum of products is not that of products and zeros: the mask stays.
// CHECK-LABEL: loop.kernel @largest
// CHECK:             loop.test[%k_block * 16 + %k < 40]
func.func @main(%x: tensor<32x40xf32>, %w: tensor<64x40xf32>) -> tensor<32x64xf32> {
  %y = loop.kernel @largest(%x, %w) : (tensor<32x40xf32>, tensor<64x40xf32>) -> tensor<32x64xf32> {
  ^bb0(%x: memref<32x40xf32>, %w: memref<64x40xf32>, %out: memref<32x64xf32>):
    tile.launch (%i = 32 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 32, block_k = 16, thread_m = 2, thread_n = 2>) {
      %s = loop.for %k = 0 to 40 reduce(max) -> f32 {
        %p = loop.load %x[%i, %k] : memref<32x40xf32>
        %q = loop.load %w[%j, %k] : memref<64x40xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<32x64xf32>
    }
  }
  func.return %y : tensor<32x64xf32>
}

// -----

// REMARK: remark: stage-inputs: large: declined: slabs of 278528 bytes exceed the 232448 of a block
func.func @main(%x: tensor<512x128xf32>, %w: tensor<64x128xf32>) -> tensor<512x64xf32> {
  %y = loop.kernel @large(%x, %w) : (tensor<512x128xf32>, tensor<64x128xf32>) -> tensor<512x64xf32> {
  ^bb0(%x: memref<512x128xf32>, %w: memref<64x128xf32>, %out: memref<512x64xf32>):
    tile.launch (%i = 512 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 512, block_n = 32, block_k = 128, thread_m = 2, thread_n = 2>) {
      %s = loop.for %k = 0 to 128 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<512x128xf32>
        %q = loop.load %w[%j, %k] : memref<64x128xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<512x64xf32>
    }
  }
  func.return %y : tensor<512x64xf32>
}

// -----

// REMARK: remark: stage-inputs: unscheduled: declined: the schedule stages nothing
func.func @main(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %y = loop.kernel @unscheduled(%x, %w) : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32> {
  ^bb0(%x: memref<16x16xf32>, %w: memref<16x16xf32>, %out: memref<16x16xf32>):
    tile.launch (%i = 16 : thread, %j = 16 : thread) {
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<16x16xf32>
        %q = loop.load %w[%j, %k] : memref<16x16xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<16x16xf32>
    }
  }
  func.return %y : tensor<16x16xf32>
}

// -----

// The rows end inside a block, so the sweep stands under a condition, and what it reads too.
// REMARK: remark: stage-inputs: scaled: declined: the sweep needs what is computed under the condition around it
func.func @main(%x: tensor<40x32xf32>, %w: tensor<64x32xf32>, %b: tensor<64xf32>) -> tensor<40x64xf32> {
  %y = loop.kernel @scaled(%x, %w, %b) : (tensor<40x32xf32>, tensor<64x32xf32>, tensor<64xf32>) -> tensor<40x64xf32> {
  ^bb0(%x: memref<40x32xf32>, %w: memref<64x32xf32>, %b: memref<64xf32>, %out: memref<40x64xf32>):
    tile.launch (%i = 40 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 32, block_k = 16, thread_m = 2, thread_n = 2>) {
      %c = loop.load %b[%j] : memref<64xf32>
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<40x32xf32>
        %q = loop.load %w[%j, %k] : memref<64x32xf32>
        %d = arith.subf %q, %c : f32
        %r = arith.mulf %p, %d : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<40x64xf32>
    }
  }
  func.return %y : tensor<40x64xf32>
}

// -----

// Around the image there is 0, as around every source: no condition is left, and nothing of the box is read twice.
// CHECK-LABEL: loop.kernel @windows
// CHECK:         %s = loop.for %k_block = 0 to 6 reduce(add) -> f32 {
// CHECK-NEXT:      %x_smem = tile.stage %x[%k_block mod 2 * 16, %z_block * 16 + %k_block floordiv 2 - 1] : memref<32x30xf16> -> memref<16x16xf16, "shared">
// CHECK-NEXT:      %w_smem = tile.stage %w[%k_block floordiv 2, 0, %k_block mod 2 * 16] : memref<3x16x32xf16> -> memref<16x16xf16, "shared">
// CHECK-NEXT:      loop.for %k = 0 to 16 reduce(add) -> f32 {
// CHECK-NEXT:        loop.load %x_smem[%k, %z_thread]
// CHECK-NEXT:        arith.extf
func.func @main(%x: tensor<32x30xf16>, %w: tensor<3x16x32xf16>) -> tensor<16x30xf32> {
  %y = loop.kernel @windows(%x, %w) : (tensor<32x30xf16>, tensor<3x16x32xf16>) -> tensor<16x30xf32> {
  ^bb0(%x: memref<32x30xf16>, %w: memref<3x16x32xf16>, %out: memref<16x30xf32>):
    tile.launch (%j = 16 : thread, %z = 30 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 16, block_k = 16, thread_m = 2, thread_n = 4>) {
      %s = loop.for %k = 0 to 96 reduce(add) -> f32 {
        %inside = loop.test[%z + %k floordiv 32 >= 1, %z + %k floordiv 32 < 31]
        %v = scf.if %inside -> (f16) {
          %e = loop.load %x[%k mod 32, %z + %k floordiv 32 - 1] : memref<32x30xf16>
          scf.yield %e : f16
        } else {
          %zero = arith.constant 0.0 : f16
          scf.yield %zero : f16
        }
        %a = arith.extf %v : f16 to f32
        %u = loop.load %w[%k floordiv 32, %j, %k mod 32] : memref<3x16x32xf16>
        %b = arith.extf %u : f16 to f32
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %out[%j, %z] : memref<16x30xf32>
    }
  }
  func.return %y : tensor<16x30xf32>
}

// -----

// The matrix that data picks for a block is copied from there; the index stands before the condition of the points.
// CHECK-LABEL: loop.kernel @picked
// CHECK:         %[[in:.+]] = loop.test[%i_thread < 12]
// CHECK:         %row = loop.checked_index %{{.+}} below 3 proven : i64
// CHECK-NEXT:    %s = loop.for %k_block = 0 to 2 reduce(add) -> f32 {
// CHECK-NEXT:      %x_smem = tile.stage %x[%t, 0, %k_block * 16] : memref<2x12x32xf32> -> memref<16x16xf32, "shared">
// CHECK-NEXT:      %w_smem = tile.stage %w[%row, 0, %k_block * 16] : memref<3x16x32xf32> -> memref<16x16xf32, "shared">
// CHECK:         scf.if %[[in]] {
// CHECK-NEXT:      loop.store %s
// REMARK: remark: stage-inputs: picked: slabs of 2048 bytes
func.func @main(%x: tensor<2x12x32xf32>, %w: tensor<3x16x32xf32>, %at: tensor<2xi64>) -> tensor<2x12x16xf32> {
  %y = loop.kernel @picked(%x, %w, %at) : (tensor<2x12x32xf32>, tensor<3x16x32xf32>, tensor<2xi64>) -> tensor<2x12x16xf32> {
  ^bb0(%x: memref<2x12x32xf32>, %w: memref<3x16x32xf32>, %at: memref<2xi64>, %out: memref<2x12x16xf32>):
    tile.launch (%t = 2 : thread, %i = 12 : thread, %j = 16 : thread) schedule(#tile.schedule<m = 1, n = 2, block_m = 16, block_n = 16, block_k = 16, thread_m = 2, thread_n = 2>) {
      %id = loop.load %at[%t] : memref<2xi64>
      %zero = arith.constant 0 : i64
      %last = arith.constant 2 : i64
      %positive = arith.maxsi %id, %zero : i64
      %inside = arith.minsi %positive, %last : i64
      %row = loop.checked_index %inside below 3 proven : i64
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %p = loop.load %x[%t, %i, %k] : memref<2x12x32xf32>
        %q = loop.load %w[%row, %j, %k] : memref<3x16x32xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%t, %i, %j] : memref<2x12x16xf32>
    }
  }
  func.return %y : tensor<2x12x16xf32>
}
