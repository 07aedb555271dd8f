// What LLVM has no instruction for becomes calls of functions, or arithmetic.

// RUN: deplo-opt %s --split-input-file -p expand-math{scales=false} | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p expand-math{scales=true} | FileCheck %s --check-prefix=SCALES
// RUN: deplo-opt %s --split-input-file -p expand-math{scales=false} --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK: remark: expand-math: functions: expanded 1 math.exp, 1 math.tanh
// CHECK:       func.func private @deplo_exp_f32(f32) -> f32
// CHECK:       func.func private @deplo_tanh_f32(f32) -> f32
// CHECK-LABEL: func.func @functions
// CHECK-NEXT:    %e = func.call @deplo_exp_f32(%x) : (f32) -> f32
// CHECK-NEXT:    %t = func.call @deplo_tanh_f32(%x) : (f32) -> f32
// CHECK-NEXT:    func.return %e, %t : f32, f32
// A CPU that scales by an instruction has powers of its own.
// SCALES-LABEL: func.func @functions
// SCALES-NEXT:    %e = func.call @deplo_exp_ldexp_f32(%x) : (f32) -> f32
// SCALES-NEXT:    %t = func.call @deplo_tanh_f32(%x) : (f32) -> f32
func.func @functions(%x: f32) -> (f32, f32) {
  %e = math.exp %x : f32
  %t = math.tanh %x : f32
  func.return %e, %t : f32, f32
}

// -----

// What is at most 0 has one bound, and one power of two that has its bits.
// CHECK-LABEL: func.func @at_most_zero
// CHECK-NEXT:    %e = func.call @deplo_exp_nonpositive_f32(%x) : (f32) -> f32
// SCALES-LABEL: func.func @at_most_zero
// SCALES-NEXT:    %e = func.call @deplo_exp_nonpositive_f32(%x) : (f32) -> f32
func.func @at_most_zero(%x: f32) -> f32 {
  %e = math.exp %x {at_most_zero} : f32
  func.return %e : f32
}

// -----

// What is only added to 1, as in GELU, is computed with it; where something else has it, too, it is not.
// CHECK-LABEL: func.func @added_to_one
// CHECK:         %y = func.call @deplo_tanh_plus_one_f32(%x) : (f32) -> f32
// CHECK-NEXT:    %f = func.call @deplo_tanh_f32(%x) : (f32) -> f32
// CHECK-NEXT:    %z = arith.addf %one, %f : f32
// CHECK-NEXT:    func.return %y, %z, %f
func.func @added_to_one(%x: f32) -> (f32, f32, f32) {
  %one = arith.constant 1.0 : f32
  %e = math.tanh %x : f32
  %y = arith.addf %e, %one : f32
  %f = math.tanh %x : f32
  %z = arith.addf %one, %f : f32
  func.return %y, %z, %f : f32, f32, f32
}

// -----

// Of f64 there is no such function: the sum stays.
// CHECK-LABEL: func.func @sum_of_f64
// CHECK:         %e = func.call @deplo_erf_f64(%x) : (f64) -> f64
// CHECK-NEXT:    %y = arith.addf %e, %one : f64
// CHECK-NEXT:    func.return %y
func.func @sum_of_f64(%x: f64) -> f64 {
  %one = arith.constant 1.0 : f64
  %e = math.erf %x : f64
  %y = arith.addf %e, %one : f64
  func.return %y : f64
}

// -----

// REMARK: remark: expand-math: calls: expanded 1 math.powf, 2 math.sin, 1 math.sinh
// CHECK:       func.func private @sinf(f32) -> f32
// CHECK:       func.func private @pow(f64, f64) -> f64
// CHECK:       func.func private @sinh(f64) -> f64
// CHECK-LABEL: func.func @calls
// CHECK-NEXT:    %s = func.call @sinf(%x) : (f32) -> f32
// CHECK-NEXT:    func.call @sinf(%s)
// CHECK-NEXT:    %p = func.call @pow(%y, %y) : (f64, f64) -> f64
// CHECK-NEXT:    %e = func.call @sinh(%y) : (f64) -> f64
func.func @calls(%x: f32, %y: f64) {
  %s = math.sin %x : f32
  %r = math.sin %s : f32
  %p = math.powf %y, %y : f64
  %e = math.sinh %y : f64
  func.return
}

// -----

// Exponentials of f64 are of the library, too.
// CHECK-LABEL: func.func @wide
// CHECK-NEXT:    %e = func.call @deplo_exp_f64(%x) : (f64) -> f64
// SCALES-LABEL: func.func @wide
// SCALES-NEXT:    %e = func.call @deplo_exp_ldexp_f64(%x) : (f64) -> f64
func.func @wide(%x: f64) -> f64 {
  %e = math.exp %x : f64
  func.return %e : f64
}

// -----

// REMARK: remark: expand-math: power: expanded 1 math.powf
// CHECK-LABEL: func.func @power
// CHECK-NEXT:    %p = func.call @deplo_pow_f32(%x, %y) : (f32, f32) -> f32
func.func @power(%x: f32, %y: f32) -> f32 {
  %p = math.powf %x, %y : f32
  func.return %p : f32
}

// -----

// CHECK-LABEL: func.func @cube
// CHECK:         %[[SQUARE:.*]] = arith.mulf %x, %x : f32
// CHECK-NEXT:    %c = arith.mulf %[[SQUARE]], %x : f32
func.func @cube(%x: f32) -> f32 {
  %three = arith.constant 3.0 : f32
  %c = math.powf %x, %three : f32
  func.return %c : f32
}

