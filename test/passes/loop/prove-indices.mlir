// RUN: deplo-opt %s -p prove-indices --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p prove-indices --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p prove-indices --split-input-file --check-each-pass >/dev/null

// What is clamped to the axis is inside; a limit that is one too far, or none below, is not.
// CHECK-LABEL: loop.kernel @clamped
// CHECK:         loop.checked_index %inside below 10 proven : i64
// CHECK:         loop.checked_index %far below 10 : i64
// CHECK:         loop.checked_index %below below 10 : i64
// REMARK: remark: prove-indices: clamped: 1 of 3 indices from data are surely inside
func.func @main(%x: tensor<10xf32>, %i: tensor<8xi64>) -> tensor<8xf32> {
  %y = loop.kernel @clamped(%x, %i) : (tensor<10xf32>, tensor<8xi64>) -> tensor<8xf32> {
  ^bb0(%in: memref<10xf32>, %id: memref<8xi64>, %out: memref<8xf32>):
    loop.for %k = 0 to 8 {
      %zero = arith.constant 0 : i64
      %last = arith.constant 9 : i64
      %ten = arith.constant 10 : i64
      %a = loop.load %id[%k] : memref<8xi64>
      %positive = arith.maxsi %a, %zero : i64
      %inside = arith.minsi %positive, %last : i64
      %far = arith.minsi %positive, %ten : i64
      %below = arith.minsi %a, %last : i64
      %r = loop.checked_index %inside below 10 : i64
      %s = loop.checked_index %far below 10 : i64
      %t = loop.checked_index %below below 10 : i64
      %b = loop.load %in[%r] : memref<10xf32>
      %c = loop.load %in[%s] : memref<10xf32>
      %d = loop.load %in[%t] : memref<10xf32>
      %e = arith.addf %b, %c : f32
      %f = arith.addf %e, %d : f32
      loop.store %f, %out[%k] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// -----

// A step of a binary search: the middle of two places, and at most the last one, of an axis of any size.
// CHECK-LABEL: loop.kernel @search
// CHECK:         loop.checked_index %place below s0 proven : i64
// CHECK:         loop.checked_index %middle below s0 : i64
// REMARK: remark: prove-indices: search: 1 of 2 indices from data are surely inside
func.func @main(%x: tensor<?xi64, #sym.extents<s0>>) -> tensor<?xi64, #sym.extents<s0>> attributes {sym.sizes = [#sym.size<"n", 1, none>]} {
  %y = loop.kernel @search(%x) : (tensor<?xi64, #sym.extents<s0>>) -> tensor<?xi64, #sym.extents<s0>> {
  ^bb0(%in: memref<?xi64, #sym.extents<s0>>, %out: memref<?xi64, #sym.extents<s0>>):
    loop.for %k = 0 to s0 {
      %one = arith.constant 1 : i64
      %0 = loop.index[s0]
      %1 = loop.index[s0 - 1]
      %start = arith.index_cast %k : index to i64
      %end = arith.index_cast %0 : index to i64
      %last = arith.index_cast %1 : index to i64
      %sum = arith.addi %start, %end : i64
      %middle = arith.shrsi %sum, %one : i64
      %place = arith.minsi %middle, %last : i64
      %r = loop.checked_index %place below s0 : i64
      %s = loop.checked_index %middle below s0 : i64
      %a = loop.load %in[%r] : memref<?xi64, #sym.extents<s0>>
      %b = loop.load %in[%s] : memref<?xi64, #sym.extents<s0>>
      %c = arith.addi %a, %b : i64
      loop.store %c, %out[%k] : memref<?xi64, #sym.extents<s0>>
    }
  }
  func.return %y : tensor<?xi64, #sym.extents<s0>>
}

// -----

// A sum may wrap around, a byte is at most 255, a bool 0 or 1; of two values the limits of both count.
// CHECK-LABEL: loop.kernel @types
// CHECK:         loop.checked_index %wraps below 256 : i32
// CHECK:         loop.checked_index %byte below 256 proven : i32
// CHECK:         loop.checked_index %bit below 256 proven : i32
// CHECK:         loop.checked_index %signed below 256 : i32
// CHECK:         loop.checked_index %either below 256 proven : i32
// CHECK:         loop.checked_index %times below 256 : i32
func.func @main(%x: tensor<256xi32>, %i: tensor<8xi8>, %j: tensor<8xi32>) -> tensor<8xi32> {
  %y = loop.kernel @types(%x, %i, %j) : (tensor<256xi32>, tensor<8xi8>, tensor<8xi32>) -> tensor<8xi32> {
  ^bb0(%in: memref<256xi32>, %id: memref<8xi8>, %wide: memref<8xi32>, %out: memref<8xi32>):
    loop.for %k = 0 to 8 {
      %zero = arith.constant 0 : i32
      %three = arith.constant 3 : i32
      %most = arith.constant 255 : i32
      %a = loop.load %id[%k] : memref<8xi8>
      %w = loop.load %wide[%k] : memref<8xi32>
      %high = arith.maxsi %w, %zero : i32
      %more = arith.addi %high, %most : i32
      %wraps = arith.minsi %more, %most : i32
      %byte = arith.extui %a : i8 to i32
      %cond = arith.cmpi slt, %w, %zero : i32
      %bit = arith.extui %cond : i1 to i32
      %signed = arith.extsi %a : i8 to i32
      %either = arith.select %cond, %byte, %three : i32
      %times = arith.muli %byte, %three : i32
      %r0 = loop.checked_index %wraps below 256 : i32
      %r1 = loop.checked_index %byte below 256 : i32
      %r2 = loop.checked_index %bit below 256 : i32
      %r3 = loop.checked_index %signed below 256 : i32
      %r4 = loop.checked_index %either below 256 : i32
      %r5 = loop.checked_index %times below 256 : i32
      %v0 = loop.load %in[%r0] : memref<256xi32>
      loop.store %v0, %out[%k] : memref<8xi32>
    }
  }
  func.return %y : tensor<8xi32>
}

// -----

// A factor may be negative and so may the part that is left; a shift may be any.
// CHECK-LABEL: loop.kernel @none
// CHECK:         loop.checked_index %difference below 20 : i64
// CHECK:         loop.checked_index %narrow below 20 : i32
// REMARK: remark: prove-indices: none: declined: 0 of 2 indices from data are surely inside
func.func @main(%x: tensor<20xf32>, %i: tensor<8xi64>) -> tensor<8xf32> {
  %y = loop.kernel @none(%x, %i) : (tensor<20xf32>, tensor<8xi64>) -> tensor<8xf32> {
  ^bb0(%in: memref<20xf32>, %id: memref<8xi64>, %out: memref<8xf32>):
    loop.for %k = 0 to 8 {
      %zero = arith.constant 0 : i64
      %nine = arith.constant 9 : i64
      %a = loop.load %id[%k] : memref<8xi64>
      %high = arith.maxsi %a, %zero : i64
      %low = arith.minsi %high, %nine : i64
      %difference = arith.subi %low, %nine : i64
      %narrow = arith.trunci %high : i64 to i32
      %r = loop.checked_index %difference below 20 : i64
      %s = loop.checked_index %narrow below 20 : i32
      %b = loop.load %in[%r] : memref<20xf32>
      loop.store %b, %out[%k] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// -----

// What a kernel stores is what those after it load; a kernel that stores something else as well proves nothing.
// CHECK-LABEL: loop.kernel @reads
// CHECK:         loop.checked_index %{{.+}} below 10 proven : i64
// CHECK:         loop.checked_index %{{.+}} below 10 : i64
// REMARK: remark: prove-indices: reads: 1 of 2 indices from data are surely inside
func.func @main(%x: tensor<10xf32>, %i: tensor<2xi64>) -> tensor<2xf32> {
  %at = loop.kernel @clamps(%i) : (tensor<2xi64>) -> tensor<2xi64> {
  ^bb0(%id: memref<2xi64>, %out: memref<2xi64>):
    loop.for %k = 0 to 2 {
      %zero = arith.constant 0 : i64
      %last = arith.constant 9 : i64
      %a = loop.load %id[%k] : memref<2xi64>
      %b = arith.maxsi %a, %zero : i64
      %c = arith.minsi %b, %last : i64
      loop.store %c, %out[%k] : memref<2xi64>
    }
  }
  %half = loop.kernel @half(%i) : (tensor<2xi64>) -> tensor<2xi64> {
  ^bb0(%id: memref<2xi64>, %out: memref<2xi64>):
    %zero = arith.constant 0 : i64
    loop.store %zero, %out[0] : memref<2xi64>
    %a = loop.load %id[1] : memref<2xi64>
    loop.store %a, %out[1] : memref<2xi64>
  }
  %y = loop.kernel @reads(%x, %at, %half) : (tensor<10xf32>, tensor<2xi64>, tensor<2xi64>) -> tensor<2xf32> {
  ^bb0(%in: memref<10xf32>, %id: memref<2xi64>, %other: memref<2xi64>, %out: memref<2xf32>):
    loop.for %k = 0 to 2 {
      %a = loop.load %id[%k] : memref<2xi64>
      %b = loop.load %other[%k] : memref<2xi64>
      %r = loop.checked_index %a below 10 : i64
      %s = loop.checked_index %b below 10 : i64
      %c = loop.load %in[%r] : memref<10xf32>
      %d = loop.load %in[%s] : memref<10xf32>
      %e = arith.addf %c, %d : f32
      loop.store %e, %out[%k] : memref<2xf32>
    }
  }
  func.return %y : tensor<2xf32>
}

// -----

// A place along an axis is counted, and one from the end that never is: both come from no data.
// CHECK-LABEL: loop.kernel @counted
// CHECK:         loop.load %in[%k]
// CHECK:         loop.load %in[9 - %k]
// CHECK-NOT:     checked_index
// REMARK: remark: prove-indices: counted: 2 of 2 indices from data are surely inside
func.func @main(%x: tensor<10xf32>) -> tensor<8xf32> {
  %y = loop.kernel @counted(%x) : (tensor<10xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<10xf32>, %out: memref<8xf32>):
    loop.for %k = 0 to 8 {
      %place = arith.index_cast %k : index to i64
      %zero = arith.constant 0 : i64
      %nine = arith.constant 9 : i64
      %ten = arith.constant 10 : i64
      %is_negative = arith.cmpi slt, %place, %zero : i64
      %from_end = arith.addi %place, %ten : i64
      %a = arith.select %is_negative, %from_end, %place : i64
      %b = arith.subi %nine, %place : i64
      %r = loop.checked_index %a below 10 : i64
      %c = loop.load %in[%r] : memref<10xf32>
      %s = loop.checked_index %b below 10 : i64
      %d = loop.load %in[%s] : memref<10xf32>
      %e = arith.addf %c, %d : f32
      loop.store %e, %out[%k] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// -----

// A comparison that may go either way chooses either; numbers that wrap around count nothing.
// CHECK-LABEL: loop.kernel @either
// CHECK:         loop.checked_index %a below 10 proven : i64
// CHECK:         loop.checked_index %c below 10 : i8
// REMARK: remark: prove-indices: either: 1 of 2 indices from data are surely inside
func.func @main(%x: tensor<10xf32>) -> tensor<8xf32> {
  %y = loop.kernel @either(%x) : (tensor<10xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<10xf32>, %out: memref<8xf32>):
    loop.for %k = 0 to 8 {
      %place = arith.index_cast %k : index to i64
      %three = arith.constant 3 : i64
      %is_less = arith.cmpi slt, %place, %three : i64
      %a = arith.select %is_less, %three, %place : i64
      %short = arith.index_cast %k : index to i8
      %most = arith.constant 127 : i8
      %b = arith.addi %short, %most : i8
      %c = arith.addi %b, %most : i8
      %r = loop.checked_index %a below 10 : i64
      %d = loop.load %in[%r] : memref<10xf32>
      %s = loop.checked_index %c below 10 : i8
      %e = loop.load %in[%s] : memref<10xf32>
      %f = arith.addf %d, %e : f32
      loop.store %f, %out[%k] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}
