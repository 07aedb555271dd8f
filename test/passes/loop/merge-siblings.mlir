// RUN: deplo-opt %s -p 'lift-to-loops,fuse-loops{target=cpu},merge-siblings' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'lift-to-loops,fuse-loops{target=cpu},merge-siblings' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'lift-to-loops,fuse-loops{target=cpu},merge-siblings' --split-input-file --check-each-pass >/dev/null

// Three products of one input with three weights are one kernel with three outputs.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %[[q:.+]], %[[k:.+]], %[[v:.+]] = loop.kernel @k_q(%wq, %x, %wk, %wv)
// CHECK:           loop.for %i = 0 to 2 {
// CHECK-NEXT:        loop.for %j = 0 to 3 {
// CHECK:                 reduce(add)
// CHECK:                 loop.store %{{.+}}, %q[%i, %j, 0]
// CHECK:                 reduce(add)
// CHECK:                 loop.store %{{.+}}, %k[%i, %j, 0]
// CHECK:                 reduce(add)
// CHECK:                 loop.store %{{.+}}, %v[%i, %j, 0]
// CHECK:         func.return %[[q]], %[[k]], %[[v]]
// REMARK: remark: merge-siblings: k_q: merged with k_k, k_v, sharing 32 B
func.func @main(%x: tensor<2x4xf32>, %wq: tensor<3x4xf32>, %wk: tensor<3x4xf32>, %wv: tensor<3x4xf32>) -> (tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>) {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<2x4xf32>) -> tensor<2x3x4xf32>
  %b = tensor_ir.index_map (i, j, k) -> %wq[j, k] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %c = tensor_ir.index_map (i, j, k) -> %wk[j, k] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %d = tensor_ir.index_map (i, j, k) -> %wv[j, k] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %pq = tensor_ir.elementwise mul(%a, %b) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %q = tensor_ir.reduce add(%pq) over [2] : tensor<2x3x4xf32> -> tensor<2x3x1xf32>
  %pk = tensor_ir.elementwise mul(%a, %c) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %k = tensor_ir.reduce add(%pk) over [2] : tensor<2x3x4xf32> -> tensor<2x3x1xf32>
  %pv = tensor_ir.elementwise mul(%a, %d) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %v = tensor_ir.reduce add(%pv) over [2] : tensor<2x3x4xf32> -> tensor<2x3x1xf32>
  func.return %q, %k, %v : tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>
}

// -----

// Declined: the second sum needs the result of the first; kernels that check indices stay apart.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-4: loop.kernel
// REMARK: remark: merge-siblings: k_t: declined: not merged with k_s: reads what is computed after k_s
// REMARK: remark: merge-siblings: k_h: declined: not merged with k_g: checks indices from data
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %s = tensor_ir.elementwise add(%x, %y) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %t = tensor_ir.elementwise add(%x, %s) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %g = tensor_ir.gather %x[%i] along 0 : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  %h = tensor_ir.gather %y[%i] along 0 : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  func.return %s, %t, %g, %h : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Loops that stand side by side are paired in order.
// CHECK-LABEL: func.func @main
// CHECK:         loop.for %i = 0 to 4 {
// CHECK-COUNT-2:   memref<4xf32>
// CHECK:         loop.for %j = 0 to 7 {
// CHECK-COUNT-2:   memref<7xf32>
// CHECK-NOT:     loop.for
func.func @main(%x: tensor<4xf32>, %a: tensor<7xf32>, %b: tensor<7xf32>) -> (tensor<4xf32>, tensor<7xf32>, tensor<4xf32>, tensor<7xf32>) {
  %0, %1 = loop.kernel @first(%x, %a) : (tensor<4xf32>, tensor<7xf32>) -> (tensor<4xf32>, tensor<7xf32>) {
  ^bb0(%u: memref<4xf32>, %v: memref<7xf32>, %o: memref<4xf32>, %r: memref<7xf32>):
    loop.for %i = 0 to 4 {
      %c = loop.load %u[%i] : memref<4xf32>
      loop.store %c, %o[%i] : memref<4xf32>
    }
    loop.for %j = 0 to 7 {
      %d = loop.load %v[%j] : memref<7xf32>
      loop.store %d, %r[%j] : memref<7xf32>
    }
  }
  %2, %3 = loop.kernel @second(%x, %b) : (tensor<4xf32>, tensor<7xf32>) -> (tensor<4xf32>, tensor<7xf32>) {
  ^bb0(%u: memref<4xf32>, %v: memref<7xf32>, %o: memref<4xf32>, %r: memref<7xf32>):
    loop.for %i = 0 to 4 {
      %c = loop.load %u[%i] : memref<4xf32>
      loop.store %c, %o[%i] : memref<4xf32>
    }
    loop.for %j = 0 to 7 {
      %d = loop.load %v[%j] : memref<7xf32>
      loop.store %d, %r[%j] : memref<7xf32>
    }
  }
  func.return %0, %1, %2, %3 : tensor<4xf32>, tensor<7xf32>, tensor<4xf32>, tensor<7xf32>
}

