// Dynamic sizes among the arguments of Torch IR print as they were read, and come back from the generic form.
// RUN: grep -v '^//' %s > %t.text
// RUN: deplo-opt %s > %t.custom
// RUN: diff %t.text %t.custom
// RUN: deplo-opt --print-op-generic %s > %t.generic
// RUN: deplo-opt %t.generic > %t.back
// RUN: diff %t.text %t.back
builtin.module {
  func.func @main(%x: tensor<?x?x64xf32, #sym.extents<s0, s1>>, %y: tensor<?x64xf32, #sym.extents<s1 + 1>>) attributes {sym.sizes = [#sym.size<"batch", 1, 64, hint = 2>, #sym.size<"seq", 4, none>]} {
    %0 = torch.view %x {size = [#sym.extent<s0 * s1>, 64]} : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x64xf32, #sym.extents<s0 * s1>>
    %1 = torch.view %x {size = [#sym.extent<s0>, -1, 4, 16]} : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x?x4x16xf32, #sym.extents<s0, s1>>
    %2 = torch.slice %y {end = #sym.extent<s1>} : (tensor<?x64xf32, #sym.extents<s1 + 1>>) -> tensor<?x64xf32, #sym.extents<s1>>
    %3 = torch.slice %x {dim = 1, start = -3} : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x3x64xf32, #sym.extents<s0>>
    %4 = torch.slice %x {dim = 1, start = 1, step = 2} : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x?x64xf32, #sym.extents<s0, s1 floordiv 2>>
    %5 = torch.select %x {dim = 1, index = 2} : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x64xf32, #sym.extents<s0>>
    %6 = torch.select %y {dim = 0, index = #sym.extent<s1 - 1>} : (tensor<?x64xf32, #sym.extents<s1 + 1>>) -> tensor<64xf32>
    %7 = torch.unsqueeze %2 {dim = 0} : (tensor<?x64xf32, #sym.extents<s1>>) -> tensor<1x?x64xf32, #sym.extents<s1>>
    %8 = torch.expand %7 {size = [#sym.extent<s0>, -1, -1]} : (tensor<1x?x64xf32, #sym.extents<s1>>) -> tensor<?x?x64xf32, #sym.extents<s0, s1>>
    %9 = torch.cat [%x, %8] {dim = 1} : (tensor<?x?x64xf32, #sym.extents<s0, s1>>, tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x?x64xf32, #sym.extents<s0, s1 * 2>>
    %10, %11 = torch.split_with_sizes %x {split_sizes = [1, #sym.extent<s1 - 1>], dim = 1} : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> (tensor<?x1x64xf32, #sym.extents<s0>>, tensor<?x?x64xf32, #sym.extents<s0, s1 - 1>>)
    %12 = torch.repeat %y {repeats = [1, #sym.extent<s0>]} : (tensor<?x64xf32, #sym.extents<s1 + 1>>) -> tensor<?x?xf32, #sym.extents<s1 + 1, s0 * 64>>
    %13 = torch.constant_pad_nd %y {pad = [0, 0, #sym.extent<s0>, 1]} : (tensor<?x64xf32, #sym.extents<s1 + 1>>) -> tensor<?x64xf32, #sym.extents<s0 + s1 + 2>>
    %14 = torch.full {size = [#sym.extent<s0>, 3], fill_value = #sym.extent<s1>} : () -> tensor<?x3xi64, #sym.extents<s0>>
    %15 = torch.arange_default {end = #sym.extent<s1 + 1>} : () -> tensor<?xi64, #sym.extents<s1 + 1>>
    %16 = torch.arange {start = #sym.extent<s0>, end = #sym.extent<s0 + s1>, step = 2} : () -> tensor<?xi64, #sym.extents<(s1 - 1) floordiv 2 + 1>>
    %17 = torch.div_scalar %x {other = #sym.extent<s0 * s1>} : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> tensor<?x?x64xf32, #sym.extents<s0, s1>>
    %18 = torch.layer_norm %y, none, none {normalized_shape = [#sym.extent<s1 + 1>, 64]} : (tensor<?x64xf32, #sym.extents<s1 + 1>>) -> tensor<?x64xf32, #sym.extents<s1 + 1>>
    %19, %20 = torch.topk %x {k = 4, dim = 1} : (tensor<?x?x64xf32, #sym.extents<s0, s1>>) -> (tensor<?x4x64xf32, #sym.extents<s0>>, tensor<?x4x64xi64, #sym.extents<s0>>)
    %21 = tensor_ir.size s0 * 4 : tensor<?xi64, #sym.extents<s1>>
    %22 = tensor_ir.size s0 floordiv 2 : tensor<i32>
    func.return
  }
}
