// Rows are computed side by side: one sweep goes over several of them, and what is left of them follows.
// RUN: deplo-opt %s -p jam-rows --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p jam-rows,jam-rows --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// CHECK-LABEL: func.func @rows
// CHECK-SAME:    attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512>}
// CHECK:         %[[pairs:.+]] = loop.index[%block_begin + (%block_end - %block_begin) floordiv 2 * 2]
// CHECK-NEXT:    scf.for %i = %block_begin to %[[pairs]] step %c2 {
// CHECK-NEXT:      %[[next:.+]] = loop.index[%i + 1]
// CHECK:           %[[s:.+]], %[[t:.+]] = scf.for %j = {{.*}} iter_args(%{{.+}} = %{{.+}}, %{{.+}} = %{{.+}}) -> (f32, f32) {
// CHECK:             loop.load %x[%i, %j]
// CHECK:             loop.load %x[%[[next]], %j]
// CHECK:             scf.yield %{{.+}}, %{{.+}} : f32, f32
// CHECK:           scf.for
// CHECK:             loop.load %x[%i, %[[j:.+]]]
// CHECK-NEXT:        arith.divf %{{.+}}, %[[s]]
// CHECK-NEXT:        loop.store %{{.+}}, %y[%i, %[[j]]]
// CHECK-NEXT:        loop.load %x[%[[next]], %[[j]]]
// CHECK-NEXT:        arith.divf %{{.+}}, %[[t]]
// CHECK-NEXT:        loop.store %{{.+}}, %y[%[[next]], %[[j]]]
// CHECK:         scf.for %{{.+}} = %[[pairs]] to %block_end step %c1 {
// CHECK:           scf.for {{.*}} -> (f32) {
// REMARK: remark: jam-rows: rows: 2 rows come side by side
// REMARK: remark: jam-rows: rows: declined: its schedule has no `rows`
func.func @rows(%x: memref<8x16xf32>, %y: memref<8x16xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512, rows = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  scf.for %i = %block_begin to %block_end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %j = %c0 to %c16 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %p = loop.load %x[%i, %j] : memref<8x16xf32>
      %next = arith.addf %so_far, %p : f32
      scf.yield %next : f32
    }
    scf.for %k = %c0 to %c16 step %c1 {
      %p = loop.load %x[%i, %k] : memref<8x16xf32>
      %q = arith.divf %p, %s : f32
      loop.store %q, %y[%i, %k] : memref<8x16xf32>
    }
  }
  func.return
}

// -----

// Rows of windows, which are unrolled: what two rows read of the same is read once (by LLVM).
// CHECK-LABEL: func.func @windows
// CHECK:         scf.for %i = %block_begin to
// CHECK:           scf.for %j = %c0 to %c8 step %c1 {
// CHECK-COUNT-4:     loop.load
// CHECK:             loop.store %{{.+}}, %y[%{{.+}}, %j]
// REMARK: remark: jam-rows: windows: 2 rows come side by side
func.func @windows(%x: memref<9x8xf32>, %y: memref<8x8xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<interleave = 1, rows = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %block_begin to %block_end step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %p = loop.load %x[%i, %j] : memref<9x8xf32>
      %q = loop.load %x[%i + 1, %j] : memref<9x8xf32>
      %s = arith.addf %p, %q : f32
      loop.store %s, %y[%i, %j] : memref<8x8xf32>
    }
  }
  func.return
}

// -----

// A sweep over what another row has to do with, and a kernel without sweeps.
// CHECK-LABEL: func.func @triangle
// CHECK-COUNT-2: scf.for
// CHECK-NOT:     scf.for
// CHECK-LABEL: func.func @plain
// REMARK: remark: jam-rows: triangle: declined: a sweep's range depends on the row
// REMARK: remark: jam-rows: plain: declined: it has no rows
func.func @triangle(%x: memref<8x16xf32>, %y: memref<8xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<rows = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %block_begin to %block_end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %j = %c0 to %i step %c1 iter_args(%so_far = %zero) -> (f32) {
      %p = loop.load %x[%i, %j] : memref<8x16xf32>
      %next = arith.addf %so_far, %p : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[%i] : memref<8xf32>
  }
  func.return
}
func.func @plain(%x: memref<8xf32>, %y: memref<8xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<rows = 2>} {
  %c1 = arith.constant 1 : index
  scf.for %i = %block_begin to %block_end step %c1 {
    %p = loop.load %x[%i] : memref<8xf32>
    loop.store %p, %y[%i] : memref<8xf32>
  }
  func.return
}

