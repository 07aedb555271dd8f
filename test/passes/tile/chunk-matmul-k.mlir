// RUN: deplo-opt %s -p chunk-matmul-k --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p chunk-matmul-k,chunk-matmul-k --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p chunk-matmul-k --split-input-file --check-each-pass >/dev/null

// Chunks that fit: nothing is masked, and the lowering goes on with the sum so far.
// CHECK-LABEL: loop.kernel @linear
// CHECK:         %s = loop.for %k_block = 0 to 4 reduce(add) -> f32 {
// CHECK-NEXT:      %s_chunk = loop.for %k = 0 to 16 reduce(add) -> f32 {
// CHECK-NEXT:        loop.load %x[%i, %k_block * 16 + %k]
// CHECK-NEXT:        loop.load %w[%j, %k_block * 16 + %k]
// CHECK:           } attributes {chunk}
// CHECK-NEXT:      loop.yield %s_chunk : f32
// REMARK: remark: chunk-matmul-k: linear: chunks of 16 of 64
// REMARK: remark: chunk-matmul-k: linear: declined: the sweep has chunks already
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

// A tail contributes what does not change the sum.
// CHECK-LABEL: loop.kernel @linear
// CHECK:         loop.for %k_block = 0 to 4 reduce(add) -> f32 {
// CHECK:             %[[in:.+]] = loop.test[%k_block * 16 + %k < 50]
// CHECK-NEXT:        scf.if %[[in]] -> (f32) {
// CHECK:             } else {
// CHECK-NEXT:          arith.constant 0.000000e+00 : f32
func.func @main(%x: tensor<32x50xf32>, %w: tensor<64x50xf32>) -> tensor<32x64xf32> {
  %y = loop.kernel @linear(%x, %w) : (tensor<32x50xf32>, tensor<64x50xf32>) -> tensor<32x64xf32> {
  ^bb0(%x: memref<32x50xf32>, %w: memref<64x50xf32>, %out: memref<32x64xf32>):
    tile.launch (%i = 32 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 16, block_n = 32, block_k = 16, thread_m = 2, thread_n = 2>) {
      %s = loop.for %k = 0 to 50 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<32x50xf32>
        %q = loop.load %w[%j, %k] : memref<64x50xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<32x64xf32>
    }
  }
  func.return %y : tensor<32x64xf32>
}

// -----

// REMARK: remark: chunk-matmul-k: linear: declined: the schedule has no block_k
func.func @main(%x: tensor<32x64xf32>, %w: tensor<64x64xf32>) -> tensor<32x64xf32> {
  %y = loop.kernel @linear(%x, %w) : (tensor<32x64xf32>, tensor<64x64xf32>) -> tensor<32x64xf32> {
  ^bb0(%x: memref<32x64xf32>, %w: memref<64x64xf32>, %out: memref<32x64xf32>):
    tile.launch (%i = 32 : thread, %j = 64 : thread) {
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

// REMARK: remark: chunk-matmul-k: dot: declined: a CPU's dot tile takes chunks itself
func.func @main(%x: tensor<4x64xf32>, %w: tensor<6x64xf32>) -> tensor<4x6xf32> {
  %y = loop.kernel @dot(%x, %w) : (tensor<4x64xf32>, tensor<6x64xf32>) -> tensor<4x6xf32> {
  ^bb0(%x: memref<4x64xf32>, %w: memref<6x64xf32>, %out: memref<4x6xf32>):
    tile.launch (%i = 4 : thread, %j = 6 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 4, block_n = 6, block_k = 32, thread_m = 2, thread_n = 3, dot = 1, vectors = avx512>) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<4x64xf32>
        %q = loop.load %w[%j, %k] : memref<6x64xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<4x6xf32>
    }
  }
  func.return %y : tensor<4x6xf32>
}
