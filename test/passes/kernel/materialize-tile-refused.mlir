// RUN: not deplo-opt %s -p materialize-tile --split-input-file 2>&1 | FileCheck %s

// CHECK: error: {{.*}}kernel @loops is not one tile.launch; run `tileify` before this pass
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @loops(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%in: memref<4xf32>, %out: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %in[%i] : memref<4xf32>
      loop.store %v, %out[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

// CHECK: error: {{.*}}combines over thread axes that are neither the innermost nor the outermost ones; reorder the launch's axes
func.func @main(%x: tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  %y = loop.kernel @middle(%x) : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32> {
  ^bb0(%in: memref<2x4x8xf32>, %out: memref<2x4x8xf32>):
    tile.launch (%o = 2 : thread, %r = 4 : thread, %t = 8 : thread) {
      %p = loop.load %in[%o, %r, %t] : memref<2x4x8xf32>
      %m = tile.combine max %p over(%r) : f32
      loop.store %m, %out[%o, %r, %t] : memref<2x4x8xf32>
    }
  }
  func.return %y : tensor<2x4x8xf32>
}
