// RUN: deplo-opt %s --assume=race-free -p merge-accesses --split-input-file | FileCheck %s
// RUN: deplo-opt %s --assume=race-free -p merge-accesses --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --assume=race-free -p merge-accesses,choose-index-width,lower-to-cuda --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s --assume=race-free -p merge-accesses,choose-index-width,lower-to-cuda -t cuda --split-input-file | FileCheck %s --check-prefix=CPP

// As of a tile of tensor cores: loads go where the first was, stores where the last was. What reads another
// array may stand in between, and the second pair of a row need not wait for the first.
// CHECK-LABEL: kernel.func @pairs
// CHECK:         %lane = loop.index
// CHECK-NEXT:    %a, %b = kernel.vector_load %x[%row, %lane * 2] : memref<8x16xbf16> -> bf16, bf16
// CHECK-NEXT:    %c, %d = kernel.vector_load %x[%row, %lane * 2 + 8] : memref<8x16xbf16> -> bf16, bf16
// CHECK-NEXT:    %b1 = arith.extf %b
// CHECK-NOT:     loop.store
// CHECK:         %w = loop.load %s[0]
// CHECK-NOT:     loop.store
// CHECK:         kernel.vector_store %b1, %d1 to %y[%row, %lane * 2] : f32, f32 to memref<8x16xf32>
// CHECK-NEXT:    %c1 = arith.extf
// CHECK-NEXT:    kernel.vector_store %a1, %c1 to %y[%row, %lane * 2 + 8] : f32, f32 to memref<8x16xf32>
// CHECK-NEXT:  }
// CPP:           const ushort2 {{.+}} = *reinterpret_cast<const ushort2*>(&x[row * 16 + lane * 2]);
// CPP:           *reinterpret_cast<float2*>(&y[row * 16 + lane * 2]) = float2{b1, d1};
// REMARK: remark: merge-accesses: pairs: 8 accesses become 2 loads and 2 stores of 2 elements
kernel.func @pairs(%x: memref<8x16xbf16>, %s: memref<1xf32>, %y: memref<8x16xf32>) blocks(1) threads(32) {
  %t = kernel.thread_id
  %row = loop.index [%t floordiv 4]
  %lane = loop.index [%t mod 4]
  %a = loop.load %x[%row, %lane * 2] : memref<8x16xbf16>
  %c = loop.load %x[%row, %lane * 2 + 8] : memref<8x16xbf16>
  %b = loop.load %x[%row, %lane * 2 + 1] : memref<8x16xbf16>
  %b1 = arith.extf %b : bf16 to f32
  loop.store %b1, %y[%row, %lane * 2] : memref<8x16xf32>
  %d = loop.load %x[%row, %lane * 2 + 9] : memref<8x16xbf16>
  %a1 = arith.extf %a : bf16 to f32
  loop.store %a1, %y[%row, %lane * 2 + 8] : memref<8x16xf32>
  %w = loop.load %s[0] : memref<1xf32>
  %d0 = arith.extf %d : bf16 to f32
  %d1 = arith.mulf %d0, %w : f32
  loop.store %d1, %y[%row, %lane * 2 + 1] : memref<8x16xf32>
  %c1 = arith.extf %c : bf16 to f32
  loop.store %c1, %y[%row, %lane * 2 + 9] : memref<8x16xf32>
}
func.func @main(%x: memref<8x16xbf16>, %s: memref<1xf32>) -> memref<8x16xf32> {
  %y = kernel.alloc : memref<8x16xf32>
  kernel.launch @pairs(%x, %s, %y) blocks(1) threads(32) : memref<8x16xbf16>, memref<1xf32>, memref<8x16xf32>
  func.return %y : memref<8x16xf32>
}

// -----

