// RUN: deplo-opt %s -p drop-unit-axes --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p drop-unit-axes --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p drop-unit-axes --split-input-file --check-each-pass >/dev/null

// What a kernel leaves to others loses its innermost axes of one element, one axis stays; what the program gives keeps
// its shape, as do axes of one element in front of others.
// REMARK: remark: drop-unit-axes: sums: 2 results without its innermost axes of one element
// REMARK: remark: drop-unit-axes: reads: declined: no result that others read ends with an axis of one element
// CHECK-LABEL: func.func @main
// CHECK:         %s, %t = loop.kernel @sums(%x) : (tensor<1x8xf32>) -> (tensor<1x8xf32>, tensor<1xf32>)
// CHECK:           loop.store %u, %a[0, %i] : memref<1x8xf32>
// CHECK:           loop.store %v, %b[0] : memref<1xf32>
// CHECK:         loop.kernel @reads(%s, %t) : (tensor<1x8xf32>, tensor<1xf32>) -> tensor<8x1xf32>
// CHECK:           loop.load %c[0, 7 - %i] : memref<1x8xf32>
// CHECK:           loop.load %d[0] : memref<1xf32>
// CHECK:           loop.store %{{.*}}, %e[%i, 0] : memref<8x1xf32>
func.func @main(%x: tensor<1x8xf32>) -> tensor<8x1xf32> {
  %s, %t = loop.kernel @sums(%x) : (tensor<1x8xf32>) -> (tensor<1x8x1x1xf32>, tensor<1x1xf32>) {
  ^bb0(%in: memref<1x8xf32>, %a: memref<1x8x1x1xf32>, %b: memref<1x1xf32>):
    loop.for %i = 0 to 8 {
      %u = loop.load %in[0, %i] : memref<1x8xf32>
      loop.store %u, %a[0, %i, 0, 0] : memref<1x8x1x1xf32>
    }
    %v = loop.load %in[0, 3] : memref<1x8xf32>
    loop.store %v, %b[0, 0] : memref<1x1xf32>
  }
  %y = loop.kernel @reads(%s, %t) : (tensor<1x8x1x1xf32>, tensor<1x1xf32>) -> tensor<8x1xf32> {
  ^bb0(%c: memref<1x8x1x1xf32>, %d: memref<1x1xf32>, %e: memref<8x1xf32>):
    loop.for %i = 0 to 8 {
      %p = loop.load %c[0, 7 - %i, 0, 0] : memref<1x8x1x1xf32>
      %q = loop.load %d[0, 0] : memref<1x1xf32>
      %r = arith.addf %p, %q : f32
      loop.store %r, %e[%i, 0] : memref<8x1xf32>
    }
  }
  func.return %y : tensor<8x1xf32>
}
