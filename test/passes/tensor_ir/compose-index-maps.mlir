// RUN: deplo-opt %s -p compose-index-maps --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p compose-index-maps --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p compose-index-maps --split-input-file --check-each-pass >/dev/null

// A transpose feeding a slice is one map; the transpose, now unused, is gone.
// CHECK-LABEL: func.func @main(%x: tensor<8x4xf32>)
// CHECK-NEXT:    %s = tensor_ir.index_map (i, j) -> %x[j, i + 1] : (tensor<8x4xf32>) -> tensor<2x8xf32>
// CHECK-NEXT:    func.return %s
// REMARK: remark: compose-index-maps: s: reads through the layout change before it
func.func @main(%x: tensor<8x4xf32>) -> tensor<2x8xf32> {
  %t = tensor_ir.index_map (i, j) -> %x[j, i] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %s = tensor_ir.index_map (i, j) -> %t[i + 1, j] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  func.return %s : tensor<2x8xf32>
}

// -----

// A reshape and its inverse change nothing.
// CHECK-LABEL: func.func @main(%y: tensor<4x6xf32>)
// CHECK-NEXT:    func.return %y
// REMARK: remark: compose-index-maps: b: changes nothing, removed
func.func @main(%y: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %a = tensor_ir.index_map (i, j, k) -> %y[i * 2 + j, k] : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  %b = tensor_ir.index_map (i, j) -> %a[i floordiv 2, i mod 2, j] : (tensor<2x2x6xf32>) -> tensor<4x6xf32>
  func.return %b : tensor<4x6xf32>
}

// -----

// A slice that lies inside one part of a concatenation reads that part only.
// CHECK-LABEL: func.func @main(%a: tensor<4xf32>, %b: tensor<6xf32>)
// CHECK-NEXT:    %s = tensor_ir.index_map (i) -> %b[i + 1] : (tensor<6xf32>) -> tensor<3xf32>
// CHECK-NEXT:    func.return %s
func.func @main(%a: tensor<4xf32>, %b: tensor<6xf32>) -> tensor<3xf32> {
  %cat = tensor_ir.index_map (i) -> %a[i] if i < 4 else %b[i - 4] : (tensor<4xf32>, tensor<6xf32>) -> tensor<10xf32>
  %s = tensor_ir.index_map (i) -> %cat[i + 5] : (tensor<10xf32>) -> tensor<3xf32>
  func.return %s : tensor<3xf32>
}

// -----

// A layout change of a constant is a constant.
// CHECK:       %b = tensor_ir.constant 0.5 : tensor<3x4xf32>
// REMARK: remark: compose-index-maps: b: reads one constant value
func.func @main() -> tensor<3x4xf32> {
  %c = tensor_ir.constant 0.5 : tensor<f32>
  %b = tensor_ir.index_map (i, j) -> %c[] : (tensor<f32>) -> tensor<3x4xf32>
  func.return %b : tensor<3x4xf32>
}

// -----

// Declined: past the padding the consumer reads something else, which the fill would hide.
// CHECK-LABEL: func.func @main(%p: tensor<4xf32>)
// CHECK:         %pad = tensor_ir.index_map (i) -> %p[i - 1] if i >= 1 and i < 5 else 0.0
// CHECK-NEXT:    %c = tensor_ir.index_map (i) -> %pad[i] if i < 6 else %p[i - 6]
// REMARK: remark: compose-index-maps: c: declined: the producer's fill would hide what the consumer reads after it
func.func @main(%p: tensor<4xf32>) -> tensor<10xf32> {
  %pad = tensor_ir.index_map (i) -> %p[i - 1] if i >= 1 and i < 5 else 0.0 : (tensor<4xf32>) -> tensor<6xf32>
  %c = tensor_ir.index_map (i) -> %pad[i] if i < 6 else %p[i - 6] : (tensor<6xf32>, tensor<4xf32>) -> tensor<10xf32>
  func.return %c : tensor<10xf32>
}

// -----

