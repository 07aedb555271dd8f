// RUN: not deplo-opt %s -p materialize-tile --split-input-file 2>&1 | FileCheck %s

// CHECK: error: {{.*}}kernel @loops is not one tile.launch; run `tileify` first
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

// -----

// CHECK: error: {{.*}}rows are not proven to be whole numbers of 4 bytes; leave `via` out
func.func @main(%x: tensor<64x63xf16>) -> tensor<2x32xf32> {
  %y = loop.kernel @halves(%x) : (tensor<64x63xf16>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x63xf16>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = tile.stage %in[%b * 32, 0] via cp_async : memref<64x63xf16> -> memref<32x8xf16, "shared">
      %h = loop.load %s[%t, 3] : memref<32x8xf16, "shared">
      %v = arith.extf %h : f16 to f32
      loop.store %v, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// CHECK: error: {{.*}}copies that stand together have buffers of one number
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @apart(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %s0 = tile.stage %in[%b * 32, %k * 8] buffers 2 : memref<64x64xf32> -> memref<32x8xf32, "shared">
        %s1 = tile.stage %in[%b * 32, %k * 8] buffers 3 : memref<64x64xf32> -> memref<32x8xf32, "shared">
        %v = loop.load %s0[%t, 3] : memref<32x8xf32, "shared">
        loop.yield %v : f32
      }
      loop.store %s, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// CHECK: error: {{.*}}is pipelined: it needs 2 buffers or more, and a loop that stands in no other; run `double-buffer` and `pipeline-k-outer`
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @one(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %s0 = tile.stage %in[%b * 32, %k * 8] : memref<64x64xf32> -> memref<32x8xf32, "shared">
        %v = loop.load %s0[%t, 3] : memref<32x8xf32, "shared">
        loop.yield %v : f32
      } attributes {pipelined}
      loop.store %s, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// CHECK: error: {{.*}}is pipelined: it needs 2 buffers or more
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @nested(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      loop.for %r = 0 to 1 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %s0 = tile.stage %in[%b * 32, %k * 8] buffers 2 : memref<64x64xf32> -> memref<32x8xf32, "shared">
          %v = loop.load %s0[%t, 3] : memref<32x8xf32, "shared">
          loop.yield %v : f32
        } attributes {pipelined}
        loop.store %s, %out[%b, %t] : memref<2x32xf32>
      }
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// CHECK: error: {{.*}}cannot go by tma: rows of 32 bytes are no whole number of 64
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @swizzled(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %s0 = tile.stage %in[%b * 32, %k * 8] via tma swizzle 64 : memref<64x64xf32> -> memref<32x8xf32, "shared">
        %v = loop.load %s0[%t, 3] : memref<32x8xf32, "shared">
        loop.yield %v : f32
      }
      loop.store %s, %out[%b, %t] : memref<2x32xf32>
    }
  }
  func.return %y : tensor<2x32xf32>
}

// -----

// CHECK: error: {{.*}}cannot go by tma: it stands in a loop inside another or under a condition
func.func @main(%x: tensor<64x64xf32>) -> tensor<2x32xf32> {
  %y = loop.kernel @bulk(%x) : (tensor<64x64xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<64x64xf32>, %out: memref<2x32xf32>):
    tile.launch (%b = 2 : block, %t = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      loop.for %r = 0 to 1 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %s0 = tile.stage %in[%b * 32, %k * 8] via tma : memref<64x64xf32> -> memref<32x8xf32, "shared">
          %v = loop.load %s0[%t, 3] : memref<32x8xf32, "shared">
          loop.yield %v : f32
        }
        loop.store %s, %out[%b, %t] : memref<2x32xf32>
      }
    }
  }
  func.return %y : tensor<2x32xf32>
}
