// RUN: deplo-opt %s -p expand-sort --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p expand-sort --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p expand-sort --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'expand-sort{target=cpu}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=CPU

// What is smaller comes before, NaN after all numbers, and of what is equal what stands first.
// CHECK-LABEL: func.func @main(%x: tensor<4x8xf32>)
// CHECK: [[HERE:%.*]] = tensor_ir.index_map (i, j, k) -> %x[i, j] : (tensor<4x8xf32>) -> tensor<4x8x8xf32>
// CHECK: [[OTHER:%.*]] = tensor_ir.index_map (i, j, k) -> %x[i, k]
// CHECK: [[LESS:%.*]] = tensor_ir.elementwise lt([[OTHER]], [[HERE]])
// CHECK: [[SAME:%.*]] = tensor_ir.elementwise eq([[OTHER]], [[HERE]])
// CHECK: [[NAN:%.*]] = tensor_ir.elementwise ne([[HERE]], [[HERE]])
// CHECK: [[OTHER_NAN:%.*]] = tensor_ir.elementwise ne([[OTHER]], [[OTHER]])
// CHECK: [[NUMBER:%.*]] = tensor_ir.elementwise not([[OTHER_NAN]])
// CHECK: [[LAST:%.*]] = tensor_ir.elementwise and([[NAN]], [[NUMBER]])
// CHECK: tensor_ir.elementwise or([[LESS]], [[LAST]])
// CHECK: tensor_ir.elementwise lt({{.*}}) : (tensor<4x8x8xi32>, tensor<4x8x8xi32>)
// CHECK: [[RANK:%.*]] = tensor_ir.reduce add({{.*}}) over [2] : tensor<4x8x8xi32> -> tensor<4x8x1xi32>
// CHECK: [[PLACE:%.*]] = tensor_ir.reduce add({{.*}}) over [2] : tensor<4x3x8xi32> -> tensor<4x3x1xi32>
// CHECK: %v = tensor_ir.gather {{.*}} along 0 : (tensor<32xf32>, tensor<4x3xi64>) -> tensor<4x3xf32>
// CHECK: func.return %v, %i
// REMARK: remark: expand-sort: v: 32 elements compare themselves with 8 each
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x3xf32>, tensor<4x3xi64>) {
  %v, %i = tensor_ir.sort %x along 1 : tensor<4x8xf32> -> (tensor<4x3xf32>, tensor<4x3xi64>)
  func.return %v, %i : tensor<4x3xf32>, tensor<4x3xi64>
}

// -----

// Descending, what is larger comes before, and NaN before all numbers. Integers have no NaN.
// CHECK-LABEL: func.func @main(%x: tensor<8xi64>)
// CHECK: tensor_ir.elementwise gt
// CHECK-NOT: tensor_ir.elementwise ne
// CHECK: tensor_ir.gather %x[
func.func @main(%x: tensor<8xi64>) -> (tensor<8xi64>, tensor<8xi64>) {
  %v, %i = tensor_ir.sort %x along 0 descending : tensor<8xi64> -> (tensor<8xi64>, tensor<8xi64>)
  func.return %v, %i : tensor<8xi64>, tensor<8xi64>
}

// -----

// CHECK-LABEL: func.func @main(%x: tensor<5x3xi1>)
// CHECK: tensor_ir.elementwise lt({{.*}}) : (tensor<5x3x5xi1>, tensor<5x3x5xi1>)
func.func @main(%x: tensor<5x3xi1>) -> (tensor<5x3xi1>, tensor<5x3xi64>) {
  %v, %i = tensor_ir.sort %x along 0 : tensor<5x3xi1> -> (tensor<5x3xi1>, tensor<5x3xi64>)
  func.return %v, %i : tensor<5x3xi1>, tensor<5x3xi64>
}

// -----

// REMARK: remark: expand-sort: no tensor_ir operation in @main
// CHECK-LABEL: func.func @main(%x: tensor<5xf32>)
func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
  func.return %x : tensor<5xf32>
}

// -----