// -----

// Declined: kernels of one element have no loop to share.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: loop.kernel
// REMARK: remark: merge-siblings: k_b: declined: not merged with k_a: has no free loops
func.func @main(%x: tensor<1xf32>, %p: tensor<1xf32>, %q: tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>) {
  %a = tensor_ir.elementwise add(%x, %p) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  %b = tensor_ir.elementwise add(%x, %q) : (tensor<1xf32>, tensor<1xf32>) -> tensor<1xf32>
  func.return %a, %b : tensor<1xf32>, tensor<1xf32>
}

// -----

// Of five sums no more than four come together.
// CHECK-LABEL: func.func @main
// CHECK:         %ya, %yb, %yc, %yd = loop.kernel @k_ya(
// CHECK:         %ye = loop.kernel @k_ye(
// REMARK: remark: merge-siblings: k_ya: merged with k_yb, k_yc, k_yd, sharing 32 B
func.func @main(%x: tensor<2x4xf32>, %wa: tensor<3x4xf32>, %wb: tensor<3x4xf32>, %wc: tensor<3x4xf32>, %wd: tensor<3x4xf32>, %we: tensor<3x4xf32>) -> (tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>) {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<2x4xf32>) -> tensor<2x3x4xf32>
  %ba = tensor_ir.index_map (i, j, k) -> %wa[j, k] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %pa = tensor_ir.elementwise mul(%a, %ba) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %ya = tensor_ir.reduce add(%pa) over [2] : tensor<2x3x4xf32> -> tensor<2x3x1xf32>
  %bb = tensor_ir.index_map (i, j, k) -> %wb[j, k] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %pb = tensor_ir.elementwise mul(%a, %bb) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %yb = tensor_ir.reduce add(%pb) over [2] : tensor<2x3x4xf32> -> tensor<2x3x1xf32>
  %bc = tensor_ir.index_map (i, j, k) -> %wc[j, k] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %pc = tensor_ir.elementwise mul(%a, %bc) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %yc = tensor_ir.reduce add(%pc) over [2] : tensor<2x3x4xf32> -> tensor<2x3x1xf32>
  %bd = tensor_ir.index_map (i, j, k) -> %wd[j, k] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %pd = tensor_ir.elementwise mul(%a, %bd) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %yd = tensor_ir.reduce add(%pd) over [2] : tensor<2x3x4xf32> -> tensor<2x3x1xf32>
  %be = tensor_ir.index_map (i, j, k) -> %we[j, k] : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %pe = tensor_ir.elementwise mul(%a, %be) : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %ye = tensor_ir.reduce add(%pe) over [2] : tensor<2x3x4xf32> -> tensor<2x3x1xf32>
  func.return %ya, %yb, %yc, %yd, %ye : tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>, tensor<2x3x1xf32>
}
