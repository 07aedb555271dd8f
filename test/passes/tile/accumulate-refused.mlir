// What an output may not take the place of, and where nothing adds atomically.
// RUN: not deplo-opt %s -p materialize-tile 2>&1 | FileCheck %s --check-prefix=GPU
// RUN: not deplo-opt %s -p lower-tile-to-scf 2>&1 | FileCheck %s --check-prefix=CPU

// GPU: error: {{.*}}kernel @k accumulates in a value that something else needs too
// CPU: error: {{.*}}accumulates in its output, which deplo lowers for GPUs only
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%start: memref<4xf32>, %out: memref<4xf32>):
    tile.launch (%i = 4 : thread) schedule(#tile.schedule<threads = 4>) {
      %v = arith.constant 1.0 : f32
      loop.accumulate %v, %out[%i] onto %start : f32, memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}
