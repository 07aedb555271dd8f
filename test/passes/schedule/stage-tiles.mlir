// A block copies the tile of an array that it reads.
// RUN: deplo-opt %s -p 'tileify,split{axis=i by=8},split{axis=j by=16},bind{axis=i_outer to=block},bind{axis=j_outer to=block},stage{of=x to=shared}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,split{axis=i by=8},split{axis=j by=16},bind{axis=i_outer to=block},bind{axis=j_outer to=block},stage{of=x,x_1 to=shared}' --check-each-pass | FileCheck %s --check-prefix=BOTH
// RUN: deplo-opt %s -p 'tileify,stage{of=x to=registers},stage{of=z to=shared}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK: remark: stage: turn: declined: no element of x is read by more than one sweep
// REMARK: remark: stage: turn: declined: no element of z is read by more than one sweep

// CHECK:      %x_smem = tile.stage %x[%j_outer * 16, %i_outer * 8] : memref<50x30xf32> -> memref<16x8xf32, "shared">
// CHECK-NEXT: loop.test[
// CHECK:        loop.load %x_smem[%j_inner, %i_inner]
// CHECK-NEXT:   loop.load %x_1[%i_outer * 8 + %i_inner, %j_outer * 16 + %j_inner]
// BOTH:       tile.stage %x[%j_outer * 16, %i_outer * 8]
// BOTH-NEXT:  tile.stage %x_1[%i_outer * 8, %j_outer * 16]
func.func @main(%a: tensor<50x30xf32>, %b: tensor<30x50xf32>) -> tensor<30x50xf32> {
  %y = loop.kernel @turn(%a, %b) : (tensor<50x30xf32>, tensor<30x50xf32>) -> tensor<30x50xf32> {
  ^bb0(%x: memref<50x30xf32>, %x_1: memref<30x50xf32>, %y: memref<30x50xf32>):
    loop.for %i = 0 to 30 {
      loop.for %j = 0 to 50 {
        %v = loop.load %x[%j, %i] : memref<50x30xf32>
        %w = loop.load %x_1[%i, %j] : memref<30x50xf32>
        %s = arith.addf %v, %w : f32
        loop.store %s, %y[%i, %j] : memref<30x50xf32>
      }
    }
  }
  func.return %y : tensor<30x50xf32>
}
