// --remarks says what each pass did to each kernel, or why it did nothing, at the kernel's place.

// RUN: deplo-opt %s -p dedup-loads,dedup-loads --remarks 2>&1 >/dev/null | FileCheck %s
// RUN: deplo-opt %s -p dedup-loads -v 2>&1 >/dev/null | FileCheck %s --check-prefix=ONCE
// RUN: deplo-opt %s -p dedup-loads 2>%t.err >/dev/null && not grep -q . %t.err

// CHECK: remarks.mlir:12:8: remark: dedup-loads: k_square: {{[a-z0-9]}}
// CHECK: remarks.mlir:12:8: remark: dedup-loads: k_square: declined: {{[a-z]}}
// ONCE-COUNT-1: remark: dedup-loads: k_square
// ONCE-NOT: remark:
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %y = loop.kernel @k_square(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<8xf32>, %out: memref<8xf32>):
    loop.for %i = 0 to 8 {
      %a = loop.load %in[%i] : memref<8xf32>
      %b = loop.load %in[%i] : memref<8xf32>
      %c = arith.mulf %a, %b : f32
      loop.store %c, %out[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}
