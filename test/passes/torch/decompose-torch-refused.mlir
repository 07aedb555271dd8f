// What decompose-torch cannot lower is reported all at once, and nothing is printed.
// RUN: not deplo-opt %s --pass-pipeline=decompose-torch 2>&1 | FileCheck %s

// CHECK: error: {{.*}}these operations cannot be lowered to Tensor IR:
func.func @refused(%x: tensor<4xi64>, %f: tensor<4xf32>, %d: tensor<?xf32>, %q: tensor<2x4xf32>, %e: tensor<0xf32>) {
  // CHECK-NEXT: torch.div_scalar_mode: rounding_mode = 'floor' on floats
  %0 = torch.div_scalar_mode %f {other = 2.0 : f64, rounding_mode = "floor"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: torch.div_scalar_mode: rounding_mode = 'ceil'
  %1 = torch.div_scalar_mode %f {other = 2.0 : f64, rounding_mode = "ceil"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: torch.pow: integers are only raised to a known exponent from 0 to 64
  %2 = torch.pow %x {exponent = -1} : (tensor<4xi64>) -> tensor<4xi64>
  // CHECK-NEXT: torch.remainder_scalar: remainder is not defined on f32
  %3 = torch.remainder_scalar %f {other = 2} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: torch.exp: dynamic extents
  %4 = torch.exp %d : (tensor<?xf32>) -> tensor<?xf32>
  // CHECK-NEXT: torch.gelu: approximate = 'fast'
  %5 = torch.gelu %f {approximate = "fast"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: torch.scaled_dot_product_attention: dropout_p = 0.5
  %6 = torch.scaled_dot_product_attention %q, %q, %q, none {dropout_p = 0.5 : f64} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK-NEXT: torch.amax: the largest or smallest of no elements
  %7 = torch.amax %e : (tensor<0xf32>) -> tensor<f32>
  // CHECK-NEXT: torch.call: runs aten.erfinv.default in PyTorch
  %8 = torch.call "aten.erfinv.default"(%f) : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NOT: torch.
  %9 = torch.relu %f : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
