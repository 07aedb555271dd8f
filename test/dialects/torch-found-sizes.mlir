// Operations that find an extent in their data print as they were read, and come back from the generic form.
// RUN: grep -v '^//' %s > %t.text
// RUN: deplo-opt %s > %t.custom
// RUN: diff %t.text %t.custom
// RUN: deplo-opt --print-op-generic %s > %t.generic
// RUN: deplo-opt %t.generic > %t.back
// RUN: diff %t.text %t.back
builtin.module {
  func.func @main(%x: tensor<6x4xf32>, %m: tensor<6x4xi1>, %r: tensor<6xi1>) attributes {sym.sizes = [#sym.size<"at:0", 0, 24>, #sym.size<"rows:0", 0, 6>]} {
    %0 = torch.nonzero %m : (tensor<6x4xi1>) -> tensor<?x2xi64, #sym.extents<s0>>
    %1 = torch.masked_select %x, %m : (tensor<6x4xf32>, tensor<6x4xi1>) -> tensor<?xf32, #sym.extents<s0>>
    %2 = torch.index %x, [%m] : (tensor<6x4xf32>, tensor<6x4xi1>) -> tensor<?xf32, #sym.extents<s0>>
    %3 = torch.index %x, [%r] : (tensor<6x4xf32>, tensor<6xi1>) -> tensor<?x4xf32, #sym.extents<s1>>
    %4, %5, %6 = torch._unique2 %x {return_inverse = true} : (tensor<6x4xf32>) -> (tensor<?xf32, #sym.extents<s0>>, tensor<6x4xi64>, tensor<0xi64>)
    %7, %8, %9 = torch.unique_consecutive %r {return_counts = true} : (tensor<6xi1>) -> (tensor<?xi1, #sym.extents<s1>>, tensor<0xi64>, tensor<?xi64, #sym.extents<s1>>)
    %10 = torch.index_put %x, [%m], %1 {accumulate = true} : (tensor<6x4xf32>, tensor<6x4xi1>, tensor<?xf32, #sym.extents<s0>>) -> tensor<6x4xf32>
    func.return
  }
}
