// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s
// RUN: deplo-opt %s -p decompose-torch{target=cpu} | FileCheck %s --check-prefix=CPU

// CHECK-LABEL: func.func @sum_drops_axes
// CHECK: [[S:%.*]] = tensor_ir.reduce add(%a) over [0, 2] : tensor<3x4x5xf32> -> tensor<1x4x1xf32>
// CHECK: tensor_ir.index_map (i) -> [[S]][0, i, 0] : (tensor<1x4x1xf32>) -> tensor<4xf32>
func.func @sum_drops_axes(%a: tensor<3x4x5xf32>) -> tensor<4xf32> {
  %0 = torch.sum %a {dim = [-1, 0]} : (tensor<3x4x5xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}

// Bools are counted in i64.
// CHECK-LABEL: func.func @sum_bools
// CHECK: [[I:%.*]] = tensor_ir.cast %a : tensor<4xi1> to tensor<4xi64>
// CHECK: tensor_ir.reduce add([[I]]) over [0]
func.func @sum_bools(%a: tensor<4xi1>) -> tensor<i64> {
  %0 = torch.sum_default %a : (tensor<4xi1>) -> tensor<i64>
  func.return %0 : tensor<i64>
}

// Half types accumulate in f32.
// CHECK-LABEL: func.func @mean_half
// CHECK: [[F:%.*]] = tensor_ir.cast %a : tensor<4xbf16> to tensor<4xf32>
// CHECK: [[S:%.*]] = tensor_ir.reduce add([[F]])
// CHECK: [[D:%.*]] = tensor_ir.elementwise div([[S]],
// CHECK: tensor_ir.cast {{%.*}} : tensor<f32> to tensor<bf16>
func.func @mean_half(%a: tensor<4xbf16>) -> tensor<bf16> {
  %0 = torch.mean %a {dim = [0]} : (tensor<4xbf16>) -> tensor<bf16>
  func.return %0 : tensor<bf16>
}

// The first position that holds the maximum, or NaN.
// CHECK-LABEL: func.func @argmax
// CHECK: [[M:%.*]] = tensor_ir.reduce max(%a) over [0]
// CHECK: [[EQ:%.*]] = tensor_ir.elementwise eq(%a,
// CHECK: [[NAN:%.*]] = tensor_ir.elementwise ne(%a, %a)
// CHECK: [[FOUND:%.*]] = tensor_ir.elementwise or([[EQ]], [[NAN]])
// CHECK: [[I:%.*]] = tensor_ir.iota 0 : tensor<4xi64>
// CHECK: [[END:%.*]] = tensor_ir.constant 4 : tensor<4xi64>
// CHECK: [[P:%.*]] = tensor_ir.elementwise select([[FOUND]], [[I]], [[END]])
// CHECK: tensor_ir.reduce min([[P]]) over [0]
func.func @argmax(%a: tensor<4xf32>) -> tensor<i64> {
  %0 = torch.argmax %a : (tensor<4xf32>) -> tensor<i64>
  func.return %0 : tensor<i64>
}

// CHECK-LABEL: func.func @extrema_of_bools
// CHECK: tensor_ir.reduce any(%a)
// CHECK: tensor_ir.reduce all(%a)
func.func @extrema_of_bools(%a: tensor<4xi1>) -> (tensor<i1>, tensor<i1>) {
  %0 = torch.amax %a : (tensor<4xi1>) -> tensor<i1>
  %1 = torch.amin %a : (tensor<4xi1>) -> tensor<i1>
  func.return %0, %1 : tensor<i1>, tensor<i1>
}

// An empty list of axes folds nothing for any and all, everything for the others.
// CHECK-LABEL: func.func @no_axes
// CHECK-NOT: tensor_ir.reduce any
// CHECK: tensor_ir.reduce add({{.*}}) over [0, 1]
func.func @no_axes(%a: tensor<2x3xi64>) -> (tensor<2x3xi1>, tensor<i64>) {
  %0 = torch.any_dims %a {dim = []} : (tensor<2x3xi64>) -> tensor<2x3xi1>
  %1 = torch.sum %a {dim = []} : (tensor<2x3xi64>) -> tensor<i64>
  func.return %0, %1 : tensor<2x3xi1>, tensor<i64>
}

// CHECK-LABEL: func.func @variance
// CHECK: tensor_ir.constant 4.0
// CHECK: tensor_ir.constant 3.0
func.func @variance(%a: tensor<4xf32>) -> tensor<f32> {
  %0 = torch.var %a : (tensor<4xf32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}

// On a CPU squares of f32 are added up in f64, and the root is taken before the range is left.
// CHECK-LABEL: func.func @deviation
// CHECK-NOT: f64
// CHECK: elementwise sqrt
// CPU-LABEL: func.func @deviation
// CPU: tensor_ir.reduce add({{.*}} : tensor<4xf64>
// CPU: [[R:%.*]] = tensor_ir.elementwise sqrt({{.*}}) : (tensor<f64>)
// CPU-NEXT: tensor_ir.cast [[R]] : tensor<f64> to tensor<f32>
func.func @deviation(%a: tensor<4xf32>) -> tensor<f32> {
  %0 = torch.std %a : (tensor<4xf32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}
