// RUN: deplo-opt %s -p cut-loops --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p cut-loops --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The maximum of what is not masked: before the place, around it, behind it.
// REMARK: remark: cut-loops: k_below: 1 loops
// CHECK-LABEL: @k_below
// CHECK:         [[WHOLE:%.*]] = loop.index[(%i + 1) floordiv 64 * 64]
// CHECK:         [[LEAST:%.*]] = arith.minsi [[WHOLE]], {{%.*}} : index
// CHECK-NEXT:    %first = arith.maxsi [[LEAST]], %c0 : index
// CHECK-NEXT:    %second = loop.index[%first + 64]
// CHECK-NEXT:    [[A:%.*]] = scf.for %j = %c0 to %first step %c1 iter_args([[SO:%.*]] = %low)
// CHECK-NEXT:      [[V:%.*]] = loop.load %x[%i, %j]
// CHECK-NEXT:      arith.maximumf [[SO]], [[V]]
// CHECK:         [[B:%.*]] = scf.for %j_1 = %first to %second step %c1 iter_args({{%.*}} = [[A]])
// CHECK-NEXT:      loop.test[%i - %j_1 >= 0]
// CHECK-NEXT:      scf.if
// CHECK:         [[C:%.*]] = scf.for %j_2 = %second to %c200 step %c1 iter_args([[SO:%.*]] = [[B]])
// CHECK-NEXT:      [[M:%.*]] = arith.constant 0xff800000 : f32
// CHECK-NEXT:      arith.maximumf [[SO]], [[M]]
// CHECK:         loop.store [[C]], %y[%i]
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
// CHECK:         scf.for %j =
// CHECK:           [[FALSE:%.*]] = arith.constant false
// CHECK:           arith.uitofp [[FALSE]]
// CHECK:         scf.for %j_2 =
// CHECK-DAG:       loop.load %x[%i, %j_2]
// CHECK-DAG:       [[TRUE:%.*]] = arith.constant true
// CHECK:           arith.uitofp [[TRUE]]
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
// CHECK-NOT:     %first
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
