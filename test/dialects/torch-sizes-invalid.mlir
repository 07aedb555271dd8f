// What the torch and tensor_ir dialects say of dynamic sizes that do not fit.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

func.func @main(%x: tensor<?x4xf32, #sym.extents<s0>>) {
  // expected-error@+1 {{size [s0 * 2, 4] does not hold s0 * 4 elements}}
  %0 = torch.view %x {size = [#sym.extent<s0 * 2>, 4]} : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<?x4xf32, #sym.extents<s0 * 2>>
  func.return
}

// -----

// Without a smallest size of 3 there may be less than 3 to take.
func.func @main(%x: tensor<?x4xf32, #sym.extents<s0>>) attributes {sym.sizes = [#sym.size<"n", 2, none>]} {
  // expected-error@+1 {{whether s0 < 3 is known only at run time}}
  %0 = torch.slice %x {end = 3} : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<?x4xf32, #sym.extents<s0>>) attributes {sym.sizes = [#sym.size<"n", 1, 8>]} {
  // expected-error@+1 {{is known only at run time}}
  %0 = torch.select %x {dim = 0, index = 1} : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<?x4xf32, #sym.extents<s0>>, %y: tensor<?x4xf32, #sym.extents<s1>>) {
  // expected-error@+1 {{shapes [s0, 4] and [s1, 4] do not broadcast}}
  %0 = torch.add %x, %y : (tensor<?x4xf32, #sym.extents<s0>>, tensor<?x4xf32, #sym.extents<s1>>) -> tensor<?x4xf32, #sym.extents<s0>>
  func.return
}

// -----

func.func @main(%x: tensor<?x4xf32, #sym.extents<s0>>) {
  // expected-error@+1 {{its arguments give a result of shape [s0, 4], not [s1, 4]}}
  %0 = torch.exp %x : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<?x4xf32, #sym.extents<s1>>
  func.return
}

// -----

func.func @main(%x: tensor<?x4xf32, #sym.extents<s0>>) {
  // expected-error@+1 {{expected an i64 integer, got #sym.extent<s0>}}
  %0 = torch.softmax %x {dim = #sym.extent<s0>} : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<?x4xf32, #sym.extents<s0>>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{expected a list of i64 integers or sizes, got}}
  %0 = torch.zeros {size = [2.0 : f64]} : () -> tensor<2xf32>
  func.return
}

// -----

func.func @main(%x: tensor<?x4x8xf32, #sym.extents<s0>>, %w: tensor<4x4x3xf32>) {
  // expected-error@+1 {{stride = s0 is known only at run time}}
  %0 = torch.convolution %x, %w, none {stride = [#sym.extent<s0>], padding = [0], dilation = [1], transposed = false, output_padding = [0], groups = 1} : (tensor<?x4x8xf32, #sym.extents<s0>>, tensor<4x4x3xf32>) -> tensor<?x4x6xf32, #sym.extents<s0>>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{counts to or from a dynamic size in whole numbers only}}
  %0 = torch.arange {start = 0.5 : f64, end = #sym.extent<s0>} : () -> tensor<?xf32, #sym.extents<s0>>
  func.return
}

// -----

func.func @main(%x: tensor<?x4xf32, #sym.extents<s0>>) {
  // expected-error@+1 {{gives 2 of s0 values}}
  %0, %1 = tensor_ir.sort %x along 0 : tensor<?x4xf32, #sym.extents<s0>> -> (tensor<2x4xf32>, tensor<2x4xi64>)
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{counts in integers, not f32}}
  %0 = tensor_ir.size s0 : tensor<4xf32>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{needs finite bounds and a step that is not zero}}
  %0 = torch.arange {start = 0, end = #sym.extent<s0>, step = 0} : () -> tensor<?xi64, #sym.extents<s0>>
  func.return
}
