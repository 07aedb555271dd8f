// RUN: deplo-opt %s -p merge-guards,merge-accesses --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p merge-guards --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p merge-guards,merge-accesses,choose-index-width,lower-to-cuda --split-input-file --check-each-pass >/dev/null

// Of pairs of columns both are inside or none is, whatever is computed in between.
// CHECK-LABEL: kernel.func @pairs
// CHECK:         %a = loop.test[%t < 5]
// CHECK-NOT:     loop.test
// CHECK:         scf.if %a {
// CHECK-NEXT:      kernel.vector_store %v, %w to %y[%t * 2] : f32, f32 to memref<10xf32>
// CHECK-NEXT:    }
// CHECK-NOT:     scf.if
// REMARK: remark: merge-guards: pairs: 1 condition stood behind the same
kernel.func @pairs(%x: memref<16xf32>, %y: memref<10xf32>) blocks(1) threads(8) {
  %t = kernel.thread_id
  %v = loop.load %x[%t] : memref<16xf32>
  %a = loop.test[%t * 2 < 10]
  scf.if %a {
    loop.store %v, %y[%t * 2] : memref<10xf32>
  }
  %w = arith.addf %v, %v : f32
  %b = loop.test[%t * 2 < 9]
  scf.if %b {
    loop.store %w, %y[%t * 2 + 1] : memref<10xf32>
  }
}
func.func @main(%x: memref<16xf32>) -> memref<10xf32> {
  %y = kernel.alloc : memref<10xf32>
  kernel.launch @pairs(%x, %y) blocks(1) threads(8) : memref<16xf32>, memref<10xf32>
  func.return %y : memref<10xf32>
}

// -----

// Of an odd number of columns the last one stands alone, and a load may read what is stored.
// CHECK-LABEL: kernel.func @odd
// CHECK:         loop.test[%t < 5]
// CHECK:         loop.test[%t < 4]
// CHECK:         %[[C:.*]] = loop.test[%t < 3]
// CHECK:         scf.if %[[C]]
// CHECK:         loop.load
// CHECK:         scf.if %[[C]]
// REMARK: remark: merge-guards: odd: declined: no condition follows the same
kernel.func @odd(%x: memref<16xf32>, %y: memref<9xf32>) blocks(1) threads(8) {
  %t = kernel.thread_id
  %v = loop.load %x[%t] : memref<16xf32>
  %a = loop.test[%t * 2 < 9]
  scf.if %a {
    loop.store %v, %y[%t * 2] : memref<9xf32>
  }
  %b = loop.test[%t * 2 < 8]
  scf.if %b {
    loop.store %v, %y[%t * 2 + 1] : memref<9xf32>
  }
  %s = kernel.shared : memref<8xf32, "shared">
  %c = loop.test[%t * 3 < 9]
  scf.if %c {
    loop.store %v, %s[%t] : memref<8xf32, "shared">
  }
  %z = loop.load %x[%t + 8] : memref<16xf32>
  scf.if %c {
    loop.store %z, %s[%t] : memref<8xf32, "shared">
  }
}
func.func @main(%x: memref<16xf32>) -> memref<9xf32> {
  %y = kernel.alloc : memref<9xf32>
  kernel.launch @odd(%x, %y) blocks(1) threads(8) : memref<16xf32>, memref<9xf32>
  func.return %y : memref<9xf32>
}
