// An axis of a launch becomes two, by name; where the size does not divide it, the body has a condition.
// RUN: deplo-opt %s -p 'tileify,split{axis=j by=256 into=j_block,j_thread}' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,split{axis=j by=256}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'tileify,split{axis=j by=7},split{axis=i by=3},split{axis=j_inner by=2}' --split-input-file --check-each-pass | FileCheck %s --check-prefix=TWICE
// RUN: deplo-opt %s -p 'tileify,split{by=2}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=AXIS
// RUN: not deplo-opt %s -p 'split{axis=j by=0}' 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not deplo-opt %s -p 'split{axis=j by=2 into=a}' 2>&1 | FileCheck %s --check-prefix=NAMES

// AXIS: remark: split: negate: declined: no axis is given; its axes are i, j
// ZERO: pass 'split': by is a number of points, 1 to 2147483647, not 0
// NAMES: pass 'split': into is two names, not 1

// REMARK: remark: split: negate: j is j_outer and j_inner, of 256 points
// CHECK-LABEL: loop.kernel @negate
// CHECK:         tile.launch (%i = 4 : thread, %j_block = 4 : thread, %j_thread = 256 : thread) {
// CHECK-NEXT:      [[IN:%.+]] = loop.test[%j_block * 256 + %j_thread < 1000]
// CHECK-NEXT:      scf.if [[IN]] {
// CHECK-NEXT:        loop.load %x[%i, %j_block * 256 + %j_thread]
// One condition says all.
// TWICE-LABEL: loop.kernel @negate
// TWICE:         tile.launch (%i_outer = 2 : thread, %i_inner = 3 : thread, %j_outer = 143 : thread, %j_inner_outer = 4 : thread, %j_inner_inner = 2 : thread) {
// TWICE-NEXT:      [[IN:%.+]] = loop.test[%j_outer * 7 + %j_inner_outer * 2 + %j_inner_inner < 1000, %i_outer * 3 + %i_inner < 4, %j_inner_outer * 2 + %j_inner_inner < 7]
func.func @main(%x: tensor<4x1000xf32>) -> tensor<4x1000xf32> {
  %y = loop.kernel @negate(%x) : (tensor<4x1000xf32>) -> tensor<4x1000xf32> {
  ^bb0(%x: memref<4x1000xf32>, %y: memref<4x1000xf32>):
    loop.for %i = 0 to 4 {
      loop.for %j = 0 to 1000 {
        %v = loop.load %x[%i, %j] : memref<4x1000xf32>
        %w = arith.negf %v : f32
        loop.store %w, %y[%i, %j] : memref<4x1000xf32>
      }
    }
  }
  func.return %y : tensor<4x1000xf32>
}

// -----

// No axis is called j.
// REMARK: remark: split: scale: declined: no axis of the launch is named j; its axes are i
// CHECK-LABEL: loop.kernel @scale
// CHECK:         tile.launch (%i = 12 : thread)
func.func @main(%x: tensor<12xf32>) -> tensor<12xf32> {
  %y = loop.kernel @scale(%x) : (tensor<12xf32>) -> tensor<12xf32> {
  ^bb0(%x: memref<12xf32>, %y: memref<12xf32>):
    loop.for %i = 0 to 12 {
      %v = loop.load %x[%i] : memref<12xf32>
      %w = arith.addf %v, %v : f32
      loop.store %w, %y[%i] : memref<12xf32>
    }
  }
  func.return %y : tensor<12xf32>
}
