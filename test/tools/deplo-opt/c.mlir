// RUN: deplo-opt %s -t c --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p canonicalize -t c --split-input-file -o %t.c

// What is used once stands where it is used; what is loaded stays in front of a store; what is carried is a variable.
// CHECK-LABEL: #include <math.h>
// CHECK:       // NaN if either is
// CHECK-NEXT:  static inline float max_f32(float a, float b) { return a > b || isnan(a) ? a : b; }
// CHECK-LABEL: static void rows(const float x[restrict 4][8], float y[restrict 4][8])
// CHECK-NEXT:  {
// CHECK-NEXT:      #pragma omp parallel for
// CHECK-NEXT:      for (long i = 0; i < 4; ++i) {
// CHECK-NEXT:          float sum = 0.0f;
// CHECK-NEXT:          #pragma omp simd reduction(+: sum)
// CHECK-NEXT:          for (long j = 0; j < 8; ++j) {
// CHECK-NEXT:              sum += x[i][j];
// CHECK-NEXT:          }
// CHECK-NEXT:          float most = -INFINITY;
// CHECK-NEXT:          for (long j = 0; j < 8; ++j) {
// CHECK-NEXT:              most = max_f32(most, x[i][j]);
// CHECK-NEXT:          }
// CHECK-NEXT:          for (long j = 0; j < 8; j += 2) {
// CHECK-NEXT:              const float old = y[i][j + 1];
// CHECK-NEXT:              y[i][j] = x[i][j] * (sum + most) - 2.0f;
// CHECK-NEXT:              y[i][j + 1] /= old;
// CHECK-NEXT:          }
// CHECK-NEXT:      }
// CHECK-NEXT:  }
// CHECK:       void twice(const float x[restrict 4][8], float y[restrict 4][8])
// CHECK-NEXT:  {
// CHECK-NEXT:      float (*t)[8] = buffer(sizeof(float[4][8]));
// CHECK-NEXT:      rows(x, t);
// CHECK-NEXT:      rows(t, y);
// CHECK-NEXT:      free(t);
// CHECK-NEXT:  }
func.func @rows(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xff800000 : f32
  %two = arith.constant 2.0 : f32
  "scf.parallel"(%c0, %c4, %c1) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> ({
  ^bb0(%i: index):
    %sum = scf.for %j = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<4x8xf32>
      %t = arith.addf %s, %v fastmath<reassoc> : f32
      scf.yield %t : f32
    }
    %most = scf.for %j = %c0 to %c8 step %c1 iter_args(%m = %low) -> (f32) {
      %v = memref.load %x[%i, %j] : memref<4x8xf32>
      %t = arith.maximumf %m, %v : f32
      scf.yield %t : f32
    }
    scf.for %j = %c0 to %c8 step %c2 {
      %0 = arith.addi %j, %c1 : index
      %old = memref.load %y[%i, %0] : memref<4x8xf32>
      %v = memref.load %x[%i, %j] : memref<4x8xf32>
      %w = arith.addf %sum, %most : f32
      %p = arith.mulf %v, %w : f32
      %d = arith.subf %p, %two : f32
      memref.store %d, %y[%i, %j] : memref<4x8xf32>
      %n = memref.load %y[%i, %0] : memref<4x8xf32>
      %q = arith.divf %n, %old : f32
      memref.store %q, %y[%i, %0] : memref<4x8xf32>
    }
    scf.reduce
  }) : (index, index, index) -> ()
  func.return
}
func.func @twice(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  %t = memref.alloc() : memref<4x8xf32>
  func.call @rows(%x, %t) : (memref<4x8xf32>, memref<4x8xf32>) -> ()
  func.call @rows(%t, %y) : (memref<4x8xf32>, memref<4x8xf32>) -> ()
  memref.dealloc %t : memref<4x8xf32>
  func.return
}

// -----

// Several axes collapse; variables that a loop exchanges wait; a choice is an expression where it can be.
// CHECK-LABEL: void axes(
// CHECK:           (void)unused;
// CHECK:           #pragma omp parallel for collapse(2)
// CHECK-NEXT:      for (long i = 0; i < 2; ++i) {
// CHECK-NEXT:          for (long j = 0; j < 3; ++j) {
// CHECK-NEXT:              int32_t a = 1;
// CHECK-NEXT:              int32_t b = x[0];
// CHECK-NEXT:              for (long k = 0; k < 3; ++k) {
// CHECK-NEXT:                  const int32_t next = b;
// CHECK-NEXT:                  const int32_t next_1 = add_i32(a, b);
// CHECK-NEXT:                  a = next;
// CHECK-NEXT:                  b = next_1;
// CHECK-NEXT:              }
// CHECK-NEXT:              check(a != b && (uint32_t)a < (uint32_t)7, "say \"when\"");
// CHECK-NEXT:              const bool is = i < 1;
// CHECK-NEXT:              y[i][j] = is ? x[0] : -5;
// CHECK-NEXT:              if (is) {
// CHECK-NEXT:                  y[i][j] = a;
// CHECK-NEXT:              }
func.func @axes(%x: memref<i32>, %y: memref<2x3xi32>, %unused: memref<2xf64>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %one = arith.constant 1 : i32
  %seven = arith.constant 7 : i32
  %five = arith.constant -5 : i32
  "scf.parallel"(%c0, %c0, %c2, %c3, %c1, %c1) <{operandSegmentSizes = array<i32: 2, 2, 2, 0>}> ({
  ^bb0(%i: index, %j: index):
    %first = memref.load %x[] : memref<i32>
    %a, %b = scf.for %k = %c0 to %c3 step %c1 iter_args(%p = %one, %q = %first) -> (i32, i32) {
      %r = arith.addi %p, %q : i32
      scf.yield %q, %r : i32, i32
    }
    %differ = arith.cmpi ne, %a, %b : i32
    %small = arith.cmpi ult, %a, %seven : i32
    %both = arith.andi %differ, %small : i1
    cf.assert %both, "say \"when\""
    %is = arith.cmpi slt, %i, %c1 : index
    %v = scf.if %is -> (i32) {
      %w = memref.load %x[] : memref<i32>
      scf.yield %w : i32
    } else {
      scf.yield %five : i32
    }
    memref.store %v, %y[%i, %j] : memref<2x3xi32>
    scf.if %is {
      memref.store %a, %y[%i, %j] : memref<2x3xi32>
    }
    scf.reduce
  }) : (index, index, index, index, index, index) -> ()
  func.return
}
