// What each check of the torch dialect says.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

func.func @unsigned_element(%a: tensor<4xui16>) {
  // expected-error@+1 {{element type ui16 is not supported}}
  %0 = torch.clone %a : (tensor<4xui16>) -> tensor<4xui16>
  func.return
}

// -----

func.func @complex_result(%a: tensor<4xf32>) {
  // expected-error@+1 {{is not supported}}
  %0 = torch.exp %a : (tensor<4xf32>) -> tensor<4xcomplex<f32>>
  func.return
}

// -----

func.func @operand_is_no_tensor(%a: memref<4xf32>) {
  // expected-error@+1 {{should be of base attribute tensor}}
  %0 = torch.exp %a : (memref<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @integer_expected(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected an i64 integer, got}}
  %0 = torch.softmax %a {dim = 1.0 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @narrow_integer(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected an i64 integer, got}}
  %0 = torch.softmax %a {dim = 0 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @bool_expected(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected true or false, got}}
  %0 = torch.sum %a {dim = [0], keepdim = 1} : (tensor<4xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @float_expected(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected an f64 float, got}}
  %0 = torch.rms_norm %a, none {normalized_shape = [4], eps = 1} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @number_expected(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected an i64, f64 or i1 number, got}}
  %0 = torch.add_scalar %a {other = 1.0 : f32} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @list_expected(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected a list of i64 integers, got}}
  %0 = torch.sum %a {dim = 0} : (tensor<4xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @list_of_integers(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected a list of i64 integers, got}}
  %0 = torch.sum %a {dim = [0.5]} : (tensor<4xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @string_expected(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected a string, got}}
  %0 = torch.gelu %a {approximate = true} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @dtype_expected(%a: tensor<4xf32>) {
  // expected-error@+1 {{expected an element type such as f32, got}}
  %0 = torch.sum %a {dim = [0], dtype = "f32"} : (tensor<4xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @argument_missing(%a: tensor<4xf32>) {
  // expected-error@+1 {{property 'dim' expected in operation 'torch.softmax'}}
  %0 = torch.softmax %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @argument_misspelt(%a: tensor<4xf32>) {
  // expected-error@+1 {{torch.sum has no argument 'keep_dim'; it has dim, keepdim, dtype}}
  %0 = torch.sum %a {dim = [0], keep_dim = true} : (tensor<4xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @too_few_types(%a: tensor<4xf32>) {
  // expected-error@+1 {{2 operands need as many types, got 1}}
  %0 = torch.add %a, %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @too_many_results(%a: tensor<4xf32>) {
  // expected-error@+1 {{torch.exp has 1 result, got 2 types}}
  %0, %1 = torch.exp %a : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  func.return
}

// -----

func.func @required_tensor_absent(%a: tensor<4xf32>) {
  // expected-error@+1 {{operand expected}}
  %0 = torch.add %a, none : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @wrong_result_shape(%a: tensor<4xf32>) {
  // expected-error@+1 {{its arguments give a result of shape [4], not [5]}}
  %0 = torch.exp %a : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @no_broadcast(%a: tensor<4xf32>, %b: tensor<5xf32>) {
  // expected-error@+1 {{shapes [4] and [5] do not broadcast}}
  %0 = torch.add %a, %b : (tensor<4xf32>, tensor<5xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @predicate_element(%a: tensor<4xf32>) {
  // expected-error@+1 {{gives i1 elements, not f32}}
  %0 = torch.isnan %a : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @axis_outside(%a: tensor<4xf32>) {
  // expected-error@+1 {{axis 2 is outside a tensor of rank 1}}
  %0 = torch.softmax %a {dim = 2} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @axis_twice(%a: tensor<4xf32>) {
  // expected-error@+1 {{axes [0, -1] name one axis twice}}
  %0 = torch.sum %a {dim = [0, -1]} : (tensor<4xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @keepdim(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{its arguments give a result of shape [4, 1], not [4]}}
  %0 = torch.sum %a {dim = [1], keepdim = true} : (tensor<4x8xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @view_count(%a: tensor<4xf32>) {
  // expected-error@+1 {{size [5] does not hold 4 elements}}
  %0 = torch.view %a {size = [5]} : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @permute_count(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{dims [0] do not reorder 2 axes}}
  %0 = torch.permute %a {dims = [0]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return
}

// -----

func.func @t_rank(%a: tensor<2x4x8xf32>) {
  // expected-error@+1 {{takes at most 2 axes, got 3}}
  %0 = torch.t %a : (tensor<2x4x8xf32>) -> tensor<8x4x2xf32>
  func.return
}

// -----

func.func @slice_scalar(%a: tensor<f32>) {
  // expected-error@+1 {{cannot slice a 0-d tensor}}
  %0 = torch.slice %a : (tensor<f32>) -> tensor<f32>
  func.return
}

// -----

func.func @slice_step(%a: tensor<4xf32>) {
  // expected-error@+1 {{step must be positive, got -1}}
  %0 = torch.slice %a {step = -1} : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @select_scalar(%a: tensor<f32>) {
  // expected-error@+1 {{cannot select from a 0-d tensor}}
  %0 = torch.select %a {dim = 0, index = 0} : (tensor<f32>) -> tensor<f32>
  func.return
}

// -----

func.func @select_index(%a: tensor<4xf32>) {
  // expected-error@+1 {{index 4 is outside axis 0 of extent 4}}
  %0 = torch.select %a {dim = 0, index = 4} : (tensor<4xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @expand(%a: tensor<4xf32>) {
  // expected-error@+1 {{[4] does not expand to [5]}}
  %0 = torch.expand %a {size = [5]} : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @cat_nothing() {
  // expected-error@+1 {{needs at least one tensor}}
  %0 = torch.cat [] : () -> tensor<0xf32>
  func.return
}

// -----

func.func @cat_shapes(%a: tensor<2x3xf32>, %b: tensor<3x2xf32>) {
  // expected-error@+1 {{shapes [2, 3], [3, 2] do not join along axis 0}}
  %0 = torch.cat [%a, %b] : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<5x3xf32>
  func.return
}

// -----

func.func @stack_shapes(%a: tensor<2xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{stacks tensors of one shape, at least one}}
  %0 = torch.stack [%a, %b] : (tensor<2xf32>, tensor<3xf32>) -> tensor<2x2xf32>
  func.return
}

// -----

func.func @split_sizes(%a: tensor<4xf32>) {
  // expected-error@+1 {{sizes [1, 2] do not cut axis 0 of [4]}}
  %0, %1 = torch.split_with_sizes %a {split_sizes = [1, 2]} : (tensor<4xf32>) -> (tensor<1xf32>, tensor<2xf32>)
  func.return
}

// -----

func.func @split_results(%a: tensor<4xf32>) {
  // expected-error-re@+1 {{results must have shapes {{\[\[}}1], [3]]}}
  %0, %1 = torch.split_with_sizes %a {split_sizes = [1, 3]} : (tensor<4xf32>) -> (tensor<3xf32>, tensor<1xf32>)
  func.return
}

// -----

func.func @repeat(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{repeats [2] do not fit [4, 8]}}
  %0 = torch.repeat %a {repeats = [2]} : (tensor<4x8xf32>) -> tensor<8x8xf32>
  func.return
}

// -----

func.func @pad_pairs(%a: tensor<4xf32>) {
  // expected-error@+1 {{pad [1] does not give pairs for at most 1 axes}}
  %0 = torch.constant_pad_nd %a {pad = [1]} : (tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @pad_removes(%a: tensor<4xf32>) {
  // expected-error@+1 {{pad [-3, -3] removes more than there is}}
  %0 = torch.constant_pad_nd %a {pad = [-3, -3]} : (tensor<4xf32>) -> tensor<0xf32>
  func.return
}

// -----

func.func @linear(%a: tensor<4x3xf32>, %b: tensor<2x5xf32>) {
  // expected-error@+1 {{input [4, 3] does not fit weight [2, 5]}}
  %0 = torch.linear %a, %b, none : (tensor<4x3xf32>, tensor<2x5xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @linear_bias(%a: tensor<4x3xf32>, %b: tensor<2x3xf32>, %c: tensor<3xf32>) {
  // expected-error@+1 {{bias [3] does not fit a result [4, 2]}}
  %0 = torch.linear %a, %b, %c : (tensor<4x3xf32>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @matmul(%a: tensor<4x3xf32>) {
  // expected-error@+1 {{cannot multiply [4, 3] by [4, 3]}}
  %0 = torch.matmul %a, %a : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @mm_rank(%a: tensor<1x3x3xf32>, %b: tensor<3x3xf32>) {
  // expected-error@+1 {{cannot multiply [1, 3, 3] by [3, 3]}}
  %0 = torch.mm %a, %b : (tensor<1x3x3xf32>, tensor<3x3xf32>) -> tensor<1x3x3xf32>
  func.return
}

// -----

func.func @addmm_addend(%a: tensor<2xf32>, %b: tensor<3x3xf32>) {
  // expected-error@+1 {{addend [2] does not fit a result [3, 3]}}
  %0 = torch.addmm %a, %b, %b : (tensor<2xf32>, tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<3x3xf32>
  func.return
}

// -----

func.func @norm_shape(%a: tensor<4x8xf32>) {
  // expected-error@+1 {{[4, 8] does not end in [4]}}
  %0 = torch.rms_norm %a, none {normalized_shape = [4]} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return
}

// -----

func.func @norm_weight(%a: tensor<4x8xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{weight and bias must have shape [8]}}
  %0 = torch.rms_norm %a, %b {normalized_shape = [8]} : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  func.return
}

// -----

func.func @attention_shapes(%a: tensor<3x8xf32>, %b: tensor<6x7xf32>, %c: tensor<6x8xf32>) {
  // expected-error@+1 {{query [3, 8], key [6, 7] and value [6, 8] do not fit}}
  %0 = torch.scaled_dot_product_attention %a, %b, %c, none : (tensor<3x8xf32>, tensor<6x7xf32>, tensor<6x8xf32>) -> tensor<3x8xf32>
  func.return
}

// -----

func.func @attention_heads(%a: tensor<3x4x8xf32>, %b: tensor<2x4x8xf32>) {
  // expected-error@+1 {{3 query heads do not share 2 key heads}}
  %0 = torch.scaled_dot_product_attention %a, %b, %b, none {enable_gqa = true} : (tensor<3x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<3x4x8xf32>
  func.return
}

// -----

func.func @embedding_table(%a: tensor<8xf32>, %b: tensor<2xi64>) {
  // expected-error@+1 {{weight must have 2 axes, got 1}}
  %0 = torch.embedding %a, %b : (tensor<8xf32>, tensor<2xi64>) -> tensor<2x8xf32>
  func.return
}

// -----

func.func @embedding_indices(%a: tensor<4x8xf32>, %b: tensor<2xf32>) {
  // expected-error@+1 {{indices must be integers}}
  %0 = torch.embedding %a, %b : (tensor<4x8xf32>, tensor<2xf32>) -> tensor<2x8xf32>
  func.return
}

// -----

func.func @full_size() {
  // expected-error@+1 {{its arguments give a result of shape [2, 3], not [3, 2]}}
  %0 = torch.full {size = [2, 3], fill_value = 1} : () -> tensor<3x2xf32>
  func.return
}

// -----

func.func @arange_step() {
  // expected-error@+1 {{needs finite bounds and a step that is not zero}}
  %0 = torch.arange {start = 0, end = 3, step = 0} : () -> tensor<3xi64>
  func.return
}

// -----

func.func @call_name(%a: tensor<4xf32>) {
  // expected-error@+1 {{callee must read namespace.operator.overload, got 'exp'}}
  %0 = torch.call "exp"(input = %a) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @call_element(%a: tensor<4xui16>) {
  // expected-error@+1 {{element type ui16 is not supported}}
  %0 = torch.call "aten.abs.default"(input = %a) : (tensor<4xui16>) -> tensor<4xui16>
  func.return
}

// -----

func.func @call_argument(%a: tensor<4xf32>) {
  // expected-error@+1 {{argument dim cannot be array<i64: 1>}}
  %0 = torch.call "aten.sum.default"(input = %a, dim = array<i64: 1>) : (tensor<4xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @call_operand(%a: tensor<4xf32>) {
  // expected-error@+1 {{arguments must name each of its 1 operands once, in order, got [1]}}
  %0 = "torch.call"(%a) <{callee = "aten.abs.default", arguments = {input = #tensor_ir.operand<1>}}> : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @call_permutation(%a: tensor<4x3xf32>) {
  // expected-error@+1 {{[0, 0] does not name each axis once}}
  %0 = torch.call "aten.abs.default"(input = permute(%a, [0, 0])) : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @call_permutation_rank(%a: tensor<4x3xf32>) {
  // expected-error@+1 {{[0, 2, 1] does not name each of 2 axes once}}
  %0 = torch.call "aten.abs.default"(input = permute(%a, [0, 2, 1])) : (tensor<4x3xf32>) -> tensor<4x3xf32>
  func.return
}

// -----

func.func @call_twice(%a: tensor<4xf32>) {
  // expected-error@+1 {{argument dim is given twice}}
  %0 = torch.call "aten.sum.default"(input = %a, dim = 1, dim = 2) : (tensor<4xf32>) -> tensor<f32>
  func.return
}

// -----

func.func @call_types(%a: tensor<4xf32>) {
  // expected-error@+1 {{1 operands need as many types, got 2}}
  %0 = torch.call "aten.abs.default"(input = %a) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @gather_rank(%a: tensor<3x4xf32>, %b: tensor<2xi64>) {
  // expected-error@+1 {{index [2] does not fit [3, 4]}}
  %0 = torch.gather %a, %b {dim = 1} : (tensor<3x4xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @index_select_rank(%a: tensor<3x4xf32>, %b: tensor<2x1xi64>) {
  // expected-error@+1 {{a list of indices [2, 1] does not fit [3, 4]}}
  %0 = torch.index_select %a, %b {dim = 1} : (tensor<3x4xf32>, tensor<2x1xi64>) -> tensor<3x2xf32>
  func.return
}

// -----

func.func @index_axes(%a: tensor<3x4xf32>, %b: tensor<2xi64>) {
  // expected-error@+1 {{2 indices from axis 1 do not fit [3, 4]}}
  %0 = torch.index %a, [%b, %b] {dim = 1} : (tensor<3x4xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<3x2xf32>
  func.return
}

// -----

func.func @index_element(%a: tensor<3x4xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{indices must be integers}}
  %0 = torch.index %a, [%b] : (tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @convolution_stride(%x: tensor<1x4x8xf32>, %w: tensor<2x4x3xf32>) {
  // expected-error@+1 {{stride and dilation must be positive}}
  %0 = torch.convolution %x, %w, none {stride = [0], padding = [0], dilation = [1], transposed = false, output_padding = [0], groups = 1} : (tensor<1x4x8xf32>, tensor<2x4x3xf32>) -> tensor<1x2x6xf32>
  func.return
}

// -----

func.func @convolution_list(%x: tensor<1x4x8xf32>, %w: tensor<2x4x3xf32>) {
  // expected-error@+1 {{stride [1, 1, 1] must have 1 or 1 values}}
  %0 = torch.convolution %x, %w, none {stride = [1, 1, 1], padding = [0], dilation = [1], transposed = false, output_padding = [0], groups = 1} : (tensor<1x4x8xf32>, tensor<2x4x3xf32>) -> tensor<1x2x6xf32>
  func.return
}

// -----

func.func @convolution_rank(%x: tensor<4x8xf32>, %w: tensor<2x4x3xf32>) {
  // expected-error@+1 {{input [4, 8] does not fit weight [2, 4, 3]}}
  %0 = torch.convolution %x, %w, none {stride = [1], padding = [0], dilation = [1], transposed = false, output_padding = [0], groups = 1} : (tensor<4x8xf32>, tensor<2x4x3xf32>) -> tensor<1x2x6xf32>
  func.return
}

// -----

func.func @convolution_groups(%x: tensor<1x4x8xf32>, %w: tensor<2x4x3xf32>) {
  // expected-error@+1 {{4 channels in 2 groups do not fit weight [2, 4, 3]}}
  %0 = torch.convolution %x, %w, none {stride = [1], padding = [0], dilation = [1], transposed = false, output_padding = [0], groups = 2} : (tensor<1x4x8xf32>, tensor<2x4x3xf32>) -> tensor<1x2x6xf32>
  func.return
}

// -----

func.func @convolution_kernel(%x: tensor<1x4x1xf32>, %w: tensor<2x4x3xf32>) {
  // expected-error@+1 {{the kernel is larger than the padded input}}
  %0 = torch.convolution %x, %w, none {stride = [1], padding = [0], dilation = [1], transposed = false, output_padding = [0], groups = 1} : (tensor<1x4x1xf32>, tensor<2x4x3xf32>) -> tensor<1x2x6xf32>
  func.return
}

// -----

func.func @pool_kernel(%x: tensor<1x4x4xf32>) {
  // expected-error@+1 {{kernel_size, stride and dilation must be positive}}
  %0 = torch.avg_pool2d %x {kernel_size = [0, 2]} : (tensor<1x4x4xf32>) -> tensor<1x2x2xf32>
  func.return
}

// -----

func.func @pool_padding(%x: tensor<1x4x4xf32>) {
  // expected-error@+1 {{padding must be at most half of kernel_size}}
  %0 = torch.avg_pool2d %x {kernel_size = [2, 2], padding = [2, 2]} : (tensor<1x4x4xf32>) -> tensor<1x2x2xf32>
  func.return
}

// -----

func.func @pool_rank(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{pools the last 2 axes after 1 or 2, got [4, 4]}}
  %0 = torch.avg_pool2d %x {kernel_size = [2, 2]} : (tensor<4x4xf32>) -> tensor<1x2x2xf32>
  func.return
}

// -----

func.func @pool_extent(%x: tensor<1x4x4xf32>) {
  // expected-error@+1 {{the kernel is larger than the padded input}}
  %0 = torch.avg_pool2d %x {kernel_size = [5, 5]} : (tensor<1x4x4xf32>) -> tensor<1x2x2xf32>
  func.return
}

// -----

func.func @adaptive_pool(%x: tensor<1x4x4xf32>) {
  // expected-error@+1 {{[1, 4, 4] is not pooled to [-1, 2]}}
  %0 = torch._adaptive_avg_pool2d %x {output_size = [-1, 2]} : (tensor<1x4x4xf32>) -> tensor<1x4x2xf32>
  func.return
}

// -----

func.func @unfold_step(%x: tensor<1x4x4xf32>) {
  // expected-error@+1 {{windows of 2 every 0 do not fit extent 4}}
  %0 = torch.unfold %x {dimension = 1, size = 2, step = 0} : (tensor<1x4x4xf32>) -> tensor<1x3x4x2xf32>
  func.return
}

// -----

func.func @diagonal_axes(%x: tensor<1x4x4xf32>) {
  // expected-error@+1 {{dim1 and dim2 are both axis 1}}
  %0 = torch.diagonal %x {dim1 = 1, dim2 = -2} : (tensor<1x4x4xf32>) -> tensor<1x4xf32>
  func.return
}

// -----

func.func @scatter_index(%a: tensor<3x4xf32>, %b: tensor<2x5xi64>, %c: tensor<2x5xf32>) {
  // expected-error@+1 {{index [2, 5] does not fit [2, 4]}}
  %0 = torch.scatter %a, %b, %c {dim = 0} : (tensor<3x4xf32>, tensor<2x5xi64>, tensor<2x5xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @scatter_source(%a: tensor<3x4xf32>, %b: tensor<2x3xi64>, %c: tensor<1x3xf32>) {
  // expected-error@+1 {{index [2, 3] does not fit [1, 3]}}
  %0 = torch.scatter_add %a, %b, %c {dim = 0} : (tensor<3x4xf32>, tensor<2x3xi64>, tensor<1x3xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @scatter_element(%a: tensor<3xf32>, %b: tensor<2xf32>) {
  // expected-error@+1 {{indices must be integers}}
  %0 = torch.scatter_value %a, %b {dim = 0, value = 1} : (tensor<3xf32>, tensor<2xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @index_add_source(%a: tensor<3x4xf32>, %b: tensor<2xi64>, %c: tensor<3x4xf32>) {
  // expected-error@+1 {{source [3, 4] does not fit index [2]}}
  %0 = torch.index_add %a, %b, %c {dim = 0} : (tensor<3x4xf32>, tensor<2xi64>, tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @index_reduce_source(%a: tensor<3x4xf32>, %b: tensor<2xi64>, %c: tensor<3x3xf32>) {
  // expected-error@+1 {{source [3, 3] does not fit index [2]}}
  %0 = torch.index_reduce %a, %b, %c {dim = 1, reduce = "mean"} : (tensor<3x4xf32>, tensor<2xi64>, tensor<3x3xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @index_put_values(%a: tensor<3x4xf32>, %b: tensor<2xi64>, %c: tensor<3xf32>) {
  // expected-error@+1 {{values [3] do not fit [2, 4]}}
  %0 = torch.index_put %a, [%b], %c : (tensor<3x4xf32>, tensor<2xi64>, tensor<3xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @index_put_axes(%a: tensor<3xf32>, %b: tensor<2xi64>, %c: tensor<2xf32>) {
  // expected-error@+1 {{2 indices from axis 0 do not fit [3]}}
  %0 = torch.index_put %a, [%b, %b], %c : (tensor<3xf32>, tensor<2xi64>, tensor<2xi64>, tensor<2xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @masked_scatter_mask(%a: tensor<3x4xf32>, %b: tensor<3xi1>, %c: tensor<7xf32>) {
  // expected-error@+1 {{shapes [3, 4] and [3] do not broadcast}}
  %0 = torch.masked_scatter %a, %b, %c : (tensor<3x4xf32>, tensor<3xi1>, tensor<7xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @diagonal_scatter_source(%a: tensor<3x4xf32>, %b: tensor<3xf32>) {
  // expected-error@+1 {{source [3] does not fit a diagonal of [3, 4]}}
  %0 = torch.diagonal_scatter %a, %b {offset = -1} : (tensor<3x4xf32>, tensor<3xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @as_strided_beyond(%a: tensor<3x4xf32>) {
  // expected-error@+1 {{goes to element 12 of a tensor of 12}}
  %0 = torch.as_strided %a {size = [4, 2], stride = [1, 4], storage_offset = 5} : (tensor<3x4xf32>) -> tensor<4x2xf32>
  func.return
}

// -----

func.func @as_strided_scatter_source(%a: tensor<3x4xf32>, %b: tensor<4xf32>) {
  // expected-error@+1 {{source [4] does not fit size [2, 2]}}
  %0 = torch.as_strided_scatter %a, %b {size = [2, 2], stride = [1, 4]} : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @as_strided_scatter_twice(%a: tensor<3x4xf32>, %b: tensor<3x2xf32>) {
  // expected-error@+1 {{writes an element twice, or by strides [2, 4] that interlace}}
  %0 = torch.as_strided_scatter %a, %b {size = [3, 2], stride = [2, 4]} : (tensor<3x4xf32>, tensor<3x2xf32>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @as_strided_sizes(%a: tensor<3x4xf32>) {
  // expected-error@+1 {{size [4] and stride [1, 4] do not fit}}
  %0 = torch.as_strided %a {size = [4], stride = [1, 4]} : (tensor<3x4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @topk_k(%a: tensor<3x4xf32>) {
  // expected-error@+1 {{k = 5 of 4 values}}
  %0, %1 = torch.topk %a {k = 5} : (tensor<3x4xf32>) -> (tensor<3x5xf32>, tensor<3x5xi64>)
  func.return
}

// -----

func.func @sort_positions(%a: tensor<4xf32>) {
  // expected-error@+1 {{gives i64 elements as result 1, not i32}}
  %0, %1 = torch.sort %a : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>)
  func.return
}

// -----

func.func @kthvalue_k(%a: tensor<3x4xf32>) {
  // expected-error@+1 {{k = 0 of 4 values}}
  %0, %1 = torch.kthvalue %a {k = 0} : (tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xi64>)
  func.return
}

// -----

func.func @median_positions(%a: tensor<3x4xf32>) {
  // expected-error@+1 {{positions must have shape [3], got tensor<4xi64>}}
  %0, %1 = torch.median_dim %a {dim = 1} : (tensor<3x4xf32>) -> (tensor<3xf32>, tensor<4xi64>)
  func.return
}

// -----

func.func @search_rows(%a: tensor<3x4xf32>, %b: tensor<2x5xf32>) {
  // expected-error@+1 {{values [2, 5] do not fit sequences [3, 4]}}
  %0 = torch.searchsorted %a, %b, none : (tensor<3x4xf32>, tensor<2x5xf32>) -> tensor<2x5xi64>
  func.return
}

// -----

func.func @search_sorter(%a: tensor<4xf32>, %b: tensor<5xf32>, %c: tensor<3xi64>) {
  // expected-error@+1 {{a sorter must have shape [4], got tensor<3xi64>}}
  %0 = torch.searchsorted %a, %b, %c : (tensor<4xf32>, tensor<5xf32>, tensor<3xi64>) -> tensor<5xi64>
  func.return
}

// -----

func.func @scan(%h: tensor<4xf32>, %x: tensor<9x4xf32>) {
  // expected-error@+1 {{needs a carried value, and slices}}
  %y = torch.scan carried(%h) slices() shared() : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>):
    torch.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

func.func @scan(%h: tensor<4xf32>, %x: tensor<0x4xf32>) {
  // expected-error@+1 {{slices need one number of steps, not 0, as their first axis}}
  %y = torch.scan carried(%h) slices(%x) shared() : (tensor<4xf32>, tensor<0x4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    torch.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

func.func @scan(%h: tensor<4xf32>, %x: tensor<9x4xf32>) {
  // expected-error@+1 {{its body must take tensor<4xf32>, tensor<4xf32>}}
  %y = torch.scan carried(%h) slices(%x) shared() : (tensor<4xf32>, tensor<9x4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<5xf32>):
    torch.yield %a : tensor<4xf32>
  }
  func.return
}

// -----

func.func @scan(%h: tensor<4xf32>, %x: tensor<9x4xf32>) {
  // expected-error@+1 {{its body must end with torch.yield}}
  %y = torch.scan carried(%h) slices(%x) shared() : (tensor<4xf32>, tensor<9x4xf32>) -> tensor<4xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    llvm.unreachable
  }
  func.return
}

// -----

func.func @scan(%h: tensor<4xf32>, %x: tensor<9x4xf32>) {
  // expected-error@+1 {{its body or its results do not fit what it carries and yields}}
  %y = torch.scan carried(%h) slices(%x) shared() : (tensor<4xf32>, tensor<9x4xf32>) -> tensor<5xf32> {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    torch.yield %a : tensor<4xf32>
  }
  func.return
}
