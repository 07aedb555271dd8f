// What has no meaning on a CPU yet is refused, with the reason.

// RUN: deplo-opt %s --split-input-file --verify-diagnostics -p lower-tile-to-scf

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{kernel @k is not one tile.launch; run `tileify` before this pass}}
  %y = loop.kernel @k(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %out: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %v = loop.load %x[%i] : memref<4xf32>
      loop.store %v, %out[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x32xf32>) -> tensor<4xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x32xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x32xf32>, %out: memref<4xf32>):
    tile.launch (%i = 4 : block, %t = 32 : thread) {
      %v = loop.load %x[%i, %t] : memref<4x32xf32>
      // expected-error@+1 {{combines across 32 threads; a block has one thread on the CPU}}
      %sum = tile.combine add %v over(%t) : f32
      loop.store %sum, %out[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<4x32xf32>) -> tensor<4x32xf32> {
  %y = loop.kernel @k(%x) : (tensor<4x32xf32>) -> tensor<4x32xf32> {
  ^bb0(%x: memref<4x32xf32>, %out: memref<4x32xf32>):
    tile.launch (%i = 4 : block) {
      // expected-error@+1 {{a scratchpad is not lowered for the CPU yet}}
      %s = tile.stage %x[%i, 0] : memref<4x32xf32> -> memref<32xf32, "shared">
      loop.for %j = 0 to 32 {
        %v = loop.load %s[%j] : memref<32xf32, "shared">
        loop.store %v, %out[%i, %j] : memref<4x32xf32>
      }
    }
  }
  func.return %y : tensor<4x32xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{tensor_ir.elementwise is not a kernel}}
  %y = tensor_ir.elementwise exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
