// RUN: deplo-opt %s -p interchange-columns --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p interchange-columns --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Rows go eight at once, and those that are left one by one; what the sum needs is read again.
// REMARK: remark: interchange-columns: k_sum: 1 loop
// CHECK-LABEL: @k_sum
// CHECK:       [[KEPT:%.*]] = memref.alloc() {alignment = 64 : i64} : memref<64xf32>
// CHECK:       scf.for %j = %c0 to %c64
// CHECK:         loop.store {{%.*}}, [[KEPT]][%j]
// CHECK:       [[GROUPS:%.*]] = loop.index[%c19 floordiv 8]
// CHECK-NEXT:  scf.for %i = %c0 to [[GROUPS]]
// CHECK:         [[LAST:%.*]] = loop.index[%i * 8 + 7]
// CHECK-NEXT:    scf.for %j_1 = %c0 to %c64
// CHECK:           [[SUM:%.*]] = loop.load [[KEPT]][%j_1]
// CHECK:           loop.load %x{{\[}}[[LAST]], %block * 64 + %j_1]
// CHECK:           [[NEXT:%.*]] = arith.addf [[SUM]], {{%.*}} fastmath<reassoc>
// CHECK-NEXT:      loop.store [[NEXT]], [[KEPT]][%j_1]
// CHECK:       [[REST:%.*]] = loop.index[{{%.*}} * 8]
// CHECK-NEXT:  scf.for %i_1 = [[REST]] to %c19
// CHECK:         scf.for %j_2
// CHECK:       scf.for %j_3 = %c0 to %c64
// CHECK:         [[S:%.*]] = loop.load [[KEPT]][%j_3]
// CHECK-NEXT:    loop.store [[S]], %y[%block * 64 + %j_3]
// CHECK:       memref.dealloc [[KEPT]]
func.func @k_sum(%x: memref<19x128xf32>, %y: memref<128xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c19 = arith.constant 19 : index
  scf.for %block = %begin to %end step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %zero = arith.constant 0.0 : f32
      %s = scf.for %i = %c0 to %c19 step %c1 iter_args(%so_far = %zero) -> (f32) {
        %v = loop.load %x[%i, %block * 64 + %j] : memref<19x128xf32>
        %next = arith.addf %so_far, %v fastmath<reassoc> : f32
        scf.yield %next : f32
      }
      loop.store %s, %y[%block * 64 + %j] : memref<128xf32>
    }
  }
  func.return
}

// -----

// A strip of columns may be shorter than what waits for the longest one: its end is clipped.
// REMARK: remark: interchange-columns: k_strip: 1 loop
// CHECK-LABEL: @k_strip
// CHECK:       memref.alloc() {alignment = 64 : i64} : memref<64xf32>
// CHECK:       %place = arith.maxsi
// CHECK:       scf.for %j = %c0 to %place
// CHECK:       scf.for %i
// CHECK:         scf.for %j_1 = %c0 to %place
func.func @k_strip(%x: memref<24x?xf32, #sym.extents<s0>>, %y: memref<?xf32, #sym.extents<s0>>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c24 = arith.constant 24 : index
  scf.for %block = %begin to %end step %c1 {
    %left = loop.index[s0 - %block * 64]
    %least = arith.minsi %left, %c64 : index
    %place = arith.maxsi %least, %c0 : index
    scf.for %j = %c0 to %place step %c1 {
      %zero = arith.constant 0.0 : f32
      %s = scf.for %i = %c0 to %c24 step %c1 iter_args(%so_far = %zero) -> (f32) {
        %v = loop.load %x[%i, %block * 64 + %j] : memref<24x?xf32, #sym.extents<s0>>
        %next = arith.addf %so_far, %v : f32
        scf.yield %next : f32
      }
      loop.store %s, %y[%block * 64 + %j] : memref<?xf32, #sym.extents<s0>>
    }
  }
  func.return
}

// -----

// A maximum folds row by row. What stands between two sweeps waits, and sweeps may stand in sweeps.
// REMARK: remark: interchange-columns: k_max: 1 loop
// CHECK-LABEL: @k_max
// CHECK:       [[A:%.*]] = loop.load %x[{{%.*}}, %j_1]
// CHECK-NEXT:  [[B:%.*]] = arith.maximumf [[SO:%.*]], [[A]]
// CHECK-NEXT:  [[C:%.*]] = loop.load %x
// CHECK-NEXT:  arith.maximumf [[B]], [[C]]
// CHECK:       scf.for %n =
// CHECK:         scf.for %j{{.*}} {
// CHECK:         scf.for %i
// CHECK:           scf.for %j{{.*}} {
// CHECK:             arith.subf
// CHECK:         scf.for %j{{.*}} {
// CHECK:           arith.mulf
func.func @k_max(%x: memref<16x64xf32>, %y: memref<64xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %c16 = arith.constant 16 : index
  scf.for %j = %c0 to %c64 step %c1 {
    %low = arith.constant 0xff800000 : f32
    %m = scf.for %i = %c0 to %c16 step %c1 iter_args(%so_far = %low) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<16x64xf32>
      %next = arith.maximumf %so_far, %v : f32
      scf.yield %next : f32
    }
    %h = arith.negf %m : f32
    %zero = arith.constant 0.0 : f32
    %s = scf.for %n = %c0 to %c2 step %c1 iter_args(%all = %zero) -> (f32) {
      %p = scf.for %i = %c0 to %c16 step %c1 iter_args(%so_far = %zero) -> (f32) {
        %v = loop.load %x[%i, %j] : memref<16x64xf32>
        %d = arith.subf %v, %h : f32
        %next = arith.addf %so_far, %d : f32
        scf.yield %next : f32
      }
      %q = arith.mulf %p, %h : f32
      %t = arith.addf %all, %q : f32
      scf.yield %t : f32
    }
    loop.store %s, %y[%j] : memref<64xf32>
  }
  func.return
}

