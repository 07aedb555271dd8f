// RUN: deplo-opt %s -p lift-to-loops --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p lift-to-loops --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p lift-to-loops --split-input-file --check-each-pass >/dev/null

// Element-wise: a loop per axis; constants are written where they are read.
// CHECK-LABEL: loop.kernel @k_y(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
// CHECK-NEXT:    ^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
// CHECK-NEXT:      loop.for %i = 0 to 4 {
// CHECK-NEXT:        loop.for %j = 0 to 8 {
// CHECK-NEXT:          %[[x:.+]] = loop.load %x[%i, %j] : memref<4x8xf32>
// CHECK-NEXT:          %[[c:.+]] = arith.constant 5.000000e-01 : f32
// CHECK-NEXT:          %[[y:.+]] = arith.mulf %[[x]], %[[c]] : f32
// CHECK-NEXT:          loop.store %[[y]], %y[%i, %j] : memref<4x8xf32>
// REMARK: remark: lift-to-loops: c: declined: written where it is read
// REMARK: remark: lift-to-loops: k_y: one kernel for tensor_ir.elementwise
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %c = tensor_ir.constant 0.5 : tensor<4x8xf32>
  %y = tensor_ir.elementwise mul(%x, %c) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %y : tensor<4x8xf32>
}

// -----

// A reduction over two axes nests two reduce loops; axes of extent 1 get no loop.
// CHECK-LABEL: loop.kernel @k_s(%x)
// CHECK:         loop.for %j = 0 to 4 {
// CHECK-NEXT:      %[[s:.+]] = loop.for %i = 0 to 3 reduce(max) -> f32 {
// CHECK-NEXT:        %[[r:.+]] = loop.for %k = 0 to 5 reduce(max) -> f32 {
// CHECK-NEXT:          loop.load %x[%i, %j, %k] : memref<3x4x5xf32>
// CHECK-NEXT:          loop.yield
// CHECK:           loop.store %[[s]], %s[0, %j, 0] : memref<1x4x1xf32>
func.func @main(%x: tensor<3x4x5xf32>) -> tensor<1x4x1xf32> {
  %s = tensor_ir.reduce max(%x) over [0, 2] : tensor<3x4x5xf32> -> tensor<1x4x1xf32>
  func.return %s : tensor<1x4x1xf32>
}

// -----

// Padding: a condition on the index chooses between the source and the fill.
// CHECK-LABEL: loop.kernel @k_p(%x)
// CHECK:         %[[in:.+]] = loop.test[%i >= 1, %i < 5]
// CHECK-NEXT:    scf.if %[[in]] -> (f32) {
// CHECK-NEXT:      loop.load %x[%i - 1] : memref<4xf32>
// CHECK:         } else {
// CHECK-NEXT:      arith.constant 0.000000e+00 : f32
func.func @main(%x: tensor<4xf32>) -> tensor<6xf32> {
  %p = tensor_ir.index_map (i) -> %x[i - 1] if i >= 1 and i < 5 else 0.0 : (tensor<4xf32>) -> tensor<6xf32>
  func.return %p : tensor<6xf32>
}

// -----

