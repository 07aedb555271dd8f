// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s

// CHECK-LABEL: func.func @add_alpha
// CHECK: [[BC:%.*]] = tensor_ir.index_map (i, j) -> %b[j] : (tensor<8xf32>) -> tensor<4x8xf32>
// CHECK: [[C:%.*]] = tensor_ir.constant 3.0 : tensor<4x8xf32>
// CHECK: [[M:%.*]] = tensor_ir.elementwise mul([[BC]], [[C]])
// CHECK: tensor_ir.elementwise add(%a, [[M]])
func.func @add_alpha(%a: tensor<4x8xf32>, %b: tensor<8xf32>) -> tensor<4x8xf32> {
  %0 = torch.add %a, %b {alpha = 3} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @relu_keeps_nan
// CHECK: [[Z:%.*]] = tensor_ir.constant 0.0
// CHECK: [[LT:%.*]] = tensor_ir.elementwise lt(%a, [[Z]])
// CHECK: tensor_ir.elementwise select([[LT]], [[Z]], %a)
func.func @relu_keeps_nan(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = torch.relu %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// A comparison happens in the common type: i64 against a float number in f32.
// CHECK-LABEL: func.func @compare
// CHECK: [[F:%.*]] = tensor_ir.cast %a : tensor<4xi64> to tensor<4xf32>
// CHECK: tensor_ir.elementwise gt([[F]], {{%.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
func.func @compare(%a: tensor<4xi64>) -> tensor<4xi1> {
  %0 = torch.gt_scalar %a {other = 0.5 : f64} : (tensor<4xi64>) -> tensor<4xi1>
  func.return %0 : tensor<4xi1>
}

// CHECK-LABEL: func.func @integer_division
// CHECK: tensor_ir.elementwise floordiv
// CHECK: tensor_ir.elementwise truncdiv
// CHECK: tensor_ir.elementwise div({{.*}}) : (tensor<4xf32>, tensor<4xf32>)
func.func @integer_division(%a: tensor<4xi64>) -> (tensor<4xi64>, tensor<4xi64>, tensor<4xf32>) {
  %0 = torch.div_scalar_mode %a {other = -2, rounding_mode = "floor"} : (tensor<4xi64>) -> tensor<4xi64>
  %1 = torch.div_scalar_mode %a {other = -2, rounding_mode = "trunc"} : (tensor<4xi64>) -> tensor<4xi64>
  %2 = torch.div_scalar %a {other = -2} : (tensor<4xi64>) -> tensor<4xf32>
  func.return %0, %1, %2 : tensor<4xi64>, tensor<4xi64>, tensor<4xf32>
}

// CHECK-LABEL: func.func @powers
// CHECK: tensor_ir.elementwise mul(%a, %a)
// CHECK: tensor_ir.elementwise sqrt(%a)
// CHECK: tensor_ir.elementwise pow(%a,
func.func @powers(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %0 = torch.pow %a {exponent = 2} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = torch.pow %a {exponent = 0.5 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = torch.pow %a {exponent = 2.5 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// f64 and integers reach a half type through f32, as PyTorch converts them.
// CHECK-LABEL: func.func @casts
// CHECK: [[F:%.*]] = tensor_ir.cast %a : tensor<4xf64> to tensor<4xf32>
// CHECK: tensor_ir.cast [[F]] : tensor<4xf32> to tensor<4xbf16>
func.func @casts(%a: tensor<4xf64>) -> tensor<4xbf16> {
  %0 = torch._to_copy %a {dtype = bf16} : (tensor<4xf64>) -> tensor<4xbf16>
  func.return %0 : tensor<4xbf16>
}

// uint8 is computed in i32; with an int8 it is an int16. A number that meets it must be one.
// CHECK-LABEL: func.func @bytes
// CHECK: [[A:%.*]] = tensor_ir.cast %a : tensor<4xui8> to tensor<4xi32>
// CHECK: [[TWO:%.*]] = tensor_ir.constant 2 : tensor<4xi32>
// CHECK: [[PRODUCT:%.*]] = tensor_ir.elementwise mul([[A]], [[TWO]])
// CHECK: tensor_ir.cast [[PRODUCT]] : tensor<4xi32> to tensor<4xui8>
// CHECK: tensor_ir.cast %a : tensor<4xui8> to tensor<4xi16>
// CHECK: tensor_ir.elementwise add({{.*}}) : (tensor<4xi16>, tensor<4xi16>) -> tensor<4xi16>
// CHECK: tensor_ir.cast %a : tensor<4xui8> to tensor<4xi16>
// CHECK: tensor_ir.elementwise gt({{.*}}) : (tensor<4xi16>, tensor<4xi16>) -> tensor<4xi1>
func.func @bytes(%a: tensor<4xui8>, %b: tensor<4xi8>) -> (tensor<4xui8>, tensor<4xi16>, tensor<4xi1>) {
  %0 = torch.mul_scalar %a {other = 2} : (tensor<4xui8>) -> tensor<4xui8>
  %1 = torch.add %a, %b : (tensor<4xui8>, tensor<4xi8>) -> tensor<4xi16>
  %2 = torch.gt %a, %b : (tensor<4xui8>, tensor<4xi8>) -> tensor<4xi1>
  func.return %0, %1, %2 : tensor<4xui8>, tensor<4xi16>, tensor<4xi1>
}

// CHECK-LABEL: func.func @gelu
// CHECK: tensor_ir.elementwise erf
// CHECK: tensor_ir.elementwise tanh
func.func @gelu(%a: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = torch.gelu %a : (tensor<4xf32>) -> tensor<4xf32>
  %1 = torch.gelu %a {approximate = "tanh"} : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
