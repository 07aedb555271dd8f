// RUN: not deplo-opt %s -t c --split-input-file 2>&1 | FileCheck %s

// CHECK: c-refused.mlir:5:8: error: {{.*}}loop.load has no C form; lower the program to upstream dialects first (`tile-to-mlir`)
func.func @f(%x: memref<4xf32>) {
  %v = loop.load %x[0] : memref<4xf32>
  func.return
}

// -----

// CHECK: error: {{.*}}values of type f128 have no C form
func.func @f(%x: memref<4xf32>) {
  %c0 = arith.constant 0 : index
  %v = memref.load %x[%c0] : memref<4xf32>
  %w = arith.extf %v : f32 to f128
  func.return
}

// -----

// CHECK: error: {{.*}}a function that returns values has no C form; let it store its results
func.func @f(%x: memref<4xf32>) -> memref<4xf32> {
  func.return %x : memref<4xf32>
}