// -----

// bf16 is the upper half of an f32; a NaN that was one has nothing below it.
// CHECK-LABEL: func.func @bfloat
// CHECK-NEXT:    %[[BITS:.*]] = arith.bitcast %x : bf16 to i16
// CHECK-NEXT:    %[[LOW:.*]] = arith.extui %[[BITS]] : i16 to i32
// CHECK:         %[[HIGH:.*]] = arith.shli %[[LOW]], %{{.*}} : i32
// CHECK-NEXT:    %wide = arith.bitcast %[[HIGH]] : i32 to f32
// CHECK-NOT:     arith.cmpf
// CHECK:         arith.trunci %{{.*}} : i32 to i16
// CHECK-NEXT:    %y = arith.bitcast %{{.*}} : i16 to bf16
func.func @bfloat(%x: bf16) -> bf16 {
  %wide = arith.extf %x : bf16 to f32
  %y = arith.truncf %wide : f32 to bf16
  func.return %y : bf16
}

// -----

// That of an f32 from elsewhere may have: it would carry into the sign.
// CHECK-LABEL: func.func @other_nans
// CHECK:         arith.addi
// CHECK:         arith.cmpf uno, %x, %x : f32
// CHECK:         arith.select
func.func @other_nans(%x: f32) -> bf16 {
  %y = arith.truncf %x : f32 to bf16
  func.return %y : bf16
}

// -----

// What a loop carries has the NaNs of what it starts with and of what it yields.
// CHECK-LABEL: func.func @carried
// CHECK-NOT:     arith.cmpf
// CHECK-LABEL: func.func @carried_other
// CHECK:         arith.cmpf uno
func.func @carried(%x: bf16, %n: index) -> bf16 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %start = arith.constant 0.0 : f32
  %sum = scf.for %i = %zero to %n step %one iter_args(%so_far = %start) -> (f32) {
    %wide = arith.extf %x : bf16 to f32
    %next = arith.addf %so_far, %wide : f32
    scf.yield %next : f32
  }
  %y = arith.truncf %sum : f32 to bf16
  func.return %y : bf16
}
func.func @carried_other(%x: f32, %n: index) -> bf16 {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %start = arith.constant 0.0 : f32
  %sum = scf.for %i = %zero to %n step %one iter_args(%so_far = %start) -> (f32) {
    %next = arith.addf %so_far, %x : f32
    scf.yield %next : f32
  }
  %y = arith.truncf %sum : f32 to bf16
  func.return %y : bf16
}

// -----

// What is loaded from a scratch buffer was stored there.
// CHECK-LABEL: func.func @waiting
// CHECK-NOT:     arith.cmpf
// CHECK:         func.return
func.func @waiting(%x: bf16) -> bf16 {
  %row = memref.alloc() : memref<8xf32>
  %wide = arith.extf %x : bf16 to f32
  loop.store %wide, %row[0] : memref<8xf32>
  %again = loop.load %row[0] : memref<8xf32>
  memref.dealloc %row : memref<8xf32>
  %y = arith.truncf %again : f32 to bf16
  func.return %y : bf16
}

// -----

// Fewer than 32 bits are cut off from 32, and what does not fit is the smallest integer.
// CHECK-LABEL: func.func @to_i8
// CHECK:         %[[LOW:.*]] = arith.constant -2.14748365e+09 : f32
// CHECK:         %[[LIMIT:.*]] = arith.constant 2.14748365e+09 : f32
// CHECK:         %[[SIZE:.*]] = math.absf %x : f32
// CHECK-NEXT:    %[[FITS:.*]] = arith.cmpf olt, %[[SIZE]], %[[LIMIT]] : f32
// CHECK-NEXT:    %[[SAFE:.*]] = arith.select %[[FITS]], %x, %[[LOW]] : f32
// CHECK-NEXT:    %[[WIDE:.*]] = arith.fptosi %[[SAFE]] : f32 to i32
// CHECK-NEXT:    %y = arith.trunci %[[WIDE]] : i32 to i8
func.func @to_i8(%x: f32) -> i8 {
  %y = arith.fptosi %x : f32 to i8
  func.return %y : i8
}

// -----

// The machine never divides by 0 or by -1, unless the divisor is another constant.
// CHECK-LABEL: func.func @divide
// CHECK:         %[[SAFE:.*]] = arith.select %{{.*}}, %{{.*}}, %b : i32
// CHECK:         arith.divsi %a, %[[SAFE]] : i32
// CHECK:         %r = arith.remsi %a, %c7 : i32
func.func @divide(%a: i32, %b: i32) -> (i32, i32) {
  %c7 = arith.constant 7 : i32
  %q = arith.divsi %a, %b : i32
  %r = arith.remsi %a, %c7 : i32
  func.return %q, %r : i32, i32
}

// -----

// REMARK: remark: expand-math: plain: declined: every operation has an instruction of its own
// CHECK-LABEL: func.func @plain
// CHECK-NEXT:    math.sqrt
// CHECK-NEXT:    arith.truncf %{{.*}} : f32 to f16
// CHECK-NEXT:    func.return
func.func @plain(%x: f32) -> f16 {
  %s = math.sqrt %x : f32
  %h = arith.truncf %s : f32 to f16
  func.return %h : f16
}

// -----

// REMARK: remark: expand-math: nothing: declined: it has no operation of arith or math
// CHECK-LABEL: func.func @nothing
// SCALES-LABEL: func.func @nothing
func.func @nothing() {
  func.return
}
