// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s

// CHECK-LABEL: func.func @linear
// CHECK: [[L:%.*]] = tensor_ir.index_map (i, j, k) -> %a[i, k] : (tensor<4x3xf32>) -> tensor<4x2x3xf32>
// CHECK: [[R:%.*]] = tensor_ir.index_map (i, j, k) -> %w[j, k] : (tensor<2x3xf32>) -> tensor<4x2x3xf32>
// CHECK: [[M:%.*]] = tensor_ir.elementwise mul([[L]], [[R]])
// CHECK: [[S:%.*]] = tensor_ir.reduce add([[M]]) over [2]
// CHECK: [[V:%.*]] = tensor_ir.index_map (i, j) -> [[S]][i, j, 0]
// CHECK: [[B:%.*]] = tensor_ir.index_map (i, j) -> %b[j]
// CHECK: %linear = tensor_ir.elementwise add([[V]], [[B]])
func.func @linear(%a: tensor<4x3xf32>, %w: tensor<2x3xf32>, %b: tensor<2xf32>) -> tensor<4x2xf32> {
  %linear = torch.linear %a, %w, %b : (tensor<4x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  func.return %linear : tensor<4x2xf32>
}

// Batch axes broadcast; an extent of 1 is read at 0.
// CHECK-LABEL: func.func @matmul
// CHECK: index_map (i, j, k, l, m) -> %a[i, 0, k, m] : (tensor<2x1x3x4xf32>) -> tensor<2x5x3x6x4xf32>
// CHECK: index_map (i, j, k, l, m) -> %b[j, m, l] : (tensor<5x4x6xf32>) -> tensor<2x5x3x6x4xf32>
func.func @matmul(%a: tensor<2x1x3x4xf32>, %b: tensor<5x4x6xf32>) -> tensor<2x5x3x6xf32> {
  %0 = torch.matmul %a, %b : (tensor<2x1x3x4xf32>, tensor<5x4x6xf32>) -> tensor<2x5x3x6xf32>
  func.return %0 : tensor<2x5x3x6xf32>
}

// With beta = 0 the addend is not read.
// CHECK-LABEL: func.func @addmm
// CHECK-SAME: (%addend: tensor<5xf32>
// CHECK-NOT: %addend
// CHECK: func.return
func.func @addmm(%addend: tensor<5xf32>, %a: tensor<3x4xf32>, %b: tensor<4x5xf32>) -> tensor<3x5xf32> {
  %0 = torch.addmm %addend, %a, %b {beta = 0} : (tensor<5xf32>, tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  func.return %0 : tensor<3x5xf32>
}

// The product of half types accumulates in f32 and is rounded after the bias.
// CHECK-LABEL: func.func @half
// CHECK: tensor_ir.reduce add({{.*}}) over [2] : tensor<4x2x3xf32>
// CHECK: tensor_ir.elementwise add({{.*}}) : (tensor<4x2xf32>, tensor<4x2xf32>)
// CHECK: tensor_ir.cast {{.*}} : tensor<4x2xf32> to tensor<4x2xf16>
func.func @half(%a: tensor<4x3xf16>, %w: tensor<2x3xf16>, %b: tensor<2xf16>) -> tensor<4x2xf16> {
  %0 = torch.linear %a, %w, %b : (tensor<4x3xf16>, tensor<2x3xf16>, tensor<2xf16>) -> tensor<4x2xf16>
  func.return %0 : tensor<4x2xf16>
}
