// What depends on a size that only a call says is refused, and named with the operation.
// RUN: not deplo-opt %s --pass-pipeline=decompose-torch 2>&1 | FileCheck %s

// CHECK: error: {{.*}}these operations cannot be lowered to Tensor IR:
func.func @main(%x: tensor<?x4xf32, #sym.extents<s0>>, %n: tensor<?x8xf32, #sym.extents<s0 - 1>>, %i: tensor<?x5xf32, #sym.extents<s0>>) attributes {sym.sizes = [#sym.size<"n", 1, none, hint = 100000>]} {
  // CHECK-NEXT: torch.sub_scalar: alpha = s0 is known only at run time
  %0 = torch.sub_scalar %x {other = 1, alpha = #sym.extent<s0>} : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<?x4xf32, #sym.extents<s0>>
  // CHECK-NEXT: torch.amax: whether s0 - 1 < 1 is known only at run time
  %1 = torch.amax %n {dim = [0]} : (tensor<?x8xf32, #sym.extents<s0 - 1>>) -> tensor<8xf32>
  // CHECK-NEXT: torch.var: correction = 0.5 for a count that is known only at run time
  %2 = torch.var %x {dim = [0], correction = 0.5 : f64} : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<4xf32>
  // CHECK-NEXT: torch.sort: the order of 100000 elements, more than 32768
  %3, %4 = torch.sort %x {dim = 0} : (tensor<?x4xf32, #sym.extents<s0>>) -> (tensor<?x4xf32, #sym.extents<s0>>, tensor<?x4xi64, #sym.extents<s0>>)
  // CHECK-NOT: torch.
  %5 = torch.relu %x : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<?x4xf32, #sym.extents<s0>>
  func.return
}
