// A scan becomes a loop of the launches of its step, which write to the slices of the results.

// RUN: deplo-opt %s -p materialize-tile | FileCheck %s --check-prefix=CALL
// RUN: deplo-opt %s -p materialize-tile,inline-calls,group-launches,assign-arena | FileCheck %s
// RUN: deplo-opt %s -p materialize-tile,inline-calls,group-launches,assign-arena --check-each-pass >/dev/null

// CALL-LABEL: func.func private @step(%h: memref<4xf32>, %x: memref<4xf32>, %w: memref<4xf32>, %m: memref<4xf32>) {
// CALL:         kernel.loop carried(%h_1 = %h) slices(%x_1 = %x) stacks(%s_1 = %s)
// CALL-NEXT:    func.call @step(%h_1, %x_1, %p, %s_1) : (memref<4xf32>, memref<4xf32>, memref<4xf32>, memref<4xf32>) -> ()

// %p, which all steps read, is alive until the loop is over; %d dies in each step.
// CHECK-NOT:   @step(
// CHECK-LABEL: func.func @main
// CHECK:         %p = kernel.alloc at 192 : memref<4xf32>
// CHECK:         kernel.launch @add(%w, %w, %p)
// CHECK:         %s = kernel.alloc at 0 : memref<9x4xf32>
// CHECK:         kernel.loop carried(%h_1 = %h) slices(%x_1 = %x) stacks(%s_1 = %s) : memref<4xf32>, memref<9x4xf32>, memref<9x4xf32> {
// CHECK:           %d = kernel.alloc at 256 : memref<4xf32>
// CHECK-NEXT:      kernel.launch @add(%h_1, %x_1, %d)
// CHECK-NEXT:      kernel.launch @add(%d, %p, %s_1)
// CHECK-NEXT:    }
func.func private @step(%h: tensor<4xf32>, %x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %d = loop.kernel @add(%h, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>):
    tile.launch (%i = 4 : thread) {
      %u = loop.load %a[%i] : memref<4xf32>
      %v = loop.load %b[%i] : memref<4xf32>
      %y = arith.addf %u, %v : f32
      loop.store %y, %c[%i] : memref<4xf32>
    }
  }
  %m = loop.kernel @add_2(%d, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>):
    tile.launch (%i = 4 : thread) {
      %u = loop.load %a[%i] : memref<4xf32>
      %v = loop.load %b[%i] : memref<4xf32>
      %y = arith.addf %u, %v : f32
      loop.store %y, %c[%i] : memref<4xf32>
    }
  }
  func.return %m : tensor<4xf32>
}
func.func @main(%h: tensor<4xf32>, %x: tensor<9x4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %p = loop.kernel @add_3(%w, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>):
    tile.launch (%i = 4 : thread) {
      %u = loop.load %a[%i] : memref<4xf32>
      %v = loop.load %b[%i] : memref<4xf32>
      %y = arith.addf %u, %v : f32
      loop.store %y, %c[%i] : memref<4xf32>
    }
  }
  %s = tensor_ir.scan @step carried(%h) slices(%x) shared(%p) : (tensor<4xf32>, tensor<9x4xf32>, tensor<4xf32>) -> tensor<9x4xf32>
  %last = loop.kernel @last(%s) : (tensor<9x4xf32>) -> tensor<4xf32> {
  ^bb0(%a: memref<9x4xf32>, %c: memref<4xf32>):
    tile.launch (%i = 4 : thread) {
      %u = loop.load %a[8, %i] : memref<9x4xf32>
      loop.store %u, %c[%i] : memref<4xf32>
    }
  }
  func.return %last : tensor<4xf32>
}
