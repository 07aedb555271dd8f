// Where the points of an axis run: as blocks, threads, a loop of each thread, or a vector that it accesses at once.
// RUN: deplo-opt %s -p 'tileify,split{axis=j by=256},bind{axis=j_outer to=block},bind{axis=i to=serial}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,split{axis=j by=4 into=j,e},bind{axis=e to=vector},bind{axis=i to=block}' --check-each-pass | FileCheck %s --check-prefix=VECTOR
// RUN: deplo-opt %s -p 'tileify,bind{axis=k to=serial},bind{axis=i to=vector},bind{axis=e to=block}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not deplo-opt %s -p 'bind{axis=j to=warp}' 2>&1 | FileCheck %s --check-prefix=PLACE

// A schedule by hand is a kernel like another: every point is stored once, and CUDA is made of it.
// RUN: deplo-opt %s -p 'tileify,split{axis=j by=256},bind{axis=j_outer to=block},bind{axis=i to=serial},tile-to-cuda' -t cuda | FileCheck %s --check-prefix=CUDA

// PLACE: pass 'bind': to is one of block, cluster, thread, serial, vector, not warp

// CHECK-LABEL: loop.kernel @negate
// CHECK:         tile.launch (%j_outer = 4 : block, %j_inner = 256 : thread) {
// CHECK-NEXT:      loop.for %i = 0 to 4 {
// CHECK-NEXT:        [[IN:%.+]] = loop.test[%j_outer * 256 + %j_inner < 998]

// Whole vectors where there are four elements, else one by one; an axis of one point goes away.
// VECTOR-LABEL: loop.kernel @negate
// VECTOR:         tile.launch (%i = 4 : block, %j = 250 : thread) {
// VECTOR-NEXT:      %full = loop.test[%j * 4 < 995]
// VECTOR-NEXT:      scf.if %full {
// VECTOR-NEXT:        loop.for %e = 0 to 4 {
// VECTOR:             } attributes {vector}
// VECTOR-NEXT:      } else {
// VECTOR-NEXT:        loop.for %e{{.*}} = 0 to 4 {
// VECTOR-NEXT:          loop.test[%j * 4 + %e{{.*}} < 998]

// REMARK: remark: bind: negate: declined: no axis of the launch is named k; its axes are i, j
// REMARK: remark: bind: negate: i runs as vector
// REMARK: remark: bind: negate: declined: no axis of the launch is named e; its axes are j

// CUDA: __launch_bounds__(256) negate(
// CUDA: for (int i = 0; i < 4; ++i)
func.func @main(%x: tensor<4x998xf32>) -> tensor<4x998xf32> {
  %y = loop.kernel @negate(%x) : (tensor<4x998xf32>) -> tensor<4x998xf32> {
  ^bb0(%x: memref<4x998xf32>, %y: memref<4x998xf32>):
    loop.for %i = 0 to 4 {
      loop.for %j = 0 to 998 {
        %v = loop.load %x[%i, %j] : memref<4x998xf32>
        %w = arith.negf %v : f32
        loop.store %w, %y[%i, %j] : memref<4x998xf32>
      }
    }
  }
  func.return %y : tensor<4x998xf32>
}
