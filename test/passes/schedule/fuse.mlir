// Neighbouring axes become one, whose points are counted row by row.
// RUN: deplo-opt %s -p 'tileify,fuse{axes=i,j into=p}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,fuse{axes=i,j,k},split{axis=k by=8},bind{axis=k_outer to=block}' --check-each-pass | FileCheck %s --check-prefix=ALL
// RUN: deplo-opt %s -p 'tileify,fuse{axes=i,k},fuse{axes=k,j},bind{axis=i to=block},fuse{axes=i,j}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not deplo-opt %s -p 'fuse{axes=i}' 2>&1 | FileCheck %s --check-prefix=ONE

// ONE: pass 'fuse': axes are two names or more, not 1
// REMARK: remark: fuse: turn: declined: i, k are no neighbours in this order
// REMARK: remark: fuse: turn: declined: k, j are no neighbours in this order
// REMARK: remark: fuse: turn: declined: i, j run in different places

// CHECK-LABEL: loop.kernel @turn
// CHECK:         tile.launch (%p = 15 : thread, %k = 7 : thread) {
// CHECK-NEXT:      loop.load %x[%k, %p floordiv 5, %p mod 5]
// CHECK:           loop.store %{{.*}}, %y[%p floordiv 5, %p mod 5, %k]
// ALL-LABEL: loop.kernel @turn
// ALL:         tile.launch (%k_outer = 14 : block, %k_inner = 8 : thread) {
// ALL-NEXT:      loop.test[%k_outer * 8 + %k_inner < 105]
func.func @main(%x: tensor<7x3x5xf32>) -> tensor<3x5x7xf32> {
  %y = loop.kernel @turn(%x) : (tensor<7x3x5xf32>) -> tensor<3x5x7xf32> {
  ^bb0(%x: memref<7x3x5xf32>, %y: memref<3x5x7xf32>):
    loop.for %i = 0 to 3 {
      loop.for %j = 0 to 5 {
        loop.for %k = 0 to 7 {
          %v = loop.load %x[%k, %i, %j] : memref<7x3x5xf32>
          loop.store %v, %y[%i, %j, %k] : memref<3x5x7xf32>
        }
      }
    }
  }
  func.return %y : tensor<3x5x7xf32>
}