// As many as are aligned and 16 bytes at most, in any order; an element that is loaded again is loaded again.
// What the simplifier shows to be a neighbour is one.
// CHECK-LABEL: kernel.func @wide
// CHECK:         %f, %f1, %f2, %f3 = kernel.vector_load %x[%t * 4] : memref<64xf32> -> f32, f32, f32, f32
// CHECK-NEXT:    %f_again = loop.load %x[%t * 4 + 1]
// CHECK-NEXT:    %e4, %e5 = kernel.vector_load %z[%t * 4 + 4] : memref<72xf64> -> f64, f64
// CHECK-NEXT:    %e3 = loop.load %z[%t * 4 + 3]
// CHECK-NEXT:    %e6, %e7 = kernel.vector_load %z[%t * 4 + 6] : memref<72xf64> -> f64, f64
// CHECK-NEXT:    kernel.vector_store %f_again, %f3 to %y[%t * 2] :
// CHECK-NEXT:    %e = arith.addf %e3, %e4 : f64
// REMARK: remark: merge-accesses: wide: 10 accesses become 3 loads and 1 stores of 2 or 4 elements
kernel.func @wide(%x: memref<64xf32>, %z: memref<72xf64>, %y: memref<32xf32>, %u: memref<16xf64>) blocks(1) threads(16) {
  %t = kernel.thread_id
  %f3 = loop.load %x[(%t * 8 + 6) floordiv 2] : memref<64xf32>
  %f = loop.load %x[%t * 4] : memref<64xf32>
  %f1 = loop.load %x[%t * 4 + 1] : memref<64xf32>
  %f_again = loop.load %x[%t * 4 + 1] : memref<64xf32>
  %f2 = loop.load %x[%t * 4 + 2] : memref<64xf32>
  %e4 = loop.load %z[%t * 4 + 4] : memref<72xf64>
  %e3 = loop.load %z[%t * 4 + 3] : memref<72xf64>
  %e5 = loop.load %z[%t * 4 + 5] : memref<72xf64>
  %e6 = loop.load %z[%t * 4 + 6] : memref<72xf64>
  %e7 = loop.load %z[%t * 4 + 7] : memref<72xf64>
  loop.store %f_again, %y[%t * 2] : memref<32xf32>
  loop.store %f3, %y[%t * 2 + 1] : memref<32xf32>
  %e = arith.addf %e3, %e4 : f64
  %g = arith.addf %e5, %e6 : f64
  %h = arith.mulf %e, %g : f64
  %k = arith.subf %h, %e7 : f64
  loop.store %k, %u[%t] : memref<16xf64>
}
func.func @main(%x: memref<64xf32>, %z: memref<72xf64>) -> (memref<32xf32>, memref<16xf64>) {
  %y = kernel.alloc : memref<32xf32>
  %u = kernel.alloc : memref<16xf64>
  kernel.launch @wide(%x, %z, %y, %u) blocks(1) threads(16) : memref<64xf32>, memref<72xf64>, memref<32xf32>, memref<16xf64>
  func.return %y, %u : memref<32xf32>, memref<16xf64>
}

// -----

// Under a guard, of rows of which nobody knows how many there are; beside it stands an element of its own.
// CHECK-LABEL: kernel.func @guarded
// CHECK:         scf.if
// CHECK-NEXT:      %a, %b = kernel.vector_load %x[%t, 0] : memref<?x4xi8, #sym.extents<s0>> -> i8, i8
// CHECK-NEXT:      %c = loop.load %x[%t, 2]
// CHECK-NEXT:      kernel.vector_store %b, %a to %y[%t, 0] :
// CHECK-NEXT:      loop.store %c, %y[%t, 2]
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.store %true, %flags[%t, 0]
// CHECK-NEXT:    kernel.vector_store %true, %false to %flags[%t, 2]
// CPP:           const char2 {{.+}} = *reinterpret_cast<const char2*>(&x[t * 4]);
// CPP:           *reinterpret_cast<uchar2*>(&flags[t * 4 + 2]) = uchar2{
// REMARK: remark: merge-accesses: guarded: 6 accesses become 1 loads and 2 stores of 2 elements
kernel.func @guarded(%x: memref<?x4xi8, #sym.extents<s0>>, %y: memref<?x4xi8, #sym.extents<s0>>, %flags: memref<?x4xi1, #sym.extents<s0 + 1>>) blocks(s0 + 1) threads(1) {
  %t = kernel.block_id
  %inside = loop.test [%t < s0]
  %true = arith.constant true
  %false = arith.constant false
  scf.if %inside {
    %a = loop.load %x[%t, 0] : memref<?x4xi8, #sym.extents<s0>>
    %b = loop.load %x[%t, 1] : memref<?x4xi8, #sym.extents<s0>>
    %c = loop.load %x[%t, 2] : memref<?x4xi8, #sym.extents<s0>>
    loop.store %b, %y[%t, 0] : memref<?x4xi8, #sym.extents<s0>>
    loop.store %a, %y[%t, 1] : memref<?x4xi8, #sym.extents<s0>>
    loop.store %c, %y[%t, 2] : memref<?x4xi8, #sym.extents<s0>>
  }
  loop.store %true, %flags[%t, 0] : memref<?x4xi1, #sym.extents<s0 + 1>>
  loop.store %true, %flags[%t, 2] : memref<?x4xi1, #sym.extents<s0 + 1>>
  loop.store %false, %flags[%t, 3] : memref<?x4xi1, #sym.extents<s0 + 1>>
}
func.func @main(%x: memref<?x4xi8, #sym.extents<s0>>) -> (memref<?x4xi8, #sym.extents<s0>>, memref<?x4xi1, #sym.extents<s0 + 1>>) {
  %y = kernel.alloc : memref<?x4xi8, #sym.extents<s0>>
  %flags = kernel.alloc : memref<?x4xi1, #sym.extents<s0 + 1>>
  kernel.launch @guarded(%x, %y, %flags) blocks(s0 + 1) threads(1) : memref<?x4xi8, #sym.extents<s0>>, memref<?x4xi8, #sym.extents<s0>>, memref<?x4xi1, #sym.extents<s0 + 1>>
  func.return %y, %flags : memref<?x4xi8, #sym.extents<s0>>, memref<?x4xi1, #sym.extents<s0 + 1>>
}

