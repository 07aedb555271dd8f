// Every operation of the loop dialect prints as it was read, and comes back from the generic form.
// RUN: grep -v '^//' %s > %t.text
// RUN: deplo-opt %s > %t.custom
// RUN: diff %t.text %t.custom
// RUN: deplo-opt --print-op-generic %s > %t.generic
// RUN: deplo-opt %t.generic > %t.back
// RUN: diff %t.text %t.back
builtin.module {
  func.func @main(%x: tensor<4x8xf32>, %w: tensor<2x64x48xf32>) -> tensor<4x1xf32> {
    %y = loop.kernel @k_exp(%x) : (tensor<4x8xf32>) -> tensor<4x1xf32> {
    ^bb0(%x: memref<4x8xf32>, %y: memref<4x1xf32>):
      loop.for %i = 0 to 4 {
        %sum, %m = loop.for %k = 0 to 8 reduce(add, max) -> f32, f32 {
          loop.prefetch %x[%i, %k] ahead 1024 : memref<4x8xf32>
          %v = loop.load %x[%i, %k] : memref<4x8xf32>
          loop.yield %v, %v : f32, f32
        }
        %part = loop.for %n = 0 to min(8, %i * 2 + 1) reduce(add) -> f32 {
          %u = loop.load %x[%i, %n] : memref<4x8xf32>
          loop.yield %u : f32
        }
        %e = math.exp %sum : f32
        %j = loop.index[%i * 8 + %i floordiv 3 mod 5]
        %t = loop.test[%i >= 4, %j < 8]
        loop.assert %t, "a message"
        %id = arith.constant 3 : i64
        %r = loop.checked_index %id below 100 : i64
        %inside = loop.checked_index %id below 100 proven : i64
        %kept = loop.registers : memref<8xf32, "registers">
        loop.store %e, %kept[%i] : memref<8xf32, "registers">
        loop.store %e, %y[%i, 0] : memref<4x1xf32>
      } attributes {note = "kept"}
    }
    %turned = loop.kernel @k_turn(%w) : (tensor<2x64x48xf32>) -> tensor<16x32xf32> {
    ^bb0(%w: memref<2x64x48xf32>, %out: memref<16x32xf32>):
      %t = loop.transpose %w[1, 32, 0] along 1 : memref<2x64x48xf32> -> memref<16x32xf32>
      loop.for %i = 0 to 16 {
        loop.for %j = 0 to 32 {
          %v = loop.load %t[%i, %j] : memref<16x32xf32>
          loop.store %v, %out[%i, %j] : memref<16x32xf32>
        }
      }
    }
    %z = loop.kernel @k_sum(%x, %y) : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x1xf32> {
    ^bb0(%x: memref<4x8xf32>, %start: memref<4x1xf32>, %z: memref<4x1xf32>):
      loop.for %i = 0 to 4 {
        loop.for %k = 0 to 8 {
          %v = loop.load %x[%i, %k] : memref<4x8xf32>
          loop.accumulate %v, %z[%i, 0] onto %start : f32, memref<4x1xf32>
        }
      }
    }
    func.return %z : tensor<4x1xf32>
  }
}
