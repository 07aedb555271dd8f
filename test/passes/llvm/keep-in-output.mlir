// RUN: deplo-opt %s -p keep-in-output --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p keep-in-output --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The exponentials of a softmax.
// REMARK: remark: keep-in-output: k_softmax: 1 values wait for a later sweep
// CHECK-LABEL: @k_softmax
// CHECK:       scf.for %j =
// CHECK:         [[E:%.*]] = math.exp
// CHECK-NEXT:    loop.store [[E]], %y[%i, %j] : memref<4x8xf32>
// CHECK-NEXT:    arith.addf %so_far, [[E]]
// CHECK:       scf.for %j_1 =
// CHECK-NEXT:    [[F:%.*]] = loop.load %y[%i, %j_1] : memref<4x8xf32>
// CHECK-NEXT:    [[P:%.*]] = arith.divf [[F]], %s
// CHECK-NEXT:    loop.store [[P]], %y[%i, %j_1]
func.func @k_softmax(%x: memref<4x8xf32>, %y: memref<4x8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %begin to %end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<4x8xf32>
      %e = math.exp %v : f32
      %next = arith.addf %so_far, %e : f32
      scf.yield %next : f32
    }
    scf.for %j = %c0 to %c8 step %c1 {
      %v = loop.load %x[%i, %j] : memref<4x8xf32>
      %e = math.exp %v : f32
      %p = arith.divf %e, %s : f32
      loop.store %p, %y[%i, %j] : memref<4x8xf32>
    }
  }
  func.return
}

// -----

// Those of a causal softmax: what a condition chooses is the same where condition and branches are.
// REMARK: remark: keep-in-output: k_causal: 1 values wait for a later sweep
// REMARK: remark: keep-in-output: k_other: declined: no sweep computes again what one before it did
// CHECK-LABEL: @k_causal
// CHECK:       [[E:%.*]] = math.exp
// CHECK-NEXT:  loop.store [[E]], %y[%j] : memref<8xf32>
// CHECK:       scf.for %j_1 =
// CHECK-NEXT:    [[F:%.*]] = loop.load %y[%j_1] : memref<8xf32>
// CHECK-NEXT:    arith.divf [[F]], %s
// CHECK-LABEL: @k_other
// CHECK-NOT:   loop.load %y
func.func @k_causal(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %in = loop.test[%begin - %j >= 0]
    %v = scf.if %in -> (f32) {
      %a = loop.load %x[%j] : memref<8xf32>
      scf.yield %a : f32
    } else {
      %b = arith.constant 0xFF800000 : f32
      scf.yield %b : f32
    }
    %e = math.exp %v : f32
    %next = arith.addf %so_far, %e : f32
    scf.yield %next : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %in = loop.test[%begin - %j >= 0]
    %v = scf.if %in -> (f32) {
      %a = loop.load %x[%j] : memref<8xf32>
      scf.yield %a : f32
    } else {
      %b = arith.constant 0xFF800000 : f32
      scf.yield %b : f32
    }
    %e = math.exp %v : f32
    %p = arith.divf %e, %s : f32
    loop.store %p, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_other(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %in = loop.test[%begin - %j >= 0]
    %v = scf.if %in -> (f32) {
      %a = loop.load %x[%j] : memref<8xf32>
      scf.yield %a : f32
    } else {
      %b = arith.constant 0xFF800000 : f32
      scf.yield %b : f32
    }
    %e = math.exp %v : f32
    %next = arith.addf %so_far, %e : f32
    scf.yield %next : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %in = loop.test[%begin - %j >= 0]
    %v = scf.if %in -> (f32) {
      %a = loop.load %x[7 - %j] : memref<8xf32>
      scf.yield %a : f32
    } else {
      %b = arith.constant 0xFF800000 : f32
      scf.yield %b : f32
    }
    %e = math.exp %v : f32
    %p = arith.divf %e, %s : f32
    loop.store %p, %y[%j] : memref<8xf32>
  }
  func.return
}

// -----

