// RUN: deplo-opt %s --assume=race-free -p roll-registers --split-input-file | FileCheck %s
// RUN: deplo-opt %s --assume=race-free -p roll-registers --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A tile of products: the sums of both loops are one array, which the inner one changes in place; what is loaded
// is two arrays, and a nest of loops has all places of the sums.
// REMARK: roll-registers: products: loops over registers: 5; arrays that loops carry: 2
// CHECK-LABEL: kernel.func @products(
// CHECK:        %s = loop.registers : memref<8xf32, "registers">
// CHECK-NEXT:   scf.for %m = %c0 to %c8 step %c1 {
// CHECK-NEXT:     loop.store %zero, %s[%m] : memref<8xf32, "registers">
// CHECK-NEXT:   } {unroll}
// CHECK-NEXT:   scf.for %k_block = %c0 to %c4 step %c1 {
// CHECK-NEXT:     scf.for %k = %c0 to %c4 step %c1 {
// CHECK-NEXT:       %x0 = loop.registers : memref<2xf32, "registers">
// CHECK-NEXT:       scf.for %m_1 = %c0 to %c2 step %c1 {
// CHECK-NEXT:         %x0_1 = loop.load %x[%t * 2 + %m_1, %k_block * 4 + %k] : memref<16x16xf32>
// CHECK-NEXT:         loop.store %x0_1, %x0[%m_1] : memref<2xf32, "registers">
// CHECK-NEXT:       } {unroll}
// CHECK-NEXT:       %y0 = loop.registers : memref<4xf32, "registers">
// CHECK-NEXT:       scf.for %m_2 = %c0 to %c4 step %c1 {
// CHECK-NEXT:         %y0_1 = loop.load %y[%k_block * 4 + %k, %m_2 * 8 + %t] : memref<16x32xf32>
// CHECK-NEXT:         loop.store %y0_1, %y0[%m_2] : memref<4xf32, "registers">
// CHECK-NEXT:       } {unroll}
// CHECK-NEXT:       scf.for %m_3 = %c0 to %c2 step %c1 {
// CHECK-NEXT:         scf.for %n = %c0 to %c4 step %c1 {
// CHECK-NEXT:           %x0_2 = loop.load %x0[%m_3] : memref<2xf32, "registers">
// CHECK-NEXT:           %y0_2 = loop.load %y0[%n] : memref<4xf32, "registers">
// CHECK-NEXT:           %p0 = arith.mulf %x0_2, %y0_2 : f32
// CHECK-NEXT:           %a0 = loop.load %s[%m_3 * 4 + %n] : memref<8xf32, "registers">
// CHECK-NEXT:           %n0 = arith.addf %a0, %p0 : f32
// CHECK-NEXT:           loop.store %n0, %s[%m_3 * 4 + %n] : memref<8xf32, "registers">
// CHECK-NEXT:         } {unroll}
// CHECK-NEXT:       } {unroll}
// CHECK-NEXT:     }
// CHECK-NEXT:   }
// CHECK-NEXT:   scf.for %m_4 = %c0 to %c2 step %c1 {
// CHECK-NEXT:     scf.for %n_1 = %c0 to %c4 step %c1 {
// CHECK-NEXT:       %s_1 = loop.load %s[%m_4 * 4 + %n_1] : memref<8xf32, "registers">
// CHECK-NEXT:       loop.store %s_1, %z[%t * 2 + %m_4, %n_1 * 8 + %t] : memref<16x32xf32>
// CHECK-NEXT:     } {unroll}
// CHECK-NEXT:   } {unroll}
kernel.func @products(%x: memref<16x16xf32>, %y: memref<16x32xf32>, %z: memref<16x32xf32>) blocks(1) threads(8) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  %t = kernel.thread_id
  %s:8 = scf.for %k_block = %c0 to %c4 step %c1 iter_args(%b0 = %zero, %b1 = %zero, %b2 = %zero, %b3 = %zero, %b4 = %zero, %b5 = %zero, %b6 = %zero, %b7 = %zero) -> (f32, f32, f32, f32, f32, f32, f32, f32) {
    %i:8 = scf.for %k = %c0 to %c4 step %c1 iter_args(%a0 = %b0, %a1 = %b1, %a2 = %b2, %a3 = %b3, %a4 = %b4, %a5 = %b5, %a6 = %b6, %a7 = %b7) -> (f32, f32, f32, f32, f32, f32, f32, f32) {
      %x0 = loop.load %x[%t * 2, %k_block * 4 + %k] : memref<16x16xf32>
      %y0 = loop.load %y[%k_block * 4 + %k, %t] : memref<16x32xf32>
      %p0 = arith.mulf %x0, %y0 : f32
      %y1 = loop.load %y[%k_block * 4 + %k, %t + 8] : memref<16x32xf32>
      %p1 = arith.mulf %x0, %y1 : f32
      %y2 = loop.load %y[%k_block * 4 + %k, %t + 16] : memref<16x32xf32>
      %p2 = arith.mulf %x0, %y2 : f32
      %y3 = loop.load %y[%k_block * 4 + %k, %t + 24] : memref<16x32xf32>
      %p3 = arith.mulf %x0, %y3 : f32
      %x1 = loop.load %x[%t * 2 + 1, %k_block * 4 + %k] : memref<16x16xf32>
      %p4 = arith.mulf %x1, %y0 : f32
      %p5 = arith.mulf %x1, %y1 : f32
      %p6 = arith.mulf %x1, %y2 : f32
      %p7 = arith.mulf %x1, %y3 : f32
      %n0 = arith.addf %a0, %p0 : f32
      %n1 = arith.addf %a1, %p1 : f32
      %n2 = arith.addf %a2, %p2 : f32
      %n3 = arith.addf %a3, %p3 : f32
      %n4 = arith.addf %a4, %p4 : f32
      %n5 = arith.addf %a5, %p5 : f32
      %n6 = arith.addf %a6, %p6 : f32
      %n7 = arith.addf %a7, %p7 : f32
      scf.yield %n0, %n1, %n2, %n3, %n4, %n5, %n6, %n7 : f32, f32, f32, f32, f32, f32, f32, f32
    }
    scf.yield %i#0, %i#1, %i#2, %i#3, %i#4, %i#5, %i#6, %i#7 : f32, f32, f32, f32, f32, f32, f32, f32
  }
  loop.store %s#0, %z[%t * 2, %t] : memref<16x32xf32>
  loop.store %s#1, %z[%t * 2, %t + 8] : memref<16x32xf32>
  loop.store %s#2, %z[%t * 2, %t + 16] : memref<16x32xf32>
  loop.store %s#3, %z[%t * 2, %t + 24] : memref<16x32xf32>
  loop.store %s#4, %z[%t * 2 + 1, %t] : memref<16x32xf32>
  loop.store %s#5, %z[%t * 2 + 1, %t + 8] : memref<16x32xf32>
  loop.store %s#6, %z[%t * 2 + 1, %t + 16] : memref<16x32xf32>
  loop.store %s#7, %z[%t * 2 + 1, %t + 24] : memref<16x32xf32>
}

