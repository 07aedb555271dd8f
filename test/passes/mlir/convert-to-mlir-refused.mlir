// RUN: not deplo-opt %s -p convert-to-mlir --split-input-file 2>&1 | FileCheck %s

// CHECK: error: convert-to-mlir: the module has no host function @main; run `lower-tile-to-scf` first
func.func @other() {
  func.return
}

// -----

// CHECK: error: convert-to-mlir: @k_two is not one loop over blocks, as `lower-tile-to-scf` makes it
func.func @k_two(%y: memref<4xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %v = arith.constant 1.0 : f32
  loop.store %v, %y[%begin] : memref<4xf32>
  func.return
}
func.func @main() -> memref<4xf32> {
  %y = kernel.alloc : memref<4xf32>
  kernel.launch @k_two(%y) blocks(4) threads(1) : memref<4xf32>
  func.return %y : memref<4xf32>
}

// -----

// CHECK: error: convert-to-mlir: @helper is not a kernel that the program launches
func.func @helper(%y: memref<4xf32>) {
  func.return
}
func.func @main() {
  func.return
}
