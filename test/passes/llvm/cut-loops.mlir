// RUN: deplo-opt %s -p cut-loops --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p cut-loops --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The maximum of what is not masked, up to whole vectors; behind the place only the other branch is left.
// REMARK: remark: cut-loops: k_below: 1 loop
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
// REMARK: remark: cut-loops: k_above: 1 loop
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

// REMARK: remark: cut-loops: k_declined: declined: no condition is one of its counter; it has less than 128 iterations; a condition chooses no value; a condition is not linear; there are several conditions; the counter has a factor; a condition is computed in the loop; its length is not known
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
    %in = loop.test[%begin - %j >= 0, %end - %j >= 0]
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

// -----

// REMARK: remark: cut-loops: k_large: declined: it has more than 100 operations
// CHECK-LABEL: @k_large
// CHECK-NOT:     %place
func.func @k_large(%y: memref<200xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c200 = arith.constant 200 : index
  %a = arith.constant 1.0 : f32
  %b = arith.constant 2.0 : f32
  scf.for %j = %c0 to %c200 step %c1 {
    %in = loop.test[%begin - %j >= 0]
    %v = scf.if %in -> (f32) { scf.yield %a : f32 } else { scf.yield %b : f32 }
    %a0 = arith.addf %v, %a : f32
    %a1 = arith.addf %a0, %a : f32
    %a2 = arith.addf %a1, %a : f32
    %a3 = arith.addf %a2, %a : f32
    %a4 = arith.addf %a3, %a : f32
    %a5 = arith.addf %a4, %a : f32
    %a6 = arith.addf %a5, %a : f32
    %a7 = arith.addf %a6, %a : f32
    %a8 = arith.addf %a7, %a : f32
    %a9 = arith.addf %a8, %a : f32
    %a10 = arith.addf %a9, %a : f32
    %a11 = arith.addf %a10, %a : f32
    %a12 = arith.addf %a11, %a : f32
    %a13 = arith.addf %a12, %a : f32
    %a14 = arith.addf %a13, %a : f32
    %a15 = arith.addf %a14, %a : f32
    %a16 = arith.addf %a15, %a : f32
    %a17 = arith.addf %a16, %a : f32
    %a18 = arith.addf %a17, %a : f32
    %a19 = arith.addf %a18, %a : f32
    %a20 = arith.addf %a19, %a : f32
    %a21 = arith.addf %a20, %a : f32
    %a22 = arith.addf %a21, %a : f32
    %a23 = arith.addf %a22, %a : f32
    %a24 = arith.addf %a23, %a : f32
    %a25 = arith.addf %a24, %a : f32
    %a26 = arith.addf %a25, %a : f32
    %a27 = arith.addf %a26, %a : f32
    %a28 = arith.addf %a27, %a : f32
    %a29 = arith.addf %a28, %a : f32
    %a30 = arith.addf %a29, %a : f32
    %a31 = arith.addf %a30, %a : f32
    %a32 = arith.addf %a31, %a : f32
    %a33 = arith.addf %a32, %a : f32
    %a34 = arith.addf %a33, %a : f32
    %a35 = arith.addf %a34, %a : f32
    %a36 = arith.addf %a35, %a : f32
    %a37 = arith.addf %a36, %a : f32
    %a38 = arith.addf %a37, %a : f32
    %a39 = arith.addf %a38, %a : f32
    %a40 = arith.addf %a39, %a : f32
    %a41 = arith.addf %a40, %a : f32
    %a42 = arith.addf %a41, %a : f32
    %a43 = arith.addf %a42, %a : f32
    %a44 = arith.addf %a43, %a : f32
    %a45 = arith.addf %a44, %a : f32
    %a46 = arith.addf %a45, %a : f32
    %a47 = arith.addf %a46, %a : f32
    %a48 = arith.addf %a47, %a : f32
    %a49 = arith.addf %a48, %a : f32
    %a50 = arith.addf %a49, %a : f32
    %a51 = arith.addf %a50, %a : f32
    %a52 = arith.addf %a51, %a : f32
    %a53 = arith.addf %a52, %a : f32
    %a54 = arith.addf %a53, %a : f32
    %a55 = arith.addf %a54, %a : f32
    %a56 = arith.addf %a55, %a : f32
    %a57 = arith.addf %a56, %a : f32
    %a58 = arith.addf %a57, %a : f32
    %a59 = arith.addf %a58, %a : f32
    %a60 = arith.addf %a59, %a : f32
    %a61 = arith.addf %a60, %a : f32
    %a62 = arith.addf %a61, %a : f32
    %a63 = arith.addf %a62, %a : f32
    %a64 = arith.addf %a63, %a : f32
    %a65 = arith.addf %a64, %a : f32
    %a66 = arith.addf %a65, %a : f32
    %a67 = arith.addf %a66, %a : f32
    %a68 = arith.addf %a67, %a : f32
    %a69 = arith.addf %a68, %a : f32
    %a70 = arith.addf %a69, %a : f32
    %a71 = arith.addf %a70, %a : f32
    %a72 = arith.addf %a71, %a : f32
    %a73 = arith.addf %a72, %a : f32
    %a74 = arith.addf %a73, %a : f32
    %a75 = arith.addf %a74, %a : f32
    %a76 = arith.addf %a75, %a : f32
    %a77 = arith.addf %a76, %a : f32
    %a78 = arith.addf %a77, %a : f32
    %a79 = arith.addf %a78, %a : f32
    %a80 = arith.addf %a79, %a : f32
    %a81 = arith.addf %a80, %a : f32
    %a82 = arith.addf %a81, %a : f32
    %a83 = arith.addf %a82, %a : f32
    %a84 = arith.addf %a83, %a : f32
    %a85 = arith.addf %a84, %a : f32
    %a86 = arith.addf %a85, %a : f32
    %a87 = arith.addf %a86, %a : f32
    %a88 = arith.addf %a87, %a : f32
    %a89 = arith.addf %a88, %a : f32
    %a90 = arith.addf %a89, %a : f32
    %a91 = arith.addf %a90, %a : f32
    %a92 = arith.addf %a91, %a : f32
    %a93 = arith.addf %a92, %a : f32
    %a94 = arith.addf %a93, %a : f32
    %a95 = arith.addf %a94, %a : f32
    %a96 = arith.addf %a95, %a : f32
    %a97 = arith.addf %a96, %a : f32
    %a98 = arith.addf %a97, %a : f32
    %a99 = arith.addf %a98, %a : f32
    loop.store %a99, %y[%j] : memref<200xf32>
  }
  func.return
}
