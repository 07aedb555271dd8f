// A program for a GPU is @main and what it runs.
// RUN: not deplo-opt %s -p tensor-to-cuda -t cuda 2>&1 | FileCheck %s

// CHECK: other-functions.mlir:[[@LINE+1]]:1: error: 'func.func' op @f is neither a kernel nor @main nor a private function that @main runs
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = tensor_ir.elementwise exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
