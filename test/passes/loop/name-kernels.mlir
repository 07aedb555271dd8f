// RUN: deplo-opt %s -p lift-to-loops,name-kernels | FileCheck %s
// RUN: deplo-opt %s -p lift-to-loops,name-kernels,name-kernels --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK: loop.kernel @k_e_pointwise(
// CHECK: loop.kernel @k_s_reduce(
// CHECK: loop.kernel @k_t_layout(
// CHECK: loop.kernel @k_e_pointwise_2(
// REMARK: remark: name-kernels: k_e_pointwise: was k_e
// REMARK: remark: name-kernels: k_e_pointwise: declined: already has its name
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x1xf32>, tensor<8x4xf32>, tensor<8x4xf32>) {
  %e = tensor_ir.elementwise exp(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = tensor_ir.reduce add(%e) over [1] : tensor<4x8xf32> -> tensor<4x1xf32>
  %t = tensor_ir.index_map (i, j) -> %x[j, i] : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %e_1 = tensor_ir.elementwise exp(%t) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  func.return %s, %t, %e_1 : tensor<4x1xf32>, tensor<8x4xf32>, tensor<8x4xf32>
}
