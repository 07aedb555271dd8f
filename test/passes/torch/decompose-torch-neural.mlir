// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s

// CHECK-LABEL: func.func @softmax
// CHECK: [[M:%.*]] = tensor_ir.reduce max(%a) over [1]
// CHECK: [[B:%.*]] = tensor_ir.index_map (i, j) -> [[M]][i, 0]
// CHECK: [[D:%.*]] = tensor_ir.elementwise sub(%a, [[B]])
// CHECK: [[E:%.*]] = tensor_ir.elementwise exp([[D]])
// CHECK: [[S:%.*]] = tensor_ir.reduce add([[E]]) over [1]
// CHECK: [[T:%.*]] = tensor_ir.index_map (i, j) -> [[S]][i, 0]
// CHECK: tensor_ir.elementwise div([[E]], [[T]])
func.func @softmax(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = torch.softmax %a {dim = -1} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @log_softmax
// CHECK: tensor_ir.elementwise log
func.func @log_softmax(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = torch.log_softmax %a {dim = -1} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}

// Grouped heads are read through the index map; the causal mask starts at the top left; a query whose scores are
// all -inf gives zeros.
// CHECK-LABEL: func.func @attention
// CHECK: index_map (i, j, k) -> %k[i floordiv 3, j, k] : (tensor<2x5x8xf32>) -> tensor<6x5x8xf32>
// CHECK: tensor_ir.constant 0.5 : tensor<6x5x5xf32>
// CHECK: index_map (i, j, k) -> {{%.*}}[i, j, k] if j - k >= 0 else -inf
// CHECK: tensor_ir.elementwise eq(%{{.+}}max
// CHECK: tensor_ir.elementwise select
func.func @attention(%q: tensor<6x5x8xf32>, %k: tensor<2x5x8xf32>) -> tensor<6x5x8xf32> {
  %0 = torch.scaled_dot_product_attention %q, %k, %k, none {is_causal = true, scale = 0.5 : f64, enable_gqa = true} : (tensor<6x5x8xf32>, tensor<2x5x8xf32>, tensor<2x5x8xf32>) -> tensor<6x5x8xf32>
  func.return %0 : tensor<6x5x8xf32>
}

// A row that a mask hides whole gives zeros.
// CHECK-LABEL: func.func @masked_attention
// CHECK: [[S:%.*]] = tensor_ir.elementwise select(%m,
// CHECK: [[M:%.*]] = tensor_ir.reduce max([[S]]) over [1]
// CHECK: tensor_ir.elementwise eq(
// CHECK: tensor_ir.elementwise select(
func.func @masked_attention(%q: tensor<5x8xf32>, %m: tensor<5x5xi1>) -> tensor<5x8xf32> {
  %0 = torch.scaled_dot_product_attention %q, %q, %q, %m : (tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x8xf32>, tensor<5x5xi1>) -> tensor<5x8xf32>
  func.return %0 : tensor<5x8xf32>
}

// CHECK-LABEL: func.func @layer_norm
// CHECK: tensor_ir.reduce add(%a) over [1]
// CHECK: tensor_ir.reduce add({{.*}}) over [1]
// CHECK: tensor_ir.elementwise rsqrt
func.func @layer_norm(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>) {
  %0, %1, %2 = torch.native_layer_norm %a, none, none {normalized_shape = [8], eps = 1.0e-05 : f64} : (tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>)
  func.return %0, %1, %2 : tensor<4x8xf32>, tensor<4x1xf32>, tensor<4x1xf32>
}

// The least and the largest of the probabilities are checked, and those of the targets.
// CHECK-LABEL: func.func @binary_cross_entropy
// CHECK: [[LEAST:%.*]] = tensor_ir.reduce min(%p) over [0, 1]
// CHECK: tensor_ir.elementwise probability(
// CHECK: tensor_ir.reduce max({{.*}}) over [0, 1]
// CHECK: tensor_ir.elementwise probability(
// CHECK: tensor_ir.reduce min(%t) over [0, 1]
// CHECK: tensor_ir.elementwise log1p
func.func @binary_cross_entropy(%p: tensor<4x8xf32>, %t: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = torch.binary_cross_entropy %p, %t, none {reduction = 0} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %0 : tensor<4x8xf32>
}
