// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s

// A convolution reads its input through the window, zero where the window is outside.
// CHECK-LABEL: func.func @convolution
// CHECK: [[X:%.*]] = tensor_ir.index_map (i, j, k, l, m) -> %x[i, l, k * 2 + m - 1] if k * 2 + m >= 1 and k * 2 + m < 9 else 0.0
// CHECK-SAME: -> tensor<2x4x4x3x3xf32>
// CHECK: [[W:%.*]] = tensor_ir.index_map (i, j, k, l, m) -> %w[j, l, m]
// CHECK: [[P:%.*]] = tensor_ir.elementwise mul([[X]], [[W]])
// CHECK: tensor_ir.reduce add([[P]]) over [3, 4]
func.func @convolution(%x: tensor<2x3x8xf32>, %w: tensor<4x3x3xf32>) -> tensor<2x4x4xf32> {
  %0 = torch.convolution %x, %w, none {stride = [2], padding = [1], dilation = [1], transposed = false, output_padding = [0], groups = 1} : (tensor<2x3x8xf32>, tensor<4x3x3xf32>) -> tensor<2x4x4xf32>
  func.return %0 : tensor<2x4x4xf32>
}

// A transposed one reads where the stride divides the distance.
// CHECK-LABEL: func.func @transposed
// CHECK: tensor_ir.index_map {{.*}} mod 2
// CHECK: tensor_ir.index_map (i, j, k, l, m) -> %w[l, j, m]
func.func @transposed(%x: tensor<1x3x4xf32>, %w: tensor<3x2x3xf32>) -> tensor<1x2x9xf32> {
  %0 = torch.convolution %x, %w, none {stride = [2], padding = [0], dilation = [1], transposed = true, output_padding = [0], groups = 1} : (tensor<1x3x4xf32>, tensor<3x2x3xf32>) -> tensor<1x2x9xf32>
  func.return %0 : tensor<1x2x9xf32>
}

// If the stride divides the results, each has the weights of its phase alone: one or two of three.
// CHECK-LABEL: func.func @phases
// CHECK: tensor_ir.index_map (i, j, k, l, m) -> %x[0, l, k floordiv 2 + (k mod 2 + 1) floordiv 2 - m] if
// CHECK-SAME: -> tensor<1x2x8x3x2xf32>
// CHECK: tensor_ir.index_map (i, j, k, l, m) -> %w[l, j, m * 2 + (k mod 2 + 1) mod 2] if m * 2 + (k mod 2 + 1) mod 2 < 3 else 0.0
// CHECK: tensor_ir.reduce add({{.*}}) over [3, 4]
func.func @phases(%x: tensor<1x3x4xf32>, %w: tensor<3x2x3xf32>) -> tensor<1x2x8xf32> {
  %0 = torch.convolution %x, %w, none {stride = [2], padding = [1], dilation = [1], transposed = true, output_padding = [1], groups = 1} : (tensor<1x3x4xf32>, tensor<3x2x3xf32>) -> tensor<1x2x8xf32>
  func.return %0 : tensor<1x2x8xf32>
}

// Padding counts as elements: one divisor for all windows.
// CHECK-LABEL: func.func @average
// CHECK: [[S:%.*]] = tensor_ir.index_map {{.*}} else 0.0
// CHECK: tensor_ir.reduce add([[S]]) over [3, 4]
// CHECK: tensor_ir.constant 9.0
func.func @average(%x: tensor<2x6x6xf32>) -> tensor<2x6x6xf32> {
  %0 = torch.avg_pool2d %x {kernel_size = [3, 3], stride = [1, 1], padding = [1, 1]} : (tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  func.return %0 : tensor<2x6x6xf32>
}

// Padding is never the largest.
// CHECK-LABEL: func.func @largest
// CHECK: [[S:%.*]] = tensor_ir.index_map {{.*}} else -inf
// CHECK: tensor_ir.reduce max([[S]]) over [3, 4]
func.func @largest(%x: tensor<2x6x6xf32>) -> tensor<2x3x3xf32> {
  %0, %1 = torch.max_pool2d_with_indices %x {kernel_size = [3, 3], stride = [2, 2], padding = [1, 1]} : (tensor<2x6x6xf32>) -> (tensor<2x3x3xf32>, tensor<2x3x3xi64>)
  func.return %0 : tensor<2x3x3xf32>
}

// CHECK-LABEL: func.func @adaptive
// CHECK: tensor_ir.index_map (i, j, k, l, m) -> %x[i, j * 2 + l, k * 3 + m]
// CHECK: tensor_ir.constant 6.0
func.func @adaptive(%x: tensor<2x6x6xf32>) -> tensor<2x3x2xf32> {
  %0 = torch._adaptive_avg_pool2d %x {output_size = [3, 2]} : (tensor<2x6x6xf32>) -> tensor<2x3x2xf32>
  func.return %0 : tensor<2x3x2xf32>
}
