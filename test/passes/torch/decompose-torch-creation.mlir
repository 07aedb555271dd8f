// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s

// CHECK-LABEL: func.func @arange
// CHECK: [[I:%.*]] = tensor_ir.iota 0 : tensor<3xi64>
// CHECK: [[M:%.*]] = tensor_ir.elementwise mul([[I]],
// CHECK: tensor_ir.elementwise add([[M]],
func.func @arange() -> tensor<3xi64> {
  %0 = torch.arange {start = 1, end = 9, step = 3} : () -> tensor<3xi64>
  func.return %0 : tensor<3xi64>
}

// A range of floats is counted in f64.
// CHECK-LABEL: func.func @arange_floats
// CHECK: tensor_ir.elementwise mul({{.*}}) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
// CHECK: tensor_ir.cast {{.*}} : tensor<4xf64> to tensor<4xf32>
func.func @arange_floats() -> tensor<4xf32> {
  %0 = torch.arange {start = 0, end = 1, step = 0.25 : f64} : () -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// CHECK-LABEL: func.func @constants
// CHECK-NEXT: tensor_ir.constant 1.5 : tensor<2x3xf16>
// CHECK-NEXT: tensor_ir.constant true : tensor<2xi1>
// CHECK-NEXT: tensor_ir.constant -inf : tensor<f32>
// CHECK-NEXT: tensor_ir.constant 0 : tensor<0x4xi64>
func.func @constants() -> (tensor<2x3xf16>, tensor<2xi1>, tensor<f32>, tensor<0x4xi64>) {
  %0 = torch.full {size = [2, 3], fill_value = 1.5 : f64, dtype = f16} : () -> tensor<2x3xf16>
  %1 = torch.ones {size = [2], dtype = i1} : () -> tensor<2xi1>
  %2 = torch.scalar_tensor {s = 0xfff0000000000000 : f64} : () -> tensor<f32>
  %3 = torch.zeros {size = [0, 4], dtype = i64} : () -> tensor<0x4xi64>
  func.return %0, %1, %2, %3 : tensor<2x3xf16>, tensor<2xi1>, tensor<f32>, tensor<0x4xi64>
}
