// RUN: deplo-opt %s -p split-matmul-k --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p split-matmul-k,split-matmul-k --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p split-matmul-k{atomics=true},split-matmul-k{atomics=true} --split-input-file --remarks 2>%t.remarks | FileCheck %s --check-prefix=ATOMIC
// RUN: FileCheck %s --check-prefix=REASON < %t.remarks

// Each part leaves its sum; a second kernel folds them in order and has the epilogue. A part is whole chunks:
// 5 chunks of 16 in 2 parts are 3 for each, and what is past the end of K contributes nothing.
// CHECK-LABEL: func.func @main
// CHECK:         %[[PARTS:.*]] = loop.kernel @linear_partial(%x, %w) : (tensor<64x70xf32>, tensor<64x70xf32>) -> tensor<2x64x64xf32>
// CHECK:           tile.launch (%k_part = 2 : thread, %i = 64 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 1, n = 2, block_m = 32, block_n = 32, block_k = 16, thread_m = 4, thread_n = 4>)
// CHECK:             %s = loop.for %k = 0 to 48 reduce(add) -> f32
// CHECK:               loop.test[%k_part * 48 + %k < 70]
// CHECK:               loop.load %x[%i, %k_part * 48 + %k]
// CHECK:             loop.store %s, %{{.*}}[%k_part, %i, %j] : memref<2x64x64xf32>
// CHECK:         loop.kernel @linear_fold(%b, %[[PARTS]]) : (tensor<64xf32>, tensor<2x64x64xf32>) -> tensor<64x64xf32>
// CHECK:           tile.launch (%i_block = 16 : block, %i_thread = 4 : thread, %j = 64 : thread) schedule(#tile.schedule<split_k = 2, threads = 256>)
// CHECK:             %s = loop.for %part = 0 to 2 reduce(add) -> f32
// CHECK-NEXT:          %partial = loop.load %{{.*}}[%part, %i_block * 4 + %i_thread, %j]
// CHECK:             loop.load %b[%j]
// CHECK:             arith.maximumf
// CHECK:             loop.store
// REASON: remark: split-matmul-k: linear: declined: the epilogue is not linear in the sum: arith.maximumf
// REMARK: remark: split-matmul-k: linear: 2 parts of 48 of K
// REMARK: remark: split-matmul-k: linear_partial: declined: the schedule splits no K
// REMARK: remark: split-matmul-k: linear_fold: declined: the launch is partitioned already
func.func @main(%x: tensor<64x70xf32>, %w: tensor<64x70xf32>, %b: tensor<64xf32>) -> tensor<64x64xf32> {
  %y = loop.kernel @linear(%x, %w, %b) : (tensor<64x70xf32>, tensor<64x70xf32>, tensor<64xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x70xf32>, %w: memref<64x70xf32>, %b: memref<64xf32>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 32, block_n = 32, block_k = 16, thread_m = 4, thread_n = 4, split_k = 2>) {
      %s = loop.for %k = 0 to 70 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<64x70xf32>
        %q = loop.load %w[%j, %k] : memref<64x70xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      %c = loop.load %b[%j] : memref<64xf32>
      %t = arith.addf %s, %c : f32
      %z = arith.constant 0.0 : f32
      %u = arith.maximumf %t, %z : f32
      loop.store %u, %out[%i, %j] : memref<64x64xf32>
    }
  }
  func.return %y : tensor<64x64xf32>
}

// -----

// K of one chunk; and no schedule at all. What is printed is what was realised.
// CHECK-LABEL: loop.kernel @short
// CHECK:         schedule(#tile.schedule<m = 0, n = 1, block_m = 32, block_n = 32, block_k = 16, thread_m = 4, thread_n = 4>)
// REMARK: remark: split-matmul-k: short: declined: K of 12 is one part
// REMARK: remark: split-matmul-k: pointwise: declined: the schedule splits no K
func.func @main(%x: tensor<64x12xf32>, %w: tensor<64x12xf32>) -> (tensor<64x64xf32>, tensor<64x12xf32>) {
  %y = loop.kernel @short(%x, %w) : (tensor<64x12xf32>, tensor<64x12xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x12xf32>, %w: memref<64x12xf32>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 32, block_n = 32, block_k = 16, thread_m = 4, thread_n = 4, split_k = 2>) {
      %s = loop.for %k = 0 to 12 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<64x12xf32>
        %q = loop.load %w[%j, %k] : memref<64x12xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<64x64xf32>
    }
  }
  %z = loop.kernel @pointwise(%x) : (tensor<64x12xf32>) -> tensor<64x12xf32> {
  ^bb0(%x: memref<64x12xf32>, %out: memref<64x12xf32>):
    tile.launch (%i = 64 : thread, %j = 12 : thread) {
      %p = loop.load %x[%i, %j] : memref<64x12xf32>
      loop.store %p, %out[%i, %j] : memref<64x12xf32>
    }
  }
  func.return %y, %z : tensor<64x64xf32>, tensor<64x12xf32>
}

// -----