// -----

// Loads and stores of one memory keep their order where places may be the same: each of these loads what the
// store in front of it has written.
// REMARK: roll-registers: shifted: loops over registers: 1; arrays that loops carry: 0
// CHECK-LABEL: kernel.func @shifted(
// CHECK:        scf.for %m = %c0 to %c6 step %c1 {
// CHECK-NEXT:     %a0 = loop.load %x[%t * 8 + %m] : memref<64xf32>
// CHECK-NEXT:     loop.store %a0, %x[%t * 8 + %m + 1] : memref<64xf32>
// CHECK-NEXT:   } {unroll}
kernel.func @shifted(%x: memref<64xf32>) blocks(1) threads(4) {
  %t = kernel.thread_id
  %a0 = loop.load %x[%t * 8] : memref<64xf32>
  loop.store %a0, %x[%t * 8 + 1] : memref<64xf32>
  %a1 = loop.load %x[%t * 8 + 1] : memref<64xf32>
  loop.store %a1, %x[%t * 8 + 2] : memref<64xf32>
  %a2 = loop.load %x[%t * 8 + 2] : memref<64xf32>
  loop.store %a2, %x[%t * 8 + 3] : memref<64xf32>
  %a3 = loop.load %x[%t * 8 + 3] : memref<64xf32>
  loop.store %a3, %x[%t * 8 + 4] : memref<64xf32>
  %a4 = loop.load %x[%t * 8 + 4] : memref<64xf32>
  loop.store %a4, %x[%t * 8 + 5] : memref<64xf32>
  %a5 = loop.load %x[%t * 8 + 5] : memref<64xf32>
  loop.store %a5, %x[%t * 8 + 6] : memref<64xf32>
}

// -----

