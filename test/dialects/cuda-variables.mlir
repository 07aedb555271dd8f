// Which values are variables of C++, and which products are added onto them.
// RUN: deplo-opt --assume=race-free %s -t cuda | FileCheck %s

// Sums that nothing else reads are added onto, in each iteration those of the last.
// CHECK-LABEL: carried(
// CHECK:         float s0 = 0.0f;
// CHECK:         for (int k = 0; k < 2; ++k) {
// CHECK-NOT:         float
// CHECK:             "+f"(s0)
// CHECK-NOT:         s0 =
// CHECK:         }
cuda.func @carried(%y: memref<128xf32>) blocks(1) threads(128) index(i32) {
  %t = kernel.thread_id
  %xs = kernel.shared align 1024 : memref<4096xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<512xbf16, "shared">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0.0 : f32
  %s0, %s1, %s2, %s3 = scf.for %k = %c0 to %c2 step %c1 iter_args(%a0 = %z, %a1 = %z, %a2 = %z, %a3 = %z) -> (f32, f32, f32, f32) {
    %p0, %p1, %p2, %p3 = kernel.wgmma %xs[0] by %ws[0] plus (%a0, %a1, %a2, %a3) of 64 by 8 : memref<4096xbf16, "shared"> by memref<512xbf16, "shared">
    scf.yield %p0, %p1, %p2, %p3 : f32, f32, f32, f32
  }
  loop.store %s0, %y[%t] : memref<128xf32>
}

// Those that each iteration begins with again are copied.
// CHECK-LABEL: again(
// CHECK:         float s0;
// CHECK:         for (int k = 0; k < 2; ++k) {
// CHECK:             float p0 = s0, p1 = s1, p2 = s2, p3 = s3;
// CHECK:             "+f"(p0)
// CHECK:         }
cuda.func @again(%y: memref<128xf32>) blocks(1) threads(128) index(i32) {
  %t = kernel.thread_id
  %xs = kernel.shared align 1024 : memref<4096xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<512xbf16, "shared">
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %z = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %few = loop.test[%t < 64]
  %s0, %s1, %s2, %s3 = scf.if %few -> (f32, f32, f32, f32) {
    scf.yield %z, %z, %z, %z : f32, f32, f32, f32
  } else {
    scf.yield %one, %one, %one, %one : f32, f32, f32, f32
  }
  scf.for %k = %c0 to %c2 step %c1 {
    %p0, %p1, %p2, %p3 = kernel.wgmma %xs[0] by %ws[0] plus (%s0, %s1, %s2, %s3) of 64 by 8 : memref<4096xbf16, "shared"> by memref<512xbf16, "shared">
    loop.store %p0, %y[%t] : memref<128xf32>
  }
}

// A loop may begin and step as it likes, and its end be computed.
// CHECK-LABEL: steps(
// CHECK:         for (int k = 2; k < end; k += 3) {
cuda.func @steps(%y: memref<128xf32>) blocks(1) threads(128) index(i32) {
  %t = kernel.thread_id
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %z = arith.constant 0.0 : f32
  %end = loop.index[%t floordiv 32]
  scf.for %k = %c2 to %end step %c3 {
    loop.store %z, %y[%t] : memref<128xf32>
  }
}
