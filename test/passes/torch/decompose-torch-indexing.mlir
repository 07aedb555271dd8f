// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s
// RUN: deplo-opt %s -p decompose-torch{target=cpu} | FileCheck %s --check-prefix=CPU

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

// A long axis comes in parts: what is before the part, and what of the part is not after; of 16 on a CPU.
// CHECK-LABEL: func.func @cumsum_parts
// CHECK:         tensor_ir.index_map (i, j, k) -> %a[i, k] if j - k >= 0 else 0 : (tensor<2x100xi64>) -> tensor<2x100x100xi64>
// CPU-LABEL: func.func @cumsum_parts
// CPU: [[PARTS:%.*]] = tensor_ir.index_map (i, j, k) -> %a[i, j * 16 + k] if j * 16 + k < 100 else 0 : (tensor<2x100xi64>) -> tensor<2x7x16xi64>
// CPU: tensor_ir.reduce add([[PARTS]]) over [2]
// CPU: [[UNTIL:%.*]] = tensor_ir.index_map (i, j, k) -> %{{.*}}[i, k] if j - k >= 0 else 0 : (tensor<2x7xi64>) -> tensor<2x7x7xi64>
// CPU: tensor_ir.reduce add([[UNTIL]]) over [2]
// CPU: [[BEFORE:%.*]] = tensor_ir.index_map (i, j) -> %{{.*}}[i, j floordiv 16 - 1] if j floordiv 16 >= 1 else 0
// CPU: [[WITHIN:%.*]] = tensor_ir.index_map (i, j, k) -> %a[i, j floordiv 16 * 16 + k] if j mod 16 - k >= 0 else 0
// CPU: tensor_ir.reduce add([[WITHIN]]) over [2]
// CPU: tensor_ir.elementwise add([[BEFORE]], %{{.*}})
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

// An index that is doubled again and again has an expression that doubles, too: nobody writes it down.
// CHECK-LABEL: func.func @doubled_positions
// CHECK: tensor_ir.gather
func.func @doubled_positions(%t: tensor<10x4xf32>) -> tensor<11x4xf32> {
  %d0 = torch.arange {start = 0, end = 11, step = 1} : () -> tensor<11xi64>
  %d1 = torch.add %d0, %d0 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d2 = torch.add %d1, %d1 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d3 = torch.add %d2, %d2 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d4 = torch.add %d3, %d3 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d5 = torch.add %d4, %d4 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d6 = torch.add %d5, %d5 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d7 = torch.add %d6, %d6 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d8 = torch.add %d7, %d7 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d9 = torch.add %d8, %d8 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d10 = torch.add %d9, %d9 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d11 = torch.add %d10, %d10 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d12 = torch.add %d11, %d11 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d13 = torch.add %d12, %d12 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d14 = torch.add %d13, %d13 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d15 = torch.add %d14, %d14 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d16 = torch.add %d15, %d15 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d17 = torch.add %d16, %d16 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d18 = torch.add %d17, %d17 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d19 = torch.add %d18, %d18 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d20 = torch.add %d19, %d19 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d21 = torch.add %d20, %d20 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d22 = torch.add %d21, %d21 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d23 = torch.add %d22, %d22 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d24 = torch.add %d23, %d23 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d25 = torch.add %d24, %d24 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d26 = torch.add %d25, %d25 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d27 = torch.add %d26, %d26 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d28 = torch.add %d27, %d27 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d29 = torch.add %d28, %d28 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d30 = torch.add %d29, %d29 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d31 = torch.add %d30, %d30 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d32 = torch.add %d31, %d31 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d33 = torch.add %d32, %d32 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d34 = torch.add %d33, %d33 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d35 = torch.add %d34, %d34 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d36 = torch.add %d35, %d35 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d37 = torch.add %d36, %d36 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d38 = torch.add %d37, %d37 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d39 = torch.add %d38, %d38 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %d40 = torch.add %d39, %d39 : (tensor<11xi64>, tensor<11xi64>) -> tensor<11xi64>
  %embedding = torch.embedding %t, %d40 : (tensor<10x4xf32>, tensor<11xi64>) -> tensor<11x4xf32>
  func.return %embedding : tensor<11x4xf32>
}

// CHECK-LABEL: func.func @too_many_positions
// CHECK: tensor_ir.gather
func.func @too_many_positions(%t: tensor<10x4xf32>) -> tensor<11x4xf32> {
  %i = torch.arange {start = 0, end = 11, step = 1} : () -> tensor<11xi64>
  %embedding = torch.embedding %t, %i : (tensor<10x4xf32>, tensor<11xi64>) -> tensor<11x4xf32>
  func.return %embedding : tensor<11x4xf32>
}
