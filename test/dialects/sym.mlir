// Sizes in types, indices, extents and geometry print as they were read, and come back from the generic form.
// RUN: grep -v '^//' %s > %t.text
// RUN: deplo-opt --assume=in-bounds,stored-once %s > %t.custom
// RUN: diff %t.text %t.custom
// RUN: deplo-opt --assume=in-bounds,stored-once --print-op-generic %s > %t.generic
// RUN: deplo-opt --assume=in-bounds,stored-once %t.generic > %t.back
// RUN: diff %t.text %t.back
builtin.module {
  func.func @main(%x: tensor<?x?x64xf32, #sym.extents<s0, s1>>, %ids: tensor<?xi64, #sym.extents<s1>>) attributes {sym.sizes = [#sym.size<"batch", 1, 64, hint = 2>, #sym.size<"seq", 2, none>]} {
    %0 = tensor_ir.index_map (i, j, k) -> %x[j floordiv s1, j mod s1, k] if i < s0 else %x[i - s0, j, k] : (tensor<?x?x64xf32, #sym.extents<s0, s1>>, tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x?x64xf32, #sym.extents<s0 * 2, s0 * s1>>
    %1 = tensor_ir.index_map (i) -> %x[0, (i * s0 + 3) floordiv (s1 + 1), i mod (s0 * s1)] if i >= s0 - 1 and i * s1 < s0 * s1 - 4 and s0 >= 5 else 0.0 : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?xf32, #sym.extents<s0 floordiv 2 + s1 mod 3 - 1>>
    %2 = tensor_ir.constant 1.0 : tensor<?xf32, #sym.extents<s0 * s1 + s1 * 4 + s0 + 1>>
    %3 = loop.kernel @k(%x, %ids) : (tensor<?x?x64xf32, #sym.extents<s0, s1>>, tensor<?xi64, #sym.extents<s1>>) -> tensor<?x1xf32, #sym.extents<s1>> {
    ^bb0(%x: memref<?x?x64xf32, #sym.extents<s0, s1>>, %ids: memref<?xi64, #sym.extents<s1>>, %y: memref<?x1xf32, #sym.extents<s1>>):
      loop.for %i = 0 to s1 {
        %id = loop.load %ids[%i] : memref<?xi64, #sym.extents<s1>>
        %r = loop.checked_index %id below s0 * s1 {note = "kept"} : i64
        %o = loop.index[%r floordiv s1 * 64 + %i * s1]
        %t = loop.test[%i < s0 - 4, %o >= s1, s0 >= 3]
        %sum = loop.for %k = 0 to s0 * s1 + 64 reduce(add) -> f32 {
          %v = loop.load %x[%r floordiv s1, %r mod s1, %k] : memref<?x?x64xf32, #sym.extents<s0, s1>>
          loop.yield %v : f32
        }
        loop.store %sum, %y[%i, 0] : memref<?x1xf32, #sym.extents<s1>>
      }
    }
    func.return
  }
  kernel.func @k_launch(%x: memref<?xf32, #sym.extents<s0>>) blocks(s0 floordiv 256 + 1) threads(256) {
  }
  func.func @host(%x: memref<?xf32, #sym.extents<s0>>) {
    kernel.launch @k_launch(%x) blocks(s0 floordiv 256 + 1) threads(256) : memref<?xf32, #sym.extents<s0>>
    func.return
  }
  func.func @schedule(%x: tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>> {
    %y = loop.kernel @k_copy(%x) : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>> {
    ^bb0(%x: memref<?xf32, #sym.extents<s0>>, %y: memref<?xf32, #sym.extents<s0>>):
      tile.launch (%b = (s0 - 1) floordiv 256 + 1 : block, %t = 256 : thread) schedule(#tile.schedule<threads = 256>) {
        %v = loop.load %x[%b * 256 + %t] : memref<?xf32, #sym.extents<s0>>
        loop.store %v, %y[%b * 256 + %t] : memref<?xf32, #sym.extents<s0>>
      }
    }
    func.return %y : tensor<?xf32, #sym.extents<s0>>
  }
}
