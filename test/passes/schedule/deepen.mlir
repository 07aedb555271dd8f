// The free loop at the end of a launch becomes an axis.
// RUN: deplo-opt %s -p 'tileify,deepen{kernel=scale}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,deepen{loops=2}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not deplo-opt %s -p 'tileify,deepen{loops=0}' 2>&1 | FileCheck %s --check-prefix=ZERO

// ZERO: pass 'deepen': loops is 1 or more, not 0
// REMARK: remark: deepen: scale: declined: its body does not end with its one free loop
// REMARK: remark: deepen: keep: declined: it stores in front of its loop

// CHECK:      tile.launch (%i = 3 : thread, %j = 5 : thread) {
// CHECK-NEXT:   %s = loop.load %x[%i, 0]
// CHECK-NEXT:   %v = loop.load %x[%i, %j]
// CHECK-NEXT:   %w = arith.mulf %v, %s
// CHECK-NEXT:   loop.store %w, %y[%i, %j]
// CHECK:      tile.launch (%i = 3 : thread) {
func.func @main(%x: tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3xf32>, tensor<3x5xf32>) {
  %y = loop.kernel @scale(%x) : (tensor<3x5xf32>) -> tensor<3x5xf32> {
  ^bb0(%x: memref<3x5xf32>, %y: memref<3x5xf32>):
    loop.for %i = 0 to 3 {
      %s = loop.load %x[%i, 0] : memref<3x5xf32>
      loop.for %j = 0 to 5 {
        %v = loop.load %x[%i, %j] : memref<3x5xf32>
        %w = arith.mulf %v, %s : f32
        loop.store %w, %y[%i, %j] : memref<3x5xf32>
      }
    }
  }
  %a, %b = loop.kernel @keep(%x) : (tensor<3x5xf32>) -> (tensor<3xf32>, tensor<3x5xf32>) {
  ^bb0(%x: memref<3x5xf32>, %a: memref<3xf32>, %b: memref<3x5xf32>):
    loop.for %i = 0 to 3 {
      %f = loop.load %x[%i, 0] : memref<3x5xf32>
      loop.store %f, %a[%i] : memref<3xf32>
      loop.for %j = 0 to 5 {
        %v = loop.load %x[%i, %j] : memref<3x5xf32>
        loop.store %v, %b[%i, %j] : memref<3x5xf32>
      }
    }
  }
  func.return %y, %a, %b : tensor<3x5xf32>, tensor<3xf32>, tensor<3x5xf32>
}