// -----

// A sweep that stores goes row by row, each row in a loop over columns, after those that reduce.
// CHECK-LABEL: func.func @k_minus
// CHECK:         scf.for %[[I:.*]] = %c0 to %c20 step %c1 {
// CHECK-NEXT:      %[[ROW:.*]] = loop.index[%[[I]]]
// CHECK-NEXT:      scf.for %[[J:.*]] = %c0 to %c64 step %c1 {
// CHECK-NEXT:        %[[V:.*]] = loop.load %x[%[[ROW]], %[[J]]]
// CHECK-NEXT:        %[[M:.*]] = loop.load %so_far_columns[%[[J]]]
// CHECK-NEXT:        %[[D:.*]] = arith.subf %[[V]], %[[M]] : f32
// CHECK-NEXT:        loop.store %[[D]], %y[%[[ROW]], %[[J]]]
// CHECK-NEXT:      }
// CHECK-NEXT:    }
// REMARK: remark: interchange-columns: k_minus: 1 loop
func.func @k_minus(%x: memref<20x64xf32>, %y: memref<20x64xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %c20 = arith.constant 20 : index
  scf.for %j = %c0 to %c64 step %c1 {
    %low = arith.constant 0xff800000 : f32
    %m = scf.for %i = %c0 to %c20 step %c1 iter_args(%so_far = %low) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<20x64xf32>
      %next = arith.maximumf %so_far, %v : f32
      scf.yield %next : f32
    }
    scf.for %i = %c0 to %c20 step %c1 {
      %v = loop.load %x[%i, %j] : memref<20x64xf32>
      %d = arith.subf %v, %m : f32
      loop.store %d, %y[%i, %j] : memref<20x64xf32>
    }
  }
  func.return
}

// -----

// REMARK: remark: interchange-columns: k_rows: declined: neighbouring columns are no neighbours in memory
// REMARK: remark: interchange-columns: k_none: declined: nothing is reduced
// REMARK: remark: interchange-columns: k_stores: declined: nothing is reduced
// REMARK: remark: interchange-columns: k_again: declined: nothing is reduced; it reads what it stores
// REMARK: remark: interchange-columns: k_steps: declined: a sweep does not go row by row
// REMARK: remark: interchange-columns: k_index: declined: an index would have to wait
// REMARK: remark: interchange-columns: k_window: declined: its reductions are windows, which are unrolled
// REMARK: remark: interchange-columns: k_same: declined: no sweep reads columns
// REMARK: remark: interchange-columns: k_range: declined: the number of columns is not known
// REMARK: remark: interchange-columns: k_branch: declined: a sweep is in a branch
// REMARK: remark: interchange-columns: k_assert: declined: kernel.assert is in it
// REMARK: remark: interchange-columns: k_triangle: declined: a sweep's length differs from column to column
func.func @k_rows(%x: memref<8x8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c8 step %c1 {
    %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%j, %i] : memref<8x8xf32>
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_none(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<8xf32>
    loop.store %v, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_stores(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c0 to %c8 step %c1 {
    scf.for %i = %c0 to %c8 step %c1 {
      %v = loop.load %x[%i, %j] : memref<8x8xf32>
      loop.store %v, %y[%i, %j] : memref<8x8xf32>
    }
  }
  func.return
}
func.func @k_again(%x: memref<8x8xf32>, %y: memref<8x8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c8 step %c1 {
    scf.for %i = %c0 to %c8 step %c1 {
      %v = loop.load %x[%i, %j] : memref<8x8xf32>
      loop.store %v, %y[%i, %j] : memref<8x8xf32>
    }
    %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %y[%i, %j] : memref<8x8xf32>
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[0, %j] : memref<8x8xf32>
  }
  func.return
}
func.func @k_steps(%x: memref<8x8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c8 step %c1 {
    %s = scf.for %i = %c0 to %c8 step %c2 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<8x8xf32>
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_index(%x: memref<9x8xi64>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c9 = arith.constant 9 : index
  scf.for %j = %c0 to %c8 step %c1 {
    %s = scf.for %i = %c0 to %c9 step %c1 iter_args(%so_far = %c0) -> (index) {
      %v = loop.load %x[%i, %j] : memref<9x8xi64>
      %n = arith.index_cast %v : i64 to index
      %next = arith.addi %so_far, %n : index
      scf.yield %next : index
    }
    %t = arith.index_cast %s : index to i64
    loop.store %t, %y[%j] : memref<8xi64>
  }
  func.return
}
func.func @k_window(%x: memref<8x8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c8 step %c1 {
    %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<8x8xf32>
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_same(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c8 step %c1 {
    %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%i] : memref<8xf32>
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_range(%x: memref<8x8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %begin to %end step %c1 {
    %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<8x8xf32>
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_branch(%x: memref<8x8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c8 step %c1 {
    %in = loop.test[%begin - %j >= 0]
    scf.if %in {
      %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
        %v = loop.load %x[%i, %j] : memref<8x8xf32>
        %next = arith.addf %so_far, %v : f32
        scf.yield %next : f32
      }
      loop.store %s, %y[%j] : memref<8xf32>
    }
  }
  func.return
}
func.func @k_assert(%x: memref<8x8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c8 step %c1 {
    %s = scf.for %i = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<8x8xf32>
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    %is = arith.cmpf oeq, %s, %s : f32
    kernel.assert %is, "a NaN"
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}
func.func @k_triangle(%x: memref<8x8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c8 step %c1 {
    %rows = loop.index[%j + 1]
    %s = scf.for %i = %c0 to %rows step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<8x8xf32>
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}
