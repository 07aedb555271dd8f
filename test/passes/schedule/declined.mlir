// What the primitives leave alone, and why.
// RUN: deplo-opt %s --assume=stored-once,race-free -p 'bind{axis=j to=vector},split{axis=j by=2},reorder{axes=i,j},fuse{axes=i,j}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s
// RUN: not deplo-opt %s --assume=stored-once,race-free -p 'split{axis=j by=2 kernel=nosuch}' --split-input-file 2>&1 | FileCheck %s --check-prefix=KERNEL
// RUN: not deplo-opt %s -p 'split{axis=j by=true}' 2>&1 | FileCheck %s --check-prefix=TRUE
// RUN: not deplo-opt %s -p 'split{axis=j by=2 into=j_1,j_2}' 2>&1 | FileCheck %s --check-prefix=NUMBER
// RUN: not deplo-opt %s -p 'split{axis=j by=2 into=a,a}' 2>&1 | FileCheck %s --check-prefix=SAME
// RUN: not deplo-opt %s -p 'split{axis=j by=99999999999999999999}' 2>&1 | FileCheck %s --check-prefix=HUGE
// RUN: deplo-opt %s --assume=stored-once,race-free -p 'split{axis=j by=2 into=i,k}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=TAKEN

// KERNEL: no kernel with a launch is named nosuch; there are else
// TRUE: by is a number of points, 1 to 2147483647, not True
// NUMBER: an axis may be named by letters, digits and _, with no number behind a _, not 'j_1'
// SAME: axes have names of their own, not a and a
// HUGE: by is a number of points, 1 to 2147483647

// A condition with an else is not one that the body is under.
// CHECK: remark: bind: else: declined: j: a condition stands inside of its body
// TAKEN: remark: split: else: declined: another axis is named i
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %y = loop.kernel @else(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
    tile.launch (%i = 4 : thread, %j = 8 : thread) {
      %v = loop.load %x[%i, %j] : memref<4x8xf32>
      %t = loop.test[%j < 4]
      scf.if %t {
        loop.store %v, %y[%i, %j] : memref<4x8xf32>
      } else {
        %w = arith.addf %v, %v : f32
        loop.store %w, %y[%i, %j] : memref<4x8xf32>
      }
    }
  }
  func.return %y : tensor<4x8xf32>
}

// -----

// Blocks of a cluster, and a schedule that numbers the axes.
// CHECK: remark: split: cluster: declined: its blocks form clusters
// CHECK: remark: split: numbered: declined: its schedule numbers its axes
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %y = loop.kernel @cluster(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4x8xf32>):
    tile.launch (%i = 4 : block, %k = 2 : cluster, %j = 4 : thread) {
      %v = loop.load %x[%i, %k * 4 + %j] : memref<4x8xf32>
      loop.store %v, %y[%i, %k * 4 + %j] : memref<4x8xf32>
    }
  }
  %z = loop.kernel @numbered(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
  ^bb0(%x: memref<4x8xf32>, %z: memref<4x8xf32>):
    tile.launch (%i = 4 : thread, %j = 8 : thread) schedule(#tile.schedule<m = 0, n = 1, block_m = 2, block_n = 4>) {
      %v = loop.load %x[%i, %j] : memref<4x8xf32>
      loop.store %v, %z[%i, %j] : memref<4x8xf32>
    }
  }
  func.return %y, %z : tensor<4x8xf32>, tensor<4x8xf32>
}
