// Every operation of the torch dialect prints as it was read, and comes back from the generic form.
// RUN: grep -v '^//' %s > %t.text
// RUN: deplo-opt %s > %t.custom
// RUN: diff %t.text %t.custom
// RUN: deplo-opt --print-op-generic %s > %t.generic
// RUN: deplo-opt %t.generic > %t.back
// RUN: diff %t.text %t.back
builtin.module {
  func.func @add(%a: tensor<3x4x5xf32>, %b: tensor<4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.add %a, %b {alpha = 3} : (tensor<3x4x5xf32>, tensor<4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @add_1(%a: tensor<3x4x5xf32>, %b: tensor<4x1xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.add %a, %b : (tensor<3x4x5xf32>, tensor<4x1xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @add_scalar(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.add_scalar %a {other = 2, alpha = 0.5 : f64} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @sub(%a: tensor<3x4x5xf32>, %b: tensor<4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.sub %a, %b {alpha = 2} : (tensor<3x4x5xf32>, tensor<4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @sub_scalar(%a: tensor<3xf16>) -> tensor<3xf16> {
    %0 = torch.sub_scalar %a {other = 2, alpha = 0.5 : f64} : (tensor<3xf16>) -> tensor<3xf16>
    func.return %0 : tensor<3xf16>
  }
  func.func @rsub(%a: tensor<3x4xi64>) -> tensor<3x4xf32> {
    %0 = torch.rsub %a {other = 0.5 : f64} : (tensor<3x4xi64>) -> tensor<3x4xf32>
    func.return %0 : tensor<3x4xf32>
  }
  func.func @rsub_1(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.rsub %a {other = 3} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @mul(%a: tensor<3x4x5xf32>, %b: tensor<5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.mul %a, %b : (tensor<3x4x5xf32>, tensor<5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @mul_1(%a: tensor<3x4xi1>, %b: tensor<3x4xi1>) -> tensor<3x4xi1> {
    %0 = torch.mul %a, %b : (tensor<3x4xi1>, tensor<3x4xi1>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @mul_scalar(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.mul_scalar %a {other = 2} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @div(%a: tensor<3x4xi64>, %b: tensor<1x4xi64>) -> tensor<3x4xf32> {
    %0 = torch.div %a, %b : (tensor<3x4xi64>, tensor<1x4xi64>) -> tensor<3x4xf32>
    func.return %0 : tensor<3x4xf32>
  }
  func.func @div_scalar(%a: tensor<3xi32>) -> tensor<3xf32> {
    %0 = torch.div_scalar %a {other = -4} : (tensor<3xi32>) -> tensor<3xf32>
    func.return %0 : tensor<3xf32>
  }
  func.func @div_tensor_mode(%a: tensor<3x4xi64>, %b: tensor<1x4xi64>) -> tensor<3x4xi64> {
    %0 = torch.div_tensor_mode %a, %b {rounding_mode = "floor"} : (tensor<3x4xi64>, tensor<1x4xi64>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @div_scalar_mode(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.div_scalar_mode %a {other = 0.3 : f64, rounding_mode = "trunc"} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @div_scalar_mode_1(%a: tensor<3x4xi64>) -> tensor<3x4xi64> {
    %0 = torch.div_scalar_mode %a {other = -2, rounding_mode = "floor"} : (tensor<3x4xi64>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @remainder(%a: tensor<3x4xi64>, %b: tensor<1x4xi64>) -> tensor<3x4xi64> {
    %0 = torch.remainder %a, %b : (tensor<3x4xi64>, tensor<1x4xi64>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @remainder_scalar(%a: tensor<3x4xi64>) -> tensor<3x4xi64> {
    %0 = torch.remainder_scalar %a {other = 3} : (tensor<3x4xi64>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @fmod(%a: tensor<3x4xi64>, %b: tensor<1x4xi64>) -> tensor<3x4xi64> {
    %0 = torch.fmod %a, %b : (tensor<3x4xi64>, tensor<1x4xi64>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @fmod_scalar(%a: tensor<3xi16>) -> tensor<3xi16> {
    %0 = torch.fmod_scalar %a {other = 3} : (tensor<3xi16>) -> tensor<3xi16>
    func.return %0 : tensor<3xi16>
  }
  func.func @pow(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.pow %a {exponent = -0.5 : f64} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @pow_1(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.pow %a {exponent = 0} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @pow_tensor_tensor(%a: tensor<3x4x5xf32>, %b: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.pow_tensor_tensor %a, %b : (tensor<3x4x5xf32>, tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @pow_scalar(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.pow_scalar %a {input = 2.0 : f64} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @maximum(%a: tensor<12xf32>, %b: tensor<12xf32>) -> tensor<12xf32> {
    %0 = torch.maximum %a, %b : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
    func.return %0 : tensor<12xf32>
  }
  func.func @minimum(%a: tensor<12xf32>, %b: tensor<12xf32>) -> tensor<12xf32> {
    %0 = torch.minimum %a, %b : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xf32>
    func.return %0 : tensor<12xf32>
  }
  func.func @clamp(%a: tensor<12xf32>) -> tensor<12xf32> {
    %0 = torch.clamp %a {min = -0.5 : f64, max = 0.5 : f64} : (tensor<12xf32>) -> tensor<12xf32>
    func.return %0 : tensor<12xf32>
  }
  func.func @clamp_tensor(%a: tensor<3x4x5xf32>, %b: tensor<4x5xf32>, %c: tensor<4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.clamp_tensor %a, %b, %c : (tensor<3x4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @neg(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.neg %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @abs(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.abs %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @sign(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.sign %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @floor(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.floor %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @ceil(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.ceil %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @round(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.round %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @trunc(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.trunc %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @exp(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.exp %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @exp2(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.exp2 %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @expm1(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.expm1 %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @log(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.log %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @log2(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.log2 %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @log1p(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.log1p %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @sqrt(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.sqrt %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @rsqrt(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.rsqrt %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @reciprocal(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.reciprocal %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @sin(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.sin %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @cos(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.cos %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @tan(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.tan %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @tanh(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.tanh %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @erf(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.erf %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @sigmoid(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.sigmoid %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @relu(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.relu %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @silu(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.silu %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @gelu(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.gelu %a {approximate = "tanh"} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @gelu_1(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.gelu %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @leaky_relu(%a: tensor<12xf32>) -> tensor<12xf32> {
    %0 = torch.leaky_relu %a {negative_slope = 0.2 : f64} : (tensor<12xf32>) -> tensor<12xf32>
    func.return %0 : tensor<12xf32>
  }
  func.func @hardtanh(%a: tensor<12xf32>) -> tensor<12xf32> {
    %0 = torch.hardtanh %a {min_val = -0.5 : f64, max_val = 0.75 : f64} : (tensor<12xf32>) -> tensor<12xf32>
    func.return %0 : tensor<12xf32>
  }
  func.func @elu(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.elu %a {alpha = 1.5 : f64} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @bitwise_and(%a: tensor<3x4xi1>, %b: tensor<3x4xi1>) -> tensor<3x4xi1> {
    %0 = torch.bitwise_and %a, %b : (tensor<3x4xi1>, tensor<3x4xi1>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @bitwise_and_scalar(%a: tensor<3x4xi64>) -> tensor<3x4xi64> {
    %0 = torch.bitwise_and_scalar %a {other = 6} : (tensor<3x4xi64>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @bitwise_or(%a: tensor<3x4xi1>, %b: tensor<3x4xi1>) -> tensor<3x4xi1> {
    %0 = torch.bitwise_or %a, %b : (tensor<3x4xi1>, tensor<3x4xi1>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @bitwise_or_scalar(%a: tensor<3x4xi64>) -> tensor<3x4xi64> {
    %0 = torch.bitwise_or_scalar %a {other = 3} : (tensor<3x4xi64>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @bitwise_xor(%a: tensor<3x4xi64>, %b: tensor<3x4xi64>) -> tensor<3x4xi64> {
    %0 = torch.bitwise_xor %a, %b : (tensor<3x4xi64>, tensor<3x4xi64>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @bitwise_not(%a: tensor<3x4xi64>) -> tensor<3x4xi64> {
    %0 = torch.bitwise_not %a : (tensor<3x4xi64>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @where(%a: tensor<4x5xi1>, %b: tensor<f32>, %c: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.where %a, %b, %c : (tensor<4x5xi1>, tensor<f32>, tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @where_1(%a: tensor<3x4x5xi1>, %b: tensor<3x4x5xf32>, %c: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.where %a, %b, %c : (tensor<3x4x5xi1>, tensor<3x4x5xf32>, tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @_to_copy(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xbf16> {
    %0 = torch._to_copy %a {dtype = bf16} : (tensor<3x4x5xf32>) -> tensor<3x4x5xbf16>
    func.return %0 : tensor<3x4x5xbf16>
  }
  func.func @_to_copy_1(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf16> {
    %0 = torch._to_copy %a {dtype = f16} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf16>
    func.return %0 : tensor<3x4x5xf16>
  }
  func.func @clone(%a: tensor<5xf32>) -> tensor<5xf32> {
    %0 = torch.clone %a : (tensor<5xf32>) -> tensor<5xf32>
    func.return %0 : tensor<5xf32>
  }
  func.func @clone_1(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.clone %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @alias(%a: tensor<3xbf16>) -> tensor<3xbf16> {
    %0 = torch.alias %a : (tensor<3xbf16>) -> tensor<3xbf16>
    func.return %0 : tensor<3xbf16>
  }
  func.func @lift_fresh_copy(%a: tensor<3xf64>) -> tensor<3xf64> {
    %0 = torch.lift_fresh_copy %a : (tensor<3xf64>) -> tensor<3xf64>
    func.return %0 : tensor<3xf64>
  }
  func.func @eq(%a: tensor<12xf32>, %b: tensor<12xf32>) -> tensor<12xi1> {
    %0 = torch.eq %a, %b : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xi1>
    func.return %0 : tensor<12xi1>
  }
  func.func @eq_scalar(%a: tensor<3x4xi1>) -> tensor<3x4xi1> {
    %0 = torch.eq_scalar %a {other = true} : (tensor<3x4xi1>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @eq_scalar_1(%a: tensor<3x4xi64>) -> tensor<3x4xi1> {
    %0 = torch.eq_scalar %a {other = 1} : (tensor<3x4xi64>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @ne(%a: tensor<12xf32>, %b: tensor<12xf32>) -> tensor<12xi1> {
    %0 = torch.ne %a, %b : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xi1>
    func.return %0 : tensor<12xi1>
  }
  func.func @ne_scalar(%a: tensor<3x4xi64>) -> tensor<3x4xi1> {
    %0 = torch.ne_scalar %a {other = 3} : (tensor<3x4xi64>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @lt(%a: tensor<3xi8>, %b: tensor<i64>) -> tensor<3xi1> {
    %0 = torch.lt %a, %b : (tensor<3xi8>, tensor<i64>) -> tensor<3xi1>
    func.return %0 : tensor<3xi1>
  }
  func.func @lt_scalar(%a: tensor<3x4xi64>) -> tensor<3x4xi1> {
    %0 = torch.lt_scalar %a {other = 1} : (tensor<3x4xi64>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @le(%a: tensor<12xf32>, %b: tensor<12xf32>) -> tensor<12xi1> {
    %0 = torch.le %a, %b : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xi1>
    func.return %0 : tensor<12xi1>
  }
  func.func @le_scalar(%a: tensor<3x4xi64>) -> tensor<3x4xi1> {
    %0 = torch.le_scalar %a {other = 2} : (tensor<3x4xi64>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @gt(%a: tensor<12xf32>, %b: tensor<12xf32>) -> tensor<12xi1> {
    %0 = torch.gt %a, %b : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xi1>
    func.return %0 : tensor<12xi1>
  }
  func.func @gt_scalar(%a: tensor<4x8xbf16>) -> tensor<4x8xi1> {
    %0 = torch.gt_scalar %a {other = 0.1 : f64} : (tensor<4x8xbf16>) -> tensor<4x8xi1>
    func.return %0 : tensor<4x8xi1>
  }
  func.func @gt_scalar_1(%a: tensor<3x4xi64>) -> tensor<3x4xi1> {
    %0 = torch.gt_scalar %a {other = 1} : (tensor<3x4xi64>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @ge(%a: tensor<3xf32>, %b: tensor<2x1xf16>) -> tensor<2x3xi1> {
    %0 = torch.ge %a, %b : (tensor<3xf32>, tensor<2x1xf16>) -> tensor<2x3xi1>
    func.return %0 : tensor<2x3xi1>
  }
  func.func @ge_scalar(%a: tensor<3x4xi64>) -> tensor<3x4xi1> {
    %0 = torch.ge_scalar %a {other = 0} : (tensor<3x4xi64>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @isnan(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xi1> {
    %0 = torch.isnan %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xi1>
    func.return %0 : tensor<3x4x5xi1>
  }
  func.func @isinf(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xi1> {
    %0 = torch.isinf %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xi1>
    func.return %0 : tensor<3x4x5xi1>
  }
  func.func @logical_not(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xi1> {
    %0 = torch.logical_not %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xi1>
    func.return %0 : tensor<3x4x5xi1>
  }
  func.func @logical_and(%a: tensor<12xf32>, %b: tensor<12xf32>) -> tensor<12xi1> {
    %0 = torch.logical_and %a, %b : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xi1>
    func.return %0 : tensor<12xi1>
  }
  func.func @logical_or(%a: tensor<12xf32>, %b: tensor<12xf32>) -> tensor<12xi1> {
    %0 = torch.logical_or %a, %b : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xi1>
    func.return %0 : tensor<12xi1>
  }
  func.func @logical_xor(%a: tensor<12xf32>, %b: tensor<12xf32>) -> tensor<12xi1> {
    %0 = torch.logical_xor %a, %b : (tensor<12xf32>, tensor<12xf32>) -> tensor<12xi1>
    func.return %0 : tensor<12xi1>
  }
  func.func @sum(%a: tensor<3x4x5xf32>) -> tensor<1x4x1xf32> {
    %0 = torch.sum %a {dim = [0, 2], keepdim = true} : (tensor<3x4x5xf32>) -> tensor<1x4x1xf32>
    func.return %0 : tensor<1x4x1xf32>
  }
  func.func @sum_1(%a: tensor<3x4x5xf32>) -> tensor<3x5xf32> {
    %0 = torch.sum %a {dim = [1]} : (tensor<3x4x5xf32>) -> tensor<3x5xf32>
    func.return %0 : tensor<3x5xf32>
  }
  func.func @sum_default(%a: tensor<4x8xf16>) -> tensor<f64> {
    %0 = torch.sum_default %a {dtype = f64} : (tensor<4x8xf16>) -> tensor<f64>
    func.return %0 : tensor<f64>
  }
  func.func @sum_default_1(%a: tensor<3x4x5xf32>) -> tensor<f32> {
    %0 = torch.sum_default %a : (tensor<3x4x5xf32>) -> tensor<f32>
    func.return %0 : tensor<f32>
  }
  func.func @mean(%a: tensor<3x4x5xf32>) -> tensor<3x4x1xf32> {
    %0 = torch.mean %a {dim = [-1], keepdim = true} : (tensor<3x4x5xf32>) -> tensor<3x4x1xf32>
    func.return %0 : tensor<3x4x1xf32>
  }
  func.func @mean_1(%a: tensor<3x4x5xf32>) -> tensor<4xf32> {
    %0 = torch.mean %a {dim = [0, 2]} : (tensor<3x4x5xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
  func.func @mean_default(%a: tensor<3x4x5xf32>) -> tensor<f32> {
    %0 = torch.mean_default %a : (tensor<3x4x5xf32>) -> tensor<f32>
    func.return %0 : tensor<f32>
  }
  func.func @amax(%a: tensor<3x4x5xf32>) -> tensor<3x5xf32> {
    %0 = torch.amax %a {dim = [1]} : (tensor<3x4x5xf32>) -> tensor<3x5xf32>
    func.return %0 : tensor<3x5xf32>
  }
  func.func @amin(%a: tensor<3x4x5xf32>) -> tensor<4xf32> {
    %0 = torch.amin %a {dim = [0, 2]} : (tensor<3x4x5xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
  func.func @prod(%a: tensor<3x4x5xf32>) -> tensor<3x5xf32> {
    %0 = torch.prod %a {dim = 1} : (tensor<3x4x5xf32>) -> tensor<3x5xf32>
    func.return %0 : tensor<3x5xf32>
  }
  func.func @prod_default(%a: tensor<3x4x5xf32>) -> tensor<f32> {
    %0 = torch.prod_default %a : (tensor<3x4x5xf32>) -> tensor<f32>
    func.return %0 : tensor<f32>
  }
  func.func @any(%a: tensor<3x4x5xf32>) -> tensor<3x5xi1> {
    %0 = torch.any %a {dim = 1} : (tensor<3x4x5xf32>) -> tensor<3x5xi1>
    func.return %0 : tensor<3x5xi1>
  }
  func.func @any_1(%a: tensor<3x4xi1>) -> tensor<3xi1> {
    %0 = torch.any %a {dim = 1} : (tensor<3x4xi1>) -> tensor<3xi1>
    func.return %0 : tensor<3xi1>
  }
  func.func @any_dims(%a: tensor<3x4xi64>) -> tensor<3x4xi1> {
    %0 = torch.any_dims %a {dim = []} : (tensor<3x4xi64>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @any_dims_1(%a: tensor<3x4xi1>) -> tensor<i1> {
    %0 = torch.any_dims %a {dim = [0, 1]} : (tensor<3x4xi1>) -> tensor<i1>
    func.return %0 : tensor<i1>
  }
  func.func @any_default(%a: tensor<3x4xi1>) -> tensor<i1> {
    %0 = torch.any_default %a : (tensor<3x4xi1>) -> tensor<i1>
    func.return %0 : tensor<i1>
  }
  func.func @all(%a: tensor<3x4xi1>) -> tensor<1x4xi1> {
    %0 = torch.all %a {dim = 0, keepdim = true} : (tensor<3x4xi1>) -> tensor<1x4xi1>
    func.return %0 : tensor<1x4xi1>
  }
  func.func @all_dims(%a: tensor<3x4xi64>) -> tensor<3x4xi1> {
    %0 = torch.all_dims %a {dim = []} : (tensor<3x4xi64>) -> tensor<3x4xi1>
    func.return %0 : tensor<3x4xi1>
  }
  func.func @all_dims_1(%a: tensor<3x4xi1>) -> tensor<4xi1> {
    %0 = torch.all_dims %a {dim = [0]} : (tensor<3x4xi1>) -> tensor<4xi1>
    func.return %0 : tensor<4xi1>
  }
  func.func @all_default(%a: tensor<3x4xi1>) -> tensor<i1> {
    %0 = torch.all_default %a : (tensor<3x4xi1>) -> tensor<i1>
    func.return %0 : tensor<i1>
  }
  func.func @max(%a: tensor<3x4x5xf32>) -> tensor<f32> {
    %0 = torch.max %a : (tensor<3x4x5xf32>) -> tensor<f32>
    func.return %0 : tensor<f32>
  }
  func.func @min(%a: tensor<3x4x5xf32>) -> tensor<f32> {
    %0 = torch.min %a : (tensor<3x4x5xf32>) -> tensor<f32>
    func.return %0 : tensor<f32>
  }
  func.func @argmax(%a: tensor<3x4x5xf32>) -> tensor<3x5xi64> {
    %0 = torch.argmax %a {dim = 1} : (tensor<3x4x5xf32>) -> tensor<3x5xi64>
    func.return %0 : tensor<3x5xi64>
  }
  func.func @argmax_1(%a: tensor<3x4x5xf32>) -> tensor<i64> {
    %0 = torch.argmax %a : (tensor<3x4x5xf32>) -> tensor<i64>
    func.return %0 : tensor<i64>
  }
  func.func @argmin(%a: tensor<3x4x5xf32>) -> tensor<3x4x1xi64> {
    %0 = torch.argmin %a {dim = -1, keepdim = true} : (tensor<3x4x5xf32>) -> tensor<3x4x1xi64>
    func.return %0 : tensor<3x4x1xi64>
  }
  func.func @var(%a: tensor<3x4x5xf32>) -> tensor<1x4x1xf32> {
    %0 = torch.var %a {dim = [0, 2], correction = 0, keepdim = true} : (tensor<3x4x5xf32>) -> tensor<1x4x1xf32>
    func.return %0 : tensor<1x4x1xf32>
  }
  func.func @var_1(%a: tensor<3x4x5xf32>) -> tensor<f32> {
    %0 = torch.var %a : (tensor<3x4x5xf32>) -> tensor<f32>
    func.return %0 : tensor<f32>
  }
  func.func @view(%a: tensor<3x4x5xf32>) -> tensor<3x2x2x5xf32> {
    %0 = torch.view %a {size = [3, 2, 2, 5]} : (tensor<3x4x5xf32>) -> tensor<3x2x2x5xf32>
    func.return %0 : tensor<3x2x2x5xf32>
  }
  func.func @view_1(%a: tensor<3x4x5xf32>) -> tensor<12x5xf32> {
    %0 = torch.view %a {size = [12, 5]} : (tensor<3x4x5xf32>) -> tensor<12x5xf32>
    func.return %0 : tensor<12x5xf32>
  }
  func.func @_unsafe_view(%a: tensor<2x6xf32>) -> tensor<4x3xf32> {
    %0 = torch._unsafe_view %a {size = [4, 3]} : (tensor<2x6xf32>) -> tensor<4x3xf32>
    func.return %0 : tensor<4x3xf32>
  }
  func.func @permute(%a: tensor<3x4x5xf32>) -> tensor<5x3x4xf32> {
    %0 = torch.permute %a {dims = [2, 0, 1]} : (tensor<3x4x5xf32>) -> tensor<5x3x4xf32>
    func.return %0 : tensor<5x3x4xf32>
  }
  func.func @transpose(%a: tensor<3x4x5xf32>) -> tensor<3x5x4xf32> {
    %0 = torch.transpose %a {dim0 = -2, dim1 = -1} : (tensor<3x4x5xf32>) -> tensor<3x5x4xf32>
    func.return %0 : tensor<3x5x4xf32>
  }
  func.func @transpose_1(%a: tensor<3x4x5xf32>) -> tensor<5x4x3xf32> {
    %0 = torch.transpose %a {dim0 = 0, dim1 = 2} : (tensor<3x4x5xf32>) -> tensor<5x4x3xf32>
    func.return %0 : tensor<5x4x3xf32>
  }
  func.func @t(%a: tensor<5xf32>) -> tensor<5xf32> {
    %0 = torch.t %a : (tensor<5xf32>) -> tensor<5xf32>
    func.return %0 : tensor<5xf32>
  }
  func.func @t_1(%a: tensor<4x5xf32>) -> tensor<5x4xf32> {
    %0 = torch.t %a : (tensor<4x5xf32>) -> tensor<5x4xf32>
    func.return %0 : tensor<5x4xf32>
  }
  func.func @slice(%a: tensor<3x4x5xf32>) -> tensor<3x4x2xf32> {
    %0 = torch.slice %a {dim = 2, start = -3, end = -1} : (tensor<3x4x5xf32>) -> tensor<3x4x2xf32>
    func.return %0 : tensor<3x4x2xf32>
  }
  func.func @slice_1(%a: tensor<3x4x5xf32>) -> tensor<2x4x5xf32> {
    %0 = torch.slice %a {start = 1} : (tensor<3x4x5xf32>) -> tensor<2x4x5xf32>
    func.return %0 : tensor<2x4x5xf32>
  }
  func.func @select(%a: tensor<3x5xf32>) -> tensor<3xf32> {
    %0 = torch.select %a {dim = 1, index = 3} : (tensor<3x5xf32>) -> tensor<3xf32>
    func.return %0 : tensor<3xf32>
  }
  func.func @select_1(%a: tensor<4x5xf32>) -> tensor<5xf32> {
    %0 = torch.select %a {dim = 0, index = 0} : (tensor<4x5xf32>) -> tensor<5xf32>
    func.return %0 : tensor<5xf32>
  }
  func.func @unsqueeze(%a: tensor<3x4x5xf32>) -> tensor<3x4x5x1xf32> {
    %0 = torch.unsqueeze %a {dim = -1} : (tensor<3x4x5xf32>) -> tensor<3x4x5x1xf32>
    func.return %0 : tensor<3x4x5x1xf32>
  }
  func.func @unsqueeze_1(%a: tensor<3x4x5xf32>) -> tensor<1x3x4x5xf32> {
    %0 = torch.unsqueeze %a {dim = 0} : (tensor<3x4x5xf32>) -> tensor<1x3x4x5xf32>
    func.return %0 : tensor<1x3x4x5xf32>
  }
  func.func @squeeze(%a: tensor<1x4x1xf32>) -> tensor<4xf32> {
    %0 = torch.squeeze %a {dim = [0, 2]} : (tensor<1x4x1xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
  func.func @squeeze_dim(%a: tensor<3x1x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.squeeze_dim %a {dim = 1} : (tensor<3x1x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @squeeze_default(%a: tensor<1x4x1xf32>) -> tensor<4xf32> {
    %0 = torch.squeeze_default %a : (tensor<1x4x1xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
  func.func @expand(%a: tensor<3x1xf32>) -> tensor<2x3x4xf32> {
    %0 = torch.expand %a {size = [2, 3, 4]} : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
    func.return %0 : tensor<2x3x4xf32>
  }
  func.func @cat(%a: tensor<3x5xf32>, %b: tensor<3x7xf32>) -> tensor<3x17xf32> {
    %0 = torch.cat [%a, %b, %a] {dim = 1} : (tensor<3x5xf32>, tensor<3x7xf32>, tensor<3x5xf32>) -> tensor<3x17xf32>
    func.return %0 : tensor<3x17xf32>
  }
  func.func @stack(%a: tensor<3x4x5xf32>, %b: tensor<3x4x5xf32>) -> tensor<3x4x5x2xf32> {
    %0 = torch.stack [%a, %b] {dim = -1} : (tensor<3x4x5xf32>, tensor<3x4x5xf32>) -> tensor<3x4x5x2xf32>
    func.return %0 : tensor<3x4x5x2xf32>
  }
  func.func @stack_1(%a: tensor<3x4x5xf32>, %b: tensor<3x4x5xf32>) -> tensor<2x3x4x5xf32> {
    %0 = torch.stack [%a, %b] : (tensor<3x4x5xf32>, tensor<3x4x5xf32>) -> tensor<2x3x4x5xf32>
    func.return %0 : tensor<2x3x4x5xf32>
  }
  func.func @split_with_sizes(%a: tensor<3x4x5xf32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xf32>, tensor<3x4x1xf32>) {
    %0, %1, %2 = torch.split_with_sizes %a {split_sizes = [2, 2, 1], dim = 2} : (tensor<3x4x5xf32>) -> (tensor<3x4x2xf32>, tensor<3x4x2xf32>, tensor<3x4x1xf32>)
    func.return %0, %1, %2 : tensor<3x4x2xf32>, tensor<3x4x2xf32>, tensor<3x4x1xf32>
  }
  func.func @repeat(%a: tensor<3x4x5xf32>) -> tensor<2x3x4x5xf32> {
    %0 = torch.repeat %a {repeats = [2, 1, 1, 1]} : (tensor<3x4x5xf32>) -> tensor<2x3x4x5xf32>
    func.return %0 : tensor<2x3x4x5xf32>
  }
  func.func @repeat_1(%a: tensor<3x4x5xf32>) -> tensor<6x4x15xf32> {
    %0 = torch.repeat %a {repeats = [2, 1, 3]} : (tensor<3x4x5xf32>) -> tensor<6x4x15xf32>
    func.return %0 : tensor<6x4x15xf32>
  }
  func.func @constant_pad_nd(%a: tensor<3x4x5xf32>) -> tensor<3x7x5xf32> {
    %0 = torch.constant_pad_nd %a {pad = [0, 0, 2, 1], value = -1.5 : f64} : (tensor<3x4x5xf32>) -> tensor<3x7x5xf32>
    func.return %0 : tensor<3x7x5xf32>
  }
  func.func @constant_pad_nd_1(%a: tensor<3x4x5xf32>) -> tensor<3x4x8xf32> {
    %0 = torch.constant_pad_nd %a {pad = [1, 2], value = 0.0 : f64} : (tensor<3x4x5xf32>) -> tensor<3x4x8xf32>
    func.return %0 : tensor<3x4x8xf32>
  }
  func.func @flip(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.flip %a {dims = [0, -1]} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @flip_1(%a: tensor<3x4xi64>) -> tensor<3x4xi64> {
    %0 = torch.flip %a {dims = [0]} : (tensor<3x4xi64>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @tril(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.tril %a {diagonal = 1} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @tril_1(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.tril %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @triu(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.triu %a {diagonal = -1} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @triu_1(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.triu %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @softmax(%a: tensor<4x8xf16>) -> tensor<4x8xf32> {
    %0 = torch.softmax %a {dim = -1, dtype = f32} : (tensor<4x8xf16>) -> tensor<4x8xf32>
    func.return %0 : tensor<4x8xf32>
  }
  func.func @softmax_1(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.softmax %a {dim = 0} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @_softmax(%a: tensor<4x8xf16>) -> tensor<4x8xf32> {
    %0 = torch._softmax %a {dim = -1, half_to_float = true} : (tensor<4x8xf16>) -> tensor<4x8xf32>
    func.return %0 : tensor<4x8xf32>
  }
  func.func @log_softmax(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.log_softmax %a {dim = 1} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @log_softmax_1(%a: tensor<f32>) -> tensor<f32> {
    %0 = torch.log_softmax %a {dim = -1} : (tensor<f32>) -> tensor<f32>
    func.return %0 : tensor<f32>
  }
  func.func @_log_softmax(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
    %0 = torch._log_softmax %a {dim = 1, half_to_float = false} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    func.return %0 : tensor<4x8xf32>
  }
  func.func @linear(%a: tensor<3x4x5xf32>, %b: tensor<16x5xf32>, %c: tensor<16xf32>) -> tensor<3x4x16xf32> {
    %0 = torch.linear %a, %b, %c : (tensor<3x4x5xf32>, tensor<16x5xf32>, tensor<16xf32>) -> tensor<3x4x16xf32>
    func.return %0 : tensor<3x4x16xf32>
  }
  func.func @linear_1(%a: tensor<3x4x5xf32>, %b: tensor<7x5xf32>, %c: tensor<7xf32>) -> tensor<3x4x7xf32> {
    %0 = torch.linear %a, %b, %c : (tensor<3x4x5xf32>, tensor<7x5xf32>, tensor<7xf32>) -> tensor<3x4x7xf32>
    func.return %0 : tensor<3x4x7xf32>
  }
  func.func @matmul(%a: tensor<2x1x3x4xf32>, %b: tensor<5x4x2xf32>) -> tensor<2x5x3x2xf32> {
    %0 = torch.matmul %a, %b : (tensor<2x1x3x4xf32>, tensor<5x4x2xf32>) -> tensor<2x5x3x2xf32>
    func.return %0 : tensor<2x5x3x2xf32>
  }
  func.func @matmul_1(%a: tensor<3x4x5xf32>, %b: tensor<5x2xf32>) -> tensor<3x4x2xf32> {
    %0 = torch.matmul %a, %b : (tensor<3x4x5xf32>, tensor<5x2xf32>) -> tensor<3x4x2xf32>
    func.return %0 : tensor<3x4x2xf32>
  }
  func.func @mm(%a: tensor<3x4xi64>, %b: tensor<4x3xi64>) -> tensor<3x3xi64> {
    %0 = torch.mm %a, %b : (tensor<3x4xi64>, tensor<4x3xi64>) -> tensor<3x3xi64>
    func.return %0 : tensor<3x3xi64>
  }
  func.func @bmm(%a: tensor<3x4x5xf32>, %b: tensor<3x5x4xf32>) -> tensor<3x4x4xf32> {
    %0 = torch.bmm %a, %b : (tensor<3x4x5xf32>, tensor<3x5x4xf32>) -> tensor<3x4x4xf32>
    func.return %0 : tensor<3x4x4xf32>
  }
  func.func @addmm(%a: tensor<3xf32>, %b: tensor<2x4xf32>, %c: tensor<4x3xf32>) -> tensor<2x3xf32> {
    %0 = torch.addmm %a, %b, %c {beta = 0, alpha = 2} : (tensor<3xf32>, tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    func.return %0 : tensor<2x3xf32>
  }
  func.func @addmm_1(%a: tensor<3xf32>, %b: tensor<2x4xf32>, %c: tensor<4x3xf32>) -> tensor<2x3xf32> {
    %0 = torch.addmm %a, %b, %c : (tensor<3xf32>, tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    func.return %0 : tensor<2x3xf32>
  }
  func.func @baddbmm(%a: tensor<2x1x5xf32>, %b: tensor<2x3x4xf32>, %c: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {
    %0 = torch.baddbmm %a, %b, %c {beta = 0.5 : f64} : (tensor<2x1x5xf32>, tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
    func.return %0 : tensor<2x3x5xf32>
  }
  func.func @rms_norm(%a: tensor<4x8xf16>, %b: tensor<8xf16>) -> tensor<4x8xf16> {
    %0 = torch.rms_norm %a, %b {normalized_shape = [8], eps = 0.001 : f64} : (tensor<4x8xf16>, tensor<8xf16>) -> tensor<4x8xf16>
    func.return %0 : tensor<4x8xf16>
  }
  func.func @rms_norm_1(%a: tensor<3x4x5xf32>, %b: tensor<5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.rms_norm %a, %b {normalized_shape = [5]} : (tensor<3x4x5xf32>, tensor<5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @layer_norm(%a: tensor<3x4x5xf32>, %b: tensor<4x5xf32>, %c: tensor<4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.layer_norm %a, %b, %c {normalized_shape = [4, 5]} : (tensor<3x4x5xf32>, tensor<4x5xf32>, tensor<4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @layer_norm_1(%a: tensor<3x4x5xf32>, %b: tensor<5xf32>, %c: tensor<5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.layer_norm %a, %b, %c {normalized_shape = [5]} : (tensor<3x4x5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @native_layer_norm(%a: tensor<3x4x5xf32>) -> (tensor<3x4x5xf32>, tensor<3x4x1xf32>, tensor<3x4x1xf32>) {
    %0, %1, %2 = torch.native_layer_norm %a, none, none {normalized_shape = [5], eps = 1.0e-05 : f64} : (tensor<3x4x5xf32>) -> (tensor<3x4x5xf32>, tensor<3x4x1xf32>, tensor<3x4x1xf32>)
    func.return %0, %1, %2 : tensor<3x4x5xf32>, tensor<3x4x1xf32>, tensor<3x4x1xf32>
  }
  func.func @scaled_dot_product_attention(%a: tensor<2x4x3x8xf32>, %b: tensor<2x4x6x8xf32>, %c: tensor<2x4x6x5xf32>) -> tensor<2x4x3x5xf32> {
    %0 = torch.scaled_dot_product_attention %a, %b, %c, none {is_causal = true, scale = 0.3 : f64} : (tensor<2x4x3x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x5xf32>) -> tensor<2x4x3x5xf32>
    func.return %0 : tensor<2x4x3x5xf32>
  }
  func.func @scaled_dot_product_attention_1(%a: tensor<2x4x3x8xf32>, %b: tensor<2x4x6x8xf32>, %c: tensor<2x4x6x5xf32>) -> tensor<2x4x3x5xf32> {
    %0 = torch.scaled_dot_product_attention %a, %b, %c, none : (tensor<2x4x3x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x5xf32>) -> tensor<2x4x3x5xf32>
    func.return %0 : tensor<2x4x3x5xf32>
  }
  func.func @embedding(%a: tensor<10x4xf32>, %b: tensor<2x3xi64>) -> tensor<2x3x4xf32> {
    %0 = torch.embedding %a, %b : (tensor<10x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
    func.return %0 : tensor<2x3x4xf32>
  }
  func.func @arange() -> tensor<10xf32> {
    %0 = torch.arange {start = 0.5 : f64, end = 3, step = 0.25 : f64} : () -> tensor<10xf32>
    func.return %0 : tensor<10xf32>
  }
  func.func @arange_1() -> tensor<3xi64> {
    %0 = torch.arange {start = 1, end = 9, step = 3} : () -> tensor<3xi64>
    func.return %0 : tensor<3xi64>
  }
  func.func @arange_default() -> tensor<5xi64> {
    %0 = torch.arange_default {end = 5} : () -> tensor<5xi64>
    func.return %0 : tensor<5xi64>
  }
  func.func @full() -> tensor<2x3xf32> {
    %0 = torch.full {size = [2, 3], fill_value = 1.5 : f64} : () -> tensor<2x3xf32>
    func.return %0 : tensor<2x3xf32>
  }
  func.func @zeros() -> tensor<2x3xf32> {
    %0 = torch.zeros {size = [2, 3]} : () -> tensor<2x3xf32>
    func.return %0 : tensor<2x3xf32>
  }
  func.func @ones() -> tensor<4x5xi1> {
    %0 = torch.ones {size = [4, 5], dtype = i1} : () -> tensor<4x5xi1>
    func.return %0 : tensor<4x5xi1>
  }
  func.func @ones_1() -> tensor<2xi1> {
    %0 = torch.ones {size = [2], dtype = i1} : () -> tensor<2xi1>
    func.return %0 : tensor<2xi1>
  }
  func.func @scalar_tensor() -> tensor<f32> {
    %0 = torch.scalar_tensor {s = 0xfff0000000000000 : f64, dtype = f32} : () -> tensor<f32>
    func.return %0 : tensor<f32>
  }
  func.func @scalar_tensor_1() -> tensor<f16> {
    %0 = torch.scalar_tensor {s = 0.0 : f64, dtype = f16} : () -> tensor<f16>
    func.return %0 : tensor<f16>
  }
  func.func @full_like(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.full_like %a {fill_value = 3.0 : f64} : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @zeros_like(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.zeros_like %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @ones_like(%a: tensor<3x4x5xf32>) -> tensor<3x4x5xf32> {
    %0 = torch.ones_like %a : (tensor<3x4x5xf32>) -> tensor<3x4x5xf32>
    func.return %0 : tensor<3x4x5xf32>
  }
  func.func @gather(%a: tensor<3x4xf32>, %b: tensor<2x3xi64>) -> tensor<2x3xf32> {
    %0 = torch.gather %a, %b {dim = 1} : (tensor<3x4xf32>, tensor<2x3xi64>) -> tensor<2x3xf32>
    func.return %0 : tensor<2x3xf32>
  }
  func.func @index_select(%a: tensor<3x4xf32>, %b: tensor<2xi32>) -> tensor<3x2xf32> {
    %0 = torch.index_select %a, %b {dim = -1} : (tensor<3x4xf32>, tensor<2xi32>) -> tensor<3x2xf32>
    func.return %0 : tensor<3x2xf32>
  }
  func.func @index(%a: tensor<2x8x9xf32>, %b: tensor<4x1xi64>, %c: tensor<3xi64>) -> tensor<2x4x3xf32> {
    %0 = torch.index %a, [%b, %c] {dim = 1} : (tensor<2x8x9xf32>, tensor<4x1xi64>, tensor<3xi64>) -> tensor<2x4x3xf32>
    func.return %0 : tensor<2x4x3xf32>
  }
  func.func @sort(%a: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi64>) {
    %0, %1 = torch.sort %a {dim = 0, descending = true} : (tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi64>)
    func.return %0, %1 : tensor<3x4xf32>, tensor<3x4xi64>
  }
  func.func @sort_stable(%a: tensor<f32>) -> (tensor<f32>, tensor<i64>) {
    %0, %1 = torch.sort_stable %a {stable = true} : (tensor<f32>) -> (tensor<f32>, tensor<i64>)
    func.return %0, %1 : tensor<f32>, tensor<i64>
  }
  func.func @topk(%a: tensor<3x4xbf16>) -> (tensor<3x2xbf16>, tensor<3x2xi64>) {
    %0, %1 = torch.topk %a {k = 2, largest = false, sorted = false} : (tensor<3x4xbf16>) -> (tensor<3x2xbf16>, tensor<3x2xi64>)
    func.return %0, %1 : tensor<3x2xbf16>, tensor<3x2xi64>
  }
  func.func @kthvalue(%a: tensor<3x4xi32>) -> (tensor<1x4xi32>, tensor<1x4xi64>) {
    %0, %1 = torch.kthvalue %a {k = 3, dim = 0, keepdim = true} : (tensor<3x4xi32>) -> (tensor<1x4xi32>, tensor<1x4xi64>)
    func.return %0, %1 : tensor<1x4xi32>, tensor<1x4xi64>
  }
  func.func @median(%a: tensor<3x4xf32>) -> tensor<f32> {
    %0 = torch.median %a : (tensor<3x4xf32>) -> tensor<f32>
    func.return %0 : tensor<f32>
  }
  func.func @median_dim(%a: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xi64>) {
    %0, %1 = torch.median_dim %a {dim = 1} : (tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xi64>)
    func.return %0, %1 : tensor<3xf32>, tensor<3xi64>
  }
  func.func @nanmedian(%a: tensor<3x4xf32>) -> tensor<f32> {
    %0 = torch.nanmedian %a : (tensor<3x4xf32>) -> tensor<f32>
    func.return %0 : tensor<f32>
  }
  func.func @nanmedian_dim(%a: tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xi64>) {
    %0, %1 = torch.nanmedian_dim %a {dim = 1} : (tensor<3x4xf32>) -> (tensor<3xf32>, tensor<3xi64>)
    func.return %0, %1 : tensor<3xf32>, tensor<3xi64>
  }
  func.func @cummax(%a: tensor<3x4xi1>) -> (tensor<3x4xi1>, tensor<3x4xi64>) {
    %0, %1 = torch.cummax %a {dim = 1} : (tensor<3x4xi1>) -> (tensor<3x4xi1>, tensor<3x4xi64>)
    func.return %0, %1 : tensor<3x4xi1>, tensor<3x4xi64>
  }
  func.func @cummin(%a: tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi64>) {
    %0, %1 = torch.cummin %a {dim = 0} : (tensor<3x4xf32>) -> (tensor<3x4xf32>, tensor<3x4xi64>)
    func.return %0, %1 : tensor<3x4xf32>, tensor<3x4xi64>
  }
  func.func @logcumsumexp(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
    %0 = torch.logcumsumexp %a {dim = 0} : (tensor<3x4xf32>) -> tensor<3x4xf32>
    func.return %0 : tensor<3x4xf32>
  }
  func.func @searchsorted(%a: tensor<3x4xf32>, %b: tensor<3x2xf32>, %c: tensor<3x4xi64>) -> tensor<3x2xi32> {
    %0 = torch.searchsorted %a, %b, %c {out_int32 = true, side = "right"} : (tensor<3x4xf32>, tensor<3x2xf32>, tensor<3x4xi64>) -> tensor<3x2xi32>
    func.return %0 : tensor<3x2xi32>
  }
  func.func @searchsorted_scalar(%a: tensor<4xf32>) -> tensor<i64> {
    %0 = torch.searchsorted_scalar %a, none {input = 2.5 : f64} : (tensor<4xf32>) -> tensor<i64>
    func.return %0 : tensor<i64>
  }
  func.func @bucketize(%a: tensor<3x4xf32>, %b: tensor<7xf32>) -> tensor<3x4xi64> {
    %0 = torch.bucketize %a, %b {right = true} : (tensor<3x4xf32>, tensor<7xf32>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @bucketize_scalar(%a: tensor<4xi64>) -> tensor<i64> {
    %0 = torch.bucketize_scalar %a {input = 3} : (tensor<4xi64>) -> tensor<i64>
    func.return %0 : tensor<i64>
  }
  func.func @scatter(%a: tensor<3x4xf32>, %b: tensor<2x3xi64>, %c: tensor<2x5xf32>) -> tensor<3x4xf32> {
    %0 = torch.scatter %a, %b, %c {dim = 0} : (tensor<3x4xf32>, tensor<2x3xi64>, tensor<2x5xf32>) -> tensor<3x4xf32>
    func.return %0 : tensor<3x4xf32>
  }
  func.func @scatter_value(%a: tensor<3x4xf32>, %b: tensor<2x3xi64>) -> tensor<3x4xf32> {
    %0 = torch.scatter_value %a, %b {dim = -1, value = 1.5 : f64} : (tensor<3x4xf32>, tensor<2x3xi64>) -> tensor<3x4xf32>
    func.return %0 : tensor<3x4xf32>
  }
  func.func @scatter_add(%a: tensor<3xi8>, %b: tensor<5xi64>, %c: tensor<5xi8>) -> tensor<3xi8> {
    %0 = torch.scatter_add %a, %b, %c {dim = 0} : (tensor<3xi8>, tensor<5xi64>, tensor<5xi8>) -> tensor<3xi8>
    func.return %0 : tensor<3xi8>
  }
  func.func @scatter_reduce(%a: tensor<3xf32>, %b: tensor<5xi64>, %c: tensor<5xf32>) -> tensor<3xf32> {
    %0 = torch.scatter_reduce %a, %b, %c {dim = 0, reduce = "amax", include_self = false} : (tensor<3xf32>, tensor<5xi64>, tensor<5xf32>) -> tensor<3xf32>
    func.return %0 : tensor<3xf32>
  }
  func.func @index_reduce(%a: tensor<3x4xf32>, %b: tensor<2xi32>, %c: tensor<3x2xf32>) -> tensor<3x4xf32> {
    %0 = torch.index_reduce %a, %b, %c {dim = 1, reduce = "mean"} : (tensor<3x4xf32>, tensor<2xi32>, tensor<3x2xf32>) -> tensor<3x4xf32>
    func.return %0 : tensor<3x4xf32>
  }
  func.func @index_add(%a: tensor<3x4xf32>, %b: tensor<2xi64>, %c: tensor<2x4xf32>) -> tensor<3x4xf32> {
    %0 = torch.index_add %a, %b, %c {dim = 0, alpha = 2} : (tensor<3x4xf32>, tensor<2xi64>, tensor<2x4xf32>) -> tensor<3x4xf32>
    func.return %0 : tensor<3x4xf32>
  }
  func.func @index_put(%a: tensor<2x8x9xf32>, %b: tensor<4x1xi64>, %c: tensor<3xi64>, %d: tensor<4x3xf32>) -> tensor<2x8x9xf32> {
    %0 = torch.index_put %a, [%b, %c], %d {dim = 1, accumulate = true} : (tensor<2x8x9xf32>, tensor<4x1xi64>, tensor<3xi64>, tensor<4x3xf32>) -> tensor<2x8x9xf32>
    func.return %0 : tensor<2x8x9xf32>
  }
  func.func @masked_scatter(%a: tensor<3x4xf32>, %b: tensor<4xi1>, %c: tensor<7xf32>) -> tensor<3x4xf32> {
    %0 = torch.masked_scatter %a, %b, %c : (tensor<3x4xf32>, tensor<4xi1>, tensor<7xf32>) -> tensor<3x4xf32>
    func.return %0 : tensor<3x4xf32>
  }
  func.func @diagonal_scatter(%a: tensor<3x4xf32>, %b: tensor<2xf32>) -> tensor<3x4xf32> {
    %0 = torch.diagonal_scatter %a, %b {offset = -1} : (tensor<3x4xf32>, tensor<2xf32>) -> tensor<3x4xf32>
    func.return %0 : tensor<3x4xf32>
  }
  func.func @as_strided(%a: tensor<3x4xf32>) -> tensor<4x2xf32> {
    %0 = torch.as_strided %a {size = [4, 2], stride = [1, 4], storage_offset = 3} : (tensor<3x4xf32>) -> tensor<4x2xf32>
    func.return %0 : tensor<4x2xf32>
  }
  func.func @as_strided_scatter(%a: tensor<3x4xf32>, %b: tensor<4x2xf32>) -> tensor<3x4xf32> {
    %0 = torch.as_strided_scatter %a, %b {size = [4, 2], stride = [1, 4], storage_offset = 3} : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x4xf32>
    func.return %0 : tensor<3x4xf32>
  }
  func.func @as_strided_copy(%a: tensor<3x4xf32>) -> tensor<5xf32> {
    %0 = torch.as_strided_copy %a {size = [5], stride = [0]} : (tensor<3x4xf32>) -> tensor<5xf32>
    func.return %0 : tensor<5xf32>
  }
  func.func @cumsum(%a: tensor<3x4xi1>) -> tensor<3x4xi64> {
    %0 = torch.cumsum %a {dim = -1} : (tensor<3x4xi1>) -> tensor<3x4xi64>
    func.return %0 : tensor<3x4xi64>
  }
  func.func @dynamic(%a: tensor<?x4xf32, #sym.extents<s0>>) -> tensor<?x4xf32, #sym.extents<s0>> {
    %0 = torch.softmax %a {dim = -1} : (tensor<?x4xf32, #sym.extents<s0>>) -> tensor<?x4xf32, #sym.extents<s0>>
    func.return %0 : tensor<?x4xf32, #sym.extents<s0>>
  }
  func.func @empty(%a: tensor<0x4xf32>) -> tensor<4xf32> {
    %0 = torch.sum %a {dim = [0]} : (tensor<0x4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
  func.func @discardable(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = torch.exp %a {deplo.note = "kept"} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
  func.func @bias_absent(%a: tensor<4x3xf32>, %b: tensor<2x3xf32>) -> tensor<4x2xf32> {
    %0 = torch.linear %a, %b, none : (tensor<4x3xf32>, tensor<2x3xf32>) -> tensor<4x2xf32>
    func.return %0 : tensor<4x2xf32>
  }
  func.func @call(%a: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
    %0, %1 = torch.call "aten.linalg_eigh.default"(input = %a, UPLO = "L") : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
    func.return %0, %1 : tensor<4x4xf32>, tensor<4xf32>
  }
  func.func @call_arguments(%a: tensor<4xf32>, %b: tensor<2xcomplex<f32>>, %c: tensor<2x3x4xf32>) {
    %0 = torch.call "aten.index.Tensor"(input = %a, indices = [none, %a]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xui8>
    %1 = torch.call "my.op.out"(x = [], "a b" = [[1, -2], []], on = true, scale = -2.5 : f64, dtype = complex<f32>, top = none) : () -> tensor<2xcomplex<f64>>
    torch.call "my.check.default"(x = %a) : (tensor<4xf32>) -> ()
    torch.call "my.check.default"(x = permute(%b, [0]), y = [permute(%c, [2, 0, 1]), %a]) : (tensor<2xcomplex<f32>>, tensor<2x3x4xf32>, tensor<4xf32>) -> ()
    func.return
  }
  func.func @call_annotated(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = torch.call "aten.erfinv.default"(input = %a) attributes {deplo.note = "kept"} : (tensor<4xf32>) -> tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
  func.func @scan(%h: tensor<2x4xf32>, %x: tensor<9x2x4xf32>, %w: tensor<4x4xf32>) -> tensor<9x2x4xf32> {
    %0, %1 = torch.scan carried(%h) slices(%x) shared(%w) : (tensor<2x4xf32>, tensor<9x2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<9x2x4xf32>) {
    ^bb0(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %c: tensor<4x4xf32>):
      %2 = torch.mm %a, %c : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
      %3 = torch.add %2, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
      torch.yield %3, %3 : tensor<2x4xf32>, tensor<2x4xf32>
    }
    func.return %1 : tensor<9x2x4xf32>
  }
  func.func @scan_reversed(%h: tensor<4xf32>, %x: tensor<9x4xf32>) -> tensor<4xf32> {
    %0 = torch.scan reversed carried(%h) slices(%x) shared() attributes {deplo.note = "kept"} : (tensor<4xf32>, tensor<9x4xf32>) -> tensor<4xf32> {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %1 = torch.mul %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      torch.yield %1 : tensor<4xf32>
    }
    func.return %0 : tensor<4xf32>
  }
}
