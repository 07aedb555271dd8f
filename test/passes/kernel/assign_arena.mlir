// Buffers that die inside a call share one block of memory; those that are returned do not.

// RUN: deplo-opt %s --split-input-file -p assign-arena | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p assign-arena --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --split-input-file -p assign-arena,assign-arena | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p assign-arena,assign-arena --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=TWICE
// TWICE: remark: assign-arena: main: declined: its buffers are placed already

// %a and %c are never alive together; %b meets both. The largest comes first.
// REMARK: remark: assign-arena: main: 3 buffers of 384 bytes share 320
// CHECK-LABEL: func.func @main
// CHECK:         %a = kernel.alloc at 192 : memref<32xf32>
// CHECK:         %b = kernel.alloc at 0 : memref<33xf32>
// CHECK:         %c = kernel.alloc at 192 : memref<8xf32>
// CHECK:         %d = kernel.alloc : memref<32xf32>
func.func @main(%x: memref<32xf32>) -> memref<32xf32> {
  %a = kernel.alloc : memref<32xf32>
  kernel.launch @f(%x, %a) blocks(1) threads(1) : memref<32xf32>, memref<32xf32>
  %b = kernel.alloc : memref<33xf32>
  kernel.launch @g(%a, %b) blocks(1) threads(1) : memref<32xf32>, memref<33xf32>
  %c = kernel.alloc : memref<8xf32>
  kernel.launch @h(%b, %c) blocks(1) threads(1) : memref<33xf32>, memref<8xf32>
  %d = kernel.alloc : memref<32xf32>
  kernel.launch @i(%c, %d) blocks(1) threads(1) : memref<8xf32>, memref<32xf32>
  func.return %d : memref<32xf32>
}

// -----

// A launch's inputs never overlap its outputs, and offsets keep to 64 bytes.
// CHECK-LABEL: func.func @aligned
// CHECK:         %a = kernel.alloc at 0 : memref<3xi1>
// CHECK:         %b = kernel.alloc at 64 : memref<3xi1>
func.func @aligned(%x: memref<3xi1>) -> memref<3xi1> {
  %a = kernel.alloc : memref<3xi1>
  kernel.launch @f(%x, %a) blocks(1) threads(1) : memref<3xi1>, memref<3xi1>
  %b = kernel.alloc : memref<3xi1>
  kernel.launch @f(%a, %b) blocks(1) threads(1) : memref<3xi1>, memref<3xi1>
  %c = kernel.alloc : memref<3xi1>
  kernel.launch @f(%b, %c) blocks(1) threads(1) : memref<3xi1>, memref<3xi1>
  func.return %c : memref<3xi1>
}

// -----

// A buffer that is used again after it is returned, or never, has no place in the arena.
// REMARK: remark: assign-arena: returned: declined: every buffer is returned
// CHECK-LABEL: func.func @returned
// CHECK:         %a = kernel.alloc : memref<4xf32>
// CHECK:         %b = kernel.alloc : memref<4xf32>
func.func @returned(%x: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>) {
  %a = kernel.alloc : memref<4xf32>
  kernel.launch @f(%x, %a) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  %b = kernel.alloc : memref<4xf32>
  kernel.launch @f(%a, %b) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  func.return %a, %b : memref<4xf32>, memref<4xf32>
}

// -----

// Dynamic sizes: a row of slots. %c fits into the slot of %a whatever the sizes are, %d into none for sure.
// REMARK: remark: assign-arena: dynamic: 4 buffers of 57344 bytes share 40960 where sizes are as hinted
// CHECK-LABEL: func.func @dynamic
// CHECK:         %a = kernel.alloc at 0 : memref<?x64xf32, #sym.extents<s0>>
// CHECK:         %b = kernel.alloc at s0 * 256 + (s1 * s1 - 1) floordiv 16 * 64 + 64 : memref<?x32xf32, #sym.extents<s0>>
// CHECK:         %c = kernel.alloc at 0 : memref<?x64xf32, #sym.extents<s0>>
// CHECK:         %d = kernel.alloc at s0 * 256 : memref<?x?xf32, #sym.extents<s1, s1>>
func.func @dynamic(%x: memref<?x?xf32, #sym.extents<s0, s1>>) -> memref<4xf32> {
  %a = kernel.alloc : memref<?x64xf32, #sym.extents<s0>>
  kernel.launch @f(%x, %a) blocks(1) threads(1) : memref<?x?xf32, #sym.extents<s0, s1>>, memref<?x64xf32, #sym.extents<s0>>
  %b = kernel.alloc : memref<?x32xf32, #sym.extents<s0>>
  kernel.launch @f(%a, %b) blocks(1) threads(1) : memref<?x64xf32, #sym.extents<s0>>, memref<?x32xf32, #sym.extents<s0>>
  %c = kernel.alloc : memref<?x64xf32, #sym.extents<s0>>
  kernel.launch @f(%b, %c) blocks(1) threads(1) : memref<?x32xf32, #sym.extents<s0>>, memref<?x64xf32, #sym.extents<s0>>
  %d = kernel.alloc : memref<?x?xf32, #sym.extents<s1, s1>>
  kernel.launch @f(%c, %d) blocks(1) threads(1) : memref<?x64xf32, #sym.extents<s0>>, memref<?x?xf32, #sym.extents<s1, s1>>
  %e = kernel.alloc : memref<4xf32>
  kernel.launch @f(%d, %e) blocks(1) threads(1) : memref<?x?xf32, #sym.extents<s1, s1>>, memref<4xf32>
  func.return %e : memref<4xf32>
}

// -----

// %b has a size that no argument says: it is made when a call has found it.
// REMARK: remark: assign-arena: found: 1 buffers of 128 bytes share 128
// CHECK-LABEL: func.func @found
// CHECK:         %a = kernel.alloc at 0 : memref<32xf32>
// CHECK:         %b = kernel.alloc : memref<?xf32, #sym.extents<s0>>
func.func @found(%x: memref<32xf32>) -> memref<32xf32> {
  %a = kernel.alloc : memref<32xf32>
  kernel.launch @f(%x, %a) blocks(1) threads(1) : memref<32xf32>, memref<32xf32>
  %b = kernel.alloc : memref<?xf32, #sym.extents<s0>>
  kernel.launch @g(%a, %b) blocks(1) threads(1) : memref<32xf32>, memref<?xf32, #sym.extents<s0>>
  %c = kernel.alloc : memref<32xf32>
  kernel.launch @h(%b, %c) blocks(1) threads(1) : memref<?xf32, #sym.extents<s0>>, memref<32xf32>
  func.return %c : memref<32xf32>
}

// -----

// REMARK: remark: assign-arena: returned: declined: every buffer is returned, or what PyTorch is called with or says the size of
func.func @returned(%x: memref<32xf32>) -> memref<32xf32> {
  %a = kernel.alloc : memref<32xf32>
  kernel.launch @f(%x, %a) blocks(1) threads(1) : memref<32xf32>, memref<32xf32>
  func.return %a : memref<32xf32>
}
