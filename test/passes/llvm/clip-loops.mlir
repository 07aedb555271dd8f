// RUN: deplo-opt %s -p clip-loops --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p clip-loops --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The last block has fewer rows.
// REMARK: remark: clip-loops: k_rows: 1 loop
// CHECK-LABEL: @k_rows
// CHECK:         [[PLACE:%.*]] = loop.index[10 - %b * 4]
// CHECK-NEXT:    [[LEAST:%.*]] = arith.minsi [[PLACE]], %c4 : index
// CHECK-NEXT:    %place = arith.maxsi [[LEAST]], %c0 : index
// CHECK-NEXT:    scf.for %i = %c0 to %place step %c1 {
// CHECK-NEXT:      loop.load %x[%b * 4 + %i]
// CHECK-NOT:       loop.test
// CHECK-NOT:       scf.if
func.func @k_rows(%x: memref<10xf32>, %y: memref<10xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %b = %begin to %end step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      %in = loop.test[%b * 4 + %i < 10]
      scf.if %in {
        %v = loop.load %x[%b * 4 + %i] : memref<10xf32>
        loop.store %v, %y[%b * 4 + %i] : memref<10xf32>
      }
    }
  }
  func.return
}

// -----

// What is outside of the condition happens for all rows.
// REMARK: remark: clip-loops: k_more: declined: there is more in it than what is under the condition
// CHECK-LABEL: @k_more
// CHECK:         scf.for %i = %c0 to %c4 step %c1
func.func @k_more(%x: memref<10xf32>, %y: memref<40xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %b = %begin to %end step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      %in = loop.test[%b * 4 + %i < 10]
      scf.if %in {
        loop.store %zero, %x[%b * 4 + %i] : memref<10xf32>
      }
      loop.store %zero, %y[%b * 4 + %i] : memref<40xf32>
    }
  }
  func.return
}

// -----

// REMARK: remark: clip-loops: k_else: declined: it does something where the condition does not hold
// CHECK-LABEL: @k_else
// CHECK:         } else {
func.func @k_else(%y: memref<10xf32>, %z: memref<40xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %b = %begin to %end step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      %in = loop.test[%b * 4 + %i < 10]
      scf.if %in {
        loop.store %zero, %y[%b * 4 + %i] : memref<10xf32>
      } else {
        loop.store %zero, %z[%b * 4 + %i] : memref<40xf32>
      }
    }
  }
  func.return
}

// -----

// Padding: what comes first is not under the condition.
// REMARK: remark: clip-loops: k_from: declined: the condition holds from a place on
// CHECK-LABEL: @k_from
// CHECK:         loop.test
func.func @k_from(%y: memref<10xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c10 step %c1 {
    %in = loop.test[%i - 3 >= 0]
    scf.if %in {
      loop.store %zero, %y[%i] : memref<10xf32>
    }
  }
  func.return
}

// -----

// REMARK: remark: clip-loops: k_plain: declined: no loop is under a condition
// CHECK-LABEL: @k_plain
func.func @k_plain(%y: memref<10xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c10 step %c1 {
    loop.store %zero, %y[%i] : memref<10xf32>
  }
  func.return
}

// -----

// The end may be a size, which is an argument by now, or a quotient.
// REMARK: remark: clip-loops: k_size: 1 loop
// CHECK-LABEL: @k_size
// CHECK:         %[[left:.+]] = loop.index[s0 floordiv 3 - %begin * 10]
// CHECK-NEXT:    %[[least:.+]] = arith.minsi %[[left]], %c10
// CHECK-NEXT:    %[[place:.+]] = arith.maxsi %[[least]], %c0
// CHECK-NEXT:    scf.for %i = %c0 to %[[place]]
// CHECK-NEXT:      loop.store
func.func @k_size(%y: memref<?xf32, #sym.extents<s0 floordiv 3>>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c10 step %c1 {
    %in = loop.test[%begin * 10 + %i < s0 floordiv 3]
    scf.if %in {
      loop.store %zero, %y[%begin * 10 + %i] : memref<?xf32, #sym.extents<s0 floordiv 3>>
    }
  }
  func.return
}

// -----

// Each loop ends where its own condition does; ends are computed in front of all loops that they do not depend on.
// REMARK: remark: clip-loops: k_rectangle: 2 loops
// CHECK-LABEL: @k_rectangle
// CHECK:         loop.index[s0 - %begin * 4]
// CHECK:         scf.for %b = %begin to %end step %c1 {
// CHECK-NEXT:      loop.index[s1 - %b * 8]
// CHECK:           scf.for %i = %c0 to %{{place.*}} step %c1 {
// CHECK-NEXT:        scf.for %j = %c0 to %{{place.*}} step %c1 {
// CHECK-NEXT:          loop.store
// CHECK-NOT:       scf.if
func.func @k_rectangle(%y: memref<?x?xf32, #sym.extents<s0, s1>>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %b = %begin to %end step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %in = loop.test[%begin * 4 + %i < s0, %b * 8 + %j < s1]
        scf.if %in {
          loop.store %zero, %y[%begin * 4 + %i, %b * 8 + %j] : memref<?x?xf32, #sym.extents<s0, s1>>
        }
      }
    }
  }
  func.return
}

// -----

// A condition of the rows alone is asked in front of a loop over columns, and so is the end of the rows.
// REMARK: remark: clip-loops: k_whole: 2 loops
// CHECK-LABEL: @k_whole
// CHECK:         scf.for %i = %c0 to %place step %c1 {
// CHECK-NEXT:      scf.for %j = %c0 to %c8 step %c1 {
// CHECK-NEXT:        loop.store
// CHECK-NOT:       scf.if
func.func @k_whole(%y: memref<10x8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %b = %begin to %end step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %j = %c0 to %c8 step %c1 {
        %in = loop.test[%b * 4 + %i < 10]
        scf.if %in {
          loop.store %zero, %y[%b * 4 + %i, %j] : memref<10x8xf32>
        }
      }
    }
  }
  func.return
}

// -----

// Where the other condition is none of a loop's counter, it is left around the loop.
// REMARK: remark: clip-loops: k_under: 1 loop
// CHECK-LABEL: @k_under
// CHECK:         %place = arith.maxsi
// CHECK-NEXT:    %[[in:.+]] = loop.test[%begin >= 3]
// CHECK-NEXT:    scf.if %[[in]] {
// CHECK-NEXT:      scf.for %i = %c0 to %place step %c1 {
// CHECK-NEXT:        loop.store
func.func @k_under(%y: memref<10xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c4 step %c1 {
    %in = loop.test[%begin >= 3, %begin + %i < 10]
    scf.if %in {
      loop.store %zero, %y[%begin + %i] : memref<10xf32>
    }
  }
  func.return
}
