// What has no meaning on a CPU yet is refused, with the reason.

// RUN: deplo-opt %s --assume=stored-once --split-input-file --verify-diagnostics -p lower-tile-to-scf

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{kernel @k is not one tile.launch; run `tileify` first}}
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

func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %y = loop.kernel @k(%x) : (tensor<16xf32>) -> tensor<16xf32> {
  ^bb0(%x: memref<16xf32>, %y: memref<16xf32>):
    tile.launch (%i = 16 : thread) {
      // expected-error@+1 {{loop.registers is lowered for GPUs only}}
      %r = loop.registers : memref<4xf32, "registers">
      %v = loop.load %x[%i] : memref<16xf32>
      loop.store %v, %r[0] : memref<4xf32, "registers">
      %w = loop.load %r[0] : memref<4xf32, "registers">
      loop.store %w, %y[%i] : memref<16xf32>
    }
  }
  func.return %y : tensor<16xf32>
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{no tile.launch in @main: run tensor-to-loop,tileify first}}
  %y = tensor_ir.elementwise exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%q: tensor<2x40x8xf32>, %k: tensor<2x300x8xf32>, %v: tensor<2x300x16xf32>) -> tensor<2x40x16xf32> {
  // expected-error@+1 {{a packed softmax folds what follows from one sum of products, with weight 1}}
  %y = loop.kernel @attention(%q, %k, %v) : (tensor<2x40x8xf32>, tensor<2x300x8xf32>, tensor<2x300x16xf32>) -> tensor<2x40x16xf32> {
  ^bb0(%q: memref<2x40x8xf32>, %k: memref<2x300x8xf32>, %v: memref<2x300x16xf32>, %y: memref<2x40x16xf32>):
    tile.launch (%i = 2 : block, %j_block = 2 : block, %j = 20 : thread, %k_1 = 16 : thread) schedule(#tile.schedule<m = 2, n = 3, block_m = 20, block_n = 16, block_k = 304, thread_m = 10, thread_n = 16, vectors = avx512>) {
      %row_packed = tile.pack (%r = 20, %p = 8) pad 16 : memref<20x8xf32, "shared"> {
        %q_1 = loop.load %q[%i, %j_block * 20 + %r, %p] : memref<2x40x8xf32>
        tile.yield %q_1 : f32
      }
      %max, %weight, %mean = loop.for %l_block = 0 to 1 reduce(max, weight, mean) -> f32, f32, f32 {
        %column_packed = tile.pack (%r_1 = 304, %p_1 = 8) panels 16 : memref<304x8xf32, "shared"> {
          %0 = loop.test[%r_1 < 300]
          %1 = scf.if %0 -> (f32) {
            %k_2 = loop.load %k[%i, %r_1, %p_1] : memref<2x300x8xf32>
            scf.yield %k_2 : f32
          } else {
            %2 = arith.constant 0.000000e+00 : f32
            scf.yield %2 : f32
          }
          tile.yield %1 : f32
        }
        %value_packed = tile.pack (%r_2 = 16, %p_2 = 304) panels 16 : memref<16x304xf32, "shared"> {
          %3 = loop.test[%p_2 < 300]
          %4 = scf.if %3 -> (f32) {
            %v_1 = loop.load %v[%i, %p_2, %r_2] : memref<2x300x16xf32>
            scf.yield %v_1 : f32
          } else {
            %5 = arith.constant 0.000000e+00 : f32
            scf.yield %5 : f32
          }
          tile.yield %4 : f32
        }
        %max_1, %weight_1, %mean_1 = loop.for %l = 0 to 304 reduce(max, weight, mean) -> f32, f32, f32 {
          %score = loop.for %l_1 = 0 to 8 reduce(add) -> f32 {
            %6 = loop.load %row_packed[%j, %l_1] : memref<20x8xf32, "shared">
            %7 = loop.load %column_packed[%l, %l_1] : memref<304x8xf32, "shared">
            %8 = arith.mulf %6, %7 : f32
            loop.yield %8 : f32
          }
          %9 = loop.test[%l < 300]
          %10 = scf.if %9 -> (f32) {
            %11 = loop.test[%j_block * 20 + %j - %l >= 0]
            %x = scf.if %11 -> (f32) {
              %12 = arith.constant 0.353553385 : f32
              %scaled = arith.mulf %score, %12 : f32
              scf.yield %scaled : f32
            } else {
              %13 = arith.constant 0xff800000 : f32
              scf.yield %13 : f32
            }
            scf.yield %x : f32
          } else {
            %14 = arith.constant 0xff800000 : f32
            scf.yield %14 : f32
          }
          %15 = arith.constant 2.000000e+00 : f32
          %16 = loop.load %value_packed[%k_1, %l] : memref<16x304xf32, "shared">
          loop.yield %10, %15, %16 : f32, f32, f32
        } attributes {chunk}
        loop.yield %max_1, %weight_1, %mean_1 : f32, f32, f32
      }
      loop.store %mean, %y[%i, %j_block * 20 + %j, %k_1] : memref<2x40x16xf32>
    }
  }
  func.return %y : tensor<2x40x16xf32>
}

// -----

func.func @main(%x: tensor<4x8xf32>) -> tensor<4xf32> {
  // expected-error@+1 {{a tile.pack of a launch that multiplies nothing must hold a value under a loop.test}}
  %y = loop.kernel @k(%x) : (tensor<4x8xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x8xf32>, %y: memref<4xf32>):
    tile.launch (%r = 4 : block) {
      %p = tile.pack (%i = 1, %k = 8) : memref<1x8xf32, "shared"> {
        %v = loop.load %x[%r, %k] : memref<4x8xf32>
        %n = arith.cmpf une, %v, %v : f32
        %u = scf.if %n -> (f32) {
          scf.yield %v : f32
        } else {
          %z = arith.constant 0.0 : f32
          scf.yield %z : f32
        }
        tile.yield %u : f32
      }
      %w = loop.load %p[0, 3] : memref<1x8xf32, "shared">
      loop.store %w, %y[%r] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

func.func @main(%x: tensor<2147483648xi8>) -> tensor<2147483648xi8> {
  // expected-error@+1 {{a row of 2147483648 elements has more than a sort can count}}
  %y, %i = tensor_ir.sort %x along 0 : tensor<2147483648xi8> -> (tensor<2147483648xi8>, tensor<2147483648xi64>)
  func.return %y : tensor<2147483648xi8>
}
