// One schedule for several kernels, which see each other then, and nothing else.
// RUN: deplo-opt %s -p 'apply-schedules{given="second+first: tileify,bind{axis=i to=block}"}' --check-each-pass | FileCheck %s
// RUN: not deplo-opt %s -p 'apply-schedules{given="first+third: tileify"}' 2>&1 | FileCheck %s --check-prefix=BETWEEN
// RUN: not deplo-opt %s -p 'apply-schedules{given="first: tileify; first+third: tileify"}' 2>&1 | FileCheck %s --check-prefix=TWO
// RUN: not deplo-opt %s -p 'apply-schedules{given="first+fourth: tileify"}' 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// CHECK-LABEL: loop.kernel @first
// CHECK:         tile.launch (%i = 64 : block) schedule(#tile.schedule<given = 1>) {
// CHECK-LABEL: loop.kernel @second
// CHECK:         tile.launch (%i = 64 : block) schedule(#tile.schedule<given = 1>) {
// CHECK-LABEL: loop.kernel @third
// CHECK:         loop.for %i = 0 to 64 {
// BETWEEN: schedule of first+third: another operation reads a before the last of them runs
// TWO: schedule: first has two
// UNKNOWN: schedule: no kernel is named fourth; there are first, second, third
func.func @main(%x: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %a = loop.kernel @first(%x) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%x: memref<64xf32>, %a: memref<64xf32>):
    loop.for %i = 0 to 64 {
      %v = loop.load %x[%i] : memref<64xf32>
      %w = arith.negf %v : f32
      loop.store %w, %a[%i] : memref<64xf32>
    }
  }
  %b = loop.kernel @second(%a) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: memref<64xf32>, %b: memref<64xf32>):
    loop.for %i = 0 to 64 {
      %v = loop.load %a[%i] : memref<64xf32>
      %w = arith.negf %v : f32
      loop.store %w, %b[%i] : memref<64xf32>
    }
  }
  %c = loop.kernel @third(%a) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%a: memref<64xf32>, %c: memref<64xf32>):
    loop.for %i = 0 to 64 {
      %v = loop.load %a[%i] : memref<64xf32>
      %w = arith.negf %v : f32
      loop.store %w, %c[%i] : memref<64xf32>
    }
  }
  func.return %b, %c : tensor<64xf32>, tensor<64xf32>
}
