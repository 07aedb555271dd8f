// RUN: deplo-opt %s --assume=race-free -p choose-index-width --split-input-file | FileCheck %s
// RUN: deplo-opt %s --assume=race-free -p choose-index-width,choose-index-width --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --assume=race-free -p choose-index-width,lower-to-cuda -t cuda --split-input-file | FileCheck %s --check-prefix=CPP

// CHECK: kernel.func @small(%in: memref<4x8xf32>, %out: memref<4x8xf32>) blocks(4) threads(8) index(i32) {
// CPP-LABEL: small(
// CPP:         const int i = blockIdx.x;
// REMARK: remark: choose-index-width: small: every index is below 2^31
// REMARK: remark: choose-index-width: small: declined: indices are i32 already
kernel.func @small(%in: memref<4x8xf32>, %out: memref<4x8xf32>) blocks(4) threads(8) {
  %i = kernel.block_id
  %j = kernel.thread_id
  %v = loop.load %in[%i, %j] : memref<4x8xf32>
  loop.store %v, %out[%i, %j] : memref<4x8xf32>
}

// -----

// 2^31 elements, the last of which has the number 2^31 - 1; as many bytes do not matter.
// CHECK-LABEL: kernel.func @buffer
// CHECK-SAME:    index(i64)
// CHECK-LABEL: kernel.func @bytes
// CHECK-SAME:    index(i32)
// CPP-LABEL: buffer(
// CPP:         const long long i = blockIdx.x;
// REMARK: remark: choose-index-width: buffer: declined: the size of x may reach 2^31, so indices have 64 bits
// REMARK: remark: choose-index-width: bytes: every index is below 2^31
kernel.func @buffer(%x: memref<65536x32768xi8>, %y: memref<8xi8>) blocks(8) threads(1) {
  %i = kernel.block_id
  %v = loop.load %x[%i, 0] : memref<65536x32768xi8>
  loop.store %v, %y[%i] : memref<8xi8>
}
kernel.func @bytes(%x: memref<65536x16384xi64>, %y: memref<8xi64>) blocks(8) threads(1) {
  %i = kernel.block_id
  %v = loop.load %x[%i, 0] : memref<65536x16384xi64>
  loop.store %v, %y[%i] : memref<8xi64>
}

// -----

// The buffer is small, but a part of its index is not: it would wrap before the division.
// CHECK-LABEL: kernel.func @part
// CHECK-SAME:    index(i64)
// REMARK: remark: choose-index-width: part: declined: an index of x may reach 2^31, so indices have 64 bits
kernel.func @part(%x: memref<65536xf32>, %y: memref<65536xf32>) blocks(65536) threads(1) {
  %i = kernel.block_id
  %v = loop.load %x[(%i * 32771) floordiv 32777] : memref<65536xf32>
  loop.store %v, %y[%i] : memref<65536xf32>
}

// -----

// So are a grid that is large or dynamic, and a number from data that nothing bounds.
// CHECK-LABEL: kernel.func @grid
// CHECK-SAME:    index(i64)
// CHECK-LABEL: kernel.func @data
// CHECK-SAME:    index(i64)
// CHECK-LABEL: kernel.func @dynamic
// CHECK-SAME:    index(i64)
// REMARK: remark: choose-index-width: grid: declined: the grid may reach 2^31, so indices have 64 bits
// REMARK: remark: choose-index-width: data: declined: an index of x may reach 2^31, so indices have 64 bits
// REMARK: remark: choose-index-width: dynamic: declined: the size of x may reach 2^31, so indices have 64 bits
kernel.func @grid(%y: memref<8xf32>) blocks(2147483648) threads(1) {
  %i = kernel.block_id
  %z = arith.constant 0.0 : f32
  loop.store %z, %y[%i mod 8] : memref<8xf32>
}
kernel.func @data(%n: memref<1xi64>, %x: memref<8xf32>) blocks(1) threads(1) {
  %d = loop.load %n[0] : memref<1xi64>
  %i = arith.index_cast %d : i64 to index
  %z = arith.constant 0.0 : f32
  loop.store %z, %x[%i] : memref<8xf32>
}
kernel.func @dynamic(%x: memref<?x8xf32, #sym.extents<s0>>) blocks(s0) threads(1) {
  %i = kernel.block_id
  %z = arith.constant 0.0 : f32
  loop.store %z, %x[%i, 0] : memref<?x8xf32, #sym.extents<s0>>
}

// -----

// REMARK: remark: choose-index-width: no kernel.func in @main; tile-to-kernel makes it of Tile IR
func.func @main() {
  func.return
}

// -----

// A dynamic size counts as what @main allows: 4096 rows fit, 2^28 rows of 8 do not. With 32 bits the size
// itself has as many.
// CHECK-LABEL: kernel.func @rows
// CHECK-SAME:    index(i32)
// CPP-LABEL: rows(
// CPP:         const int s0)
// CHECK-LABEL: kernel.func @tail
// CHECK-SAME:    index(i32)
// CHECK-LABEL: kernel.func @many
// CHECK-SAME:    index(i64)
// CPP-LABEL: many(
// CPP:         const long long s1)
// REMARK: remark: choose-index-width: rows: every index is below 2^31
// REMARK: remark: choose-index-width: many: declined: the size of x may reach 2^31, so indices have 64 bits
func.func @main(%x: memref<?x8xf32, #sym.extents<s0>>, %y: memref<?x8xf32, #sym.extents<s1>>) attributes {sym.sizes = [#sym.size<"rows", 1, 4096>, #sym.size<"more", 1, 268435456>]} {
  kernel.launch @rows(%x) blocks(s0) threads(1) : memref<?x8xf32, #sym.extents<s0>>
  kernel.launch @tail(%x) blocks(s0) threads(1) : memref<?x8xf32, #sym.extents<s0>>
  kernel.launch @many(%y) blocks(s1) threads(1) : memref<?x8xf32, #sym.extents<s1>>
  func.return
}
kernel.func @rows(%x: memref<?x8xf32, #sym.extents<s0>>) blocks(s0) threads(1) {
  %i = kernel.block_id
  %z = arith.constant 0.0 : f32
  loop.store %z, %x[%i, 0] : memref<?x8xf32, #sym.extents<s0>>
}
kernel.func @tail(%x: memref<?x8xf32, #sym.extents<s0>>) blocks(s0) threads(1) {
  %i = kernel.block_id
  %z = arith.constant 0.0 : f32
  loop.store %z, %x[s0 - 1 - %i, 7] : memref<?x8xf32, #sym.extents<s0>>
}
kernel.func @many(%x: memref<?x8xf32, #sym.extents<s1>>) blocks(s1) threads(1) {
  %i = kernel.block_id
  %z = arith.constant 0.0 : f32
  loop.store %z, %x[%i, 0] : memref<?x8xf32, #sym.extents<s1>>
}