// The axis may be a dynamic size; how much work that is, its hint says.
// CHECK-LABEL: func.func @main(%x: tensor<?x8xf32, #sym.extents<s0>>)
// CHECK: tensor_ir.index_map (i, j, k) -> %x[k, j] : (tensor<?x8xf32, #sym.extents<s0>>) -> tensor<?x8x?xf32, #sym.extents<s0, s0>>
// CHECK: tensor_ir.reduce add({{.*}}) over [2] : tensor<?x8x?xi32, #sym.extents<s0, s0>> -> tensor<?x8x1xi32, #sym.extents<s0>>
// CHECK: %v = tensor_ir.gather {{.*}} along 0 : (tensor<?xf32, #sym.extents<s0 * 8>>, tensor<3x8xi64>) -> tensor<3x8xf32>
// REMARK: remark: expand-sort: v: s0 * 8 elements compare themselves with s0 each
func.func @main(%x: tensor<?x8xf32, #sym.extents<s0>>) -> (tensor<3x8xf32>, tensor<3x8xi64>) attributes {sym.sizes = [#sym.size<"n", 3, 20, hint = 5>]} {
  %v, %i = tensor_ir.sort %x along 0 : tensor<?x8xf32, #sym.extents<s0>> -> (tensor<3x8xf32>, tensor<3x8xi64>)
  func.return %v, %i : tensor<3x8xf32>, tensor<3x8xi64>
}

// -----

// A CPU puts long rows in order, and compares the elements of short ones.
// CPU: remark: expand-sort: v: declined: its rows are faster in order
// CPU: remark: expand-sort: w: 32 elements compare themselves with 8 each
func.func @main(%x: tensor<4x500xf32>, %y: tensor<4x8xf32>) -> (tensor<4x3xf32>, tensor<4x8xi64>) {
  %v, %i = tensor_ir.sort %x along 1 : tensor<4x500xf32> -> (tensor<4x3xf32>, tensor<4x3xi64>)
  %w, %j = tensor_ir.sort %y along 1 : tensor<4x8xf32> -> (tensor<4x8xf32>, tensor<4x8xi64>)
  func.return %v, %j : tensor<4x3xf32>, tensor<4x8xi64>
}

// -----

// The element at a place is the one whose rank it is.
// CHECK-LABEL: func.func @main(%n: tensor<4x2xi64>
// CHECK: tensor_ir.elementwise max(%n, {{.*}})
// CHECK: [[INSIDE:%.*]] = tensor_ir.elementwise min(
// CHECK: [[PLACE:%.*]] = tensor_ir.cast [[INSIDE]] : tensor<4x2xi64> to tensor<4x2xi32>
// CHECK: tensor_ir.reduce add({{.*}}) over [2] : tensor<4x8x8xi32> -> tensor<4x8x1xi32>
// CHECK: [[WANTED:%.*]] = tensor_ir.index_map (i, j, k) -> [[PLACE]][i, j]
// CHECK: tensor_ir.elementwise eq({{.*}}, [[WANTED]])
// CHECK: tensor_ir.reduce add({{.*}}) over [2] : tensor<4x2x8xi32> -> tensor<4x2x1xi32>
// CPU: remark: expand-sort: i: 32 elements compare themselves with 8 each
// CPU: remark: expand-sort: j: declined: its rows are faster in order
func.func @main(%n: tensor<4x2xi64>, %x: tensor<4x8xf32>, %y: tensor<4x500xf32>) -> (tensor<4x2xi64>, tensor<4x2xi64>) {
  %i = tensor_ir.nth_element %n of %x along 1 : (tensor<4x2xi64>, tensor<4x8xf32>) -> tensor<4x2xi64>
  %j = tensor_ir.nth_element %n of %y along 1 : (tensor<4x2xi64>, tensor<4x500xf32>) -> tensor<4x2xi64>
  func.return %i, %j : tensor<4x2xi64>, tensor<4x2xi64>
}

// -----

// REMARK: remark: expand-sort: main: declined: there is no sort
func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
  %y = tensor_ir.elementwise neg(%x) : (tensor<5xf32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}
