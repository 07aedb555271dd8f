// The axes of a launch in another order; those that are not named stay where they are.
// RUN: deplo-opt %s -p 'tileify,reorder{axes=k,i}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,reorder{axes=k,i,j}' --check-each-pass | FileCheck %s --check-prefix=ALL
// RUN: deplo-opt %s -p 'tileify,reorder{axes=i,m},bind{axis=i to=block},reorder{axes=j,i}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not deplo-opt %s -p 'reorder{axes=i,i}' 2>&1 | FileCheck %s --check-prefix=TWICE

// TWICE: pass 'reorder': axes are two names or more, each once, not i, i
// REMARK: remark: reorder: turn: declined: no axis of the launch is named m; its axes are i, j, k
// REMARK: remark: reorder: turn: declined: j, i run in different places

// CHECK-LABEL: loop.kernel @turn
// CHECK:         tile.launch (%k = 7 : thread, %j = 5 : thread, %i = 3 : thread) {
// CHECK-NEXT:      loop.load %x[%k, %i, %j]
// ALL-LABEL: loop.kernel @turn
// ALL:         tile.launch (%k = 7 : thread, %i = 3 : thread, %j = 5 : thread) {
// ALL:           loop.store %{{.*}}, %y[%i, %j, %k]
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
