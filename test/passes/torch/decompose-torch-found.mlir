// Places are counted, the count is a size, and they are packed: scattered on a CPU, searched on a GPU.
// RUN: deplo-opt %s --split-input-file --pass-pipeline='decompose-torch{target=cpu}' | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: deplo-opt %s --split-input-file --pass-pipeline=decompose-torch | FileCheck %s --check-prefixes=CHECK,GPU
builtin.module {
// CHECK-LABEL: func.func @main
// CHECK: %[[N:.*]] = tensor_ir.reduce add(%{{.*}}) over [0] : tensor<4xi64> -> tensor<1xi64>
// CHECK-NEXT: %{{.*}} = tensor_ir.call "deplo.size.default"(count = %[[N]]) : (tensor<1xi64>) -> tensor<?xi8, #sym.extents<s0>>
// CHECK: %[[UNTIL:.*]] = tensor_ir.index_map (i) -> %{{.*}}[i, 0]
// CPU: %[[PLACES:.*]] = tensor_ir.scatter replace {{.*}} -> tensor<?xi64, #sym.extents<s0 + 1>>
// CPU-NEXT: %[[AT:.*]] = tensor_ir.index_map (i) -> %[[PLACES]][i]
// GPU: %[[K:.*]] = tensor_ir.iota 0 : tensor<?xi64, #sym.extents<s0>>
// GPU: tensor_ir.gather %[[UNTIL]]
// CHECK: tensor_ir.gather %x[%{{.*}}] along 0 : (tensor<4xf32>, tensor<?xi64, #sym.extents<s0>>)
func.func @main(%x: tensor<4xf32>, %m: tensor<4xi1>) -> tensor<?xf32, #sym.extents<s0>> attributes {sym.sizes = [#sym.size<"x:0", 0, 4>]} {
  %0 = torch.index %x, [%m] : (tensor<4xf32>, tensor<4xi1>) -> tensor<?xf32, #sym.extents<s0>>
  func.return %0 : tensor<?xf32, #sym.extents<s0>>
}
}

// -----

// Where there is no place, the call remains: it says so.
builtin.module {
// CHECK-LABEL: func.func @main
// CHECK: tensor_ir.call "deplo.size.default"({{.*}}) : (tensor<1xi64>) -> tensor<0xi8>
// CHECK-NOT: tensor_ir.scatter
// CHECK: func.return
func.func @main(%m: tensor<4x2xi1>) -> tensor<0x2xi64> {
  %0 = torch.nonzero %m : (tensor<4x2xi1>) -> tensor<0x2xi64>
  func.return %0 : tensor<0x2xi64>
}
}

// -----

// As many values as places, or none of them is written.
builtin.module {
// CHECK-LABEL: func.func @main
// CHECK: %[[HELD:.*]] = tensor_ir.reduce add(%{{.*}}) over [0] : tensor<4xi64> -> tensor<1xi64>
// CHECK: %[[FITS:.*]] = tensor_ir.elementwise eq(%[[HELD]], %{{.*}})
// CHECK: %[[WRONG:.*]] = tensor_ir.constant -1 : tensor<4xi64>
// CHECK: %[[PLACE:.*]] = tensor_ir.elementwise select(%{{.*}}, %{{.*}}, %[[WRONG]])
// CHECK: %[[TAKEN:.*]] = tensor_ir.gather %v[%[[PLACE]]] along 0
// CHECK: tensor_ir.elementwise select(%{{.*}}, %[[TAKEN]], %x)
func.func @main(%x: tensor<4xf32>, %m: tensor<4xi1>, %v: tensor<3xf32>) -> tensor<4xf32> {
  %0 = torch.index_put %x, [%m], %v : (tensor<4xf32>, tensor<4xi1>, tensor<3xf32>) -> tensor<4xf32>
  func.return %0 : tensor<4xf32>
}
}

// -----

// The places of a mask are packed once; each size that it gives is asked for.
builtin.module {
// CHECK-LABEL: func.func @main
// CPU: "deplo.size.default"
// CPU: tensor_ir.scatter replace
// CPU: "deplo.size.default"
// CPU-NOT: tensor_ir.scatter
// CPU: func.return
func.func @main(%x: tensor<4xf32>, %m: tensor<4xi1>) -> (tensor<?xf32, #sym.extents<s0>>, tensor<?x1xi64, #sym.extents<s0>>) attributes {sym.sizes = [#sym.size<"x:0", 0, 4>]} {
  %0 = torch.index %x, [%m] : (tensor<4xf32>, tensor<4xi1>) -> tensor<?xf32, #sym.extents<s0>>
  %1 = torch.nonzero %m : (tensor<4xi1>) -> tensor<?x1xi64, #sym.extents<s0>>
  func.return %0, %1 : tensor<?xf32, #sym.extents<s0>>, tensor<?x1xi64, #sym.extents<s0>>
}
}