// -----

// Declined, as no vector is aligned: in rows of an odd number of elements, or of a number that nobody knows;
// from an odd element on; in the last row of one element.
// CHECK-LABEL: kernel.func @odd
// CHECK-NOT:     vector_
// REMARK: remark: merge-accesses: odd: declined: the neighbours are not aligned vectors
// REMARK: remark: merge-accesses: unknown: declined: the neighbours are not aligned vectors
// REMARK: remark: merge-accesses: shifted: declined: the neighbours are not aligned vectors
// REMARK: remark: merge-accesses: columns: declined: no block accesses neighbours in global memory one by one
kernel.func @odd(%x: memref<4x7xf16>, %y: memref<4x7xf16>) blocks(1) threads(4) {
  %t = kernel.thread_id
  %a = loop.load %x[%t, 0] : memref<4x7xf16>
  %b = loop.load %x[%t, 1] : memref<4x7xf16>
  loop.store %a, %y[%t, 4] : memref<4x7xf16>
  loop.store %b, %y[%t, 5] : memref<4x7xf16>
}
kernel.func @unknown(%x: memref<4x?xf16, #sym.extents<s0>>, %y: memref<4x?xf16, #sym.extents<s0>>) blocks(1) threads(4) {
  %t = kernel.thread_id
  %a = loop.load %x[%t, 0] : memref<4x?xf16, #sym.extents<s0>>
  %b = loop.load %x[%t, 1] : memref<4x?xf16, #sym.extents<s0>>
  loop.store %a, %y[%t, 0] : memref<4x?xf16, #sym.extents<s0>>
  loop.store %b, %y[%t, 1] : memref<4x?xf16, #sym.extents<s0>>
}
kernel.func @shifted(%x: memref<64xf32>, %y: memref<64xf32>) blocks(1) threads(16) {
  %t = kernel.thread_id
  %a = loop.load %x[%t * 2 + 1] : memref<64xf32>
  %b = loop.load %x[%t * 2 + 2] : memref<64xf32>
  loop.store %a, %y[%t * 3] : memref<64xf32>
  loop.store %b, %y[%t * 3 + 1] : memref<64xf32>
}
kernel.func @columns(%x: memref<4x1xf32>, %y: memref<4x1xf32>) blocks(1) threads(1) {
  %t = kernel.thread_id
  %a = loop.load %x[0, 0] : memref<4x1xf32>
  %b = loop.load %x[1, 0] : memref<4x1xf32>
  loop.store %a, %y[0, 0] : memref<4x1xf32>
  loop.store %b, %y[1, 0] : memref<4x1xf32>
}

// -----

// An element that is stored twice: the order of the stores is kept.
// CHECK-LABEL: kernel.func @twice
// CHECK:         loop.store %z, %y[%t, 0]
// CHECK-NEXT:    kernel.vector_store %one, %z to %y[%t, 0] :
// CHECK-NEXT:    loop.store %one, %y[%t, 1]
// REMARK: remark: merge-accesses: twice: 2 accesses become 0 loads and 1 stores of 2 elements
kernel.func @twice(%y: memref<4x2xf16>) blocks(1) threads(4) {
  %z = arith.constant 0.0 : f16
  %one = arith.constant 1.0 : f16
  %t = kernel.thread_id
  loop.store %z, %y[%t, 0] : memref<4x2xf16>
  loop.store %one, %y[%t, 0] : memref<4x2xf16>
  loop.store %z, %y[%t, 1] : memref<4x2xf16>
  loop.store %one, %y[%t, 1] : memref<4x2xf16>
}
func.func @main() -> memref<4x2xf16> {
  %y = kernel.alloc : memref<4x2xf16>
  kernel.launch @twice(%y) blocks(1) threads(4) : memref<4x2xf16>
  func.return %y : memref<4x2xf16>
}

