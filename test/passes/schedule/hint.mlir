// How the loops of a launch become native code.
// RUN: deplo-opt %s -p 'tileify,hint{width=256 interleave=2},bind{axis=i to=block},hint{prefetch=1024 width=512}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,hint' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not deplo-opt %s -p 'tileify,hint{rows=1}' 2>&1 | FileCheck %s --check-prefix=ROWS

// CHECK:  tile.launch (%i = 64 : block, %j = 1000 : thread) schedule(#tile.schedule<width = 512, interleave = 2, prefetch = 1024>) {
// REMARK: remark: hint: negate: declined: no hint is given
// ROWS:   pass 'hint': `rows` must be a number, 2 or more
func.func @main(%x: tensor<64x1000xf32>) -> tensor<64x1000xf32> {
  %y = loop.kernel @negate(%x) : (tensor<64x1000xf32>) -> tensor<64x1000xf32> {
  ^bb0(%x: memref<64x1000xf32>, %y: memref<64x1000xf32>):
    loop.for %i = 0 to 64 {
      loop.for %j = 0 to 1000 {
        %v = loop.load %x[%i, %j] : memref<64x1000xf32>
        %w = arith.negf %v : f32
        loop.store %w, %y[%i, %j] : memref<64x1000xf32>
      }
    }
  }
  func.return %y : tensor<64x1000xf32>
}
