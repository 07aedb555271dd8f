// RUN: deplo-opt %s -p split-at-sizes --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p split-at-sizes --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Two arrays, one behind the other.
// REMARK: remark: split-at-sizes: k_cat: 1 loop
// CHECK-LABEL: @k_cat
// CHECK:         [[AT:%.*]] = loop.index[s1]
// CHECK-NEXT:    [[LEAST:%.*]] = arith.minsi [[AT]], %n : index
// CHECK-NEXT:    %place = arith.maxsi [[LEAST]], %c0 : index
// CHECK-NEXT:    scf.for %j = %c0 to %place step %c1 {
// CHECK-NEXT:      [[A:%.*]] = loop.load %a[%i, %j]
// CHECK-NEXT:      loop.store [[A]], %y[%i, %j]
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.for %j_1 = %place to %n step %c1 {
// CHECK-NEXT:      [[B:%.*]] = loop.load %b[%i, %j_1 - s1]
// CHECK-NEXT:      loop.store [[B]], %y[%i, %j_1]
// CHECK-NEXT:    }
func.func @k_cat(%a: memref<?x?xf32, #sym.extents<s0, s1>>, %b: memref<?x?xf32, #sym.extents<s0, s2>>, %y: memref<?x?xf32, #sym.extents<s0, s1 + s2>>, %i: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = loop.index[s1 + s2]
  scf.for %j = %c0 to %n step %c1 {
    %first = loop.test[%j < s1]
    %v = scf.if %first -> (f32) {
      %u = loop.load %a[%i, %j] : memref<?x?xf32, #sym.extents<s0, s1>>
      scf.yield %u : f32
    } else {
      %u = loop.load %b[%i, %j - s1] : memref<?x?xf32, #sym.extents<s0, s2>>
      scf.yield %u : f32
    }
    loop.store %v, %y[%i, %j] : memref<?x?xf32, #sym.extents<s0, s1 + s2>>
  }
  func.return
}

// -----

// A border of two zeros: of two conditions, each changes at a place of its own.
// REMARK: remark: split-at-sizes: k_pad: 1 loop
// CHECK-LABEL: @k_pad
// CHECK:         scf.for %j = %c0 to %place step %c1 {
// CHECK-NEXT:      [[ZERO:%.*]] = arith.constant 0.0
// CHECK-NEXT:      loop.store [[ZERO]], %y[%j]
// CHECK-NEXT:    }
// CHECK:         loop.index[s0 + 2]
// CHECK:         scf.for %j_1 = %place to %place_1 step %c1 {
// CHECK-NEXT:      [[X:%.*]] = loop.load %x[%j_1 - 2]
// CHECK-NEXT:      loop.store [[X]], %y[%j_1]
// CHECK-NEXT:    }
// CHECK-NEXT:    scf.for %j_2 = %place_1 to %n step %c1 {
// CHECK-NEXT:      [[ZERO:%.*]] = arith.constant 0.0
// CHECK-NEXT:      loop.store [[ZERO]], %y[%j_2]
// CHECK-NEXT:    }
func.func @k_pad(%x: memref<?xf32, #sym.extents<s0>>, %y: memref<?xf32, #sym.extents<s0 + 4>>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = loop.index[s0 + 4]
  scf.for %j = %c0 to %n step %c1 {
    %inside = loop.test[%j >= 2, %j < s0 + 2]
    %v = scf.if %inside -> (f32) {
      %u = loop.load %x[%j - 2] : memref<?xf32, #sym.extents<s0>>
      scf.yield %u : f32
    } else {
      %zero = arith.constant 0.0 : f32
      scf.yield %zero : f32
    }
    loop.store %v, %y[%j] : memref<?xf32, #sym.extents<s0 + 4>>
  }
  func.return
}

// -----

// A loop whose length is a number is split where a size decides, and so at the numbers.
// REMARK: remark: split-at-sizes: k_number: 1 loop
// CHECK-LABEL: @k_number
// CHECK:         loop.index[2]
// CHECK:         scf.for %j = %c0 to %place step %c1 {
// CHECK-NEXT:    }
// CHECK:         loop.index[s0]
// CHECK:         scf.for %j_1 = %place to %place_1 step %c1 {
// CHECK:           loop.store {{%.*}}, %y[%j_1]
// CHECK:         scf.for %j_2 = %place_1 to %c99 step %c1 {
// CHECK-NEXT:    }
func.func @k_number(%y: memref<99xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c99 = arith.constant 99 : index
  scf.for %j = %c0 to %c99 step %c1 {
    %inside = loop.test[%j >= 2, %j < s0]
    scf.if %inside {
      %zero = arith.constant 0.0 : f32
      loop.store %zero, %y[%j] : memref<99xf32>
    }
  }
  func.return
}

// -----

// What else changes there, or changes at a place that is surely before or behind it, is known as well; what no
// counter says stays.
// REMARK: remark: split-at-sizes: k_nested: 1 loop
// CHECK-LABEL: @k_nested
// CHECK:         scf.for %j = %c0 to %place step %c1 {
// CHECK-NEXT:      [[T:%.*]] = loop.test[%i < s0]
// CHECK-NEXT:      {{%.*}} = scf.if [[T]] -> (f32) {
// CHECK-NEXT:        loop.load %x[%j]
// CHECK:           } else {
// CHECK-NEXT:        loop.load %z[%j]
// CHECK:         scf.for %j_1 = %place to %place_1 step %c1 {
// CHECK-NEXT:      loop.load %x[0]
// CHECK-NEXT:      loop.store
// CHECK-NEXT:    }
// CHECK:         scf.for %j_2 = %place_1 to %n step %c1 {
// CHECK-NEXT:      loop.load %x[1]
// CHECK-NEXT:      loop.store
// CHECK-NEXT:    }
func.func @k_nested(%x: memref<?xf32, #sym.extents<s0>>, %z: memref<?xf32, #sym.extents<s0>>, %y: memref<?xf32, #sym.extents<s0 + 4>>, %i: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = loop.index[s0 + 4]
  scf.for %j = %c0 to %n step %c1 {
    %first = loop.test[%i < s0, %j < s0]
    %v = scf.if %first -> (f32) {
      %u = loop.load %x[%j] : memref<?xf32, #sym.extents<s0>>
      scf.yield %u : f32
    } else {
      %behind = loop.test[%j >= s0]
      %w = scf.if %behind -> (f32) {
        %near = loop.test[%j < s0 + 2]
        %p = scf.if %near -> (f32) {
          %u = loop.load %x[0] : memref<?xf32, #sym.extents<s0>>
          scf.yield %u : f32
        } else {
          %u = loop.load %x[1] : memref<?xf32, #sym.extents<s0>>
          scf.yield %u : f32
        }
        scf.yield %p : f32
      } else {
        %u = loop.load %z[%j] : memref<?xf32, #sym.extents<s0>>
        scf.yield %u : f32
      }
      scf.yield %w : f32
    }
    loop.store %v, %y[%j] : memref<?xf32, #sym.extents<s0 + 4>>
  }
  func.return
}

// -----

// REMARK: remark: split-at-sizes: k_declined: declined: it does not go one by one; no condition is one of its counter; conditions choose between values alone; a condition is not linear; it has less than 64 iterations; numbers decide its places; it carries a value
// CHECK-LABEL: @k_declined
// CHECK-NOT:     %place
func.func @k_declined(%x: memref<99xf32>, %y: memref<?xf32, #sym.extents<s0>>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c16 = arith.constant 16 : index
  %c99 = arith.constant 99 : index
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %n = loop.index[s0]
  scf.for %j = %c0 to %n step %c2 {
    loop.store %zero, %y[%j] : memref<?xf32, #sym.extents<s0>>
  }
  scf.for %j = %c0 to %n step %c1 {
    loop.store %zero, %y[%j] : memref<?xf32, #sym.extents<s0>>
  }
  scf.for %j = %c0 to %n step %c1 {
    %first = loop.test[%j < 5]
    %v = arith.select %first, %one, %zero : f32
    loop.store %v, %y[%j] : memref<?xf32, #sym.extents<s0>>
  }
  scf.for %j = %c0 to %n step %c1 {
    %first = loop.test[%j mod 2 >= 1]
    scf.if %first {
      loop.store %zero, %y[%j] : memref<?xf32, #sym.extents<s0>>
    }
  }
  scf.for %j = %c0 to %c16 step %c1 {
    %first = loop.test[%j < s0]
    scf.if %first {
      loop.store %zero, %x[%j] : memref<99xf32>
    }
  }
  scf.for %j = %c0 to %c99 step %c1 {
    %first = loop.test[%j < 5]
    scf.if %first {
      loop.store %zero, %x[%j] : memref<99xf32>
    }
  }
  %sum = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %zero) -> (f32) {
    %first = loop.test[%j < 5]
    %v = scf.if %first -> (f32) {
      %u = loop.load %y[%j] : memref<?xf32, #sym.extents<s0>>
      scf.yield %u : f32
    } else {
      scf.yield %one : f32
    }
    %next = arith.addf %so_far, %v : f32
    scf.yield %next : f32
  }
  func.return
}

// -----

// REMARK: remark: split-at-sizes: k_large: declined: it has more than 100 operations
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
