// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s

// CHECK-LABEL: func.func @embedding
// CHECK-NEXT: %embedding = tensor_ir.gather %t[%i] along 0
func.func @embedding(%t: tensor<10x4xf32>, %i: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
  %embedding = torch.embedding %t, %i : (tensor<10x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  func.return %embedding : tensor<2x3x4xf32>
}

// A negative index counts from the end.
// CHECK-LABEL: func.func @index_one
// CHECK: [[FROM_END:%.*]] = tensor_ir.elementwise add(%i,
// CHECK: [[BELOW:%.*]] = tensor_ir.elementwise lt(%i,
// CHECK: [[I:%.*]] = tensor_ir.elementwise select([[BELOW]], [[FROM_END]], %i)
// CHECK: tensor_ir.gather %a{{\[}}[[I]]] along 1
func.func @index_one(%a: tensor<3x4xf32>, %i: tensor<2xi64>) -> tensor<3x2xf32> {
  %0 = torch.index %a, [%i] {dim = 1} : (tensor<3x4xf32>, tensor<2xi64>) -> tensor<3x2xf32>
  func.return %0 : tensor<3x2xf32>
}

// Two indices make one flat index, which is -1 where one of them is outside its axis.
// CHECK-LABEL: func.func @index_two
// CHECK: [[MINUS:%.*]] = tensor_ir.constant -1 : tensor<2xi64>
// CHECK: [[AT:%.*]] = tensor_ir.elementwise select({{.*}}, [[MINUS]])
// CHECK: [[FLAT:%.*]] = tensor_ir.index_map (i) -> %a[i floordiv 4, i mod 4] : (tensor<3x4xf32>) -> tensor<12xf32>
// CHECK: tensor_ir.gather [[FLAT]]{{\[}}[[AT]]] along 0
func.func @index_two(%a: tensor<3x4xf32>, %i: tensor<2xi64>) -> tensor<2xf32> {
  %0 = torch.index %a, [%i, %i] : (tensor<3x4xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<2xf32>
  func.return %0 : tensor<2xf32>
}

// CHECK-LABEL: func.func @gather
// CHECK: tensor_ir.iota 0 : tensor<2x3xi64>
// CHECK: tensor_ir.gather {{.*}} along 0
func.func @gather(%a: tensor<3x4xf32>, %i: tensor<2x3xi64>) -> tensor<2x3xf32> {
  %0 = torch.gather %a, %i {dim = 1} : (tensor<3x4xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
  func.return %0 : tensor<2x3xf32>
}

// CHECK-LABEL: func.func @cumsum
// CHECK: [[SPREAD:%.*]] = tensor_ir.index_map (i, j) -> %a[j] if i - j >= 0 else 0
// CHECK: tensor_ir.reduce add([[SPREAD]]) over [1]
func.func @cumsum(%a: tensor<8xi64>) -> tensor<8xi64> {
  %0 = torch.cumsum %a {dim = 0} : (tensor<8xi64>) -> tensor<8xi64>
  func.return %0 : tensor<8xi64>
}

// A long axis comes in parts of 16: what is before the part, and what of the part is not after.
// CHECK-LABEL: func.func @cumsum_parts
// CHECK: [[PARTS:%.*]] = tensor_ir.index_map (i, j, k) -> %a[i, j * 16 + k] if j * 16 + k < 100 else 0 : (tensor<2x100xi64>) -> tensor<2x7x16xi64>
// CHECK: tensor_ir.reduce add([[PARTS]]) over [2]
// CHECK: [[UNTIL:%.*]] = tensor_ir.index_map (i, j, k) -> %{{.*}}[i, k] if j - k >= 0 else 0 : (tensor<2x7xi64>) -> tensor<2x7x7xi64>
// CHECK: tensor_ir.reduce add([[UNTIL]]) over [2]
// CHECK: [[BEFORE:%.*]] = tensor_ir.index_map (i, j) -> %{{.*}}[i, j floordiv 16 - 1] if j floordiv 16 >= 1 else 0
// CHECK: [[WITHIN:%.*]] = tensor_ir.index_map (i, j, k) -> %a[i, j floordiv 16 * 16 + k] if j mod 16 - k >= 0 else 0
// CHECK: tensor_ir.reduce add([[WITHIN]]) over [2]
// CHECK: tensor_ir.elementwise add([[BEFORE]], %{{.*}})
func.func @cumsum_parts(%a: tensor<2x100xi64>) -> tensor<2x100xi64> {
  %0 = torch.cumsum %a {dim = 1} : (tensor<2x100xi64>) -> tensor<2x100xi64>
  func.return %0 : tensor<2x100xi64>
}

// What an index is that no data decides, is read there, if that is inside; else the gather says that it is not.
// CHECK-LABEL: func.func @positions
// CHECK: tensor_ir.index_map (i, j, k) -> %t[j + 2, k] : (tensor<10x4xf32>) -> tensor<1x7x4xf32>
// CHECK-NOT: gather
// CHECK: func.return
func.func @positions(%t: tensor<10x4xf32>) -> tensor<1x7x4xf32> {
  %i = torch.arange {start = 2, end = 9, step = 1} : () -> tensor<7xi64>
  %j = torch.unsqueeze %i {dim = 0} : (tensor<7xi64>) -> tensor<1x7xi64>
  %embedding = torch.embedding %t, %j : (tensor<10x4xf32>, tensor<1x7xi64>) -> tensor<1x7x4xf32>
  func.return %embedding : tensor<1x7x4xf32>
}

// CHECK-LABEL: func.func @too_many_positions
// CHECK: tensor_ir.gather
func.func @too_many_positions(%t: tensor<10x4xf32>) -> tensor<11x4xf32> {
  %i = torch.arange {start = 0, end = 11, step = 1} : () -> tensor<11xi64>
  %embedding = torch.embedding %t, %i : (tensor<10x4xf32>, tensor<11xi64>) -> tensor<11x4xf32>
  func.return %embedding : tensor<11x4xf32>
}
