// RUN: deplo-opt %s -p widen-integers --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p widen-integers --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Both weights of a byte, less what they are stored with, fit in eight bits all the way.
// REMARK: remark: widen-integers: halves: 3 conversions
// CHECK-LABEL: @halves
// CHECK:         %w = arith.extui %p : i8 to i32
// CHECK:         %m = arith.andi %w, %c15
// CHECK:         %b = arith.addi %m, %{{.+}} : i32
// CHECK:         arith.sitofp %b : i32 to f32
// CHECK:         %d = arith.subi %m, %{{.+}} : i32
// CHECK:         arith.sitofp %d : i32 to f32
// CHECK:         %h = arith.shrsi %w, %c4
// CHECK:         %e = arith.subi %h, %{{.+}} : i32
// CHECK:         arith.sitofp %e : i32 to f32
func.func @halves(%x: memref<8xi8>, %y: memref<16xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c1 = arith.constant 1 : index
  scf.for %i = %begin to %end step %c1 {
    %p = loop.load %x[%i] : memref<8xi8>
    %w = arith.extui %p : i8 to i32
    %c15 = arith.constant 15 : i32
    %c4 = arith.constant 4 : i32
    %c8 = arith.constant 8 : i8
    %eight_less = arith.constant 248 : i8  // as a signed one, -8
    %m = arith.andi %w, %c15 : i32
    %n = arith.trunci %m : i32 to i8
    %b = arith.addi %n, %eight_less : i8
    %a = arith.sitofp %b : i8 to f32
    loop.store %a, %y[%i] : memref<16xf32>
    %d = arith.subi %n, %c8 : i8
    %f = arith.sitofp %d : i8 to f32
    loop.store %f, %y[%i] : memref<16xf32>
    %h = arith.shrsi %w, %c4 : i32
    %o = arith.trunci %h : i32 to i8
    %e = arith.subi %o, %c8 : i8
    %g = arith.sitofp %e : i8 to f32
    loop.store %g, %y[%i + 8] : memref<16xf32>
  }
  func.return
}

// -----

// 15 * 9 - 8 wraps in eight bits, 15 * 8 + 7 does not.
// REMARK: remark: widen-integers: wraps: declined: what is converted is only read, or may wrap
// REMARK: remark: widen-integers: fits: 1 conversion
// REMARK: remark: widen-integers: plain: declined: what is converted is only read, or may wrap
// REMARK: remark: widen-integers: floats: declined: no float comes of one
// CHECK-LABEL: @wraps
// CHECK:         arith.sitofp %{{.+}} : i8 to f32
// CHECK-LABEL: @fits
// CHECK:         arith.muli %m, %{{.+}} : i32
// CHECK:         arith.addi %{{.+}} : i32
// CHECK:         arith.sitofp %{{.+}} : i32 to f32
func.func @wraps(%x: memref<8xi8>, %y: memref<8xf32>, %i: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %p = loop.load %x[%i] : memref<8xi8>
  %w = arith.extui %p : i8 to i32
  %c15 = arith.constant 15 : i32
  %c9 = arith.constant 9 : i8
  %c8 = arith.constant 8 : i8
  %m = arith.andi %w, %c15 : i32
  %n = arith.trunci %m : i32 to i8
  %t = arith.muli %n, %c9 : i8
  %d = arith.subi %t, %c8 : i8
  %f = arith.sitofp %d : i8 to f32
  loop.store %f, %y[%i] : memref<8xf32>
  func.return
}
func.func @fits(%x: memref<8xi8>, %y: memref<8xf32>, %i: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %p = loop.load %x[%i] : memref<8xi8>
  %w = arith.extui %p : i8 to i32
  %c15 = arith.constant 15 : i32
  %c8 = arith.constant 8 : i8
  %c7 = arith.constant 7 : i8
  %m = arith.andi %w, %c15 : i32
  %n = arith.trunci %m : i32 to i8
  %t = arith.muli %n, %c8 : i8
  %d = arith.addi %t, %c7 : i8
  %f = arith.sitofp %d : i8 to f32
  loop.store %f, %y[%i] : memref<8xf32>
  func.return
}
func.func @plain(%x: memref<8xi8>, %y: memref<8xf32>, %i: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %p = loop.load %x[%i] : memref<8xi8>
  %f = arith.sitofp %p : i8 to f32
  loop.store %f, %y[%i] : memref<8xf32>
  func.return
}
func.func @floats(%x: memref<8xf32>, %y: memref<8xf32>, %i: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %p = loop.load %x[%i] : memref<8xf32>
  loop.store %p, %y[%i] : memref<8xf32>
  func.return
}
