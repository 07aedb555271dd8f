// RUN: deplo-opt %s -p elide-barriers --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p elide-barriers,elide-barriers --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --assume=race-free -p elide-barriers,lower-to-cuda --split-input-file --check-each-pass >/dev/null

// Nothing before the first, nothing after the last; two that stand together are one.
// CHECK-LABEL: kernel.func @straight
// CHECK-NOT:     kernel.barrier
// CHECK:         loop.store %v, %s
// CHECK-NEXT:    kernel.barrier
// CHECK-NEXT:    %w = loop.load %s
// CHECK-NOT:     kernel.barrier
// CHECK:       func.func @main
// REMARK: remark: elide-barriers: straight: 3 of 4 barriers separate nothing
// REMARK: remark: elide-barriers: straight: declined: all 1 barriers are needed
kernel.func @straight(%x: memref<64xf32>, %y: memref<64xf32>) blocks(1) threads(64) {
  %s = kernel.shared : memref<64xf32, "shared">
  %t = kernel.thread_id
  kernel.barrier
  %v = loop.load %x[%t] : memref<64xf32>
  loop.store %v, %s[%t] : memref<64xf32, "shared">
  kernel.barrier
  kernel.barrier
  %w = loop.load %s[%t * -1 + 63] : memref<64xf32, "shared">
  loop.store %w, %y[%t] : memref<64xf32>
  kernel.barrier
}
func.func @main(%x: memref<64xf32>) -> memref<64xf32> {
  %y = kernel.alloc : memref<64xf32>
  kernel.launch @straight(%x, %y) blocks(1) threads(64) : memref<64xf32>, memref<64xf32>
  func.return %y : memref<64xf32>
}

// -----

// In a loop that runs four times, readers of one iteration are followed by writers of the next; both are needed.
// CHECK-LABEL: kernel.func @again
// CHECK:         scf.for
// CHECK-NEXT:      kernel.barrier
// CHECK:           kernel.barrier
// REMARK: remark: elide-barriers: again: declined: all 2 barriers are needed
kernel.func @again(%x: memref<4x64xf32>, %y: memref<64xf32>) blocks(1) threads(64) {
  %s = kernel.shared : memref<64xf32, "shared">
  %t = kernel.thread_id
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%a = %zero) -> (f32) {
    kernel.barrier
    %v = loop.load %x[%k, %t] : memref<4x64xf32>
    loop.store %v, %s[%t] : memref<64xf32, "shared">
    kernel.barrier
    %w = loop.load %s[%t * -1 + 63] : memref<64xf32, "shared">
    %n = arith.addf %a, %w : f32
    scf.yield %n : f32
  }
  loop.store %sum, %y[%t] : memref<64xf32>
}
func.func @main(%x: memref<4x64xf32>) -> memref<64xf32> {
  %y = kernel.alloc : memref<64xf32>
  kernel.launch @again(%x, %y) blocks(1) threads(64) : memref<4x64xf32>, memref<64xf32>
  func.return %y : memref<64xf32>
}

// -----

// In a loop that runs once, the first one is not.
// CHECK-LABEL: kernel.func @once
// CHECK:         scf.for
// CHECK-NOT:       kernel.barrier
// CHECK:           loop.store %v, %s
// CHECK-NEXT:      kernel.barrier
// REMARK: remark: elide-barriers: once: 1 of 2 barriers separate nothing
kernel.func @once(%x: memref<4x64xf32>, %y: memref<64xf32>) blocks(1) threads(64) {
  %s = kernel.shared : memref<64xf32, "shared">
  %t = kernel.thread_id
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %c1 step %c1 iter_args(%a = %zero) -> (f32) {
    kernel.barrier
    %v = loop.load %x[%k, %t] : memref<4x64xf32>
    loop.store %v, %s[%t] : memref<64xf32, "shared">
    kernel.barrier
    %w = loop.load %s[%t * -1 + 63] : memref<64xf32, "shared">
    %n = arith.addf %a, %w : f32
    scf.yield %n : f32
  }
  loop.store %sum, %y[%t] : memref<64xf32>
}
func.func @main(%x: memref<4x64xf32>) -> memref<64xf32> {
  %y = kernel.alloc : memref<64xf32>
  kernel.launch @once(%x, %y) blocks(1) threads(64) : memref<4x64xf32>, memref<64xf32>
  func.return %y : memref<64xf32>
}

// -----

