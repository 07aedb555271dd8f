// Dynamic sizes: the rules reckon with extents as with numbers, and decide nothing that only a call can say.
// RUN: deplo-opt %s --split-input-file -p decompose-torch,compose-index-maps | FileCheck %s

// The number of elements is a size: it becomes a value.
// CHECK-LABEL: func.func @mean
// CHECK-NEXT: %y_sum = tensor_ir.reduce add(%x) over [0] : tensor<?x4xf32, #sym.extents<s0>> -> tensor<1x4xf32>
// CHECK-NEXT: %y_size = tensor_ir.size s0 : tensor<1x4xi64>
// CHECK-NEXT: %y_f32 = tensor_ir.cast %y_size : tensor<1x4xi64> to tensor<1x4xf32>
// CHECK-NEXT: %y_div = tensor_ir.elementwise div(%y_sum, %y_f32) : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
// CHECK-NEXT: %y = tensor_ir.index_map (i) -> %y_div[0, i] : (tensor<1x4xf32>) -> tensor<4xf32>
// CHECK-NEXT: func.return %y : tensor<4xf32>
func.func @mean(%x: tensor<?x4xf32, #sym.extents<s0>>) -> tensor<4xf32> {
  %y = torch.mean %x {dim = [0]} : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// A reshape by sizes and its inverse leave the transposition.
// CHECK-LABEL: func.func @view
// CHECK-NEXT: %c = tensor_ir.index_map (i, j, k, l) -> %x[j, i, k * 16 + l] : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x?x4x16xf32, #sym.extents<s1, s0>>
// CHECK-NEXT: func.return %c : tensor<?x?x4x16xf32, #sym.extents<s1, s0>>
func.func @view(%x: tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x?x4x16xf32, #sym.extents<s1, s0>> {
  %a = torch.transpose %x {dim0 = 0, dim1 = 1} : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x?x64xf32, #sym.extents<s1, s0>>
  %b = torch.view %a {size = [#sym.extent<s0 * s1>, 64]} : (tensor<?x?x64xf32, #sym.extents<s1, s0>>) -> tensor<?x64xf32, #sym.extents<s0 * s1>>
  %c = torch.view %b {size = [#sym.extent<s1>, #sym.extent<s0>, 4, 16]} : (tensor<?x64xf32, #sym.extents<s0 * s1>>) -> tensor<?x?x4x16xf32, #sym.extents<s1, s0>>
  func.return %c : tensor<?x?x4x16xf32, #sym.extents<s1, s0>>
}

// -----

// Bounds are extents; what is cut off is known for all sizes.
// CHECK-LABEL: func.func @slice
// CHECK-NEXT: %b = tensor_ir.index_map (i, j) -> %x[i + 1, j] : (tensor<?x4xf32, #sym.extents<s0 + 3>>) -> tensor<?x4xf32, #sym.extents<s0 - 1>>
// CHECK-NEXT: func.return %b : tensor<?x4xf32, #sym.extents<s0 - 1>>
func.func @slice(%x: tensor<?x4xf32, #sym.extents<s0 + 3>>) -> tensor<?x4xf32, #sym.extents<s0 - 1>> {
  %a = torch.slice %x {start = -3} : (tensor<?x4xf32, #sym.extents<s0 + 3>>) -> tensor<3x4xf32>
  %b = torch.slice %x {start = 1, end = #sym.extent<s0>} : (tensor<?x4xf32, #sym.extents<s0 + 3>>) -> tensor<?x4xf32, #sym.extents<s0 - 1>>
  func.return %b : tensor<?x4xf32, #sym.extents<s0 - 1>>
}

// -----

// The last position of an axis is its extent less 1.
// CHECK-LABEL: func.func @select
// CHECK-NEXT: %a = tensor_ir.index_map (i) -> %x[s0 - 1, i] : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<4xf32>
// CHECK-NEXT: func.return %a : tensor<4xf32>
func.func @select(%x: tensor<?x4xf32, #sym.extents<s0>>) -> tensor<4xf32> {
  %a = torch.select %x {dim = 0, index = -1} : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<4xf32>
  func.return %a : tensor<4xf32>
}

// -----

// Each piece begins where those before it end.
// CHECK-LABEL: func.func @cat
// CHECK-NEXT: %a = tensor_ir.index_map (i, j) -> %x[i, j] if i < s0 else %y[i - s0, j] if i < s0 + s1 else %x[i - s0 - s1, j] : (tensor<?x4xf32, #sym.extents<s0>>, tensor<?x4xf32, #sym.extents<s1>>, tensor<?x4xf32, #sym.extents<s0>>) -> tensor<?x4xf32, #sym.extents<s0 * 2 + s1>>
// CHECK-NEXT: func.return %a : tensor<?x4xf32, #sym.extents<s0 * 2 + s1>>
func.func @cat(%x: tensor<?x4xf32, #sym.extents<s0>>, %y: tensor<?x4xf32, #sym.extents<s1>>) -> tensor<?x4xf32, #sym.extents<s0 * 2 + s1>> {
  %a = torch.cat [%x, %y, %x] : (tensor<?x4xf32, #sym.extents<s0>>, tensor<?x4xf32, #sym.extents<s1>>, tensor<?x4xf32, #sym.extents<s0>>) -> tensor<?x4xf32, #sym.extents<s0 * 2 + s1>>
  func.return %a : tensor<?x4xf32, #sym.extents<s0 * 2 + s1>>
}

// -----

// Padding by a size.
// CHECK-LABEL: func.func @pad
// CHECK-NEXT: %a = tensor_ir.index_map (i) -> %x[i - s0] if i >= s0 and i < s0 * 2 else 0.5 : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0 * 2 + 1>>
// CHECK-NEXT: func.return %a : tensor<?xf32, #sym.extents<s0 * 2 + 1>>
func.func @pad(%x: tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0 * 2 + 1>> {
  %a = torch.constant_pad_nd %x {pad = [#sym.extent<s0>, 1], value = 0.5 : f64} : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0 * 2 + 1>>
  func.return %a : tensor<?xf32, #sym.extents<s0 * 2 + 1>>
}

// -----

// Positions beyond the extent begin again.
// CHECK-LABEL: func.func @flip_repeat
// CHECK-NEXT: %b = tensor_ir.index_map (i) -> %x[s0 - i mod s0 - 1] : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0 * 3>>
// CHECK-NEXT: func.return %b : tensor<?xf32, #sym.extents<s0 * 3>>
func.func @flip_repeat(%x: tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0 * 3>> {
  %a = torch.flip %x {dims = [0]} : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>>
  %b = torch.repeat %a {repeats = [3]} : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0 * 3>>
  func.return %b : tensor<?xf32, #sym.extents<s0 * 3>>
}

// -----

// Counting from a size, and a size as the value everywhere.
// CHECK-LABEL: func.func @made
// CHECK-NEXT: %a_index = tensor_ir.iota 0 : tensor<?xi64, #sym.extents<s1>>
// CHECK-NEXT: %a_size = tensor_ir.size s0 : tensor<?xi64, #sym.extents<s1>>
// CHECK-NEXT: %a = tensor_ir.elementwise add(%a_index, %a_size) : (tensor<?xi64, #sym.extents<s1>>, tensor<?xi64, #sym.extents<s1>>) -> tensor<?xi64, #sym.extents<s1>>
// CHECK-NEXT: %b_size = tensor_ir.size s1 : tensor<?xi64, #sym.extents<s0>>
// CHECK-NEXT: %b = tensor_ir.cast %b_size : tensor<?xi64, #sym.extents<s0>> to tensor<?xf32, #sym.extents<s0>>
// CHECK-NEXT: func.return %a, %b : tensor<?xi64, #sym.extents<s1>>, tensor<?xf32, #sym.extents<s0>>
func.func @made() -> (tensor<?xi64, #sym.extents<s1>>, tensor<?xf32, #sym.extents<s0>>) {
  %a = torch.arange {start = #sym.extent<s0>, end = #sym.extent<s0 + s1>} : () -> tensor<?xi64, #sym.extents<s1>>
  %b = torch.full {size = [#sym.extent<s0>], fill_value = #sym.extent<s1>, dtype = f32} : () -> tensor<?xf32, #sym.extents<s0>>
  func.return %a, %b : tensor<?xi64, #sym.extents<s1>>, tensor<?xf32, #sym.extents<s0>>
}

// -----

// The causal mask compares positions, whatever the sizes are.
// CHECK-LABEL: func.func @causal
// CHECK: %a_causal = tensor_ir.index_map (i, j, k) -> %a_mul_1[i, j, k] if j - k >= 0 else -inf : (tensor<?x?x?xf32, #sym.extents<s0, s1, s1>>) -> tensor<?x?x?xf32, #sym.extents<s0, s1, s1>>
// CHECK: func.return %a : tensor<?x?x8xf32, #sym.extents<s0, s1>>
func.func @causal(%q: tensor<?x?x8xf32, #sym.extents<s0, s1>>) -> tensor<?x?x8xf32, #sym.extents<s0, s1>> {
  %a = torch.scaled_dot_product_attention %q, %q, %q, none {is_causal = true} : (tensor<?x?x8xf32, #sym.extents<s0, s1>>, tensor<?x?x8xf32, #sym.extents<s0, s1>>, tensor<?x?x8xf32, #sym.extents<s0, s1>>) -> tensor<?x?x8xf32, #sym.extents<s0, s1>>
  func.return %a : tensor<?x?x8xf32, #sym.extents<s0, s1>>
}

// -----

// What fits within the ranges of the sizes is known to fit.
// CHECK-LABEL: func.func @main
// CHECK: tensor_ir.index_map (i, j) -> %x[s0 + i - 3, j]
// CHECK: tensor_ir.sort %x along 0 descending : tensor<?x4xf32, #sym.extents<s0>> -> (tensor<3x4xf32>, tensor<3x4xi64>)
func.func @main(%x: tensor<?x4xf32, #sym.extents<s0>>) -> (tensor<3x4xf32>, tensor<3x4xf32>) attributes {sym.sizes = [#sym.size<"n", 3, 4096>]} {
  %a = torch.slice %x {start = -3} : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<3x4xf32>
  %b, %i = torch.topk %x {k = 3, dim = 0} : (tensor<?x4xf32, #sym.extents<s0>>) -> (tensor<3x4xf32>, tensor<3x4xi64>)
  func.return %a, %b : tensor<3x4xf32>, tensor<3x4xf32>
}