// The heads of %x are 24 long: a chunk of the second part would begin inside one and end in the next.
// REMARK: remark: split-matmul-k: heads: declined: a part of an operand is not read position by position
func.func @main(%x: tensor<64x4x24xf32>, %w: tensor<64x96xf32>) -> tensor<64x64xf32> {
  %y = loop.kernel @heads(%x, %w) : (tensor<64x4x24xf32>, tensor<64x96xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x4x24xf32>, %w: memref<64x96xf32>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 32, block_n = 32, block_k = 16, thread_m = 4, thread_n = 4, split_k = 2>) {
      %s = loop.for %k = 0 to 96 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k floordiv 24, %k mod 24] : memref<64x4x24xf32>
        %q = loop.load %w[%j, %k] : memref<64x96xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<64x64xf32>
    }
  }
  func.return %y : tensor<64x64xf32>
}

// -----

// What multiplies the sum distributes over the parts; what is added the first part adds.
// ATOMIC:        %[[ZEROS:.*]] = loop.kernel @residual_zero() : () -> tensor<64x64xf32>
// ATOMIC:        loop.kernel @residual_atomic(%x, %w, %b, %[[ZEROS]])
// ATOMIC:          tile.launch (%k_part = 2 : thread, %i = 64 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 1, n = 2, {{.*}}split_k = 2>)
// ATOMIC:            %[[FIRST:.*]] = loop.test[%k_part < 1]
// ATOMIC:            %[[SCALED:.*]] = arith.mulf %s, %{{.*}} : f32
// ATOMIC:            %[[ONCE:.*]] = arith.select %[[FIRST]], %{{.*}}, %{{.*}} : f32
// ATOMIC:            %[[SUM:.*]] = arith.addf %[[SCALED]], %[[ONCE]] : f32
// ATOMIC:            loop.accumulate %[[SUM]], %{{.*}}[%i, %j] onto %start : f32, memref<64x64xf32>
// REASON: remark: split-matmul-k: residual: 2 parts of 48 of K, added atomically
// REASON: remark: split-matmul-k: largest: declined: parts that are not added cannot be added to the result
// REASON: remark: split-matmul-k: residual_atomic: declined: K is split already
func.func @main(%x: tensor<64x70xf32>, %w: tensor<64x70xf32>, %b: tensor<64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %y = loop.kernel @residual(%x, %w, %b) : (tensor<64x70xf32>, tensor<64x70xf32>, tensor<64xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x70xf32>, %w: memref<64x70xf32>, %b: memref<64xf32>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 32, block_n = 32, block_k = 16, thread_m = 4, thread_n = 4, split_k = 2>) {
      %s = loop.for %k = 0 to 70 reduce(add) -> f32 {
        %p = loop.load %x[%i, %k] : memref<64x70xf32>
        %q = loop.load %w[%j, %k] : memref<64x70xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      %c = loop.load %b[%j] : memref<64xf32>
      %h = arith.constant 0.5 : f32
      %t = arith.mulf %s, %h : f32
      %u = arith.addf %t, %c : f32
      loop.store %u, %out[%i, %j] : memref<64x64xf32>
    }
  }
  %z = loop.kernel @largest(%x, %w) : (tensor<64x70xf32>, tensor<64x70xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x70xf32>, %w: memref<64x70xf32>, %out: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 32, block_n = 32, block_k = 16, thread_m = 4, thread_n = 4, split_k = 2>) {
      %s = loop.for %k = 0 to 70 reduce(max) -> f32 {
        %p = loop.load %x[%i, %k] : memref<64x70xf32>
        %q = loop.load %w[%j, %k] : memref<64x70xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<64x64xf32>
    }
  }
  func.return %y, %z : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// What is not added atomically: a type that no instruction adds, and what is stored beside the sum.
// REASON: remark: split-matmul-k: small: declined: i8 is not added atomically
// REASON: remark: split-matmul-k: beside: declined: it stores what is no sum of the parts
func.func @main(%x: tensor<64x64xi8>, %w: tensor<64x64xi8>, %f: tensor<64x64xf32>) -> (tensor<64x64xi8>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %y = loop.kernel @small(%x, %w) : (tensor<64x64xi8>, tensor<64x64xi8>) -> tensor<64x64xi8> {
  ^bb0(%x: memref<64x64xi8>, %w: memref<64x64xi8>, %out: memref<64x64xi8>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 32, block_n = 32, block_k = 16, thread_m = 4, thread_n = 4, split_k = 2>) {
      %s = loop.for %k = 0 to 64 reduce(add) -> i8 {
        %p = loop.load %x[%i, %k] : memref<64x64xi8>
        %q = loop.load %w[%j, %k] : memref<64x64xi8>
        %r = arith.muli %p, %q : i8
        loop.yield %r : i8
      }
      loop.store %s, %out[%i, %j] : memref<64x64xi8>
    }
  }
  %z:2 = loop.kernel @beside(%f) : (tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  ^bb0(%f: memref<64x64xf32>, %out: memref<64x64xf32>, %copy: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 32, block_n = 32, block_k = 16, thread_m = 4, thread_n = 4, split_k = 2>) {
      %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
        %p = loop.load %f[%i, %k] : memref<64x64xf32>
        %q = loop.load %f[%j, %k] : memref<64x64xf32>
        %r = arith.mulf %p, %q : f32
        loop.yield %r : f32
      }
      loop.store %s, %out[%i, %j] : memref<64x64xf32>
      %v = loop.load %f[%i, %j] : memref<64x64xf32>
      loop.store %v, %copy[%i, %j] : memref<64x64xf32>
    }
  }
  func.return %y, %z#0, %z#1 : tensor<64x64xi8>, tensor<64x64xf32>, tensor<64x64xf32>
}