// Another range, another element, and an index that is known too late.
// REMARK: remark: keep-in-output: k_range: declined: no sweep computes again what one before it did
// REMARK: remark: keep-in-output: k_element: declined: no sweep computes again what one before it did
// REMARK: remark: keep-in-output: k_late: declined: the output's index is computed in between
// REMARK: remark: keep-in-output: k_none: declined: no loop stores elements
// CHECK-NOT:   loop.load %y
func.func @k_range(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c7 = arith.constant 7 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %c7 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %next = arith.addf %so_far, %e : f32
    scf.yield %next : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %p = arith.divf %e, %s : f32
    loop.store %p, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_element(%x: memref<9xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<9xf32>
    %e = math.exp %v : f32
    %next = arith.addf %so_far, %e : f32
    scf.yield %next : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j + 1] : memref<9xf32>
    %e = math.exp %v : f32
    %p = arith.divf %e, %s : f32
    loop.store %p, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_late(%x: memref<8xf32>, %y: memref<9xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %next = arith.addf %so_far, %e : f32
    scf.yield %next : f32
  }
  %late = loop.index [1]
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %p = arith.divf %e, %s : f32
    loop.store %p, %y[%j + %late] : memref<9xf32>
  }
  func.return
}
func.func @k_none(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %v = loop.load %x[0] : memref<8xf32>
  loop.store %v, %y[0] : memref<8xf32>
  func.return
}

// -----

// The elements of a column are read by the first of three sweeps; where the output is written down a column itself,
// each sweep reads them.
// REMARK: remark: keep-in-output: k_column: 1 values wait for a later sweep
// REMARK: remark: keep-in-output: k_columns: declined: no sweep computes again what one before it did
// CHECK-LABEL: @k_column(
// CHECK:         scf.for %j =
// CHECK-NEXT:      [[V:%.*]] = loop.load %x[%j, %i]
// CHECK-NEXT:      [[N:%.*]] = arith.negf [[V]]
// CHECK-NEXT:      loop.store [[N]], %y[%i, %j]
// CHECK:         scf.for %j_1 =
// CHECK-NEXT:      [[A:%.*]] = loop.load %y[%i, %j_1]
// CHECK-NEXT:      arith.subf [[A]], %s
// CHECK:         scf.for %j_2 =
// CHECK-NEXT:      [[B:%.*]] = loop.load %y[%i, %j_2]
// CHECK-NEXT:      [[P:%.*]] = arith.divf [[B]], %t
// CHECK-NEXT:      loop.store [[P]], %y[%i, %j_2]
// CHECK-LABEL: @k_columns(
// CHECK-NOT:     loop.load %y
func.func @k_column(%x: memref<8x4xf32>, %y: memref<4x8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %begin to %end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%j, %i] : memref<8x4xf32>
      %n = arith.negf %v : f32
      %next = arith.addf %so_far, %n : f32
      scf.yield %next : f32
    }
    %t = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%j, %i] : memref<8x4xf32>
      %n = arith.negf %v : f32
      %d = arith.subf %n, %s : f32
      %q = arith.mulf %d, %d : f32
      %next = arith.addf %so_far, %q : f32
      scf.yield %next : f32
    }
    scf.for %j = %c0 to %c8 step %c1 {
      %v = loop.load %x[%j, %i] : memref<8x4xf32>
      %n = arith.negf %v : f32
      %p = arith.divf %n, %t : f32
      loop.store %p, %y[%i, %j] : memref<4x8xf32>
    }
  }
  func.return
}
func.func @k_columns(%x: memref<8x4xf32>, %y: memref<8x4xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %begin to %end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%j, %i] : memref<8x4xf32>
      %n = arith.negf %v : f32
      %next = arith.addf %so_far, %n : f32
      scf.yield %next : f32
    }
    %t = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%j, %i] : memref<8x4xf32>
      %n = arith.negf %v : f32
      %d = arith.subf %n, %s : f32
      %q = arith.mulf %d, %d : f32
      %next = arith.addf %so_far, %q : f32
      scf.yield %next : f32
    }
    scf.for %j = %c0 to %c8 step %c1 {
      %v = loop.load %x[%j, %i] : memref<8x4xf32>
      %n = arith.negf %v : f32
      %p = arith.divf %n, %t : f32
      loop.store %p, %y[%j, %i] : memref<8x4xf32>
    }
  }
  func.return
}

// -----

