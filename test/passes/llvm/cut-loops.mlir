// RUN: deplo-opt %s -p cut-loops --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p cut-loops --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The maximum of what is not masked, up to whole vectors; behind the place only the other branch is left.
// REMARK: remark: cut-loops: k_below: 1 loops
// CHECK-LABEL: @k_below
// CHECK:         [[WHOLE:%.*]] = loop.index[(%i + 64) floordiv 64 * 64]
// CHECK-NEXT:    [[LEAST:%.*]] = arith.minsi [[WHOLE]], %c200 : index
// CHECK-NEXT:    %place = arith.maxsi [[LEAST]], %c0 : index
// CHECK-NEXT:    [[A:%.*]] = scf.for %j = %c0 to %place step %c1 iter_args({{%.*}} = %low)
// CHECK-NEXT:      loop.test[%i - %j >= 0]
// CHECK-NEXT:      scf.if
// CHECK:         [[B:%.*]] = scf.for %j_1 = %place to %c200 step %c1 iter_args([[SO:%.*]] = [[A]])
// CHECK-NEXT:      [[M:%.*]] = arith.constant 0xff800000 : f32
// CHECK-NEXT:      arith.maximumf [[SO]], [[M]]
// CHECK:         loop.store [[B]], %y[%i]
func.func @k_below(%x: memref<200x200xf32>, %y: memref<200xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c200 = arith.constant 200 : index
  scf.for %i = %begin to %end step %c1 {
    %low = arith.constant 0xff800000 : f32
    %m = scf.for %j = %c0 to %c200 step %c1 iter_args(%so_far = %low) -> (f32) {
      %in = loop.test[%i - %j >= 0]
      %v = scf.if %in -> (f32) {
        %a = loop.load %x[%i, %j] : memref<200x200xf32>
        scf.yield %a : f32
      } else {
        %b = arith.constant 0xff800000 : f32
        scf.yield %b : f32
      }
      %next = arith.maximumf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %m, %y[%i] : memref<200xf32>
  }
  func.return
}

// -----

// From the place on; the condition is read as a value, too, and the loop stores.
// REMARK: remark: cut-loops: k_above: 1 loops
// CHECK-LABEL: @k_above
// CHECK:         loop.index[(5 - %i * 2) floordiv 64 * 64]
// CHECK:         scf.for %j = %c0 to %place
// CHECK-NOT:       loop.load
// CHECK:           [[FALSE:%.*]] = arith.constant false
// CHECK:           arith.uitofp [[FALSE]]
// CHECK:         scf.for %j_1 = %place to %c200
// CHECK-NEXT:      loop.test
// CHECK:           loop.load %x[%i, %j_1]
func.func @k_above(%x: memref<200x200xf32>, %y: memref<200x200xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c200 = arith.constant 200 : index
  scf.for %i = %begin to %end step %c1 {
    scf.for %j = %c0 to %c200 step %c1 {
      %in = loop.test[%j + %i * 2 - 5 >= 0]
      %v = scf.if %in -> (f32) {
        %a = loop.load %x[%i, %j] : memref<200x200xf32>
        scf.yield %a : f32
      } else {
        %b = arith.constant 0.0 : f32
        scf.yield %b : f32
      }
      %f = arith.uitofp %in : i1 to f32
      %s = arith.addf %v, %f : f32
      loop.store %s, %y[%i, %j] : memref<200x200xf32>
    }
  }
  func.return
}

// -----

// REMARK: remark: cut-loops: k_declined: declined: no condition is one of its counter; it has less than 128 iterations; a condition chooses no value; a condition is not linear; the counter has a factor; a condition is computed in the loop; its length is not known
// CHECK-LABEL: @k_declined
// CHECK-NOT:     %place
func.func @k_declined(%x: memref<200xi64>, %y: memref<200xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c100 = arith.constant 100 : index
  %c200 = arith.constant 200 : index
  %a = arith.constant 1.0 : f32
  %b = arith.constant 2.0 : f32
  scf.for %j = %c0 to %c200 step %c1 {
    %in = loop.test[%begin - 5 >= 0]
    %v = scf.if %in -> (f32) { scf.yield %a : f32 } else { scf.yield %b : f32 }
    loop.store %v, %y[%j] : memref<200xf32>
  }
  scf.for %j = %c0 to %c100 step %c1 {
    %in = loop.test[%begin - %j >= 0]
    %v = scf.if %in -> (f32) { scf.yield %a : f32 } else { scf.yield %b : f32 }
    loop.store %v, %y[%j] : memref<200xf32>
  }
  scf.for %j = %c0 to %c200 step %c1 {
    %in = loop.test[%begin - %j >= 0]
    scf.if %in {
      loop.store %a, %y[%j] : memref<200xf32>
    }
  }
  scf.for %j = %c0 to %c200 step %c1 {
    %in = loop.test[%begin - %j floordiv 2 >= 0]
    %v = scf.if %in -> (f32) { scf.yield %a : f32 } else { scf.yield %b : f32 }
    loop.store %v, %y[%j] : memref<200xf32>
  }
  scf.for %j = %c0 to %c200 step %c1 {
    %in = loop.test[%begin - %j * 2 >= 0]
    %v = scf.if %in -> (f32) { scf.yield %a : f32 } else { scf.yield %b : f32 }
    loop.store %v, %y[%j] : memref<200xf32>
  }
  scf.for %j = %c0 to %c200 step %c1 {
    %n = loop.load %x[%j] : memref<200xi64>
    %i = arith.index_cast %n : i64 to index
    %in = loop.test[%i - %j >= 0]
    %v = scf.if %in -> (f32) { scf.yield %a : f32 } else { scf.yield %b : f32 }
    loop.store %v, %y[%j] : memref<200xf32>
  }
  scf.for %j = %c0 to %end step %c1 {
    %in = loop.test[%begin - %j >= 0]
    %v = scf.if %in -> (f32) { scf.yield %a : f32 } else { scf.yield %b : f32 }
    loop.store %v, %y[%j] : memref<200xf32>
  }
  func.return
}