// Reads on both sides of the second one; another buffer on both sides of the third. The copies of the fourth may
// be anywhere. A store under a condition counts.
// CHECK-LABEL: kernel.func @others
// CHECK-COUNT-2: kernel.barrier
// CHECK-NOT:     kernel.barrier
// CHECK:       kernel.func @copies
// CHECK:         kernel.async_wait 0
// CHECK-NEXT:    kernel.barrier
// REMARK: remark: elide-barriers: others: 2 of 4 barriers separate nothing
// REMARK: remark: elide-barriers: copies: declined: all 1 barriers are needed
// REMARK: remark: elide-barriers: none: declined: there is no barrier to remove
kernel.func @others(%x: memref<64xf32>, %y: memref<64xf32>) blocks(1) threads(64) {
  %s = kernel.shared : memref<64xf32, "shared">
  %r = kernel.shared : memref<64xf32, "shared">
  %t = kernel.thread_id
  %few = loop.test[%t < 32]
  %v = loop.load %x[%t] : memref<64xf32>
  loop.store %v, %s[%t] : memref<64xf32, "shared">
  kernel.barrier
  %a = loop.load %s[%t * -1 + 63] : memref<64xf32, "shared">
  kernel.barrier
  %b = loop.load %s[(%t + 1) mod 64] : memref<64xf32, "shared">
  %c = arith.addf %a, %b : f32
  kernel.barrier
  scf.if %few {
    loop.store %c, %r[%t * 2] : memref<64xf32, "shared">
    loop.store %c, %r[%t * 2 + 1] : memref<64xf32, "shared">
  }
  kernel.barrier
  %d = loop.load %r[%t * -1 + 63] : memref<64xf32, "shared">
  loop.store %d, %y[%t] : memref<64xf32>
}
kernel.func @copies(%x: memref<64xf32>, %y: memref<64xf32>) blocks(1) threads(64) {
  %s = kernel.shared : memref<64xf32, "shared">
  %t = kernel.thread_id
  kernel.async_copy %x[%t] to %s[%t] vector 1 : memref<64xf32> to memref<64xf32, "shared">
  kernel.async_commit
  kernel.async_wait 0
  kernel.barrier
  %d = loop.load %s[%t * -1 + 63] : memref<64xf32, "shared">
  loop.store %d, %y[%t] : memref<64xf32>
}
kernel.func @none(%x: memref<64xf32>, %y: memref<64xf32>) blocks(1) threads(64) {
  %t = kernel.thread_id
  %d = loop.load %x[%t] : memref<64xf32>
  loop.store %d, %y[%t] : memref<64xf32>
}
func.func @main(%x: memref<64xf32>) -> memref<64xf32> {
  %y = kernel.alloc : memref<64xf32>
  %z = kernel.alloc : memref<64xf32>
  %w = kernel.alloc : memref<64xf32>
  kernel.launch @others(%x, %y) blocks(1) threads(64) : memref<64xf32>, memref<64xf32>
  kernel.launch @copies(%y, %z) blocks(1) threads(64) : memref<64xf32>, memref<64xf32>
  kernel.launch @none(%z, %w) blocks(1) threads(64) : memref<64xf32>, memref<64xf32>
  func.return %w : memref<64xf32>
}

// -----

// Barriers of clusters stay. The first shows that others were initialised, the one in the loop only that slabs were
// read; behind a store to shared memory none is relaxed.
// CHECK-LABEL: kernel.func @cluster
// CHECK:         kernel.fence cluster
// CHECK:         kernel.barrier cluster{{$}}
// CHECK:         kernel.mbarrier_wait
// CHECK-NEXT:    loop.load
// CHECK:         kernel.barrier cluster relaxed
// CHECK-LABEL: kernel.func @storing
// CHECK:         kernel.barrier cluster{{$}}
// REMARK: remark: elide-barriers: cluster: 1 barrier of clusters stand behind no stores
// REMARK: remark: elide-barriers: storing: declined: there is no barrier to remove
kernel.func @cluster(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64x4xf32>) blocks(4) threads(64) cluster(2) {
  %zero = arith.constant 0.0 : f32
  %b = kernel.block_id
  %t = kernel.thread_id
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %s = kernel.shared align 128 : memref<32x64xf32, "shared">
  %full = kernel.mbarriers 1
  %one = loop.test[%t < 1]
  scf.if %one {
    kernel.mbarrier_init %full[0], 1
    kernel.fence cluster
  }
  kernel.barrier cluster
  %sum = scf.for %k = %c0 to %c4 step %c1 iter_args(%so_far = %zero) -> (f32) {
    scf.if %one {
      kernel.mbarrier_expect_bytes %full[0], 8192
      kernel.bulk_copy %x[%k * 32 + %b mod 2 * 16, 0] to %s[%b mod 2 * 16, 0] barrier %full[0] multicast 2 : !kernel.tensor_map<16x64xf32> to memref<32x64xf32, "shared">
    }
    kernel.mbarrier_wait %full[0] parity[%k mod 2]
    %v = loop.load %s[%t mod 32, 0] : memref<32x64xf32, "shared">
    %next = arith.addf %so_far, %v : f32
    kernel.barrier cluster
    scf.yield %next : f32
  }
  loop.store %sum, %y[%t, %b] : memref<64x4xf32>
}
kernel.func @storing(%y: memref<64x4xf32>) blocks(4) threads(64) cluster(2) {
  %b = kernel.block_id
  %t = kernel.thread_id
  %zero = arith.constant 0.0 : f32
  %s = kernel.shared align 128 : memref<64xf32, "shared">
  loop.store %zero, %s[%t] : memref<64xf32, "shared">
  kernel.barrier cluster
  %v = loop.load %s[%t * -1 + 63] : memref<64xf32, "shared">
  loop.store %v, %y[%t, %b] : memref<64x4xf32>
}
