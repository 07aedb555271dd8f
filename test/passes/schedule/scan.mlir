// The threads of a block share a running fold.
// RUN: deplo-opt %s -p 'tileify,scan{axis=j lanes=4 each=3 rows=2}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,scan{axis=j lanes=8 each=2 columns=true vector=2}' --check-each-pass | FileCheck %s --check-prefix=COLUMNS
// RUN: deplo-opt %s -p 'tileify,scan{axis=i lanes=4 each=3},scan{axis=j lanes=2 each=3},scan{axis=j lanes=2 each=8 vector=8},scan{axis=j part=5 lanes=4 each=3}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not deplo-opt %s -p 'tileify,scan{axis=j lanes=3}' 2>&1 | FileCheck %s --check-prefix=LANES

// LANES: pass 'scan': lanes is a power of two, at most 1024, not 3
// REMARK: remark: scan: run: declined: no reduction ends at the place of i, in parts of 5
// REMARK: remark: scan: run: declined: j has 10 places, more than the 6 that its threads have
// REMARK: remark: scan: run: declined: a thread accesses 2 places at once at most, not 8
// REMARK: remark: scan: run: declined: no reduction ends at the place of j, in parts of 5

// CHECK:      tile.launch (%i_block = 3 : block, %i_thread = 2 : thread, %lane = 4 : thread)
// CHECK:        %s_kept = loop.registers : memref<3xf32, "registers">
// CHECK:        tile.prefix add %{{.*}} over(%lane) : f32
// COLUMNS:    tile.launch (%i = 5 : block, %lane = 8 : thread)
// COLUMNS:      loop.registers : memref<2xf32, "registers">
func.func @main(%x: tensor<5x10xf32>) -> tensor<5x10xf32> {
  %y = loop.kernel @run(%x) : (tensor<5x10xf32>) -> tensor<5x10xf32> {
  ^bb0(%x: memref<5x10xf32>, %y: memref<5x10xf32>):
    loop.for %i = 0 to 5 {
      loop.for %j = 0 to 10 {
        %s = loop.for %k = 0 to 10 reduce(add) -> f32 {
          %until = loop.test[%j - %k >= 0]
          %t = scf.if %until -> (f32) {
            %v = loop.load %x[%i, %k] : memref<5x10xf32>
            scf.yield %v : f32
          } else {
            %zero = arith.constant 0.0 : f32
            scf.yield %zero : f32
          }
          loop.yield %t : f32
        }
        loop.store %s, %y[%i, %j] : memref<5x10xf32>
      }
    }
  }
  func.return %y : tensor<5x10xf32>
}
