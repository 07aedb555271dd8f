// What decompose-torch cannot lower is reported all at once, and nothing is printed.
// RUN: not deplo-opt %s --pass-pipeline=decompose-torch 2>&1 | FileCheck %s

// CHECK: error: {{.*}}these operations cannot be lowered to Tensor IR:
func.func @refused(%x: tensor<4xi64>, %f: tensor<4xf32>, %d: tensor<?xf32, #sym.extents<s0>>, %q: tensor<2x4xf32>, %e: tensor<0xf32>, %w: tensor<4xf64>, %p: tensor<1x4x4xi64>, %u: tensor<4xui8>, %b: tensor<4xi1>) {
  // CHECK-NEXT: torch.div_scalar_mode: the remainder of f64 values, which deplo cannot give exactly
  %0 = torch.div_scalar_mode %w {other = 2.0 : f64, rounding_mode = "floor"} : (tensor<4xf64>) -> tensor<4xf64>
  // CHECK-NEXT: torch.div_scalar_mode: rounding_mode = 'ceil'
  %1 = torch.div_scalar_mode %f {other = 2.0 : f64, rounding_mode = "ceil"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: torch.pow: integers are only raised to a known exponent from 0 to 64
  %2 = torch.pow %x {exponent = -1} : (tensor<4xi64>) -> tensor<4xi64>
  // CHECK-NEXT: torch.avg_pool2d: an average of i64
  %3 = torch.avg_pool2d %p {kernel_size = [2, 2]} : (tensor<1x4x4xi64>) -> tensor<1x2x2xi64>
  // CHECK-NEXT: torch.add_scalar: alpha = s0 * 2 is known only at run time
  %4 = torch.add_scalar %d {other = 1, alpha = #sym.extent<s0 * 2>} : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>>
  // CHECK-NEXT: torch.gelu: approximate = 'fast'
  %5 = torch.gelu %f {approximate = "fast"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK-NEXT: torch.scaled_dot_product_attention: dropout_p = 0.5
  %6 = torch.scaled_dot_product_attention %q, %q, %q, none {dropout_p = 0.5 : f64} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  // CHECK-NEXT: torch.scan: a step that carries on a value in the place of another
  %scan0, %scan1 = torch.scan carried(%f, %f) slices(%q) shared() : (tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  ^bb0(%s0: tensor<4xf32>, %s1: tensor<4xf32>, %s2: tensor<4xf32>):
    torch.yield %s1, %s0 : tensor<4xf32>, tensor<4xf32>
  }
  // CHECK-NEXT: torch.amax: the largest or smallest of no elements
  %7 = torch.amax %e : (tensor<0xf32>) -> tensor<f32>
  // CHECK-NEXT: torch.clamp: 300, which is no uint8
  %9 = torch.clamp %u {max = 300} : (tensor<4xui8>) -> tensor<4xui8>
  // CHECK-NEXT: torch.full: -2147483649, which is no int32
  %10 = torch.full {size = [4], fill_value = -2147483649, dtype = i32} : () -> tensor<4xi32>
  // CHECK-NEXT: torch.full: inf, which is no int64
  %11 = torch.full {size = [4], fill_value = 0x7ff0000000000000 : f64, dtype = i64} : () -> tensor<4xi64>
  // CHECK-NEXT: torch.add: the fraction 0.5 among elements of i64
  %12 = torch.add %x, %x {alpha = 0.5} : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  // CHECK-NEXT: torch.leaky_relu: the fraction 0.01 among elements of i64
  %13 = torch.leaky_relu %x {negative_slope = 0.01} : (tensor<4xi64>) -> tensor<4xi64>
  // CHECK-NEXT: torch.relu: bools are neither negative nor positive
  %14 = torch.relu %b : (tensor<4xi1>) -> tensor<4xi1>
  // CHECK-NOT: torch.
  %8 = torch.relu %f : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}
