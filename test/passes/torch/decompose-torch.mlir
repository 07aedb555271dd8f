// decompose-torch leaves no operation of torch, and keeps names and locations.
// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s
// RUN: deplo-opt %s --pass-pipeline=decompose-torch,decompose-torch | FileCheck %s
// RUN: deplo-opt %s --pass-pipeline=decompose-torch,decompose-torch --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK: remark: decompose-torch: main: lowered {{[0-9]+}} operations of torch
// REMARK-NEXT: remark: decompose-torch: no torch operation, this is Tensor IR

// CHECK-LABEL: func.func @rms_norm
// CHECK-SAME: (%x: tensor<1x32x2048xf32>, %p_weight: tensor<2048xf32> {deplo.parameter = "weight"})
func.func @rms_norm(%x: tensor<1x32x2048xf32>, %p_weight: tensor<2048xf32> {deplo.parameter = "weight"}) -> tensor<1x32x2048xf32> {
  // CHECK-NOT: torch.
  // CHECK: [[SQ:%.*]] = tensor_ir.elementwise mul(%x, %x)
  // CHECK: [[SUM:%.*]] = tensor_ir.reduce add([[SQ]]) over [2]
  // CHECK: [[N:%.*]] = tensor_ir.constant 2048.0 : tensor<1x32x1xf32>
  // CHECK: [[MEAN:%.*]] = tensor_ir.elementwise div([[SUM]], [[N]])
  // CHECK: [[EPS:%.*]] = tensor_ir.constant 1.1920929e-07 : tensor<1x32x1xf32>
  // CHECK: [[ADD:%.*]] = tensor_ir.elementwise add([[MEAN]], [[EPS]])
  // CHECK: [[SCALE:%.*]] = tensor_ir.elementwise rsqrt([[ADD]])
  // CHECK: [[BC:%.*]] = tensor_ir.index_map (i, j, k) -> [[SCALE]][0, j, 0]
  // CHECK: [[NORMAL:%.*]] = tensor_ir.elementwise mul(%x, [[BC]])
  // CHECK: [[W:%.*]] = tensor_ir.index_map (i, j, k) -> %p_weight[k]
  // CHECK: %rms_norm = tensor_ir.elementwise mul([[NORMAL]], [[W]])
  %rms_norm = torch.rms_norm %x, %p_weight {normalized_shape = [2048]} : (tensor<1x32x2048xf32>, tensor<2048xf32>) -> tensor<1x32x2048xf32>
  // CHECK: func.return %rms_norm
  func.return %rms_norm : tensor<1x32x2048xf32>
}

// f16 is computed in f32 and rounded once, at the end of the operation.
// CHECK-LABEL: func.func @half
func.func @half(%x: tensor<4xf16>, %y: tensor<4xf16>) -> tensor<4xf16> {
  // CHECK: [[A:%.*]] = tensor_ir.cast %x : tensor<4xf16> to tensor<4xf32>
  // CHECK: [[B:%.*]] = tensor_ir.cast %y : tensor<4xf16> to tensor<4xf32>
  // CHECK: [[ADD:%.*]] = tensor_ir.elementwise add([[A]], [[B]])
  // CHECK: %add = tensor_ir.cast [[ADD]] : tensor<4xf32> to tensor<4xf16>
  %add = torch.add %x, %y : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  // CHECK: [[C:%.*]] = tensor_ir.cast %add : tensor<4xf16> to tensor<4xf32>
  // CHECK: tensor_ir.elementwise exp([[C]])
  %exp = torch.exp %add : (tensor<4xf16>) -> tensor<4xf16>
  func.return %exp : tensor<4xf16>
}

// A function that holds no torch is left alone.
// CHECK-LABEL: func.func @nothing
// CHECK-NEXT: %0 = tensor_ir.elementwise neg(%x)
// CHECK-NEXT: func.return %0
func.func @nothing(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = tensor_ir.elementwise neg(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
