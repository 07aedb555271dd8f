// RUN: deplo-opt %s -p inline-calls --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p inline-calls --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p inline-calls --split-input-file --check-each-pass >/dev/null

// Each call becomes a buffer and a launch of the one kernel.
// CHECK:       kernel.func @k_double
// CHECK-NOT:   @layer
// CHECK:       func.func @main(%x: memref<4xf32>) -> memref<4xf32> {
// CHECK-NEXT:    %a = kernel.alloc : memref<4xf32>
// CHECK-NEXT:    kernel.launch @k_double(%x, %a)
// CHECK-NEXT:    %b = kernel.alloc : memref<4xf32>
// CHECK-NEXT:    kernel.launch @k_double(%a, %b)
// CHECK-NEXT:    func.return %b
// REMARK: remark: inline-calls: main: 2 calls of 1 functions
kernel.func @k_double(%x: memref<4xf32>, %y: memref<4xf32>) blocks(1) threads(4) {
  %t = kernel.thread_id
  %v = loop.load %x[%t] : memref<4xf32>
  %w = arith.addf %v, %v : f32
  loop.store %w, %y[%t] : memref<4xf32>
}
func.func private @layer(%x: memref<4xf32>) -> memref<4xf32> {
  %y = kernel.alloc : memref<4xf32>
  kernel.launch @k_double(%x, %y) blocks(1) threads(4) : memref<4xf32>, memref<4xf32>
  func.return %y : memref<4xf32>
}
func.func @main(%x: memref<4xf32>) -> memref<4xf32> {
  %a = func.call @layer(%x) : (memref<4xf32>) -> memref<4xf32>
  %b = func.call @layer(%a) : (memref<4xf32>) -> memref<4xf32>
  func.return %b : memref<4xf32>
}

// -----

// CHECK-LABEL: func.func @main(%alone:
// REMARK: remark: inline-calls: main: declined: nothing is called
func.func @main(%alone: memref<4xf32>) -> memref<4xf32> {
  func.return %alone : memref<4xf32>
}

// -----

// A function that others may call, too, stays; so does the call of a function without a body.
// CHECK-LABEL: func.func @scale(
// CHECK-LABEL: func.func @uses(
// CHECK-NEXT:    %b = arith.mulf %a, %a : f32
// CHECK-NEXT:    %c = func.call @outside(%b)
// REMARK: remark: inline-calls: main: 1 calls of 1 functions
func.func private @outside(f32) -> f32
func.func @scale(%a: f32) -> f32 {
  %b = arith.mulf %a, %a : f32
  func.return %b : f32
}
func.func @uses(%a: f32) -> f32 {
  %b = func.call @scale(%a) : (f32) -> f32
  %c = func.call @outside(%b) : (f32) -> f32
  func.return %c : f32
}