// -----

// Rows that go on from the one before, and rows that all write to one place.
// REMARK: remark: jam-rows: running: declined: a row may read or write what another one writes
// REMARK: remark: jam-rows: last: declined: a row may read or write what another one writes
func.func @running(%x: memref<8x4xf32>, %y: memref<9xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<rows = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %block_begin to %block_end step %c1 {
    %start = loop.load %y[%i] : memref<9xf32>
    %s = scf.for %j = %c0 to %c4 step %c1 iter_args(%so_far = %start) -> (f32) {
      %p = loop.load %x[%i, %j] : memref<8x4xf32>
      %next = arith.addf %so_far, %p : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[%i + 1] : memref<9xf32>
  }
  func.return
}
func.func @last(%x: memref<8x4xf32>, %y: memref<4xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<rows = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %block_begin to %block_end step %c1 {
    %s = scf.for %j = %c0 to %c4 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %p = loop.load %x[%i, %j] : memref<8x4xf32>
      %next = arith.addf %so_far, %p : f32
      loop.store %next, %y[%j] : memref<4xf32>
      scf.yield %next : f32
    }
  }
  func.return
}

// -----

// A sweep in a sweep: both go over several rows. Elements that are sums of their own.
// CHECK-LABEL: func.func @nested
// CHECK:         scf.for %i
// CHECK:           %[[s:.+]], %[[t:.+]] = scf.for %j = {{.*}} iter_args(%[[a:.+]] = %zero, %[[b:.+]] = %zero) -> (f32, f32) {
// CHECK-NEXT:        %[[u:.+]], %[[v:.+]] = scf.for %k = {{.*}} iter_args(%{{.+}} = %[[a]], %{{.+}} = %[[b]]) -> (f32, f32) {
// CHECK-NEXT:          loop.load %x[%i, %j, %k]
// CHECK-NEXT:          arith.addf
// CHECK-NEXT:          loop.load %x[%[[next:.+]], %j, %k]
// CHECK-NEXT:          arith.addf
// CHECK:             scf.yield %[[u]], %[[v]]
// CHECK:           loop.store %[[s]], %y[%i]
// CHECK-NEXT:      loop.store %[[t]], %y[%[[next]]]
// REMARK: remark: jam-rows: nested: 2 rows come side by side
// REMARK: remark: jam-rows: each: declined: a sweep that folds nothing has loops of its own; a sweep's range depends on the row
// REMARK: remark: jam-rows: checked: declined: loop.assert may do more than compute
func.func @nested(%x: memref<8x4x4xf32>, %y: memref<8xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<rows = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %block_begin to %block_end step %c1 {
    %s = scf.for %j = %c0 to %c4 step %c1 iter_args(%outer = %zero) -> (f32) {
      %t = scf.for %k = %c0 to %c4 step %c1 iter_args(%so_far = %outer) -> (f32) {
        %p = loop.load %x[%i, %j, %k] : memref<8x4x4xf32>
        %next = arith.addf %so_far, %p : f32
        scf.yield %next : f32
      }
      scf.yield %t : f32
    }
    loop.store %s, %y[%i] : memref<8xf32>
  }
  func.return
}
func.func @each(%x: memref<8x4x4xf32>, %y: memref<8x4xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<rows = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %block_begin to %block_end step %c1 {
    scf.for %j = %c0 to %c4 step %c1 {
      %t = scf.for %k = %c0 to %j step %c1 iter_args(%so_far = %zero) -> (f32) {
        %p = loop.load %x[%i, %j, %k] : memref<8x4x4xf32>
        %next = arith.addf %so_far, %p : f32
        scf.yield %next : f32
      }
      loop.store %t, %y[%i, %j] : memref<8x4xf32>
    }
  }
  func.return
}
func.func @checked(%x: memref<8x4xf32>, %y: memref<8xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<rows = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %block_begin to %block_end step %c1 {
    %s = scf.for %j = %c0 to %c4 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %p = loop.load %x[%i, %j] : memref<8x4xf32>
      %next = arith.addf %so_far, %p : f32
      scf.yield %next : f32
    }
    %c8 = arith.constant 8 : index
    %fine = arith.cmpi slt, %i, %c8 : index
    loop.assert %fine, "rows"
    loop.store %s, %y[%i] : memref<8xf32>
  }
  func.return
}
