// RUN: deplo-opt %s -p invert-divisors --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p invert-divisors --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A row over its sum: a product where the sum's inverse is good enough, corrected by what it lacks.
// REMARK: remark: invert-divisors: k_row: 1 loop
// CHECK-LABEL: @k_row
// CHECK:       [[ONE:%.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT:  %inverse = arith.divf [[ONE]], %s : f32
// CHECK-NEXT:  [[SIZE:%.*]] = math.absf %s
// CHECK:       arith.cmpf oge, [[SIZE]]
// CHECK:       arith.cmpf ole, [[SIZE]]
// CHECK:       scf.if %fits {
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      %e = loop.load
// CHECK-NEXT:      [[Q:%.*]] = arith.mulf %e, %inverse
// CHECK-NEXT:      [[MINUS:%.*]] = arith.negf %e
// CHECK-NEXT:      [[REST:%.*]] = math.fma [[Q]], %s, [[MINUS]]
// CHECK-NEXT:      [[LACK:%.*]] = arith.negf [[REST]]
// CHECK-NEXT:      [[BETTER:%.*]] = math.fma [[LACK]], %inverse, [[Q]]
// CHECK:           [[NONE:%.*]] = arith.cmpf ueq, [[REST]], %{{.*}}
// CHECK-NEXT:      %p = arith.select [[NONE]], [[Q]], [[BETTER]]
// CHECK-NEXT:      loop.store %p, %y
// CHECK:       } else {
// CHECK:         arith.divf %e{{.*}}, %s
func.func @k_row(%x: memref<8xf32>, %t: memref<1xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %s = loop.load %t[0] : memref<1xf32>
  scf.for %j = %c0 to %c8 step %c1 {
    %e = loop.load %x[%j] : memref<8xf32>
    %p = arith.divf %e, %s : f32
    loop.store %p, %y[%j] : memref<8xf32>
  }
  func.return
}

// -----

// REMARK: remark: invert-divisors: k_changes: declined: nothing is divided by what the loop does not change
// CHECK-LABEL: @k_changes
// CHECK-NOT:   scf.if
func.func @k_changes(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %eight = arith.constant 7.0 : f32
  scf.for %j = %c0 to %c8 step %c1 {
    %e = loop.load %x[%j] : memref<8xf32>
    %f = arith.divf %e, %eight : f32
    %p = arith.divf %f, %e : f32
    loop.store %p, %y[%j] : memref<8xf32>
  }
  func.return
}

// -----

// REMARK: remark: invert-divisors: k_sums: declined: a loop is left inside; the loop reduces something; there are several divisors
// CHECK-LABEL: @k_sums
// CHECK-NOT:   scf.if
func.func @k_sums(%x: memref<8xf32>, %t: memref<2xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %begin to %end step %c1 {
    %s = loop.load %t[0] : memref<2xf32>
    %sum = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %e = loop.load %x[%j] : memref<8xf32>
      %p = arith.divf %e, %s : f32
      %next = arith.addf %so_far, %p : f32
      scf.yield %next : f32
    }
    scf.for %j = %c0 to %c8 step %c1 {
      %e = loop.load %x[%j] : memref<8xf32>
      %f = arith.divf %e, %s : f32
      %p = arith.divf %f, %sum : f32
      loop.store %p, %y[%j] : memref<8xf32>
    }
  }
  func.return
}

// -----

// REMARK: remark: invert-divisors: k_none: declined: there is no loop
func.func @k_none(%begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  func.return
}

// -----

// The core has time to divide, says the schedule.
// REMARK: remark: invert-divisors: k_divides: declined: the schedule says to divide
// CHECK-LABEL: @k_divides
// CHECK-NOT:   scf.if
func.func @k_divides(%x: memref<8xf32>, %t: memref<1xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512, divide = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %s = loop.load %t[0] : memref<1xf32>
  scf.for %j = %c0 to %c8 step %c1 {
    %e = loop.load %x[%j] : memref<8xf32>
    %p = arith.divf %e, %s : f32
    loop.store %p, %y[%j] : memref<8xf32>
  }
  func.return
}
