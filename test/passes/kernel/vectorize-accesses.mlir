// RUN: deplo-opt %s --assume=race-free -p vectorize-accesses --split-input-file | FileCheck %s
// RUN: deplo-opt %s --assume=race-free -p vectorize-accesses --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --assume=race-free -p vectorize-accesses,lower-to-cuda --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s --assume=race-free -p vectorize-accesses,choose-index-width,lower-to-cuda -t cuda --split-input-file | FileCheck %s --check-prefix=CPP

// Both accesses become one; between them is the loop, on registers. What does not depend on the counter stays.
// CHECK-LABEL: kernel.func @scale
// CHECK:         %x_vector = loop.registers : memref<4xf32, "registers">
// CHECK-NEXT:    %v, %v_1, %v_2, %v_3 = kernel.vector_load %x[%b, %t * 4] : memref<3x128xf32> -> f32, f32, f32, f32
// CHECK-NEXT:    loop.store %v, %x_vector[0]
// CHECK-NEXT:    loop.store %v_1, %x_vector[1]
// CHECK-NEXT:    loop.store %v_2, %x_vector[2]
// CHECK-NEXT:    loop.store %v_3, %x_vector[3]
// CHECK-NEXT:    %y_vector = loop.registers : memref<4xf32, "registers">
// CHECK-NEXT:    scf.for %e = %c0 to %c4 step %c1 {
// CHECK-NEXT:      %v_4 = loop.load %x_vector[%e]
// CHECK-NEXT:      %w = loop.load %s[%b]
// CHECK-NEXT:      %p = arith.mulf %v_4, %w
// CHECK-NEXT:      loop.store %p, %y_vector[%e]
// CHECK-NEXT:    } {unroll}
// CHECK-NEXT:    %p_1 = loop.load %y_vector[0]
// CHECK:         kernel.vector_store %p_1, %p_2, %p_3, %p_4 to %y[%b, %t * 4]
// CPP:           const float4 {{.+}} = *reinterpret_cast<const float4*>(&x[b * 128 + t * 4]);
// CPP:           #pragma unroll
// CPP-NEXT:      for (int e = 0; e < 4; ++e) {
// CPP:           *reinterpret_cast<float4*>(&y[b * 128 + t * 4]) = float4{
// REMARK: remark: vectorize-accesses: scale: 1 loads and 1 stores of 4 elements
kernel.func @scale(%x: memref<3x128xf32>, %s: memref<3xf32>, %y: memref<3x128xf32>) blocks(3) threads(32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %b = kernel.block_id
  %t = kernel.thread_id
  scf.for %e = %c0 to %c4 step %c1 {
    %v = loop.load %x[%b, %t * 4 + %e] : memref<3x128xf32>
    %w = loop.load %s[%b] : memref<3xf32>
    %p = arith.mulf %v, %w : f32
    loop.store %p, %y[%b, %t * 4 + %e] : memref<3x128xf32>
  } {vector}
}
func.func @main(%x: memref<3x128xf32>, %s: memref<3xf32>) -> memref<3x128xf32> {
  %y = kernel.alloc : memref<3x128xf32>
  kernel.launch @scale(%x, %s, %y) blocks(3) threads(32) : memref<3x128xf32>, memref<3xf32>, memref<3x128xf32>
  func.return %y : memref<3x128xf32>
}

// -----

// What is only kept in registers goes there at once, and the loop goes; a sum over registers stays as it is.
// CHECK-LABEL: kernel.func @kept
// CHECK:         %kept = loop.registers
// CHECK-NEXT:    scf.for %k = %c0 to %c2 step %c1 {
// CHECK-NEXT:      %v, %v_1 = kernel.vector_load %x[%b, %k * 64 + %t * 2] : memref<3x128xf64> -> f64, f64
// CHECK-NEXT:      loop.store %v, %kept[%k * 2]
// CHECK-NEXT:      loop.store %v_1, %kept[%k * 2 + 1]
// CHECK-NEXT:    } {unroll}
// CHECK:         scf.for %e
// CHECK-NEXT:      loop.load %kept[%k_1 * 2 + %e]
// REMARK: remark: vectorize-accesses: kept: 1 loads and 0 stores of 2 elements
kernel.func @kept(%x: memref<3x128xf64>, %y: memref<3x32xf64>) blocks(3) threads(32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %b = kernel.block_id
  %t = kernel.thread_id
  %kept = loop.registers : memref<4xf64, "registers">
  scf.for %k = %c0 to %c2 step %c1 {
    scf.for %e = %c0 to %c2 step %c1 {
      %v = loop.load %x[%b, (%k * 32 + %t) * 2 + %e] : memref<3x128xf64>
      loop.store %v, %kept[%k * 2 + %e] : memref<4xf64, "registers">
    } {vector}
  } {unroll}
  %zero = arith.constant 0.0 : f64
  %s = scf.for %k = %c0 to %c2 step %c1 iter_args(%a = %zero) -> (f64) {
    %c = scf.for %e = %c0 to %c2 step %c1 iter_args(%d = %a) -> (f64) {
      %v = loop.load %kept[%k * 2 + %e] : memref<4xf64, "registers">
      %n = arith.addf %d, %v : f64
      scf.yield %n : f64
    } {vector}
    scf.yield %c : f64
  } {unroll}
  loop.store %s, %y[%b, %t] : memref<3x32xf64>
}
func.func @main(%x: memref<3x128xf64>) -> memref<3x32xf64> {
  %y = kernel.alloc : memref<3x32xf64>
  kernel.launch @kept(%x, %y) blocks(3) threads(32) : memref<3x128xf64>, memref<3x32xf64>
  func.return %y : memref<3x32xf64>
}

