// What --check-each-pass says of a launch too large to execute in full, and of what it does not execute.

// RUN: deplo-opt %s -p materialize-tile,assign-arena,lower-to-cuda --split-input-file --check-each-pass 2>&1 >/dev/null | FileCheck %s

// A launch of 1024 * 256 threads that run a loop of 256 iterations.
// CHECK:      remark: check-each-pass: after materialize-tile: kernel k_product: {{[0-9]+}} of 1024 blocks executed (seed 0)
// CHECK-NEXT: remark: check-each-pass: after lower-to-cuda: kernel k_product: {{[0-9]+}} of 1024 blocks executed (seed 0)
func.func @main(%x: tensor<1024x256xf32>, %w: tensor<256x256xf32>) -> tensor<1024x256xf32> {
  %y = loop.kernel @k_product(%x, %w) : (tensor<1024x256xf32>, tensor<256x256xf32>) -> tensor<1024x256xf32> {
  ^bb0(%a: memref<1024x256xf32>, %b: memref<256x256xf32>, %out: memref<1024x256xf32>):
    tile.launch (%i = 1024 : block, %j = 256 : thread) schedule(#tile.schedule<threads = 256>) {
      %s = loop.for %k = 0 to 256 reduce(add) -> f32 {
        %u = loop.load %a[%i, %k] : memref<1024x256xf32>
        %v = loop.load %b[%k, %j] : memref<256x256xf32>
        %p = arith.mulf %u, %v : f32
        loop.yield %p : f32
      }
      loop.store %s, %out[%i, %j] : memref<1024x256xf32>
    }
  }
  func.return %y : tensor<1024x256xf32>
}

// -----

// 2**28 sums of two numbers, which are not held in memory.
// CHECK-NEXT: remark: check-each-pass: the input: not executed: @k_sums: it needs an array of 268435456 elements, more than 134217728
// CHECK-NEXT: remark: check-each-pass: after materialize-tile: not executed: 'kernel.alloc': it needs an array of 268435456 elements, more than 134217728
// CHECK-NEXT: remark: check-each-pass: after assign-arena: not executed: 'kernel.alloc'
// CHECK-NEXT: remark: check-each-pass: after lower-to-cuda: not executed: 'kernel.alloc'
// CHECK-NOT:  check-each-pass
func.func @main(%x: tensor<16384xf32>) -> tensor<16384x16384xf32> {
  %y = loop.kernel @k_sums(%x) : (tensor<16384xf32>) -> tensor<16384x16384xf32> {
  ^bb0(%a: memref<16384xf32>, %out: memref<16384x16384xf32>):
    tile.launch (%i = 16384 : block, %j = 64 : block, %t = 256 : thread) schedule(#tile.schedule<threads = 256>) {
      %u = loop.load %a[%i] : memref<16384xf32>
      %v = loop.load %a[%j * 256 + %t] : memref<16384xf32>
      %s = arith.addf %u, %v : f32
      loop.store %s, %out[%i, %j * 256 + %t] : memref<16384x16384xf32>
    }
  }
  func.return %y : tensor<16384x16384xf32>
}