// Windows of three in a concatenation, and in elements that are there twice: each would be looked for three times.
// Windows that do not overlap read through.
// CHECK-LABEL: func.func @main(%x: tensor<4xf32>, %y: tensor<5xf32>)
// CHECK:         %c = tensor_ir.index_map (i) -> %x[i] if i < 4 else %y[i - 4]
// CHECK-NEXT:    %twice = tensor_ir.index_map (i) -> %x[i floordiv 2]
// CHECK-NEXT:    %a = tensor_ir.index_map (i, j) -> %c[i + j]
// CHECK-NEXT:    %b = tensor_ir.index_map (i, j) -> %twice[i * 2 + j]
// CHECK-NEXT:    %d = tensor_ir.index_map (i, j) -> %x[(i * 3 + j) floordiv 2]
// REMARK: remark: compose-index-maps: a: declined: windows overlap in what is put together from pieces
// REMARK: remark: compose-index-maps: b: declined: windows overlap in what is put together from pieces
// REMARK: remark: compose-index-maps: d: reads through the layout change before it
func.func @main(%x: tensor<4xf32>, %y: tensor<5xf32>) -> (tensor<7x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>) {
  %c = tensor_ir.index_map (i) -> %x[i] if i < 4 else %y[i - 4] : (tensor<4xf32>, tensor<5xf32>) -> tensor<9xf32>
  %twice = tensor_ir.index_map (i) -> %x[i floordiv 2] : (tensor<4xf32>) -> tensor<8xf32>
  %a = tensor_ir.index_map (i, j) -> %c[i + j] : (tensor<9xf32>) -> tensor<7x3xf32>
  %b = tensor_ir.index_map (i, j) -> %twice[i * 2 + j] : (tensor<8xf32>) -> tensor<3x3xf32>
  %d = tensor_ir.index_map (i, j) -> %twice[i * 3 + j] : (tensor<8xf32>) -> tensor<2x3xf32>
  func.return %a, %b, %d : tensor<7x3xf32>, tensor<3x3xf32>, tensor<2x3xf32>
}

// -----

// Symbolic extents: heads are split off and merged again, which changes nothing; a flattened batch is read
// through products and quotients of sizes.
// CHECK-LABEL: func.func @main(%x: tensor<?x?x64xf32, #sym.extents<s0, s1>>)
// CHECK:         %row = tensor_ir.index_map (i) -> %x[i floordiv s1, i mod s1, 0]
// CHECK-NEXT:    func.return %x, %row
// REMARK: remark: compose-index-maps: merged: changes nothing, removed
func.func @main(%x: tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> (tensor<?x?x64xf32, #sym.extents<s0, s1>>, tensor<?xf32, #sym.extents<s0 * s1>>) {
  %split = tensor_ir.index_map (i, j, k, l) -> %x[i, k, j * 16 + l] : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x4x?x16xf32, #sym.extents<s0, s1>>
  %merged = tensor_ir.index_map (i, j, k) -> %split[i, k floordiv 16, j, k mod 16] : (tensor<?x4x?x16xf32, #sym.extents<s0, s1>>) -> tensor<?x?x64xf32, #sym.extents<s0, s1>>
  %flat = tensor_ir.index_map (i, j) -> %x[(i * 64 + j) floordiv (s1 * 64), (i * 64 + j) floordiv 64 mod s1, (i * 64 + j) mod 64] : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x64xf32, #sym.extents<s0 * s1>>
  %row = tensor_ir.index_map (i) -> %flat[i, 0] : (tensor<?x64xf32, #sym.extents<s0 * s1>>) -> tensor<?xf32, #sym.extents<s0 * s1>>
  func.return %merged, %row : tensor<?x?x64xf32, #sym.extents<s0, s1>>, tensor<?xf32, #sym.extents<s0 * s1>>
}

// -----

// Where a condition always holds, the fill value behind it goes too.
// CHECK-LABEL: func.func @main(%always: tensor<4xf32>)
// CHECK-NEXT: %y = tensor_ir.index_map (i, j) -> %always[i] : (tensor<4xf32>) -> tensor<4x1xf32>
func.func @main(%always: tensor<4xf32>) -> tensor<4x1xf32> {
  %y = tensor_ir.index_map (i, j) -> %always[i] if j < 1 else 0.0 : (tensor<4xf32>) -> tensor<4x1xf32>
  func.return %y : tensor<4x1xf32>
}
