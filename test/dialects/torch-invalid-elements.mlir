// A result's element type follows from the arguments: each rule, and what it says of a wrong result.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

func.func @same(%a: tensor<4xf32>) {
  // expected-error@+1 {{gives f32 elements, not i64}}
  %0 = torch.relu %a : (tensor<4xf32>) -> tensor<4xi64>
  func.return
}

// -----

func.func @same_view(%a: tensor<4xf32>) {
  // expected-error@+1 {{gives f32 elements, not i32}}
  %0 = torch.view %a {size = [2, 2]} : (tensor<4xf32>) -> tensor<2x2xi32>
  func.return
}

// -----

func.func @same_of_each_piece(%a: tensor<4xf32>) {
  // expected-error@+1 {{gives f32 elements as result 1, not f16}}
  %0, %1 = torch.split_with_sizes %a {split_sizes = [1, 3], dim = 0} : (tensor<4xf32>) -> (tensor<1xf32>, tensor<3xf16>)
  func.return
}

// -----

func.func @same_without_a_class_in_the_contract(%a: tensor<4xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{gives f32 elements, not f64}}
  %0 = torch.index %a, [%i] : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf64>
  func.return
}

// -----

func.func @promoted(%a: tensor<4xf16>, %b: tensor<4xbf16>) {
  // expected-error@+1 {{gives f32 elements, not f16}}
  %0 = torch.add %a, %b : (tensor<4xf16>, tensor<4xbf16>) -> tensor<4xf16>
  func.return
}

// -----

func.func @promoted_with_a_scalar_tensor(%a: tensor<4xf32>, %b: tensor<f64>) {
  // expected-error@+1 {{gives f32 elements, not f64}}
  %0 = torch.mul %a, %b : (tensor<4xf32>, tensor<f64>) -> tensor<4xf64>
  func.return
}

// -----

func.func @promoted_by_a_number(%a: tensor<4xi32>) {
  // expected-error@+1 {{gives f16 or bf16 or f32 or f64 elements, not i32}}
  %0 = torch.mul_scalar %a {other = 0.5 : f64} : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

func.func @promoted_in_a_list(%a: tensor<4xi32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{gives f32 elements, not i32}}
  %0 = torch.cat [%a, %b] : (tensor<4xi32>, tensor<4xf32>) -> tensor<8xi32>
  func.return
}

// -----

func.func @promoted_but_for_a_condition(%c: tensor<4xi1>, %a: tensor<4xi8>) {
  // expected-error@+1 {{gives i8 elements, not i1}}
  %0 = torch.where %c, %a, %a : (tensor<4xi1>, tensor<4xi8>, tensor<4xi8>) -> tensor<4xi1>
  func.return
}

// -----

func.func @float_of_integers(%a: tensor<4xi64>) {
  // expected-error@+1 {{gives f16 or bf16 or f32 or f64 elements, not i64}}
  %0 = torch.exp %a : (tensor<4xi64>) -> tensor<4xi64>
  func.return
}

// -----

func.func @float_of_floats(%a: tensor<4xf16>) {
  // expected-error@+1 {{gives f16 elements, not f32}}
  %0 = torch.div %a, %a : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf32>
  func.return
}

// -----

func.func @rounded_quotient(%a: tensor<4xi32>) {
  // expected-error@+1 {{gives i32 elements, not f32}}
  %0 = torch.div_tensor_mode %a, %a {rounding_mode = "floor"} : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @quotient(%a: tensor<4xi32>) {
  // expected-error@+1 {{gives f16 or bf16 or f32 or f64 elements, not i32}}
  %0 = torch.div_tensor_mode %a, %a : (tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

func.func @bool(%a: tensor<4xf32>) {
  // expected-error@+1 {{gives i1 elements, not f32}}
  %0 = torch.eq %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @sum_of_integers(%a: tensor<4xi32>) {
  // expected-error@+1 {{gives i64 elements, not i32}}
  %0 = torch.sum %a {dim = [0]} : (tensor<4xi32>) -> tensor<i32>
  func.return
}

// -----

func.func @sum_of_halves(%a: tensor<4xf16>) {
  // expected-error@+1 {{gives f16 elements, not f32}}
  %0 = torch.cumsum %a {dim = 0} : (tensor<4xf16>) -> tensor<4xf32>
  func.return
}

// -----

func.func @given(%a: tensor<4xf16>) {
  // expected-error@+1 {{gives f32 elements, not f16}}
  %0 = torch.sum %a {dim = [0], dtype = f32} : (tensor<4xf16>) -> tensor<f16>
  func.return
}

// -----

func.func @truth(%a: tensor<4xf32>) {
  // expected-error@+1 {{gives i1 elements, not f32}}
  %0 = torch.any_default %a : (tensor<4xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @truth_of_bytes(%a: tensor<4xui8>) {
  // expected-error@+1 {{gives ui8 elements, not i1}}
  %0 = torch.any_default %a : (tensor<4xui8>) -> tensor<i1>
  func.return
}

// -----

func.func @index(%a: tensor<4xf32>) {
  // expected-error@+1 {{gives i64 elements, not i32}}
  %0 = torch.argmax %a : (tensor<4xf32>) -> tensor<i32>
  func.return
}

// -----

func.func @same_and_index(%a: tensor<4xf32>) {
  // expected-error@+1 {{gives i64 elements as result 1, not f32}}
  %0, %1 = torch.max_dim %a {dim = 0} : (tensor<4xf32>) -> (tensor<f32>, tensor<f32>)
  func.return
}

// -----

func.func @softmax(%a: tensor<4xf16>) {
  // expected-error@+1 {{gives f32 elements, not f16}}
  %0 = torch._softmax %a {dim = 0, half_to_float = true} : (tensor<4xf16>) -> tensor<4xf16>
  func.return
}

// -----

func.func @places(%a: tensor<4xf32>, %b: tensor<5xf32>) {
  // expected-error@+1 {{gives i32 elements, not i64}}
  %0 = torch.searchsorted %a, %b, none {out_int32 = true} : (tensor<4xf32>, tensor<5xf32>) -> tensor<5xi64>
  func.return
}

// -----

func.func @filled() {
  // expected-error@+1 {{gives i64 elements, not f32}}
  %0 = torch.full {size = [4], fill_value = 1} : () -> tensor<4xf32>
  func.return
}

// -----

func.func @counted() {
  // expected-error@+1 {{gives f16 or bf16 or f32 or f64 elements, not i64}}
  %0 = torch.arange {start = 0, end = 4, step = 0.5 : f64} : () -> tensor<8xi64>
  func.return
}

// -----

func.func @default() {
  // expected-error@+1 {{gives f16 or bf16 or f32 or f64 elements, not i64}}
  %0 = torch.zeros {size = [4]} : () -> tensor<4xi64>
  func.return
}