// Exponentials of f32 wait in a scratch row where the output's elements are f16, if it stays in the cache.
// REMARK: remark: keep-in-output: k_half: 1 values wait for a later sweep
// REMARK: remark: keep-in-output: k_rows: declined: the output's elements are f16 and not f32, and rows are to come side by side
// REMARK: remark: keep-in-output: k_long: declined: the output's elements are f16 and not f32, and a row may be longer than 262144 bytes
// REMARK: remark: keep-in-output: k_start: declined: the output's elements are f16 and not f32, and the loop does not count from 0
// CHECK-LABEL: @k_half(
// CHECK-NEXT:    [[ROW:%.*]] = memref.alloc() {alignment = 64 : i64} : memref<8xf32>
// CHECK:         scf.for %j =
// CHECK:           [[E:%.*]] = math.exp
// CHECK-NEXT:      loop.store [[E]], [[ROW]][%j] : memref<8xf32>
// CHECK:         scf.for %j_1 =
// CHECK-NEXT:      [[F:%.*]] = loop.load [[ROW]][%j_1] : memref<8xf32>
// CHECK-NEXT:      arith.divf [[F]], %s
// CHECK:         memref.dealloc [[ROW]]
// REMARK: remark: keep-in-output: k_integers: declined: the output's elements are f16 and not i32, and these are no floats
// CHECK-LABEL: @k_rows(
// CHECK-NOT:     memref.alloc
func.func @k_half(%x: memref<8xf32>, %y: memref<8xf16>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %next = arith.addf %so_far, %e : f32
    scf.yield %next : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %p = arith.divf %e, %s : f32
    %h = arith.truncf %p : f32 to f16
    loop.store %h, %y[%j] : memref<8xf16>
  }
  func.return
}
func.func @k_rows(%x: memref<8xf32>, %y: memref<8xf16>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<rows = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %next = arith.addf %so_far, %e : f32
    scf.yield %next : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %p = arith.divf %e, %s : f32
    %h = arith.truncf %p : f32 to f16
    loop.store %h, %y[%j] : memref<8xf16>
  }
  func.return
}
func.func @k_long(%x: memref<65537xf32>, %y: memref<65537xf16>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 65537 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<65537xf32>
    %e = math.exp %v : f32
    %next = arith.addf %so_far, %e : f32
    scf.yield %next : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<65537xf32>
    %e = math.exp %v : f32
    %p = arith.divf %e, %s : f32
    %h = arith.truncf %p : f32 to f16
    loop.store %h, %y[%j] : memref<65537xf16>
  }
  func.return
}
func.func @k_start(%x: memref<8xf32>, %y: memref<8xf16>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c1 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %next = arith.addf %so_far, %e : f32
    scf.yield %next : f32
  }
  scf.for %j = %c1 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %p = arith.divf %e, %s : f32
    %h = arith.truncf %p : f32 to f16
    loop.store %h, %y[%j] : memref<8xf16>
  }
  func.return
}
func.func @k_integers(%x: memref<8x4xi32>, %y: memref<4x8xf16>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0 : i32
  scf.for %i = %begin to %end step %c1 {
    %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (i32) {
      %v = loop.load %x[%j, %i] : memref<8x4xi32>
      %next = arith.addi %so_far, %v : i32
      scf.yield %next : i32
    }
    scf.for %j = %c0 to %c8 step %c1 {
      %v = loop.load %x[%j, %i] : memref<8x4xi32>
      %p = arith.muli %v, %s : i32
      %h = arith.sitofp %p : i32 to f16
      loop.store %h, %y[%i, %j] : memref<4x8xf16>
    }
  }
  func.return
}

// -----

// Two results of a row: each waits in its own place, which is not written before what waits there is read.
// REMARK: remark: keep-in-output: k_two: 2 values wait for a later sweep
// CHECK-LABEL: @k_two
// CHECK:         scf.for %j =
// CHECK:           [[E:%.*]] = math.exp
// CHECK-NEXT:      loop.store [[E]], %y[%j]
// CHECK:           [[T:%.*]] = math.tanh
// CHECK-NEXT:      loop.store [[T]], %z[%j]
// CHECK:         scf.for %j_1 =
// CHECK-NEXT:      [[F:%.*]] = loop.load %y[%j_1]
// CHECK-NEXT:      [[P:%.*]] = arith.divf [[F]], %s
// CHECK-NEXT:      loop.store [[P]], %y[%j_1]
// CHECK-NEXT:      [[U:%.*]] = loop.load %z[%j_1]
// CHECK-NEXT:      [[Q:%.*]] = arith.divf [[U]], %t
// CHECK-NEXT:      loop.store [[Q]], %z[%j_1]
func.func @k_two(%x: memref<8xf32>, %y: memref<8xf32>, %z: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %s, %t = scf.for %j = %c0 to %c8 step %c1 iter_args(%s_so_far = %zero, %t_so_far = %zero) -> (f32, f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %s_next = arith.addf %s_so_far, %e : f32
    %h = math.tanh %v : f32
    %t_next = arith.addf %t_so_far, %h : f32
    scf.yield %s_next, %t_next : f32, f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<8xf32>
    %e = math.exp %v : f32
    %p = arith.divf %e, %s : f32
    loop.store %p, %y[%j] : memref<8xf32>
    %h = math.tanh %v : f32
    %q = arith.divf %h, %t : f32
    loop.store %q, %z[%j] : memref<8xf32>
  }
  func.return
}
