// RUN: deplo-opt %s -p mark-independent --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p mark-independent --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Two rows of a dynamic length: LLVM would compare where they begin and end.
// REMARK: remark: mark-independent: k_rows: 1 loop
// CHECK-LABEL: @k_rows
// CHECK:         loop.load %x[%i, %j] {deplo.independent}
// CHECK:         loop.store {{%.*}}, %y[%i, %j] {deplo.independent}
// CHECK:         loop.load %x[%i + 1, %j] {deplo.independent}
// CHECK:         loop.store {{%.*}}, %y[%i + 1, %j] {deplo.independent}
func.func @k_rows(%x: memref<?x?xf32, #sym.extents<s0, s1>>, %y: memref<?x?xf32, #sym.extents<s0, s1>>, %i: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = loop.index[s1]
  scf.for %j = %c0 to %n step %c1 {
    %a = loop.load %x[%i, %j] : memref<?x?xf32, #sym.extents<s0, s1>>
    loop.store %a, %y[%i, %j] : memref<?x?xf32, #sym.extents<s0, s1>>
    %b = loop.load %x[%i + 1, %j] : memref<?x?xf32, #sym.extents<s0, s1>>
    loop.store %b, %y[%i + 1, %j] : memref<?x?xf32, #sym.extents<s0, s1>>
  }
  func.return
}

// -----

// REMARK: remark: mark-independent: k_numbers: declined: it writes nothing of a dynamic size in several places
// CHECK-LABEL: @k_numbers
// CHECK-NOT:     deplo.independent
func.func @k_numbers(%x: memref<?xf32, #sym.extents<s0>>, %y: memref<2x8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c0 to %c8 step %c1 {
    %a = loop.load %x[%j] : memref<?xf32, #sym.extents<s0>>
    %b = loop.load %x[%j + 1] : memref<?xf32, #sym.extents<s0>>
    loop.store %a, %y[0, %j] : memref<2x8xf32>
    loop.store %b, %y[1, %j] : memref<2x8xf32>
  }
  func.return
}

// -----

// The element before was written in the iteration before; one that data says, or a number, in any of them; what
// stands at the counter plus a value of the same iteration, too.
// REMARK: remark: mark-independent: k_depends: declined: an iteration may touch what another one writes
// CHECK-LABEL: @k_depends
// CHECK-NOT:     deplo.independent
func.func @k_depends(%x: memref<?xf32, #sym.extents<s0>>, %y: memref<?xf32, #sym.extents<s0>>, %at: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = loop.index[s0 - 1]
  scf.for %i = %c0 to %n step %c1 {
    scf.for %j = %c0 to %n step %c1 {
      %a = loop.load %y[%j] : memref<?xf32, #sym.extents<s0>>
      loop.store %a, %y[%j + 1] : memref<?xf32, #sym.extents<s0>>
    }
    scf.for %j = %c0 to %n step %c1 {
      %a = loop.load %y[%i] : memref<?xf32, #sym.extents<s0>>
      loop.store %a, %y[%i] : memref<?xf32, #sym.extents<s0>>
    }
    scf.for %j = %c0 to %n step %c1 {
      %v = loop.load %at[0] : memref<8xi64>
      %p = arith.index_cast %v : i64 to index
      %a = loop.load %y[%j + %p] : memref<?xf32, #sym.extents<s0>>
      loop.store %a, %y[%j + %p] : memref<?xf32, #sym.extents<s0>>
    }
    scf.for %j = %c0 to %n step %c1 {
      %a = loop.load %y[%j floordiv 2] : memref<?xf32, #sym.extents<s0>>
      loop.store %a, %y[%j floordiv 2] : memref<?xf32, #sym.extents<s0>>
    }
  }
  func.return
}
