// A sweep that ends at a limit of its own, as over a triangle: what would take it for whole declines.
// RUN: deplo-opt %s --split-input-file -p 'cooperative-reduce,chunk-reduce,partial{across=block parts=2},partial{across=thread parts=2}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=SHARED
// RUN: deplo-opt %s --split-input-file -p 'schedule{target=sm_80},schedule-cpu,legacy{vectors=avx2},flatten-sweeps' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=PRODUCT
// RUN: deplo-opt %s --split-input-file -p 'schedule{target=sm_80},chunk-matmul-k,flatten-sweeps,chunk-reduce,cooperative-reduce,blockify-launch,tile-to-cuda' --check-each-pass >/dev/null

// SHARED: cooperative-reduce: rows: declined: a sweep ends at a limit of its own
// SHARED: partial: rows: declined: its sweep ends at a limit of its own
// SHARED: partial: rows: declined: a sweep ends at a limit of its own
func.func @main(%x: tensor<16x16xf32>) -> tensor<16xf32> {
  %y = loop.kernel @rows(%x) : (tensor<16x16xf32>) -> tensor<16xf32> {
  ^bb0(%x: memref<16x16xf32>, %y: memref<16xf32>):
    tile.launch (%i = 16 : thread) {
      %s = loop.for %j = 0 to min(16, %i + 1) reduce(add) -> f32 {
        %v = loop.load %x[%i, %j] : memref<16x16xf32>
        loop.yield %v : f32
      }
      loop.store %s, %y[%i] : memref<16xf32>
    }
  }
  func.return %y : tensor<16xf32>
}

// -----

// SHARED: chunk-reduce: columns: declined: a sweep ends at a limit of its own
func.func @main(%x: tensor<16x16xf32>) -> tensor<16xf32> {
  %y = loop.kernel @columns(%x) : (tensor<16x16xf32>) -> tensor<16xf32> {
  ^bb0(%x: memref<16x16xf32>, %y: memref<16xf32>):
    tile.launch (%i = 16 : thread) {
      %s = loop.for %j = 0 to min(16, %i + 1) reduce(add) -> f32 {
        %v = loop.load %x[%j, %i] : memref<16x16xf32>
        loop.yield %v : f32
      }
      loop.store %s, %y[%i] : memref<16xf32>
    }
  }
  func.return %y : tensor<16xf32>
}

// -----

// PRODUCT: schedule: product: declined: the sweep ends at a limit of its own
// PRODUCT: schedule-cpu: product: declined: a sweep ends at a limit of its own
// PRODUCT: legacy: product: declined: a sweep ends at a limit of its own
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = loop.kernel @product(%x, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x64xf32>, %w: memref<64x64xf32>, %y: memref<64x64xf32>):
    tile.launch (%i = 64 : thread, %j = 64 : thread) {
      %s = loop.for %k = 0 to min(64, %i + 1) reduce(add) -> f32 {
        %a = loop.load %x[%i, %k] : memref<64x64xf32>
        %b = loop.load %w[%j, %k] : memref<64x64xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %y[%i, %j] : memref<64x64xf32>
    }
  }
  func.return %y : tensor<64x64xf32>
}

// -----

// PRODUCT: flatten-sweeps: inner: declined: what an iteration contributes is computed from a fold of its own
func.func @main(%x: tensor<16x16xf32>) -> tensor<16xf32> {
  %y = loop.kernel @inner(%x) : (tensor<16x16xf32>) -> tensor<16xf32> {
  ^bb0(%x: memref<16x16xf32>, %y: memref<16xf32>):
    tile.launch (%i = 16 : thread) {
      %s = loop.for %j = 0 to 16 reduce(add) -> f32 {
        %t = loop.for %l = 0 to min(16, %j + 1) reduce(add) -> f32 {
          %v = loop.load %x[%i, %l] : memref<16x16xf32>
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %y[%i] : memref<16xf32>
    }
  }
  func.return %y : tensor<16xf32>
}
