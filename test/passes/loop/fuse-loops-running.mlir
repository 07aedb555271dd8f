// RUN: deplo-opt %s --split-input-file -p fuse-loops{target=sm_90a} | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p fuse-loops{target=sm_90a} --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A running fold is merged into what reads each of its places.
// CHECK-LABEL: func.func @main
// CHECK-NOT:     loop.kernel @running
// CHECK:         loop.kernel @twice
// REMARK: fuse-loops: running: merged into twice
func.func @main(%x: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %r = loop.kernel @running(%x) : (tensor<4x32xf32>) -> tensor<4x32xf32> {
  ^bb0(%x: memref<4x32xf32>, %out: memref<4x32xf32>):
    loop.for %i = 0 to 4 {
      loop.for %j = 0 to 32 {
        %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %until = loop.test[%j - %k >= 0]
            %p = scf.if %until -> (f32) {
              %v = loop.load %x[%i, %k] : memref<4x32xf32>
              scf.yield %v : f32
            } else {
              %zero = arith.constant 0.0 : f32
              scf.yield %zero : f32
            }
            loop.yield %p : f32
          }
        loop.store %s, %out[%i, %j] : memref<4x32xf32>
      }
    }
  }
  %y = loop.kernel @twice(%r) : (tensor<4x32xf32>) -> tensor<4x32xf32> {
  ^bb0(%r: memref<4x32xf32>, %out: memref<4x32xf32>):
    loop.for %i = 0 to 4 {
      loop.for %j = 0 to 32 {
        %v = loop.load %r[%i, %j] : memref<4x32xf32>
        %w = arith.addf %v, %v : f32
        loop.store %w, %out[%i, %j] : memref<4x32xf32>
      }
    }
  }
  func.return %y : tensor<4x32xf32>
}

// -----

// Into what reads them in another order it is not, nor a reduction into what has a running fold.
// CHECK-LABEL: func.func @main
// CHECK:         loop.kernel @running
// CHECK:         loop.kernel @reversed
// CHECK:         loop.kernel @total
// CHECK:         loop.kernel @share
// REMARK: fuse-loops: total: declined: not merged into share: the threads of a block share a running fold, and no reduction beside it
// REMARK: fuse-loops: running: declined: not merged into reversed: a running fold is merged only where each of its places is read by itself
func.func @main(%x: tensor<4x32xf32>) -> (tensor<4x32xf32>, tensor<4x32xf32>) {
  %r = loop.kernel @running(%x) : (tensor<4x32xf32>) -> tensor<4x32xf32> {
  ^bb0(%x: memref<4x32xf32>, %out: memref<4x32xf32>):
    loop.for %i = 0 to 4 {
      loop.for %j = 0 to 32 {
        %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %until = loop.test[%j - %k >= 0]
            %p = scf.if %until -> (f32) {
              %v = loop.load %x[%i, %k] : memref<4x32xf32>
              scf.yield %v : f32
            } else {
              %zero = arith.constant 0.0 : f32
              scf.yield %zero : f32
            }
            loop.yield %p : f32
          }
        loop.store %s, %out[%i, %j] : memref<4x32xf32>
      }
    }
  }
  %y = loop.kernel @reversed(%r) : (tensor<4x32xf32>) -> tensor<4x32xf32> {
  ^bb0(%r: memref<4x32xf32>, %out: memref<4x32xf32>):
    loop.for %i = 0 to 4 {
      loop.for %j = 0 to 32 {
        %v = loop.load %r[%i, %j * -1 + 31] : memref<4x32xf32>
        loop.store %v, %out[%i, %j] : memref<4x32xf32>
      }
    }
  }
  %t = loop.kernel @total(%x) : (tensor<4x32xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x32xf32>, %out: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
        %v = loop.load %x[%i, %k] : memref<4x32xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<4xf32>
    }
  }
  %z = loop.kernel @share(%x, %t) : (tensor<4x32xf32>, tensor<4xf32>) -> tensor<4x32xf32> {
  ^bb0(%x: memref<4x32xf32>, %t: memref<4xf32>, %out: memref<4x32xf32>):
    loop.for %i = 0 to 4 {
      loop.for %j = 0 to 32 {
        %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %until = loop.test[%j - %k >= 0]
            %p = scf.if %until -> (f32) {
              %v = loop.load %x[%i, %k] : memref<4x32xf32>
              scf.yield %v : f32
            } else {
              %zero = arith.constant 0.0 : f32
              scf.yield %zero : f32
            }
            loop.yield %p : f32
          }
        %u = loop.load %t[%i] : memref<4xf32>
        %w = arith.divf %s, %u : f32
        loop.store %w, %out[%i, %j] : memref<4x32xf32>
      }
    }
  }
  func.return %y, %z : tensor<4x32xf32>, tensor<4x32xf32>
}
