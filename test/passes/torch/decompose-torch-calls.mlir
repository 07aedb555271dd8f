// A torch.call is one of Tensor IR; what cannot be lowered becomes one where the module allows it.
// RUN: deplo-opt %s --split-input-file --pass-pipeline=decompose-torch | FileCheck %s

// CHECK-LABEL: func.func @call
// CHECK-NEXT: %u, %s = tensor_ir.call "aten.linalg_eigh.default"(A = %x, UPLO = "L") attributes {deplo.reason = "why"} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
// CHECK-NEXT: func.return %u, %s
func.func @call(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
  %u, %s = torch.call "aten.linalg_eigh.default"(A = %x, UPLO = "L") attributes {deplo.reason = "why"} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
  func.return %u, %s : tensor<4x4xf32>, tensor<4xf32>
}

// -----

// Nothing of a lowering that is given up halfway is left; what can be lowered is.
// CHECK: builtin.module attributes {deplo.fallback = "eager"}
builtin.module attributes {deplo.fallback = "eager"} {
// CHECK-LABEL: func.func @refused
// CHECK-NEXT: %a = tensor_ir.call "aten.pow.Tensor_Scalar"(input = %x, exponent = -1) attributes {deplo.reason = "integers are only raised to a known exponent from 0 to 64"}
// CHECK-NEXT: %b = tensor_ir.elementwise exp(%f)
// CHECK-NEXT: %c = tensor_ir.call "aten.div.Scalar_mode"(input = %w, other = 2.0 : f64, rounding_mode = "floor") attributes {deplo.reason = "the remainder of f64 values, which deplo cannot give exactly"}
// CHECK-NEXT: func.return
func.func @refused(%x: tensor<4xi64>, %f: tensor<4xf32>, %w: tensor<4xf64>) -> (tensor<4xi64>, tensor<4xf32>, tensor<4xf64>) {
  %a = torch.pow %x {exponent = -1} : (tensor<4xi64>) -> tensor<4xi64>
  %b = torch.exp %f : (tensor<4xf32>) -> tensor<4xf32>
  %c = torch.div_scalar_mode %w {other = 2.0 : f64, rounding_mode = "floor"} : (tensor<4xf64>) -> tensor<4xf64>
  func.return %a, %b, %c : tensor<4xi64>, tensor<4xf32>, tensor<4xf64>
}

// An absent tensor or argument is `none`, a list a list; the axes before `dim` have no index.
// CHECK-LABEL: func.func @arguments
// CHECK: tensor_ir.call "aten.scaled_dot_product_attention.default"(query = %q, key = %q, value = %q, attn_mask = none, dropout_p = 0.5 : f64, is_causal = false, scale = none, enable_gqa = false)
// CHECK: tensor_ir.call "aten.amax.default"(input = %e, dim = [1], keepdim = false)
// CHECK: tensor_ir.call "aten.index_put.default"(input = %t, indices = [none, %i], values = %t, accumulate = false)
func.func @arguments(%q: tensor<2x4xf32>, %e: tensor<2x0xf32>, %t: tensor<2x100000xf32>, %i: tensor<100000xi64>) {
  %0 = torch.scaled_dot_product_attention %q, %q, %q, none {dropout_p = 0.5 : f64} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  %1 = torch.amax %e {dim = [1]} : (tensor<2x0xf32>) -> tensor<2xf32>
  %2 = torch.index_put %t, [%i], %t {dim = 1} : (tensor<2x100000xf32>, tensor<100000xi64>, tensor<2x100000xf32>) -> tensor<2x100000xf32>
  func.return
}
}

// -----

// PyTorch also gets what it does much faster than by comparing everything with everything; not what is small.
builtin.module attributes {deplo.fallback = "eager"} {
// CHECK-LABEL: func.func @squares
// CHECK: tensor_ir.call "aten.sort.default"(input = %x{{.*}}deplo.reason = "an order that takes 6.7e+07 comparisons, about 3 times PyTorch's time"
// CHECK: tensor_ir.sort %s
// CHECK: tensor_ir.call "aten.topk.default"{{.*}}deplo.reason = "an order that takes 6.7e+07 comparisons, about 52 times PyTorch's time"
// CHECK: tensor_ir.call "aten.index_put.default"{{.*}}deplo.reason = "a scatter that takes 2.0e+08 comparisons, about 88 times PyTorch's time"
// CHECK: tensor_ir.scatter add
func.func @squares(%x: tensor<64x1024xf32>, %s: tensor<8x16xf32>, %w: tensor<32000x64xf32>, %i: tensor<100xi64>, %u: tensor<100x64xf32>, %v: tensor<60x64xf32>, %j: tensor<100xi64>) {
  %0, %1 = torch.sort %x : (tensor<64x1024xf32>) -> (tensor<64x1024xf32>, tensor<64x1024xi64>)
  %2, %3 = torch.sort %s : (tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xi64>)
  %4, %5 = torch.topk %x {k = 2} : (tensor<64x1024xf32>) -> (tensor<64x2xf32>, tensor<64x2xi64>)
  %6 = torch.index_put %w, [%i], %u {dim = 0, accumulate = true} : (tensor<32000x64xf32>, tensor<100xi64>, tensor<100x64xf32>) -> tensor<32000x64xf32>
  %7 = torch.index_put %v, [%j], %u {dim = 0, accumulate = true} : (tensor<60x64xf32>, tensor<100xi64>, tensor<100x64xf32>) -> tensor<60x64xf32>
  func.return
}
}

// -----

// An argument may be a dynamic size.
builtin.module attributes {deplo.fallback = "eager"} {
// CHECK-LABEL: func.func @sizes
// CHECK: tensor_ir.call "aten.pow.Tensor_Scalar"(input = %x, exponent = #sym.extent<s0 - 8>) attributes {deplo.reason = "exponent = s0 - 8 is known only at run time"}
// CHECK: tensor_ir.call "aten.rand.default"(size = [#sym.extent<s0>, 4])
func.func @sizes(%x: tensor<?xf32, #sym.extents<s0>>) {
  %0 = torch.pow %x {exponent = #sym.extent<s0 - 8>} : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>>
  %1 = torch.call "aten.rand.default"(size = [#sym.extent<s0>, 4]) : () -> tensor<?x4xf32, #sym.extents<s0>>
  func.return
}
}
