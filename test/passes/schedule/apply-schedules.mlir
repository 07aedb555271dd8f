// A kernel that says its schedule is scheduled so; the others as recipes say.
// RUN: deplo-opt %s -p apply-schedules --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'apply-schedules{given="negate: tileify,bind{axis=j to=block}"}' | FileCheck %s --check-prefix=GIVEN
// RUN: deplo-opt %s -p loop-to-tile --check-each-pass | FileCheck %s --check-prefix=ROAD
// RUN: not deplo-opt %s -p 'loop-to-cuda{schedule="k: tileify"}' 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: deplo-opt %s -p apply-schedules --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// UNKNOWN: schedule: no kernel is named k; there are negate, copy
// REMARK: remark: apply-schedules: negate: as its schedule says
// REMARK: remark: apply-schedules: copy: declined: no schedule is given for it

// CHECK-LABEL: loop.kernel @negate
// CHECK:         tile.launch (%j_outer = 32 : block, %i = 64 : thread, %j_inner = 16 : thread) schedule(#tile.schedule<given = 1>) {
// CHECK-LABEL: loop.kernel @copy
// CHECK:         loop.for %i = 0 to 64 {
// GIVEN:         tile.launch (%j = 512 : block, %i = 64 : thread) schedule(#tile.schedule<given = 1>) {
// ROAD-LABEL:  loop.kernel @negate
// ROAD:          tile.launch (%j_outer = 32 : block, %i = 64 : thread, %j_inner = 16 : thread) schedule(#tile.schedule<given = 1>) {
// ROAD-LABEL:  loop.kernel @copy
// ROAD:          tile.launch (%i = 64 : block, {{.*}} schedule(#tile.schedule<threads = 
func.func @main(%x: tensor<64x512xf32>) -> (tensor<64x512xf32>, tensor<64x512xf32>) {
  %y = loop.kernel @negate(%x) : (tensor<64x512xf32>) -> tensor<64x512xf32> {
  ^bb0(%x: memref<64x512xf32>, %y: memref<64x512xf32>):
    loop.for %i = 0 to 64 {
      loop.for %j = 0 to 512 {
        %v = loop.load %x[%i, %j] : memref<64x512xf32>
        %w = arith.negf %v : f32
        loop.store %w, %y[%i, %j] : memref<64x512xf32>
      }
    }
  } attributes {schedule = "tileify,split{axis=j by=16},bind{axis=j_outer to=block}"}
  %z = loop.kernel @copy(%y) : (tensor<64x512xf32>) -> tensor<64x512xf32> {
  ^bb0(%y: memref<64x512xf32>, %z: memref<64x512xf32>):
    loop.for %i = 0 to 64 {
      loop.for %j = 0 to 512 {
        %v = loop.load %y[%i, %j] : memref<64x512xf32>
        loop.store %v, %z[%i, %j] : memref<64x512xf32>
      }
    }
  }
  func.return %y, %z : tensor<64x512xf32>, tensor<64x512xf32>
}
