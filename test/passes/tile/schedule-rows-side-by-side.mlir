// RUN: deplo-opt %s --split-input-file -p tileify,schedule-rows{target=cpu:avx512} | FileCheck %s

// The second fold waits for the first one.
// CHECK-LABEL: @k_waits
// CHECK:         tile.launch (%i = 512 : thread) schedule(#tile.schedule<grain = 4096, width = 512, interleave = 1, rows = 4>)
builtin.module {
  func.func @main(%x: tensor<512x100xf32>) -> tensor<512xf32> {
    %y = loop.kernel @k_waits(%x) : (tensor<512x100xf32>) -> tensor<512xf32> {
    ^bb0(%x: memref<512x100xf32>, %y: memref<512xf32>):
      loop.for %i = 0 to 512 {
        %m = loop.for %j = 0 to 100 reduce(max) -> f32 {
          %v = loop.load %x[%i, %j] : memref<512x100xf32>
          loop.yield %v : f32
        }
        %s = loop.for %j = 0 to 100 reduce(add) -> f32 {
          %v = loop.load %x[%i, %j] : memref<512x100xf32>
          %d = arith.subf %v, %m : f32
          loop.yield %d : f32
        }
        loop.store %s, %y[%i] : memref<512xf32>
      }
    }
    func.return %y : tensor<512xf32>
  }
}

// -----

// LLVM makes many vectors of a single one at once, if their number is known.
// CHECK-LABEL: @k_single
// CHECK:         tile.launch (%i = 512 : thread) schedule(#tile.schedule<grain = 4096, width = 512>)
builtin.module {
  func.func @main(%x: tensor<512x100xf32>) -> tensor<512xf32> {
    %y = loop.kernel @k_single(%x) : (tensor<512x100xf32>) -> tensor<512xf32> {
    ^bb0(%x: memref<512x100xf32>, %y: memref<512xf32>):
      loop.for %i = 0 to 512 {
        %m = loop.for %j = 0 to 100 reduce(max) -> f32 {
          %v = loop.load %x[%i, %j] : memref<512x100xf32>
          loop.yield %v : f32
        }
        loop.store %m, %y[%i] : memref<512xf32>
      }
    }
    func.return %y : tensor<512xf32>
  }
}

// -----

// CHECK-LABEL: @k_size
// CHECK:         tile.launch (%i = 512 : thread) schedule(#tile.schedule<grain = 4096, width = 512, interleave = 1, rows = 4>)
builtin.module {
  func.func @main(%x: tensor<512x?xf32, #sym.extents<s0>>) -> tensor<512xf32> {
    %y = loop.kernel @k_size(%x) : (tensor<512x?xf32, #sym.extents<s0>>) -> tensor<512xf32> {
    ^bb0(%x: memref<512x?xf32, #sym.extents<s0>>, %y: memref<512xf32>):
      loop.for %i = 0 to 512 {
        %m = loop.for %j = 0 to s0 reduce(max) -> f32 {
          %v = loop.load %x[%i, %j] : memref<512x?xf32, #sym.extents<s0>>
          loop.yield %v : f32
        }
        loop.store %m, %y[%i] : memref<512xf32>
      }
    }
    func.return %y : tensor<512xf32>
  }
}

// -----

// Of three rows there are no four; of long rows two are vectors enough, and of longer ones, or where they come
// from another cache, one is.
// CHECK-LABEL: @k_few
// CHECK:         tile.launch (%i = 3 : thread) schedule(#tile.schedule<grain = 4096, width = 512>)
// CHECK-LABEL: @k_long
// CHECK:         tile.launch (%i = 8 : thread) schedule(#tile.schedule<grain = 4096, width = 512, interleave = 4, rows = 2>)
// CHECK-LABEL: @k_longer
// CHECK:         tile.launch (%i = 8 : thread) schedule(#tile.schedule<grain = 4096, width = 512>)
// CHECK-LABEL: @k_far
// CHECK:         tile.launch (%i = 800 : thread) schedule(#tile.schedule<grain = 4096, prefetch = 4096, width = 512>)
builtin.module {
  func.func @main(%x: tensor<3x?xf32, #sym.extents<s0>>, %z: tensor<8x2000xbf16>, %t: tensor<8x12000xbf16>, %u: tensor<800x2000xbf16>) -> (tensor<3xf32>, tensor<8xf32>, tensor<8xf32>, tensor<800xf32>) {
    %y = loop.kernel @k_few(%x) : (tensor<3x?xf32, #sym.extents<s0>>) -> tensor<3xf32> {
    ^bb0(%x: memref<3x?xf32, #sym.extents<s0>>, %y: memref<3xf32>):
      loop.for %i = 0 to 3 {
        %m = loop.for %j = 0 to s0 reduce(max) -> f32 {
          %v = loop.load %x[%i, %j] : memref<3x?xf32, #sym.extents<s0>>
          loop.yield %v : f32
        }
        loop.store %m, %y[%i] : memref<3xf32>
      }
    }
    %w = loop.kernel @k_long(%z) : (tensor<8x2000xbf16>) -> tensor<8xf32> {
    ^bb0(%z: memref<8x2000xbf16>, %w: memref<8xf32>):
      loop.for %i = 0 to 8 {
        %m = loop.for %j = 0 to 2000 reduce(max) -> f32 {
          %v = loop.load %z[%i, %j] : memref<8x2000xbf16>
          %f = arith.extf %v : bf16 to f32
          loop.yield %f : f32
        }
        loop.store %m, %w[%i] : memref<8xf32>
      }
    }
    %v = loop.kernel @k_longer(%t) : (tensor<8x12000xbf16>) -> tensor<8xf32> {
    ^bb0(%z: memref<8x12000xbf16>, %w: memref<8xf32>):
      loop.for %i = 0 to 8 {
        %m = loop.for %j = 0 to 12000 reduce(max) -> f32 {
          %v = loop.load %z[%i, %j] : memref<8x12000xbf16>
          %f = arith.extf %v : bf16 to f32
          loop.yield %f : f32
        }
        loop.store %m, %w[%i] : memref<8xf32>
      }
    }
    %s = loop.kernel @k_far(%u) : (tensor<800x2000xbf16>) -> tensor<800xf32> {
    ^bb0(%z: memref<800x2000xbf16>, %w: memref<800xf32>):
      loop.for %i = 0 to 800 {
        %m = loop.for %j = 0 to 2000 reduce(max) -> f32 {
          %v = loop.load %z[%i, %j] : memref<800x2000xbf16>
          %f = arith.extf %v : bf16 to f32
          loop.yield %f : f32
        }
        loop.store %m, %w[%i] : memref<800xf32>
      }
    }
    func.return %y, %w, %v, %s : tensor<3xf32>, tensor<8xf32>, tensor<8xf32>, tensor<800xf32>
  }
}