// -----

// Declined for what stands in between: a barrier; a store to who knows which element; a load of what was
// stored, or a store to what is loaded, be it a vector; a loop.
// CHECK-LABEL: kernel.func @barrier
// CHECK-NOT:     vector_store
// REMARK: remark: merge-accesses: barrier: declined: what stands between neighbours touches their memory, or waits
// REMARK: remark: merge-accesses: stored: declined: what stands between neighbours touches their memory, or waits
// REMARK: remark: merge-accesses: read: declined: what stands between neighbours touches their memory, or waits
// REMARK: remark: merge-accesses: written: declined: what stands between neighbours touches their memory, or waits
// REMARK: remark: merge-accesses: added: declined: what stands between neighbours touches their memory, or waits
// REMARK: remark: merge-accesses: loop: declined: what stands between neighbours touches their memory, or waits
// REMARK: remark: merge-accesses: shared: declined: no block accesses neighbours in global memory one by one
kernel.func @barrier(%x: memref<2x64xf32>) blocks(1) threads(32) {
  %z = arith.constant 0.0 : f32
  %t = kernel.thread_id
  loop.store %z, %x[1, %t * 2] : memref<2x64xf32>
  kernel.barrier
  loop.store %z, %x[1, %t * 2 + 1] : memref<2x64xf32>
}
kernel.func @stored(%x: memref<64xf32>) blocks(1) threads(2) {
  %i = kernel.thread_id
  %z = arith.constant 0.0 : f32
  loop.store %z, %x[0] : memref<64xf32>
  loop.store %z, %x[%i] : memref<64xf32>
  loop.store %z, %x[1] : memref<64xf32>
}
kernel.func @read(%x: memref<64xf32>) blocks(1) threads(2) {
  %i = kernel.thread_id
  %z = arith.constant 0.0 : f32
  loop.store %z, %x[0] : memref<64xf32>
  %a, %b = kernel.vector_load %x[0] : memref<64xf32> -> f32, f32
  loop.store %z, %x[1] : memref<64xf32>
  loop.store %z, %x[4] : memref<64xf32>
  %c = loop.load %x[%i] : memref<64xf32>
  loop.store %z, %x[5] : memref<64xf32>
}
kernel.func @written(%x: memref<64xf32>, %y: memref<64xf32>) blocks(1) threads(2) {
  %i = kernel.thread_id
  %a = loop.load %x[0] : memref<64xf32>
  loop.store %a, %x[%i] : memref<64xf32>
  %b = loop.load %x[1] : memref<64xf32>
  loop.store %b, %y[%i] : memref<64xf32>
}
kernel.func @added(%x: memref<64xf32>, %y: memref<64xf32>) blocks(1) threads(2) {
  %i = kernel.thread_id
  %a = loop.load %x[0] : memref<64xf32>
  kernel.atomic_add %a, %x[%i] : f32, memref<64xf32>
  %b = loop.load %x[1] : memref<64xf32>
  loop.store %b, %y[%i] : memref<64xf32>
}
kernel.func @loop(%x: memref<64xf32>) blocks(1) threads(1) {
  %z = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  loop.store %z, %x[0] : memref<64xf32>
  scf.for %e = %c0 to %c4 step %c1 {
    loop.store %z, %x[%e] : memref<64xf32>
  }
  loop.store %z, %x[1] : memref<64xf32>
}
kernel.func @shared() blocks(1) threads(1) {
  %z = arith.constant 0.0 : f32
  %s = kernel.shared align 16 : memref<4xf32, "shared">
  %r = loop.registers : memref<2xf32, "registers">
  loop.store %z, %s[0] : memref<4xf32, "shared">
  loop.store %z, %s[1] : memref<4xf32, "shared">
  loop.store %z, %r[0] : memref<2xf32, "registers">
  loop.store %z, %r[1] : memref<2xf32, "registers">
}
