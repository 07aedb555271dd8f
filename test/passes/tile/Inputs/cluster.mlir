func.func @main(%x: tensor<256x256xbf16>, %w: tensor<48x256xbf16>) -> tensor<256x48xf32> {
  %y = loop.kernel @k_below(%x, %w) : (tensor<256x256xbf16>, tensor<48x256xbf16>) -> tensor<256x48xf32> {
  ^bb0(%x: memref<256x256xbf16>, %w: memref<48x256xbf16>, %y: memref<256x48xf32>):
    tile.launch (%i = 4 : block, %j = 3 : block, %t = 32 : thread, %u = 4 : thread) schedule(#tile.schedule<m = 2, n = 3, thread_m = 2, thread_n = 4, cluster_m = 2, threads = 128>) {
      %s:8 = loop.for %k = 0 to 4 reduce(add, add, add, add, add, add, add, add) -> f32, f32, f32, f32, f32, f32, f32, f32 {
        %xs = tile.stage %x[%i * 64, %k * 64] buffers 3 via tma swizzle 128 : memref<256x256xbf16> -> memref<64x64xbf16, "shared">
        %ws = tile.stage %w[%j * 16, %k * 64] buffers 3 via tma swizzle 128 : memref<48x256xbf16> -> memref<16x64xbf16, "shared">
        %p:8 = tile.wgmma %xs by %ws to 8 : memref<64x64xbf16, "shared"> by memref<16x64xbf16, "shared">
        loop.yield %p#0, %p#1, %p#2, %p#3, %p#4, %p#5, %p#6, %p#7 : f32, f32, f32, f32, f32, f32, f32, f32
      } attributes {pipelined}
      loop.store %s#0, %y[%i * 64 + %t floordiv 8 * 16 + %t mod 8, %j * 16 + %u * 2] : memref<256x48xf32>
      loop.store %s#1, %y[%i * 64 + %t floordiv 8 * 16 + %t mod 8, %j * 16 + %u * 2 + 1] : memref<256x48xf32>
      loop.store %s#2, %y[%i * 64 + %t floordiv 8 * 16 + %t mod 8, %j * 16 + %u * 2 + 8] : memref<256x48xf32>
      loop.store %s#3, %y[%i * 64 + %t floordiv 8 * 16 + %t mod 8, %j * 16 + %u * 2 + 9] : memref<256x48xf32>
      loop.store %s#4, %y[%i * 64 + %t floordiv 8 * 16 + %t mod 8 + 8, %j * 16 + %u * 2] : memref<256x48xf32>
      loop.store %s#5, %y[%i * 64 + %t floordiv 8 * 16 + %t mod 8 + 8, %j * 16 + %u * 2 + 1] : memref<256x48xf32>
      loop.store %s#6, %y[%i * 64 + %t floordiv 8 * 16 + %t mod 8 + 8, %j * 16 + %u * 2 + 8] : memref<256x48xf32>
      loop.store %s#7, %y[%i * 64 + %t floordiv 8 * 16 + %t mod 8 + 8, %j * 16 + %u * 2 + 9] : memref<256x48xf32>
    }
  }
  func.return %y : tensor<256x48xf32>
}
