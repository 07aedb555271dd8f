// Launches that depend on nothing of each other become neighbours that may run at once.

// RUN: deplo-opt %s --split-input-file -p group-launches | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p group-launches --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --split-input-file -p group-launches,group-launches | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p group-launches,assign-arena | FileCheck %s --check-prefix=ARENA

// Two chains go side by side. %a and %b are alive at once, and so are %c and %d.
// REMARK: remark: group-launches: main: 4 of 5 launches run at once, in 2 groups
// CHECK-LABEL: func.func @main
// CHECK:         %a = kernel.alloc
// CHECK-NEXT:    kernel.launch @k(%x, %a) blocks(1) threads(1) {group = 0 : i64, writes = array<i64: 1>}
// CHECK-NEXT:    %b = kernel.alloc
// CHECK-NEXT:    kernel.launch @k(%x, %b) blocks(1) threads(1) {group = 0 : i64, writes = array<i64: 1>}
// CHECK-NEXT:    %c = kernel.alloc
// CHECK-NEXT:    kernel.launch @k(%a, %c) blocks(1) threads(1) {group = 1 : i64, writes = array<i64: 1>}
// CHECK-NEXT:    %d = kernel.alloc
// CHECK-NEXT:    kernel.launch @k(%b, %d) blocks(1) threads(1) {group = 1 : i64, writes = array<i64: 1>}
// CHECK:         kernel.launch @j(%c, %d, %e) blocks(1) threads(1) :
// ARENA-LABEL: func.func @main
// ARENA:         %a = kernel.alloc at 0
// ARENA:         %b = kernel.alloc at 64
// ARENA:         %c = kernel.alloc at 128
// ARENA:         %d = kernel.alloc at 192
func.func @k(%in: memref<4xf32>, %out: memref<4xf32>) {
  %i = arith.constant 0 : index
  %v = loop.load %in[%i] : memref<4xf32>
  loop.store %v, %out[%i] : memref<4xf32>
  func.return
}
func.func @j(%in: memref<4xf32>, %more: memref<4xf32>, %out: memref<4xf32>) {
  %i = arith.constant 0 : index
  %v = loop.load %in[%i] : memref<4xf32>
  %w = loop.load %more[%i] : memref<4xf32>
  %s = arith.addf %v, %w : f32
  loop.store %s, %out[%i] : memref<4xf32>
  func.return
}
func.func @main(%x: memref<4xf32>) -> memref<4xf32> {
  %a = kernel.alloc : memref<4xf32>
  kernel.launch @k(%x, %a) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  %c = kernel.alloc : memref<4xf32>
  kernel.launch @k(%a, %c) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  %b = kernel.alloc : memref<4xf32>
  kernel.launch @k(%x, %b) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  %d = kernel.alloc : memref<4xf32>
  kernel.launch @k(%b, %d) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  %e = kernel.alloc : memref<4xf32>
  kernel.launch @j(%c, %d, %e) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>, memref<4xf32>
  func.return %e : memref<4xf32>
}

// -----

// A kernel that is not here may write all that it gets.
// REMARK: remark: group-launches: unknown: declined: each launch depends on the one before it
// CHECK-LABEL: func.func @unknown
// CHECK-NOT:     group
func.func @unknown(%x: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>) {
  %a = kernel.alloc : memref<4xf32>
  kernel.launch @f(%x, %a) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  %b = kernel.alloc : memref<4xf32>
  kernel.launch @f(%x, %b) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  func.return %a, %b : memref<4xf32>, memref<4xf32>
}

// -----

// Nothing passes what PyTorch runs.
// REMARK: remark: group-launches: called: declined: each launch depends on the one before it
// CHECK-LABEL: func.func @called
// CHECK-NOT:     group
func.func @k(%in: memref<4xf32>, %out: memref<4xf32>) {
  func.return
}
func.func @called(%x: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>) {
  %a = kernel.alloc : memref<4xf32>
  kernel.launch @k(%x, %a) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  %b = kernel.alloc : memref<4xf32>
  kernel.call "aten.rand_like.default"(input = %x) into(%b) : memref<4xf32>, memref<4xf32>
  %c = kernel.alloc : memref<4xf32>
  kernel.launch @k(%x, %c) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  func.return %a, %b, %c : memref<4xf32>, memref<4xf32>, memref<4xf32>
}

// -----

// %a and %b would both be alive: 16 MiB instead of 8.
// REMARK: remark: group-launches: large: declined: run at once they would need 16777216 bytes, which is more than 9227468
// CHECK-LABEL: func.func @large
// CHECK-NOT:     group
func.func @s(%in: memref<2097152xf32>, %out: memref<4xf32>) {
  %i = arith.constant 0 : index
  %v = loop.load %in[%i] : memref<2097152xf32>
  loop.store %v, %out[%i] : memref<4xf32>
  func.return
}
func.func @l(%in: memref<4xf32>, %out: memref<2097152xf32>) {
  %i = arith.constant 0 : index
  %v = loop.load %in[%i] : memref<4xf32>
  loop.store %v, %out[%i] : memref<2097152xf32>
  func.return
}
func.func @large(%x: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>) {
  %a = kernel.alloc : memref<2097152xf32>
  kernel.launch @l(%x, %a) blocks(1) threads(1) : memref<4xf32>, memref<2097152xf32>
  %c = kernel.alloc : memref<4xf32>
  kernel.launch @s(%a, %c) blocks(1) threads(1) : memref<2097152xf32>, memref<4xf32>
  %b = kernel.alloc : memref<2097152xf32>
  kernel.launch @l(%x, %b) blocks(1) threads(1) : memref<4xf32>, memref<2097152xf32>
  %d = kernel.alloc : memref<4xf32>
  kernel.launch @s(%b, %d) blocks(1) threads(1) : memref<2097152xf32>, memref<4xf32>
  func.return %c, %d : memref<4xf32>, memref<4xf32>
}
