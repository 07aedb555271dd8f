// RUN: deplo-opt %s -p exchange-stores --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p exchange-stores --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p exchange-stores,choose-index-width,lower-to-cuda --split-input-file --check-each-pass >/dev/null 2>%t.err
// RUN: diff /dev/null %t.err

// Four lanes store two columns of each eight: an even one takes four of the first eight, an odd one of the second.
// CHECK-LABEL: kernel.func @rows
// CHECK:         %odd = loop.test[%thread mod 2 >= 1]
// CHECK:         %[[give:.+]] = arith.select %odd, %p, %r : f32
// CHECK-NEXT:    %[[got:.+]] = kernel.shuffle %[[give]] xor 1 : f32
// CHECK-NEXT:    %[[a:.+]] = arith.select %odd, %[[got]], %p : f32
// CHECK-NEXT:    %[[c:.+]] = arith.select %odd, %r, %[[got]] : f32
// CHECK:         %[[x:.+]] = arith.truncf %[[a]] : f32 to bf16
// CHECK:         kernel.vector_store %[[x]], %{{.*}}, %{{.*}}, %{{.*}} to %y[%thread floordiv 4, %thread mod 2 * 8 + %thread floordiv 2 mod 2 * 4] : bf16, bf16, bf16, bf16 to memref<8x16xbf16>
// CHECK-NOT:     kernel.vector_store
// CHECK-LABEL: kernel.func @guarded
// CHECK-NOT:     kernel.shuffle
// CHECK-LABEL: kernel.func @read_between
// CHECK-NOT:     kernel.shuffle
// CHECK-LABEL: kernel.func @whole
// CHECK-NOT:     kernel.shuffle
// REMARK: remark: exchange-stores: rows: 1 store of whole sectors instead of two halves each
// REMARK: remark: exchange-stores: guarded: declined: no lanes side by side store halves of sectors
// REMARK: remark: exchange-stores: read_between: declined: no lanes side by side store halves of sectors
// REMARK: remark: exchange-stores: whole: declined: no lanes side by side store halves of sectors
kernel.func @rows(%x: memref<8x16xf32>, %y: memref<8x16xbf16>) blocks(1) threads(32) {
  %thread = kernel.thread_id
  %row = loop.index[%thread floordiv 4]
  %lane = loop.index[%thread mod 4]
  %p = loop.load %x[%row, %lane * 2] : memref<8x16xf32>
  %q = loop.load %x[%row, %lane * 2 + 1] : memref<8x16xf32>
  %r = loop.load %x[%row, %lane * 2 + 8] : memref<8x16xf32>
  %s = loop.load %x[%row, %lane * 2 + 9] : memref<8x16xf32>
  %a = arith.truncf %p : f32 to bf16
  %b = arith.truncf %q : f32 to bf16
  %c = arith.truncf %r : f32 to bf16
  %d = arith.truncf %s : f32 to bf16
  kernel.vector_store %a, %b to %y[%row, %lane * 2] : bf16, bf16 to memref<8x16xbf16>
  kernel.vector_store %c, %d to %y[%row, %lane * 2 + 8] : bf16, bf16 to memref<8x16xbf16>
}
kernel.func @guarded(%x: memref<8x16xf32>, %y: memref<8x16xbf16>) blocks(1) threads(32) {
  %thread = kernel.thread_id
  %row = loop.index[%thread floordiv 4]
  %lane = loop.index[%thread mod 4]
  %p = loop.load %x[%row, %lane * 2] : memref<8x16xf32>
  %q = loop.load %x[%row, %lane * 2 + 1] : memref<8x16xf32>
  %r = loop.load %x[%row, %lane * 2 + 8] : memref<8x16xf32>
  %s = loop.load %x[%row, %lane * 2 + 9] : memref<8x16xf32>
  %a = arith.truncf %p : f32 to bf16
  %b = arith.truncf %q : f32 to bf16
  %c = arith.truncf %r : f32 to bf16
  %d = arith.truncf %s : f32 to bf16
  %some = loop.test[%row < 5]
  scf.if %some {
    kernel.vector_store %a, %b to %y[%row, %lane * 2] : bf16, bf16 to memref<8x16xbf16>
    kernel.vector_store %c, %d to %y[%row, %lane * 2 + 8] : bf16, bf16 to memref<8x16xbf16>
  }
}
kernel.func @read_between(%x: memref<8x16xf32>, %y: memref<8x16xbf16>) blocks(1) threads(32) {
  %thread = kernel.thread_id
  %row = loop.index[%thread floordiv 4]
  %lane = loop.index[%thread mod 4]
  %p = loop.load %x[%row, %lane * 2] : memref<8x16xf32>
  %q = loop.load %x[%row, %lane * 2 + 1] : memref<8x16xf32>
  %r = loop.load %x[%row, %lane * 2 + 8] : memref<8x16xf32>
  %s = loop.load %x[%row, %lane * 2 + 9] : memref<8x16xf32>
  %a = arith.truncf %p : f32 to bf16
  %b = arith.truncf %q : f32 to bf16
  %c = arith.truncf %r : f32 to bf16
  %d = arith.truncf %s : f32 to bf16
  kernel.vector_store %a, %b to %y[%row, %lane * 2] : bf16, bf16 to memref<8x16xbf16>
  %again = loop.load %y[%row, %lane * 2] : memref<8x16xbf16>
  kernel.vector_store %c, %again to %y[%row, %lane * 2 + 8] : bf16, bf16 to memref<8x16xbf16>
}
kernel.func @whole(%x: memref<8x16xf32>, %y: memref<8x16xf32>) blocks(1) threads(32) {
  %thread = kernel.thread_id
  %row = loop.index[%thread floordiv 4]
  %lane = loop.index[%thread mod 4]
  %p = loop.load %x[%row, %lane * 2] : memref<8x16xf32>
  %q = loop.load %x[%row, %lane * 2 + 1] : memref<8x16xf32>
  %r = loop.load %x[%row, %lane * 2 + 8] : memref<8x16xf32>
  %s = loop.load %x[%row, %lane * 2 + 9] : memref<8x16xf32>
  kernel.vector_store %p, %q to %y[%row, %lane * 2] : f32, f32 to memref<8x16xf32>
  kernel.vector_store %r, %s to %y[%row, %lane * 2 + 8] : f32, f32 to memref<8x16xf32>
}
func.func @main(%x: memref<8x16xf32>) -> (memref<8x16xbf16>, memref<8x16xbf16>, memref<8x16xbf16>, memref<8x16xf32>) {
  %y0 = kernel.alloc : memref<8x16xbf16>
  kernel.launch @rows(%x, %y0) blocks(1) threads(32) : memref<8x16xf32>, memref<8x16xbf16>
  %y1 = kernel.alloc : memref<8x16xbf16>
  kernel.launch @guarded(%x, %y1) blocks(1) threads(32) : memref<8x16xf32>, memref<8x16xbf16>
  %y2 = kernel.alloc : memref<8x16xbf16>
  kernel.launch @read_between(%x, %y2) blocks(1) threads(32) : memref<8x16xf32>, memref<8x16xbf16>
  %y3 = kernel.alloc : memref<8x16xf32>
  kernel.launch @whole(%x, %y3) blocks(1) threads(32) : memref<8x16xf32>, memref<8x16xf32>
  func.return %y0, %y1, %y2, %y3 : memref<8x16xbf16>, memref<8x16xbf16>, memref<8x16xbf16>, memref<8x16xf32>
}
