// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s
// RUN: sed 's/2x4x/70000x4x/g; s/6x4x/70000x4x/g' %s > %t.mlir
// RUN: not deplo-opt %t.mlir --pass-pipeline=decompose-torch 2>&1 | FileCheck %s --check-prefix=LONG
// LONG: torch.scatter_add: a scatter that takes 2.0e+10 comparisons, more than 4.3e+09

// The index has one position for each element of the source.
// CHECK-LABEL: func.func @scatter_add
// CHECK-NEXT: %scatter_add = tensor_ir.scatter add %a[%i] along 0 from %s : (tensor<6x4xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: func.return %scatter_add
func.func @scatter_add(%a: tensor<6x4xf32>, %i: tensor<2x4xi64>, %s: tensor<2x4xf32>) -> tensor<6x4xf32> {
  %0 = torch.scatter_add %a, %i, %s {dim = 0} : (tensor<6x4xf32>, tensor<2x4xi64>, tensor<2x4xf32>) -> tensor<6x4xf32>
  func.return %0 : tensor<6x4xf32>
}

// An index that is smaller than the input reaches a corner of it only.
// CHECK-LABEL: func.func @scatter
// CHECK: [[SRC:%.*]] = tensor_ir.index_map (i, j) -> %s[i, j] : (tensor<3x7xf32>) -> tensor<3x2xf32>
// CHECK: [[CORNER:%.*]] = tensor_ir.index_map (i, j) -> %a[i, j] : (tensor<5x4xf32>) -> tensor<5x2xf32>
// CHECK: [[NEW:%.*]] = tensor_ir.scatter replace [[CORNER]][%i] along 0 from [[SRC]]
// CHECK: tensor_ir.index_map (i, j) -> [[NEW]][i, j] if j < 2 else %a[i, j]
func.func @scatter(%a: tensor<5x4xf32>, %i: tensor<3x2xi64>, %s: tensor<3x7xf32>) -> tensor<5x4xf32> {
  %0 = torch.scatter %a, %i, %s {dim = 0} : (tensor<5x4xf32>, tensor<3x2xi64>, tensor<3x7xf32>) -> tensor<5x4xf32>
  func.return %0 : tensor<5x4xf32>
}

// A number is written as a constant; nothing is written where there is no index.
// CHECK-LABEL: func.func @scatter_value
// CHECK: [[TWO:%.*]] = tensor_ir.constant 2.0 : tensor<3x4xf32>
// CHECK: tensor_ir.scatter replace %a[%i] along 0 from [[TWO]]
// CHECK: func.return %{{.*}}, %a
func.func @scatter_value(%a: tensor<5x4xf32>, %i: tensor<3x4xi64>, %e: tensor<0x4xi64>) -> (tensor<5x4xf32>, tensor<5x4xf32>) {
  %0 = torch.scatter_value %a, %i {dim = 0, value = 2} : (tensor<5x4xf32>, tensor<3x4xi64>) -> tensor<5x4xf32>
  %1 = torch.scatter_value %a, %e {dim = 0, value = 2} : (tensor<5x4xf32>, tensor<0x4xi64>) -> tensor<5x4xf32>
  func.return %0, %1 : tensor<5x4xf32>, tensor<5x4xf32>
}

// A mean is a sum over a count. Half types are folded in f32.
// CHECK-LABEL: func.func @scatter_reduce
// CHECK: [[SUM:%.*]] = tensor_ir.scatter add %{{.*}}[%i] along 0 from {{.*}} -> tensor<5xf32>
// CHECK: [[ONE:%.*]] = tensor_ir.constant 1.0 : tensor<5xf32>
// CHECK: [[COUNT:%.*]] = tensor_ir.scatter add [[ONE]][%i] along 0
// CHECK: [[MEAN:%.*]] = tensor_ir.elementwise div([[SUM]], [[COUNT]])
// CHECK: tensor_ir.cast [[MEAN]] : tensor<5xf32> to tensor<5xbf16>
func.func @scatter_reduce(%a: tensor<5xbf16>, %i: tensor<3xi64>, %s: tensor<3xbf16>) -> tensor<5xbf16> {
  %0 = torch.scatter_reduce %a, %i, %s {dim = 0, reduce = "mean"} : (tensor<5xbf16>, tensor<3xi64>, tensor<3xbf16>) -> tensor<5xbf16>
  func.return %0 : tensor<5xbf16>
}

// Without itself, an element that is hit starts from nothing.
// CHECK-LABEL: func.func @without_self
// CHECK: [[HIT:%.*]] = tensor_ir.scatter replace %{{.*}}[%i] along 0 from {{.*}} -> tensor<5xi1>
// CHECK: [[LOW:%.*]] = tensor_ir.constant -inf : tensor<5xf32>
// CHECK: [[START:%.*]] = tensor_ir.elementwise select([[HIT]], [[LOW]], %a)
// CHECK: tensor_ir.scatter max [[START]][%i] along 0 from %s
func.func @without_self(%a: tensor<5xf32>, %i: tensor<3xi64>, %s: tensor<3xf32>) -> tensor<5xf32> {
  %0 = torch.scatter_reduce %a, %i, %s {dim = 0, reduce = "amax", include_self = false} : (tensor<5xf32>, tensor<3xi64>, tensor<3xf32>) -> tensor<5xf32>
  func.return %0 : tensor<5xf32>
}

