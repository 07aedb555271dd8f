// RUN: deplo-opt %s -p small-angles --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p small-angles --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A function for small angles, and whether one is large; then the loop runs again.
// REMARK: remark: small-angles: k_sin: 1 loop
// CHECK-LABEL: @k_sin
// CHECK:       %large = scf.for %j = %c0 to %c8 step %c1 iter_args(%any = [[FALSE:%.*]]) -> (i1) {
// CHECK-NOT:     math.sin
// CHECK:         [[V:%.*]] = func.call @deplo_sin_small_f32(%x_1) : (f32) -> f32
// CHECK-NEXT:    loop.store [[V]], %y[%j]
// CHECK-NEXT:    [[LARGE:%.*]] = func.call @deplo_is_large_angle_f32(%x_1) : (f32) -> i1
// CHECK-NEXT:    [[MORE:%.*]] = arith.ori %any, [[LARGE]]
// CHECK-NEXT:    scf.yield [[MORE]] : i1
// CHECK:       scf.if %large {
// CHECK-NEXT:    scf.for
// CHECK-NEXT:      [[A:%.*]] = loop.load
// CHECK-NEXT:      [[S:%.*]] = math.sin [[A]]
// CHECK-NEXT:      loop.store [[S]], %y
func.func @k_sin(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c0 to %c8 step %c1 {
    %x_1 = loop.load %x[%j] : memref<8xf32>
    %s = math.sin %x_1 : f32
    loop.store %s, %y[%j] : memref<8xf32>
  }
  func.return
}

// -----

// REMARK: remark: small-angles: k_tan: 1 loop
// CHECK-LABEL: @k_tan
// CHECK:       %large = scf.for
// CHECK-NOT:     math.tan
// CHECK:         [[V:%.*]] = func.call @deplo_tan_small_f32(%x_1) : (f32) -> f32
// CHECK-NEXT:    loop.store [[V]], %y[%j]
// CHECK:       scf.if %large {
// CHECK:           math.tan
func.func @k_tan(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c0 to %c8 step %c1 {
    %x_1 = loop.load %x[%j] : memref<8xf32>
    %t = math.tan %x_1 : f32
    loop.store %t, %y[%j] : memref<8xf32>
  }
  func.return
}

// -----

// REMARK: remark: small-angles: k_wide: 1 loop
// CHECK-LABEL: @k_wide
// CHECK:       %large = scf.for
// CHECK-NOT:     math.cos
// CHECK:         func.call @deplo_cos_small_f64(%x_1) : (f64) -> f64
// CHECK:         func.call @deplo_is_large_angle_f64(%x_1) : (f64) -> i1
// CHECK:       scf.if %large {
// CHECK:           math.cos
func.func @k_wide(%x: memref<8xf64>, %y: memref<8xf64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %j = %c0 to %c8 step %c1 {
    %x_1 = loop.load %x[%j] : memref<8xf64>
    %t = math.cos %x_1 : f64
    loop.store %t, %y[%j] : memref<8xf64>
  }
  func.return
}

// -----

// A sum comes from the loop that was right.
// REMARK: remark: small-angles: k_sum: 1 loop
// CHECK-LABEL: @k_sum
// CHECK:       [[SUM:%.*]], %large = scf.for
// CHECK:       %sum = scf.if %large -> (f32) {
// CHECK-NEXT:    [[AGAIN:%.*]] = scf.for
// CHECK:           math.cos
// CHECK:         scf.yield [[AGAIN]] : f32
// CHECK-NEXT:  } else {
// CHECK-NEXT:    scf.yield [[SUM]] : f32
// CHECK:       loop.store %sum, %y[0]
func.func @k_sum(%x: memref<8xf32>, %y: memref<1xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %x_1 = loop.load %x[%j] : memref<8xf32>
    %s = math.cos %x_1 : f32
    %next = arith.addf %so_far, %s : f32
    scf.yield %next : f32
  }
  loop.store %sum, %y[0] : memref<1xf32>
  func.return
}

// -----

// REMARK: remark: small-angles: k_stay: declined: a loop is left inside; the loop reads what it stores; a sine, cosine or tangent is in a branch; there is no sine or cosine of a float, or tangent of f32
// CHECK-LABEL: @k_stay
// CHECK-COUNT-2: math.sin
func.func @k_stay(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %begin to %end step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %x_1 = loop.load %y[%j] : memref<8xf32>
      %s = math.sin %x_1 : f32
      loop.store %s, %y[%j] : memref<8xf32>
    }
    scf.for %j = %c0 to %c8 step %c1 {
      %x_1 = loop.load %x[%j] : memref<8xf32>
      %in = loop.test[%j - 4 >= 0]
      %s = scf.if %in -> (f32) {
        %t = math.sin %x_1 : f32
        scf.yield %t : f32
      } else {
        scf.yield %x_1 : f32
      }
      loop.store %s, %y[%j] : memref<8xf32>
    }
    scf.for %j = %c0 to %c8 step %c1 {
      %x_1 = loop.load %x[%j] : memref<8xf32>
      loop.store %x_1, %y[%j] : memref<8xf32>
    }
  }
  func.return
}

// -----

// REMARK: remark: small-angles: k_none: declined: there is no loop
func.func @k_none(%begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  func.return
}