// An index from data is checked.
// CHECK-LABEL: loop.kernel @k_g(%t, %ids)
// CHECK:         %[[id:.+]] = loop.load %ids[%i] : memref<3xi64>
// CHECK-NEXT:    %row = loop.checked_index %[[id]] below 10 : i64
// CHECK-NEXT:    loop.load %t[%row, %j] : memref<10x4xf32>
func.func @main(%t: tensor<10x4xf32>, %ids: tensor<3xi64>) -> tensor<3x4xf32> {
  %g = tensor_ir.gather %t[%ids] along 0 : (tensor<10x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  func.return %g : tensor<3x4xf32>
}

// -----

// An integer divisor is checked, and dividing by -1 cannot trap.
// CHECK-LABEL: loop.kernel @k_d(%a, %b)
// CHECK:         loop.assert %{{.+}}, "integer division by zero"
// CHECK:         arith.divsi
func.func @main(%a: tensor<3xi64>, %b: tensor<3xi64>) -> tensor<3xi64> {
  %d = tensor_ir.elementwise floordiv(%a, %b) : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi64>
  func.return %d : tensor<3xi64>
}

// -----

// Results are memory of their own: an argument and a result returned twice are copied.
// CHECK-LABEL: func.func @main(%x: tensor<4xf32>)
// CHECK:         %[[n:.+]] = loop.kernel @k_n(%x)
// CHECK:         %[[x:.+]] = loop.kernel @k_x(%x)
// CHECK:         %[[m:.+]] = loop.kernel @k_n_2(%[[n]])
// CHECK:         func.return %[[n]], %[[x]], %[[m]]
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %n = tensor_ir.elementwise neg(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %n, %x, %n : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Loops over dynamic sizes, and indices that multiply and divide by them.
// CHECK-LABEL: func.func @main(%x: tensor<?x?x64xf32, #sym.extents<s0, s1>>, %ids: tensor<?xi64, #sym.extents<s0>>)
// CHECK:         loop.kernel @k_sum(%x)
// CHECK:           loop.for %i = 0 to s0 {
// CHECK-NEXT:        loop.for %k = 0 to 64 {
// CHECK-NEXT:          loop.for %j = 0 to s1 reduce(add) -> f32 {
// CHECK:         loop.kernel @k_rows(%x, %ids)
// CHECK:           loop.checked_index %{{.+}} below s0 : i64
// CHECK:         loop.kernel @k_flat(%x)
// CHECK:           loop.for %i = 0 to s0 * s1 {
// CHECK-NEXT:        loop.test[%i >= s1]
// CHECK:               loop.load %x[%i floordiv s1, %i mod s1, 0] : memref<?x?x64xf32, #sym.extents<s0, s1>>
func.func @main(%x: tensor<?x?x64xf32, #sym.extents<s0, s1>>, %ids: tensor<?xi64, #sym.extents<s0>>) -> (tensor<?x1x64xf32, #sym.extents<s0>>, tensor<?x?x64xf32, #sym.extents<s0, s1>>, tensor<?xf32, #sym.extents<s0 * s1>>) {
  %sum = tensor_ir.reduce add(%x) over [1] : tensor<?x?x64xf32, #sym.extents<s0, s1>> -> tensor<?x1x64xf32, #sym.extents<s0>>
  %rows = tensor_ir.gather %x[%ids] along 0 : (tensor<?x?x64xf32, #sym.extents<s0, s1>>, tensor<?xi64, #sym.extents<s0>>) -> tensor<?x?x64xf32, #sym.extents<s0, s1>>
  %flat = tensor_ir.index_map (i) -> %x[i floordiv s1, i mod s1, 0] if i >= s1 else 1.0 : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?xf32, #sym.extents<s0 * s1>>
  func.return %sum, %rows, %flat : tensor<?x1x64xf32, #sym.extents<s0>>, tensor<?x?x64xf32, #sym.extents<s0, s1>>, tensor<?xf32, #sym.extents<s0 * s1>>
}

// -----

// To a kernel a ui8 is the i8 of the same bits; only what widens it says that it has no sign.
// CHECK-LABEL: func.func @main(%x: tensor<4xui8>, %c: tensor<4xi1>)
// CHECK:         loop.kernel @k_w(%x) : (tensor<4xui8>) -> tensor<4xi64>
// CHECK-NEXT:    ^bb0(%x: memref<4xi8>
// CHECK:           arith.extui %{{.+}} : i8 to i64
// CHECK:         loop.kernel @k_f(%x)
// CHECK:           %[[wide:.+]] = arith.extui %{{.+}} : i8 to i32
// CHECK-NEXT:      arith.sitofp %[[wide]] : i32 to f32
// CHECK:         loop.kernel @k_n(%f) : (tensor<4xf32>) -> tensor<4xui8>
// CHECK:           %[[int:.+]] = arith.fptosi %{{.+}} : f32 to i32
// CHECK-NEXT:      arith.trunci %[[int]] : i32 to i8
// CHECK:         loop.kernel @k_s(%c, %x, %n) : (tensor<4xi1>, tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
// CHECK:           arith.select %{{.+}}, %{{.+}}, %{{.+}} : i8
// CHECK:         loop.kernel @k_p(%s) : (tensor<4xui8>) -> tensor<6xui8>
// CHECK:           scf.if %{{.+}} -> (i8) {
// CHECK:             arith.constant -56 : i8
// CHECK:         loop.kernel @k_b(%x) : (tensor<4xui8>) -> tensor<4xi1>
// CHECK:           arith.cmpi ne, %{{.+}}, %{{.+}} : i8
// CHECK:         loop.kernel @k_t(%x) : (tensor<4xui8>) -> tensor<4xi8>
// CHECK:           %[[v:.+]] = loop.load
// CHECK-NEXT:      loop.store %[[v]]
func.func @main(%x: tensor<4xui8>, %c: tensor<4xi1>) -> (tensor<4xi64>, tensor<6xui8>, tensor<4xi1>, tensor<4xi8>) {
  %w = tensor_ir.cast %x : tensor<4xui8> to tensor<4xi64>
  %f = tensor_ir.cast %x : tensor<4xui8> to tensor<4xf32>
  %n = tensor_ir.cast %f : tensor<4xf32> to tensor<4xui8>
  %s = tensor_ir.elementwise select(%c, %x, %n) : (tensor<4xi1>, tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  %p = tensor_ir.index_map (i) -> %s[i - 1] if i >= 1 and i < 5 else 200 : (tensor<4xui8>) -> tensor<6xui8>
  %b = tensor_ir.cast %x : tensor<4xui8> to tensor<4xi1>
  %t = tensor_ir.cast %x : tensor<4xui8> to tensor<4xi8>
  func.return %w, %p, %b, %t : tensor<4xi64>, tensor<6xui8>, tensor<4xi1>, tensor<4xi8>
}

// -----

// A triangle of true is its condition; of false, or with true around it, it is chosen.
// CHECK-LABEL: func.func @main(%i:
// CHECK:         loop.kernel @k_t()
// CHECK:           %[[T:.+]] = loop.test[%i - %j >= 0]
// CHECK-NEXT:      loop.store %[[T]]
// CHECK:         loop.kernel @k_u()
// CHECK:           scf.if
// CHECK:         loop.kernel @k_v()
// CHECK:           scf.if
func.func @main(%i: tensor<4x4xi1>) -> (tensor<4x4xi1>, tensor<4x4xi1>, tensor<4x4xi1>) {
  %true = tensor_ir.constant true : tensor<4x4xi1>
  %false = tensor_ir.constant false : tensor<4x4xi1>
  %t = tensor_ir.index_map (i, j) -> %true[i, j] if i - j >= 0 else false : (tensor<4x4xi1>) -> tensor<4x4xi1>
  %u = tensor_ir.index_map (i, j) -> %false[i, j] if i - j >= 0 else false : (tensor<4x4xi1>) -> tensor<4x4xi1>
  %v = tensor_ir.index_map (i, j) -> %false[i, j] if i - j >= 0 else true : (tensor<4x4xi1>) -> tensor<4x4xi1>
  func.return %t, %u, %v : tensor<4x4xi1>, tensor<4x4xi1>, tensor<4x4xi1>
}

// -----

// CHECK-LABEL: func.func @main(%x:
// CHECK:         %[[I:.+]] = arith.andi
// CHECK-NEXT:    loop.assert %[[I]], "all elements must be between 0 and 1"
func.func @main(%x: tensor<f32>) -> tensor<f32> {
  %p = tensor_ir.elementwise probability(%x) : (tensor<f32>) -> tensor<f32>
  func.return %p : tensor<f32>
}