// Two indexed axes become one; negative indices count from the end; values broadcast.
// CHECK-LABEL: func.func @index_put
// CHECK: [[AT:%.*]] = tensor_ir.elementwise select
// CHECK: [[VALUES:%.*]] = tensor_ir.index_map (i, j) -> %v[] : (tensor<f32>) -> tensor<2x3xf32>
// CHECK: [[ALONG:%.*]] = tensor_ir.index_map (i, j) -> {{.*}}[j] : (tensor<3xi64>) -> tensor<1x3xi64>
// CHECK: [[FLAT:%.*]] = tensor_ir.index_map (i, j) -> %a[i, j floordiv 5, j mod 5] : (tensor<2x4x5xf32>) -> tensor<2x20xf32>
// CHECK: [[NEW:%.*]] = tensor_ir.scatter add [[FLAT]]{{\[}}[[ALONG]]] along 1 from [[VALUES]]
// CHECK: tensor_ir.index_map (i, j, k) -> [[NEW]][i, j * 5 + k]
func.func @index_put(%a: tensor<2x4x5xf32>, %i: tensor<3xi64>, %v: tensor<f32>) -> tensor<2x4x5xf32> {
  %0 = torch.index_put %a, [%i, %i], %v {dim = 1, accumulate = true} : (tensor<2x4x5xf32>, tensor<3xi64>, tensor<3xi64>, tensor<f32>) -> tensor<2x4x5xf32>
  func.return %0 : tensor<2x4x5xf32>
}

// One list of indices holds for all positions of the other axes.
// CHECK-LABEL: func.func @index_reduce
// CHECK: tensor_ir.scatter mul %a[%{{.*}}] along 0 from %s : (tensor<5x3xf32>, tensor<2x1xi64>, tensor<2x3xf32>)
func.func @index_reduce(%a: tensor<5x3xf32>, %i: tensor<2xi64>, %s: tensor<2x3xf32>) -> tensor<5x3xf32> {
  %0 = torch.index_reduce %a, %i, %s {dim = 0, reduce = "prod"} : (tensor<5x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<5x3xf32>
  func.return %0 : tensor<5x3xf32>
}

// So does it for sums, of what is multiplied first.
// CHECK-LABEL: func.func @index_add
// CHECK: [[TWICE:%.*]] = tensor_ir.elementwise mul(%s,
// CHECK: tensor_ir.scatter add %a[%{{.*}}] along 0 from [[TWICE]] : (tensor<5x3xf32>, tensor<2x1xi64>, tensor<2x3xf32>)
func.func @index_add(%a: tensor<5x3xf32>, %i: tensor<2xi64>, %s: tensor<2x3xf32>) -> tensor<5x3xf32> {
  %0 = torch.index_add %a, %i, %s {dim = 0, alpha = 2} : (tensor<5x3xf32>, tensor<2xi64>, tensor<2x3xf32>) -> tensor<5x3xf32>
  func.return %0 : tensor<5x3xf32>
}

// The n-th position where the mask holds gets the n-th element.
// CHECK-LABEL: func.func @masked_scatter
// CHECK: [[NUMBER:%.*]] = tensor_ir.reduce add
// CHECK: [[TAKEN:%.*]] = tensor_ir.gather %{{.*}} along 0
// CHECK: tensor_ir.elementwise select(
func.func @masked_scatter(%a: tensor<4xf32>, %m: tensor<4xi1>, %s: tensor<9xf32>) -> tensor<4xf32> {
  %0 = torch.masked_scatter %a, %m, %s : (tensor<4xf32>, tensor<4xi1>, tensor<9xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// Positions that are known are a choice of source.
// CHECK-LABEL: func.func @diagonal_scatter
// CHECK-NEXT: %diagonal_scatter = tensor_ir.index_map (i, j) -> %s[i] if j - i >= 1 and i - j >= -1 else %a[i, j]
func.func @diagonal_scatter(%a: tensor<3x4xf32>, %s: tensor<3xf32>) -> tensor<3x4xf32> {
  %0 = torch.diagonal_scatter %a, %s {offset = 1} : (tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x4xf32>
  func.return %0 : tensor<3x4xf32>
}

// CHECK-LABEL: func.func @as_strided
// CHECK: [[FLAT:%.*]] = tensor_ir.index_map (i) -> %a[i floordiv 4, i mod 4]
// CHECK: tensor_ir.index_map (i, j) -> [[FLAT]][i * 2 + j + 1]
func.func @as_strided(%a: tensor<3x4xf32>) -> tensor<4x3xf32> {
  %0 = torch.as_strided %a {size = [4, 3], stride = [2, 1], storage_offset = 1} : (tensor<3x4xf32>) -> tensor<4x3xf32>
  func.return %0 : tensor<4x3xf32>
}

// Every element finds its place by division, from the largest stride to the smallest.
// CHECK-LABEL: func.func @as_strided_scatter
// CHECK: [[FLAT:%.*]] = tensor_ir.index_map (i) -> %a[i floordiv 4, i mod 4]
// CHECK-NEXT: tensor_ir.index_map (i) -> %s[(i + 3) mod 4, (i + 3) floordiv 4 - 1] if i >= 1 and (i + 3) floordiv 4 < 4 and (i + 3) mod 4 < 2 else [[FLAT]][i]
func.func @as_strided_scatter(%a: tensor<3x4xf32>, %s: tensor<2x3xf32>) -> tensor<3x4xf32> {
  %0 = torch.as_strided_scatter %a, %s {size = [2, 3], stride = [1, 4], storage_offset = 1} : (tensor<3x4xf32>, tensor<2x3xf32>) -> tensor<3x4xf32>
  func.return %0 : tensor<3x4xf32>
}
