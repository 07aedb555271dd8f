// RUN: deplo-opt %s -p masks-to-conditions,cse --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p masks-to-conditions --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p masks-to-conditions --split-input-file --check-each-pass >/dev/null

// A causal window, through a broadcast: two conditions.
// CHECK-LABEL: @window
// CHECK: tensor_ir.index_map (i, j, k) -> %x[i, j, k] if j - k >= 0 and k - j >= -2 else -inf
// REMARK: remark: masks-to-conditions: y: 2 conditions on positions
func.func @window(%x: tensor<2x8x8xf32>) -> tensor<2x8x8xf32> {
  %i = tensor_ir.iota 0 : tensor<8x8xi64>
  %p = tensor_ir.iota 0 : tensor<8xi64>
  %j = tensor_ir.index_map (i, j) -> %p[j] : (tensor<8xi64>) -> tensor<8x8xi64>
  %three = tensor_ir.constant 3 : tensor<8x8xi64>
  %a = tensor_ir.elementwise ge(%i, %j) : (tensor<8x8xi64>, tensor<8x8xi64>) -> tensor<8x8xi1>
  %d = tensor_ir.elementwise sub(%i, %j) : (tensor<8x8xi64>, tensor<8x8xi64>) -> tensor<8x8xi64>
  %b = tensor_ir.elementwise lt(%d, %three) : (tensor<8x8xi64>, tensor<8x8xi64>) -> tensor<8x8xi1>
  %m = tensor_ir.elementwise and(%a, %b) : (tensor<8x8xi1>, tensor<8x8xi1>) -> tensor<8x8xi1>
  %mask = tensor_ir.index_map (i, j, k) -> %m[j, k] : (tensor<8x8xi1>) -> tensor<2x8x8xi1>
  %low = tensor_ir.constant -inf : tensor<2x8x8xf32>
  %y = tensor_ir.elementwise select(%mask, %x, %low) : (tensor<2x8x8xi1>, tensor<2x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
  func.return %y : tensor<2x8x8xf32>
}

// -----

// What a mask fills, a band, and a mask that always holds.
// CHECK-LABEL: @others
// CHECK: tensor_ir.index_map (i, j) -> %x[i, j] if i - j >= 0 else 0.0
// CHECK: tensor_ir.index_map (i, j) -> %filled[i, j] if j - i >= 0 else 1.0
// CHECK-NOT: select
// REMARK: remark: masks-to-conditions: filled: 1 condition on positions
// REMARK: remark: masks-to-conditions: band: 1 condition on positions
// REMARK: remark: masks-to-conditions: all: 0 conditions on positions
func.func @others(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %i = tensor_ir.iota 0 : tensor<4x4xi64>
  %j = tensor_ir.iota 1 : tensor<4x4xi64>
  %zero = tensor_ir.constant 0.0 : tensor<4x4xf32>
  %one = tensor_ir.constant 1.0 : tensor<4x4xf32>
  %a = tensor_ir.elementwise lt(%i, %j) : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
  %filled = tensor_ir.elementwise select(%a, %zero, %x) : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = tensor_ir.elementwise le(%i, %j) : (tensor<4x4xi64>, tensor<4x4xi64>) -> tensor<4x4xi1>
  %band = tensor_ir.elementwise select(%b, %filled, %one) : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = tensor_ir.constant true : tensor<4x4xi1>
  %all = tensor_ir.elementwise select(%c, %band, %zero) : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %all : tensor<4x4xf32>
}

// -----

// Integers that wrap around are no positions; masks from data and of equal places stay masks; of two values
// neither is constant.
// CHECK-LABEL: @declined
// CHECK-COUNT-5: select
// REMARK: remark: masks-to-conditions: wraps: declined: its mask is made of more than positions
// REMARK: remark: masks-to-conditions: data: declined: its mask is made of more than positions
// REMARK: remark: masks-to-conditions: values: declined: where the mask does not hold, it is no constant
// REMARK: remark: masks-to-conditions: equal: declined: its mask is made of more than positions
// REMARK: remark: masks-to-conditions: between: declined: where the mask does not hold, it is no constant
func.func @declined(%x: tensor<200xf32>, %m: tensor<200xi1>) -> tensor<200xf32> {
  %i = tensor_ir.iota 0 : tensor<200xi64>
  %short = tensor_ir.cast %i : tensor<200xi64> to tensor<200xi8>
  %none = tensor_ir.constant 0 : tensor<200xi8>
  %ten = tensor_ir.constant 10 : tensor<200xi64>
  %five = tensor_ir.constant 5 : tensor<200xi64>
  %zero = tensor_ir.constant 0.0 : tensor<200xf32>
  %a = tensor_ir.elementwise ge(%short, %none) : (tensor<200xi8>, tensor<200xi8>) -> tensor<200xi1>
  %wraps = tensor_ir.elementwise select(%a, %x, %zero) : (tensor<200xi1>, tensor<200xf32>, tensor<200xf32>) -> tensor<200xf32>
  %data = tensor_ir.elementwise select(%m, %wraps, %zero) : (tensor<200xi1>, tensor<200xf32>, tensor<200xf32>) -> tensor<200xf32>
  %b = tensor_ir.elementwise ge(%i, %ten) : (tensor<200xi64>, tensor<200xi64>) -> tensor<200xi1>
  %values = tensor_ir.elementwise select(%b, %data, %x) : (tensor<200xi1>, tensor<200xf32>, tensor<200xf32>) -> tensor<200xf32>
  %same = tensor_ir.elementwise eq(%i, %ten) : (tensor<200xi64>, tensor<200xi64>) -> tensor<200xi1>
  %equal = tensor_ir.elementwise select(%same, %values, %zero) : (tensor<200xi1>, tensor<200xf32>, tensor<200xf32>) -> tensor<200xf32>
  %c = tensor_ir.elementwise ge(%i, %five) : (tensor<200xi64>, tensor<200xi64>) -> tensor<200xi1>
  %d = tensor_ir.elementwise lt(%i, %ten) : (tensor<200xi64>, tensor<200xi64>) -> tensor<200xi1>
  %e = tensor_ir.elementwise and(%c, %d) : (tensor<200xi1>, tensor<200xi1>) -> tensor<200xi1>
  %between = tensor_ir.elementwise select(%e, %zero, %equal) : (tensor<200xi1>, tensor<200xf32>, tensor<200xf32>) -> tensor<200xf32>
  func.return %between : tensor<200xf32>
}