// Here all loads come first: a loop that loads and stores would load what it has stored.
// REMARK: roll-registers: loaded_first: declined: no operations are alike and shorter as a loop
// CHECK-LABEL: kernel.func @loaded_first(
// CHECK-NOT:     scf.for
kernel.func @loaded_first(%x: memref<64xf32>) blocks(1) threads(4) {
  %t = kernel.thread_id
  %a0 = loop.load %x[%t * 8] : memref<64xf32>
  %a1 = loop.load %x[%t * 8 + 1] : memref<64xf32>
  %a2 = loop.load %x[%t * 8 + 2] : memref<64xf32>
  %a3 = loop.load %x[%t * 8 + 3] : memref<64xf32>
  %a4 = loop.load %x[%t * 8 + 4] : memref<64xf32>
  %a5 = loop.load %x[%t * 8 + 5] : memref<64xf32>
  %b0 = arith.negf %a0 : f32
  loop.store %b0, %x[%t * 8 + 1] : memref<64xf32>
  %b1 = arith.negf %a1 : f32
  loop.store %b1, %x[%t * 8 + 2] : memref<64xf32>
  %b2 = arith.negf %a2 : f32
  loop.store %b2, %x[%t * 8 + 3] : memref<64xf32>
  %b3 = arith.negf %a3 : f32
  loop.store %b3, %x[%t * 8 + 4] : memref<64xf32>
  %b4 = arith.negf %a4 : f32
  loop.store %b4, %x[%t * 8 + 5] : memref<64xf32>
  %b5 = arith.negf %a5 : f32
  loop.store %b5, %x[%t * 8 + 6] : memref<64xf32>
}

// -----

// Copies begin in their order, and with each what waits for it.
// CHECK-LABEL: kernel.func @copies(
// CHECK:        scf.for %m = %c0 to %c4 step %c1 {
// CHECK-NEXT:     kernel.async_copy %x[%m * 16 + %t * 4] to %s[%m * 16 + %t * 4] vector 4 : memref<64xf32> to memref<64xf32, "shared">
// CHECK-NEXT:     kernel.async_commit
// CHECK-NEXT:   } {unroll}
// CHECK-NEXT:   kernel.async_wait 0
kernel.func @copies(%x: memref<64xf32>, %y: memref<64xf32>) blocks(1) threads(4) {
  %t = kernel.thread_id
  %s = kernel.shared align 16 : memref<64xf32, "shared">
  kernel.async_copy %x[%t * 4] to %s[%t * 4] vector 4 : memref<64xf32> to memref<64xf32, "shared">
  kernel.async_commit
  kernel.async_copy %x[%t * 4 + 16] to %s[%t * 4 + 16] vector 4 : memref<64xf32> to memref<64xf32, "shared">
  kernel.async_commit
  kernel.async_copy %x[%t * 4 + 32] to %s[%t * 4 + 32] vector 4 : memref<64xf32> to memref<64xf32, "shared">
  kernel.async_commit
  kernel.async_copy %x[%t * 4 + 48] to %s[%t * 4 + 48] vector 4 : memref<64xf32> to memref<64xf32, "shared">
  kernel.async_commit
  kernel.async_wait 0
  kernel.barrier
  %v = loop.load %s[%t * 3] : memref<64xf32, "shared">
  loop.store %v, %y[%t] : memref<64xf32>
}

// -----

// Places that do not follow from a counter, and a chain of sums, stay as they are.
// REMARK: roll-registers: irregular: declined: no operations are alike and shorter as a loop
// CHECK-LABEL: kernel.func @irregular(
// CHECK-NOT:     scf.for
kernel.func @irregular(%x: memref<64xf32>, %y: memref<64xf32>) blocks(1) threads(1) {
  %a0 = loop.load %x[0] : memref<64xf32>
  %a1 = loop.load %x[1] : memref<64xf32>
  %a2 = loop.load %x[5] : memref<64xf32>
  %a3 = loop.load %x[7] : memref<64xf32>
  %a4 = loop.load %x[8] : memref<64xf32>
  %a5 = loop.load %x[30] : memref<64xf32>
  %s1 = arith.addf %a0, %a1 : f32
  %s2 = arith.addf %s1, %a2 : f32
  %s3 = arith.addf %s2, %a3 : f32
  %s4 = arith.addf %s3, %a4 : f32
  %s5 = arith.addf %s4, %a5 : f32
  loop.store %s5, %y[0] : memref<64xf32>
}
