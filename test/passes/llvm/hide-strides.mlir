// RUN: deplo-opt %s -p hide-strides | FileCheck %s
// RUN: deplo-opt %s -p hide-strides --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Nine neighbours are too many to shuffle.
// REMARK: remark: hide-strides: k_nine: 1 loop
// CHECK-LABEL: @k_nine
// CHECK:         scf.for %j =
// CHECK-NEXT:      %[[NUMBER:.*]] = arith.index_cast %j : index to i64
// CHECK-NEXT:      %[[SAME:.*]] = llvm.inline_asm{{.*}} "", "=r,0" %[[NUMBER]]
// CHECK-NEXT:      %[[HIDDEN:.*]] = arith.index_cast %[[SAME]] : i64 to index
// CHECK-NOT:       %j
// CHECK:           loop.load %x[%[[HIDDEN]] * 9]
// CHECK:           loop.store %{{.*}}, %y[%[[HIDDEN]] * 9]
func.func @k_nine(%x: memref<72xf32>, %y: memref<72xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c1 = arith.constant 1 : index
  scf.for %j = %begin to %end step %c1 {
    %v0 = loop.load %x[%j * 9 + 0] : memref<72xf32>
    loop.store %v0, %y[%j * 9 + 0] : memref<72xf32>
    %v1 = loop.load %x[%j * 9 + 1] : memref<72xf32>
    loop.store %v1, %y[%j * 9 + 1] : memref<72xf32>
    %v2 = loop.load %x[%j * 9 + 2] : memref<72xf32>
    loop.store %v2, %y[%j * 9 + 2] : memref<72xf32>
    %v3 = loop.load %x[%j * 9 + 3] : memref<72xf32>
    loop.store %v3, %y[%j * 9 + 3] : memref<72xf32>
    %v4 = loop.load %x[%j * 9 + 4] : memref<72xf32>
    loop.store %v4, %y[%j * 9 + 4] : memref<72xf32>
    %v5 = loop.load %x[%j * 9 + 5] : memref<72xf32>
    loop.store %v5, %y[%j * 9 + 5] : memref<72xf32>
    %v6 = loop.load %x[%j * 9 + 6] : memref<72xf32>
    loop.store %v6, %y[%j * 9 + 6] : memref<72xf32>
    %v7 = loop.load %x[%j * 9 + 7] : memref<72xf32>
    loop.store %v7, %y[%j * 9 + 7] : memref<72xf32>
    %v8 = loop.load %x[%j * 9 + 8] : memref<72xf32>
    loop.store %v8, %y[%j * 9 + 8] : memref<72xf32>
  }
  func.return
}

// REMARK: remark: hide-strides: k_two: declined: it stores few neighbours
// CHECK-LABEL: @k_two
// CHECK-NOT:     llvm.inline_asm
func.func @k_two(%x: memref<16xf32>, %y: memref<16xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c1 = arith.constant 1 : index
  scf.for %j = %begin to %end step %c1 {
    %v0 = loop.load %x[%j * 2 + 0] : memref<16xf32>
    loop.store %v0, %y[%j * 2 + 0] : memref<16xf32>
    %v1 = loop.load %x[%j * 2 + 1] : memref<16xf32>
    loop.store %v1, %y[%j * 2 + 1] : memref<16xf32>
  }
  func.return
}

// REMARK: remark: hide-strides: k_none: declined: there is no loop
func.func @k_none(%x: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  func.return
}
