// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s

// CHECK-LABEL: func.func @view
// CHECK-NEXT: index_map (i, j, k) -> %a[i * 3 + j, k] : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: index_map (i) -> %a[i floordiv 4, i mod 4] : (tensor<6x4xf32>) -> tensor<24xf32>
func.func @view(%a: tensor<6x4xf32>) -> (tensor<2x3x4xf32>, tensor<24xf32>) {
  %0 = torch.view %a {size = [2, -1, 4]} : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
  %1 = torch.view %a {size = [24]} : (tensor<6x4xf32>) -> tensor<24xf32>
  func.return %0, %1 : tensor<2x3x4xf32>, tensor<24xf32>
}

// CHECK-LABEL: func.func @permute_slice_flip
// CHECK-NEXT: index_map (i, j, k) -> %a[j, k, i] : (tensor<3x4x5xf32>) -> tensor<5x3x4xf32>
// CHECK-NEXT: index_map (i, j, k) -> {{%.*}}[i * 2, j, k] : (tensor<5x3x4xf32>) -> tensor<3x3x4xf32>
// CHECK-NEXT: index_map (i, j, k) -> {{%.*}}[2 - i, j, k]
func.func @permute_slice_flip(%a: tensor<3x4x5xf32>) -> tensor<3x3x4xf32> {
  %0 = torch.permute %a {dims = [2, 0, 1]} : (tensor<3x4x5xf32>) -> tensor<5x3x4xf32>
  %1 = torch.slice %0 {step = 2} : (tensor<5x3x4xf32>) -> tensor<3x3x4xf32>
  %2 = torch.flip %1 {dims = [0]} : (tensor<3x3x4xf32>) -> tensor<3x3x4xf32>
  func.return %2 : tensor<3x3x4xf32>
}

// CHECK-LABEL: func.func @slices
// CHECK-NEXT: index_map (i) -> %a[i + 5]
// CHECK-NEXT: index_map (i) -> %a[6]
// CHECK-NEXT: index_map (i) -> %a[i + 6]
func.func @slices(%a: tensor<8xf32>) -> (tensor<3xf32>, tensor<1xf32>, tensor<2xf32>) {
  %0 = torch.slice %a {start = 5, end = 8} : (tensor<8xf32>) -> tensor<3xf32>
  %1 = torch.slice %a {start = -2, end = -1} : (tensor<8xf32>) -> tensor<1xf32>
  %2 = torch.slice %a {start = 6, end = 100} : (tensor<8xf32>) -> tensor<2xf32>
  func.return %0, %1, %2 : tensor<3xf32>, tensor<1xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @cat
// CHECK-NEXT: index_map (i) -> %a[i] if i < 4 else %b[i - 4] if i < 7 else %a[i - 7]
func.func @cat(%a: tensor<4xf32>, %b: tensor<3xf32>, %e: tensor<0xf32>) -> tensor<11xf32> {
  %0 = torch.cat [%a, %e, %b, %a] : (tensor<4xf32>, tensor<0xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<11xf32>
  func.return %0 : tensor<11xf32>
}

// CHECK-LABEL: func.func @pad
// CHECK-NEXT: index_map (i) -> %a[i - 1] if i >= 1 and i < 5 else 7.0
// CHECK-NEXT: index_map (i) -> %a[i + 1] :
func.func @pad(%a: tensor<4xf32>) -> (tensor<7xf32>, tensor<2xf32>) {
  %0 = torch.constant_pad_nd %a {pad = [1, 2], value = 7} : (tensor<4xf32>) -> tensor<7xf32>
  %1 = torch.constant_pad_nd %a {pad = [-1, -1]} : (tensor<4xf32>) -> tensor<2xf32>
  func.return %0, %1 : tensor<7xf32>, tensor<2xf32>
}

// CHECK-LABEL: func.func @triangles
// CHECK-NEXT: index_map (i, j) -> %a[i, j] if i - j >= -1 else 0
// CHECK-NEXT: index_map (i, j) -> %a[i, j] if j - i >= 0 else 0
func.func @triangles(%a: tensor<4x4xi64>) -> (tensor<4x4xi64>, tensor<4x4xi64>) {
  %0 = torch.tril %a {diagonal = 1} : (tensor<4x4xi64>) -> tensor<4x4xi64>
  %1 = torch.triu %a : (tensor<4x4xi64>) -> tensor<4x4xi64>
  func.return %0, %1 : tensor<4x4xi64>, tensor<4x4xi64>
}

// CHECK-LABEL: func.func @rest
// CHECK-NEXT: index_map (i, j, k) -> %a[j, 0]
// CHECK-NEXT: index_map (i, j) -> %a[i mod 3, 0]
// CHECK-NEXT: index_map (i) -> %a[i, 0]
// CHECK-NEXT: index_map (i) -> %a[2, 0]
func.func @rest(%a: tensor<3x1xf32>) -> (tensor<2x3x4xf32>, tensor<6x2xf32>, tensor<3xf32>, tensor<1xf32>) {
  %0 = torch.expand %a {size = [2, -1, 4]} : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
  %1 = torch.repeat %a {repeats = [2, 2]} : (tensor<3x1xf32>) -> tensor<6x2xf32>
  %2 = torch.squeeze_default %a : (tensor<3x1xf32>) -> tensor<3xf32>
  %3 = torch.select %a {dim = 0, index = -1} : (tensor<3x1xf32>) -> tensor<1xf32>
  func.return %0, %1, %2, %3 : tensor<2x3x4xf32>, tensor<6x2xf32>, tensor<3xf32>, tensor<1xf32>
}
