// Every operation of the tensor_ir dialect prints as it was read, and comes back from the generic form.
// RUN: grep -v '^//' %s > %t.text
// RUN: deplo-opt %s > %t.custom
// RUN: diff %t.text %t.custom
// RUN: deplo-opt --print-op-generic %s > %t.generic
// RUN: deplo-opt %t.generic > %t.back
// RUN: diff %t.text %t.back
builtin.module {
  func.func @elementwise(%x: tensor<4x8xf32>, %p: tensor<4x8xi1>, %h: tensor<3xbf16>, %c: tensor<3xi1>) {
    %0 = tensor_ir.elementwise mul(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = tensor_ir.elementwise lt(%x, %x) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>
    %2 = tensor_ir.elementwise select(%p, %x, %x) : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = tensor_ir.elementwise select(%c, %h, %h) : (tensor<3xi1>, tensor<3xbf16>, tensor<3xbf16>) -> tensor<3xbf16>
    %4 = tensor_ir.elementwise not(%p) {note = "kept"} : (tensor<4x8xi1>) -> tensor<4x8xi1>
    func.return
  }
  func.func @reduce(%x: tensor<3x4x5xf32>, %p: tensor<3xi1>, %i: tensor<3xi8>) {
    %0 = tensor_ir.reduce add(%x) over [0, 2] : tensor<3x4x5xf32> -> tensor<1x4x1xf32>
    %1 = tensor_ir.reduce any(%p) over [0] : tensor<3xi1> -> tensor<1xi1>
    %2 = tensor_ir.reduce min(%i) over [0] : tensor<3xi8> -> tensor<1xi8>
    func.return
  }
  func.func @index_map(%x: tensor<4x8xf32>, %a: tensor<4xf32>, %s: tensor<f32>) {
    %0 = tensor_ir.index_map (i, j) -> %x[j, i] : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %1 = tensor_ir.index_map (i) -> %a[i] if i < 4 else %a[i - 4] : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
    %2 = tensor_ir.index_map (i) -> %a[i - 1] if i >= 1 and i < 5 else -inf : (tensor<4xf32>) -> tensor<6xf32>
    %3 = tensor_ir.index_map (i) -> %x[i floordiv 8, i mod 8] : (tensor<4x8xf32>) -> tensor<32xf32>
    %4 = tensor_ir.index_map (i, j) -> %x[3 - i, j * 2 + 1] : (tensor<4x8xf32>) -> tensor<4x4xf32>
    %5 = tensor_ir.index_map (i) -> %s[] : (tensor<f32>) -> tensor<?xf32, #sym.extents<s0>>
    %6 = tensor_ir.index_map () -> %a[2] : (tensor<4xf32>) -> tensor<f32>
    func.return
  }
  func.func @others(%x: tensor<4xf32>, %t: tensor<10x4xf32>, %ids: tensor<2x3xi64>) {
    %0 = tensor_ir.constant 0.1 : tensor<4xf32>
    %1 = tensor_ir.constant nan : tensor<f64>
    %2 = tensor_ir.constant -3 : tensor<?xi64, #sym.extents<s0 * 2>>
    %3 = tensor_ir.constant true : tensor<2xi1>
    %4 = tensor_ir.iota 1 : tensor<4x5xi64>
    %5 = tensor_ir.iota 0 : tensor<?xi32, #sym.extents<s1>>
    %6 = tensor_ir.cast %x : tensor<4xf32> to tensor<4xf16>
    %7 = tensor_ir.gather %t[%ids] along 0 : (tensor<10x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
    func.return
  }
  func.func @scatter(%x: tensor<5x3xf32>, %i: tensor<4x1xi64>, %u: tensor<4x3xf32>, %b: tensor<5xi1>, %j: tensor<2xi32>, %c: tensor<2xi1>) {
    %0 = tensor_ir.scatter add %x[%i] along 0 from %u : (tensor<5x3xf32>, tensor<4x1xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
    %1 = tensor_ir.scatter replace %b[%j] along 0 from %c : (tensor<5xi1>, tensor<2xi32>, tensor<2xi1>) -> tensor<5xi1>
    func.return
  }
  func.func @sort(%x: tensor<4x8xf32>, %b: tensor<3xi1>) {
    %0, %1 = tensor_ir.sort %x along 1 : tensor<4x8xf32> -> (tensor<4x8xf32>, tensor<4x8xi64>)
    %2, %3 = tensor_ir.sort %x along 0 descending : tensor<4x8xf32> -> (tensor<2x8xf32>, tensor<2x8xi64>)
    %4, %5 = tensor_ir.sort %b along 0 {deplo.note = "kept"} : tensor<3xi1> -> (tensor<0xi1>, tensor<0xi64>)
    func.return
  }
  func.func @nth_element(%x: tensor<4x8xf32>, %n: tensor<4x2xi64>, %y: tensor<?xi8, #sym.extents<s0>>, %m: tensor<1xi64>) {
    %0 = tensor_ir.nth_element %n of %x along 1 : (tensor<4x2xi64>, tensor<4x8xf32>) -> tensor<4x2xi64>
    %1 = tensor_ir.nth_element %m of %y along 0 {deplo.note = "kept"} : (tensor<1xi64>, tensor<?xi8, #sym.extents<s0>>) -> tensor<1xi64>
    func.return
  }
  func.func @call(%x: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>) {
    %0, %1 = tensor_ir.call "aten.linalg_eigh.default"(input = %x, UPLO = "L") attributes {deplo.reason = "a reason"} : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
    func.return %0, %1 : tensor<4x4xf32>, tensor<4xf32>
  }
  func.func private @step(%h: tensor<4xf32>, %x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<8xf16>) {
    %0 = tensor_ir.elementwise mul(%h, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = tensor_ir.constant 1.0 : tensor<8xf16>
    func.return %0, %1 : tensor<4xf32>, tensor<8xf16>
  }
  func.func private @one() -> tensor<4xf32> {
    %0 = tensor_ir.constant 1.0 : tensor<4xf32>
    func.return %0 : tensor<4xf32>
  }
  func.func @scan(%h: tensor<4xf32>, %x: tensor<9x4xf32>, %w: tensor<4xf32>) {
    %0, %1 = tensor_ir.scan @step carried(%h) slices(%x) shared(%w) : (tensor<4xf32>, tensor<9x4xf32>, tensor<4xf32>) -> (tensor<9x4xf32>, tensor<9x8xf16>)
    %2, %3 = tensor_ir.scan @step reversed carried(%h) slices(%x) shared(%w) attributes {deplo.note = "kept"} : (tensor<4xf32>, tensor<9x4xf32>, tensor<4xf32>) -> (tensor<9x4xf32>, tensor<9x8xf16>)
    %4 = tensor_ir.scan @one carried() slices() shared() : () -> tensor<?x4xf32, #sym.extents<s0>>
    func.return
  }
}