// -----

// Declined: a loop that nobody marked; one element off; a row that no vector divides; neighbours a row apart;
// 32 bytes.
// CHECK-LABEL: kernel.func @unmarked
// CHECK-NOT:     vector_
// REMARK: remark: vectorize-accesses: unmarked: declined: no loop runs over neighbours
// REMARK: remark: vectorize-accesses: shifted: declined: the neighbours are not aligned vectors of global memory
// REMARK: remark: vectorize-accesses: odd: declined: the neighbours are not aligned vectors of global memory
// REMARK: remark: vectorize-accesses: columns: declined: the neighbours are not aligned vectors of global memory
// REMARK: remark: vectorize-accesses: wide: declined: the neighbours are not aligned vectors of global memory
kernel.func @unmarked(%x: memref<64xf32>, %y: memref<64xf32>) blocks(1) threads(16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = kernel.thread_id
  scf.for %e = %c0 to %c4 step %c1 {
    %v = loop.load %x[%t * 4 + %e] : memref<64xf32>
    loop.store %v, %y[%t * 4 + %e] : memref<64xf32>
  }
}
kernel.func @shifted(%x: memref<65xf32>, %y: memref<65xf32>) blocks(1) threads(16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = kernel.thread_id
  scf.for %e = %c0 to %c4 step %c1 {
    %v = loop.load %x[%t * 4 + %e + 1] : memref<65xf32>
    loop.store %v, %y[%t * 4 + %e + 1] : memref<65xf32>
  } {vector}
}
kernel.func @odd(%x: memref<4x7xf32>, %y: memref<4x7xf32>) blocks(1) threads(4) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = kernel.thread_id
  scf.for %e = %c0 to %c4 step %c1 {
    %v = loop.load %x[%t, %e] : memref<4x7xf32>
    loop.store %v, %y[%t, %e] : memref<4x7xf32>
  } {vector}
}
kernel.func @columns(%x: memref<4x16xf32>, %y: memref<4x16xf32>) blocks(1) threads(16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = kernel.thread_id
  scf.for %e = %c0 to %c4 step %c1 {
    %v = loop.load %x[%e, %t] : memref<4x16xf32>
    loop.store %v, %y[%e, %t] : memref<4x16xf32>
  } {vector}
}
kernel.func @wide(%x: memref<64xf64>, %y: memref<64xf64>) blocks(1) threads(16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %t = kernel.thread_id
  scf.for %e = %c0 to %c4 step %c1 {
    %v = loop.load %x[%t * 4 + %e] : memref<64xf64>
    loop.store %v, %y[%t * 4 + %e] : memref<64xf64>
  } {vector}
}

// -----

// A row that is looked up in the loop: only the result is a vector, since the row is not known in front.
// CHECK-LABEL: kernel.func @embedding
// CHECK-NOT:     kernel.vector_load
// CHECK:         scf.for %e = %c0 to %c4 step %c1 {
// CHECK:           %row = arith.index_cast %id : i64 to index
// CHECK-NEXT:      %v = loop.load %table[%row, %t * 4 + %e]
// CHECK-NEXT:      loop.store %v, %y_vector[%e]
// CHECK-NEXT:    } {unroll}
// CHECK:         kernel.vector_store {{.+}} to %y[%b, %t * 4]
// REMARK: remark: vectorize-accesses: embedding: 0 loads and 1 stores of 4 elements
kernel.func @embedding(%ids: memref<3xi64>, %table: memref<10x64xf32>, %y: memref<3x64xf32>) blocks(3) threads(16) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %b = kernel.block_id
  %t = kernel.thread_id
  scf.for %e = %c0 to %c4 step %c1 {
    %id = loop.load %ids[%b] : memref<3xi64>
    %row = arith.index_cast %id : i64 to index
    %v = loop.load %table[%row, %t * 4 + %e] : memref<10x64xf32>
    loop.store %v, %y[%b, %t * 4 + %e] : memref<3x64xf32>
  } {vector}
}
