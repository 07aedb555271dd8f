// Every operation of the tile dialect prints as it was read, and comes back from the generic form.
// RUN: grep -v '^//' %s > %t.text
// RUN: deplo-opt --assume=stored-once %s > %t.custom
// RUN: diff %t.text %t.custom
// RUN: deplo-opt --assume=stored-once --print-op-generic %s > %t.generic
// RUN: deplo-opt --assume=stored-once %t.generic > %t.back
// RUN: diff %t.text %t.back
builtin.module {
  func.func @main(%x: tensor<32x2048xf32>) -> tensor<32x256xf32> {
    %y = loop.kernel @sum(%x) : (tensor<32x2048xf32>) -> tensor<32x256xf32> {
    ^bb0(%x: memref<32x2048xf32>, %y: memref<32x256xf32>):
      tile.launch (%row = 32 : block, %lane = 256 : thread) schedule(#tile.schedule<threads = 256>) {
        %xs = tile.stage %x[%row, 0] pad 1 : memref<32x2048xf32> -> memref<2048xf32, "shared">
        %p = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %v = loop.load %xs[%k * 256 + %lane] : memref<2048xf32, "shared">
          loop.yield %v : f32
        }
        %s = tile.combine add %p over(%lane) : f32
        %b = tile.prefix add %p over(%lane) : f32
        %h = arith.truncf %s : f32 to f16
        %d, %e, %f, %g = tile.mma (%h, %h, %h, %h, %h, %h, %h, %h) by (%h, %h, %h, %h) : f16
        loop.store %s, %y[%row, %lane] : memref<32x256xf32>
      } attributes {note = "kept"}
    }
    func.return %y : tensor<32x256xf32>
  }
  func.func @undecided(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %y = loop.kernel @open(%x) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
      tile.launch (%i = 4 : thread) schedule(#tile.schedule<m = 0, n = 0, block_m = 4, block_k = 16>) {
        %v = loop.load %x[%i] : memref<4xf32>
        loop.store %v, %y[%i] : memref<4xf32>
      }
    }
    %z = loop.kernel @decided_to_be_empty(%x) : (tensor<4xf32>) -> tensor<4xf32> {
    ^bb0(%x: memref<4xf32>, %z: memref<4xf32>):
      tile.launch (%i = 4 : block) schedule(#tile.schedule<>) {
        %v = loop.load %x[%i] : memref<4xf32>
        loop.store %v, %z[%i] : memref<4xf32>
      }
    }
    func.return %y, %z : tensor<4xf32>, tensor<4xf32>
  }
  func.func @ahead(%x: tensor<4x64xf32>) -> tensor<4x8xf32> {
    %y = loop.kernel @ahead(%x) : (tensor<4x64xf32>) -> tensor<4x8xf32> {
    ^bb0(%x: memref<4x64xf32>, %y: memref<4x8xf32>):
      tile.launch (%r = 4 : block, %t = 8 : thread) schedule(#tile.schedule<threads = 8, transport = cp_async, stages = 3>) {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %xs = tile.stage %x[%r, %k * 8] pad 4 buffers 3 via cp_async : memref<4x64xf32> -> memref<8xf32, "shared">
          %ys = tile.stage %x[%r, %k * 8] buffers 3 : memref<4x64xf32> -> memref<8xf32, "shared">
          %ws = tile.stage %x[%r, %k * 8] buffers 3 via tma swizzle 32 : memref<4x64xf32> -> memref<8xf32, "shared">
          %zs = tile.stage %x[%r, %k * 8] via sync : memref<4x64xf32> -> memref<8xf32, "shared">
          %v = loop.load %xs[%t] : memref<8xf32, "shared">
          loop.yield %v : f32
        } attributes {pipelined}
        loop.store %s, %y[%r, %t] : memref<4x8xf32>
      }
    }
    func.return %y : tensor<4x8xf32>
  }
  func.func @packed(%x: tensor<4x64xf32>) -> tensor<4x8xf32> {
    %y = loop.kernel @packed(%x) : (tensor<4x64xf32>) -> tensor<4x8xf32> {
    ^bb0(%x: memref<4x64xf32>, %y: memref<4x8xf32>):
      tile.launch (%r = 4 : block, %t = 8 : thread) {
        %xs = tile.pack (%i = 8, %k = 8) panels 4 : memref<8x8xf32, "shared"> {
          %v = loop.load %x[%r, %i * 8 + %k] : memref<4x64xf32>
          tile.yield %v : f32
        }
        %ys = tile.pack (%j = 8, %l = 8) pad 16 : memref<8x8xf32, "shared"> {
          %w = loop.load %x[%r, %j * 8 + %l] : memref<4x64xf32>
          tile.yield %w : f32
        }
        %zs = tile.pack (%h = 8, %n = 8) in_place : memref<8x8xf32, "shared"> {
          %p = loop.load %x[%r, %h * 8 + %n] : memref<4x64xf32>
          tile.yield %p : f32
        }
        %ps = tile.pack (%g = 3, %o = 9) phases 2 : memref<3x9xf32, "shared"> {
          %q = loop.load %x[%r, %g * 9 + %o] : memref<4x64xf32>
          tile.yield %q : f32
        }
        %s = loop.for %m = 0 to 8 reduce(add) -> f32 {
          %u = loop.load %xs[%t, %m] : memref<8x8xf32, "shared">
          loop.yield %u : f32
        }
        loop.store %s, %y[%r, %t] : memref<4x8xf32>
      }
    }
    func.return %y : tensor<4x8xf32>
  }
  func.func @clusters(%x: tensor<64x64xbf16>) -> tensor<64x8xf32> {
    %y = loop.kernel @clusters(%x) : (tensor<64x64xbf16>) -> tensor<64x8xf32> {
    ^bb0(%x: memref<64x64xbf16>, %y: memref<64x8xf32>):
      tile.launch (%i = 2 : block, %c = 4 : cluster, %t = 8 : thread) schedule(#tile.schedule<cluster_m = 2, threads = 8>) {
        %xs = tile.stage %x[%i * 32 + %c * 8, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<8x64xbf16, "shared">
        %ws = tile.stage %x[0, 0] via tma swizzle 128 multicast 4 : memref<64x64xbf16> -> memref<32x64xbf16, "shared">
        %a = loop.load %ws[%t, 0] : memref<32x64xbf16, "shared">
        %b = arith.extf %a : bf16 to f32
        loop.store %b, %y[%i * 32 + %c * 8, %t] : memref<64x8xf32>
      }
    }
    func.return %y : tensor<64x8xf32>
  }
  func.func @slabs(%x: tensor<64x64xbf16>) -> tensor<64x8xf32> {
    %y = loop.kernel @slabs(%x) : (tensor<64x64xbf16>) -> tensor<64x8xf32> {
    ^bb0(%x: memref<64x64xbf16>, %y: memref<64x8xf32>):
      tile.launch (%t = 32 : thread, %l = 4 : thread) {
        %xs = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<64x64xbf16, "shared">
        %ws = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<8x64xbf16, "shared">
        %a, %b, %c, %d = tile.wgmma %xs by %ws to 4 : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
        %h = arith.truncf %a : f32 to bf16
        %e, %f, %g, %i = tile.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws to 4 : bf16 by memref<8x64xbf16, "shared">
        %vs = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<16x64xbf16, "shared">
        %m, %m_1, %m_2, %m_3, %m_4, %m_5, %m_6, %m_7, %m_8, %m_9, %m_10, %m_11, %m_12, %m_13, %m_14, %m_15, %m_16, %m_17, %m_18, %m_19, %m_20, %m_21, %m_22, %m_23, %m_24, %m_25, %m_26, %m_27, %m_28, %m_29, %m_30, %m_31 = tile.wgmma (%h, %h, %h, %h, %h, %h, %h, %h) by %vs transposed to 32 : bf16 by memref<16x64xbf16, "shared">
        %ps = tile.stage %x[0, 0] via tma swizzle 128 : memref<64x64xbf16> -> memref<64x128xbf16, "shared">
        %o, %o_1, %o_2, %o_3, %o_4, %o_5, %o_6, %o_7, %o_8, %o_9, %o_10, %o_11, %o_12, %o_13, %o_14, %o_15, %o_16, %o_17, %o_18, %o_19, %o_20, %o_21, %o_22, %o_23, %o_24, %o_25, %o_26, %o_27, %o_28, %o_29, %o_30, %o_31, %o_32, %o_33, %o_34, %o_35, %o_36, %o_37, %o_38, %o_39, %o_40, %o_41, %o_42, %o_43, %o_44, %o_45, %o_46, %o_47, %o_48, %o_49, %o_50, %o_51, %o_52, %o_53, %o_54, %o_55, %o_56, %o_57, %o_58, %o_59, %o_60, %o_61, %o_62, %o_63 = tile.wgmma %xs by %ps transposed to 64 : memref<64x64xbf16, "shared"> by memref<64x128xbf16, "shared">
        loop.store %a, %y[%t, %l] : memref<64x8xf32>
      }
    }
    func.return %y : tensor<64x8xf32>
  }
}
