// RUN: deplo-opt %s -p expand-scatter --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p expand-scatter --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p expand-scatter --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'expand-scatter{target=cpu}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=CPU

// The indices are checked once. An element that nothing is added to stays as it is: -0.0 + 0.0 would not be -0.0.
// CHECK-LABEL: func.func @main(%x: tensor<5xf32>
// CHECK: [[I:%.*]] = tensor_ir.elementwise min
// CHECK-NEXT: [[ALL:%.*]] = tensor_ir.iota 0 : tensor<5xi64>
// CHECK-NEXT: [[CHECKED:%.*]] = tensor_ir.gather [[ALL]]{{\[}}[[I]]] along 0
// CHECK-NEXT: [[INDEX:%.*]] = tensor_ir.index_map (i, j) -> [[CHECKED]][j] : (tensor<4xi64>) -> tensor<5x4xi64>
// CHECK-NEXT: [[HERE:%.*]] = tensor_ir.iota 0 : tensor<5x4xi64>
// CHECK-NEXT: [[HITS:%.*]] = tensor_ir.elementwise eq([[INDEX]], [[HERE]])
// CHECK-NEXT: [[ZERO:%.*]] = tensor_ir.constant 0.0 : tensor<5x4xf32>
// CHECK-NEXT: [[UPDATES:%.*]] = tensor_ir.index_map (i, j) -> %u[j]
// CHECK-NEXT: [[HIT:%.*]] = tensor_ir.elementwise select([[HITS]], [[UPDATES]], [[ZERO]])
// CHECK-NEXT: [[SUM:%.*]] = tensor_ir.reduce add([[HIT]]) over [1]
// CHECK-NEXT: [[FLAT:%.*]] = tensor_ir.index_map (i) -> [[SUM]][i, 0]
// CHECK-NEXT: [[ADDED:%.*]] = tensor_ir.elementwise add(%x, [[FLAT]])
// CHECK:      [[ANY:%.*]] = tensor_ir.reduce any([[HITS]]) over [1]
// CHECK:      %y = tensor_ir.elementwise select({{.*}}, [[ADDED]], %x)
// CHECK-NEXT: func.return %y
// REMARK: remark: expand-scatter: y: 5 elements look at 4 updates each
func.func @main(%x: tensor<5xf32>, %i: tensor<4xi64>, %u: tensor<4xf32>) -> tensor<5xf32> {
  %0 = tensor_ir.constant 4 : tensor<4xi64>
  %1 = tensor_ir.elementwise min(%i, %0) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %y = tensor_ir.scatter add %x[%1] along 0 from %u : (tensor<5xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}

// -----

// Of the updates that replace an element, the last stays. One list of indices picks whole slices.
// CHECK-LABEL: func.func @main(%x: tensor<2x5x3xf32>
// CHECK: [[HITS:%.*]] = tensor_ir.elementwise eq({{.*}}) : (tensor<1x5x1x4xi64>, tensor<1x5x1x4xi64>)
// CHECK: [[AT:%.*]] = tensor_ir.elementwise select([[HITS]], {{.*}}) : {{.*}} -> tensor<1x5x1x4xi64>
// CHECK: [[LAST:%.*]] = tensor_ir.reduce max([[AT]]) over [3]
// CHECK: [[PICKED:%.*]] = tensor_ir.gather %u[{{.*}}] along 1 : (tensor<2x4x3xf32>, tensor<5xi64>)
// CHECK: tensor_ir.elementwise select({{.*}}, [[PICKED]], %x)
func.func @main(%x: tensor<2x5x3xf32>, %i: tensor<1x4x1xi64>, %u: tensor<2x4x3xf32>) -> tensor<2x5x3xf32> {
  %y = tensor_ir.scatter replace %x[%i] along 1 from %u : (tensor<2x5x3xf32>, tensor<1x4x1xi64>, tensor<2x4x3xf32>) -> tensor<2x5x3xf32>
  func.return %y : tensor<2x5x3xf32>
}

// -----

// An index per element: the position picked depends on the other axes too.
// CHECK-LABEL: func.func @main(%x: tensor<5x3xi32>
// CHECK: [[LAST:%.*]] = tensor_ir.reduce max({{.*}}) over [2] : tensor<5x3x4xi64>
// CHECK: [[FLAT:%.*]] = tensor_ir.index_map (i) -> %u[i floordiv 3, i mod 3]
// CHECK: tensor_ir.gather [[FLAT]][{{.*}}] along 0 : (tensor<12xi32>, tensor<5x3xi64>)
func.func @main(%x: tensor<5x3xi32>, %i: tensor<4x3xi64>, %u: tensor<4x3xi32>) -> tensor<5x3xi32> {
  %y = tensor_ir.scatter replace %x[%i] along 0 from %u : (tensor<5x3xi32>, tensor<4x3xi64>, tensor<4x3xi32>) -> tensor<5x3xi32>
  func.return %y : tensor<5x3xi32>
}

// -----

// Integers have one zero, and an extremum with its identity changes nothing.
// CHECK-LABEL: func.func @main(%x: tensor<5xi8>
// CHECK: tensor_ir.reduce add
// CHECK-NOT: tensor_ir.reduce any
// CHECK: tensor_ir.reduce min
// CHECK-NOT: tensor_ir.reduce any
func.func @main(%x: tensor<5xi8>, %i: tensor<4xi64>, %u: tensor<4xi8>) -> tensor<5xi8> {
  %a = tensor_ir.scatter add %x[%i] along 0 from %u : (tensor<5xi8>, tensor<4xi64>, tensor<4xi8>) -> tensor<5xi8>
  %b = tensor_ir.scatter min %a[%i] along 0 from %u : (tensor<5xi8>, tensor<4xi64>, tensor<4xi8>) -> tensor<5xi8>
  func.return %b : tensor<5xi8>
}

// -----

// No updates: the input.
// CHECK-LABEL: func.func @main(%x: tensor<5xf32>, %i: tensor<0xi64>
// CHECK: func.return %x
// REMARK: remark: expand-scatter: no tensor_ir operation in @main
func.func @main(%x: tensor<5xf32>, %i: tensor<0xi64>, %u: tensor<0xf32>) -> tensor<5xf32> {
  %y = tensor_ir.scatter replace %x[%i] along 0 from %u : (tensor<5xf32>, tensor<0xi64>, tensor<0xf32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}

// -----

// CHECK-LABEL: func.func @main(%x: tensor<5xf32>)
func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
  func.return %x : tensor<5xf32>
}

// -----

// Both the elements and the updates may be dynamic sizes.
// CHECK-LABEL: func.func @main(%x: tensor<?xf32, #sym.extents<s0>>
// CHECK: tensor_ir.gather {{.*}} along 0 : (tensor<?xi64, #sym.extents<s0>>, tensor<?xi64, #sym.extents<s1>>) -> tensor<?xi64, #sym.extents<s1>>
// CHECK: tensor_ir.reduce add({{.*}}) over [1] : tensor<?x?xf32, #sym.extents<s0, s1>> -> tensor<?x1xf32, #sym.extents<s0>>
// CHECK: %y = tensor_ir.elementwise select
func.func @main(%x: tensor<?xf32, #sym.extents<s0>>, %i: tensor<?xi64, #sym.extents<s1>>, %u: tensor<?xf32, #sym.extents<s1>>) -> tensor<?xf32, #sym.extents<s0>> attributes {sym.sizes = [#sym.size<"n", 2, 20, hint = 5>, #sym.size<"k", 1, 20, hint = 7>]} {
  %y = tensor_ir.scatter add %x[%i] along 0 from %u : (tensor<?xf32, #sym.extents<s0>>, tensor<?xi64, #sym.extents<s1>>, tensor<?xf32, #sym.extents<s1>>) -> tensor<?xf32, #sym.extents<s0>>
  func.return %y : tensor<?xf32, #sym.extents<s0>>
}

// -----

// A CPU makes many updates one by one, and compares few.
// CPU: remark: expand-scatter: y: declined: its updates are faster one by one
// CPU: remark: expand-scatter: z: 5 elements look at 4 updates each
func.func @main(%x: tensor<500xf32>, %i: tensor<4000xi64>, %u: tensor<4000xf32>, %a: tensor<5xf32>, %j: tensor<4xi64>, %b: tensor<4xf32>) -> (tensor<500xf32>, tensor<5xf32>) {
  %y = tensor_ir.scatter add %x[%i] along 0 from %u : (tensor<500xf32>, tensor<4000xi64>, tensor<4000xf32>) -> tensor<500xf32>
  %z = tensor_ir.scatter add %a[%j] along 0 from %b : (tensor<5xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<5xf32>
  func.return %y, %z : tensor<500xf32>, tensor<5xf32>
}

// -----

// REMARK: remark: expand-scatter: main: declined: there is no scatter
func.func @main(%x: tensor<5xf32>) -> tensor<5xf32> {
  %y = tensor_ir.elementwise neg(%x) : (tensor<5xf32>) -> tensor<5xf32>
  func.return %y : tensor<5xf32>
}
