// RUN: deplo-opt %s -p narrow-searches --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p narrow-searches --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A row of two blocks and 76 elements: the extremum of each with where it begins, then one block.
// REMARK: remark: narrow-searches: k_largest: 1 loop
// CHECK-LABEL: @k_largest
// CHECK:         [[BEST:%.*]], [[AT:%.*]] = scf.for %block = %c0 to {{%.*}} step %c1 iter_args(%best = %low, %at = %c0) -> (f32, index) {
// CHECK-NEXT:      [[START:%.*]] = loop.index[%block * 512]
// CHECK-NEXT:      [[PART:%.*]] = scf.for [[K:%.*]] = %c0 to {{%.*}} step %c1 iter_args(%so_far = %low) -> (f32) {
// CHECK-NEXT:        %j = loop.index[[[START]] + [[K]]]
// CHECK-NEXT:        %v = loop.load %x[%i, %j]
// CHECK:           [[NEXT:%.*]] = arith.maximumf %best, [[PART]]
// CHECK-NEXT:      [[MORE:%.*]] = arith.cmpf ugt, [[PART]], %best
// CHECK-NEXT:      [[NUMBER:%.*]] = arith.cmpf ord, %best, %best
// CHECK-NEXT:      [[BETTER:%.*]] = arith.andi [[MORE]], [[NUMBER]]
// CHECK-NEXT:      [[WHERE:%.*]] = arith.select [[BETTER]], [[START]], %at
// CHECK-NEXT:      scf.yield [[NEXT]], [[WHERE]]
// CHECK:         [[TAIL:%.*]] = arith.constant 1024 : index
// CHECK-NEXT:    [[REST:%.*]] = arith.constant 76 : index
// CHECK-NEXT:    [[LAST:%.*]] = scf.for {{.*}} to [[REST]]
// CHECK:         %m = arith.maximumf [[BEST]], [[LAST]]
// CHECK:         [[AT_LAST:%.*]] = arith.select {{%.*}}, [[TAIL]], [[AT]]
// CHECK:         [[LIMIT:%.*]] = arith.constant 588 : index
// CHECK-NEXT:    [[FROM:%.*]] = arith.minsi [[AT_LAST]], [[LIMIT]]
// CHECK:         %p = scf.for [[K2:%.*]] = %c0
// CHECK-NEXT:      %j_{{.*}} = loop.index[[[FROM]] + [[K2]]]
// CHECK:           arith.cmpf oeq, {{%.*}}, %m
// CHECK:         loop.store %p, %y[%i]
func.func @k_largest(%x: memref<8x1100xf32>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1100 : index
  %low = arith.constant 0xff800000 : f32
  %high = arith.constant 9223372036854775807 : i64
  %never = arith.constant 1100 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<8x1100xf32>
      %next = arith.maximumf %so_far, %v fastmath<reassoc> : f32
      scf.yield %next : f32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[%i, %j] : memref<8x1100xf32>
      %is = arith.cmpf oeq, %v, %m : f32
      %nan = arith.cmpf une, %v, %v : f32
      %found = arith.ori %is, %nan : i1
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// Integers have no NaN; whole blocks need no other one after them.
// REMARK: remark: narrow-searches: k_smallest: 1 loop
// CHECK-LABEL: @k_smallest
// CHECK:         {{%.*}}, [[AT:%.*]] = scf.for %block
// CHECK:           arith.minsi %best
// CHECK-NEXT:      [[BETTER:%.*]] = arith.cmpi slt, {{%.*}}, %best : i32
// CHECK-NEXT:      arith.select [[BETTER]]
// CHECK-NEXT:      scf.yield
// CHECK-NOT:     arith.minsi
// CHECK:         scf.for
// CHECK-NEXT:      loop.index[[[AT]] + {{.*}}]
func.func @k_smallest(%x: memref<8x1024xi32>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  %low = arith.constant 2147483647 : i32
  %high = arith.constant 9223372036854775807 : i64
  %never = arith.constant 1024 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (i32) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %next = arith.minsi %so_far, %v : i32
      scf.yield %next : i32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %found = arith.cmpi eq, %v, %m : i32
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// A short row is searched as fast as it is read.
// REMARK: remark: narrow-searches: k_short: declined: 1000 elements are less than 1024
// CHECK-LABEL: @k_short
// CHECK-NOT:     %block
func.func @k_short(%x: memref<8x1000xi32>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1000 : index
  %low = arith.constant 2147483647 : i32
  %high = arith.constant 9223372036854775807 : i64
  %never = arith.constant 1000 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (i32) {
      %v = loop.load %x[%i, %j] : memref<8x1000xi32>
      %next = arith.minsi %so_far, %v : i32
      scf.yield %next : i32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[%i, %j] : memref<8x1000xi32>
      %found = arith.cmpi eq, %v, %m : i32
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// REMARK: remark: narrow-searches: k_size: declined: the length of the row is not known
// CHECK-LABEL: @k_size
// CHECK-NOT:     %block
func.func @k_size(%x: memref<8x?xi32, #sym.extents<s0>>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = loop.index[s0]
  %low = arith.constant 2147483647 : i32
  %high = arith.constant 9223372036854775807 : i64
  %never = arith.constant 1024 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (i32) {
      %v = loop.load %x[%i, %j] : memref<8x?xi32, #sym.extents<s0>>
      %next = arith.minsi %so_far, %v : i32
      scf.yield %next : i32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[%i, %j] : memref<8x?xi32, #sym.extents<s0>>
      %found = arith.cmpi eq, %v, %m : i32
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// REMARK: remark: narrow-searches: k_other_range: declined: the extremum is that of another range
// CHECK-LABEL: @k_other_range
// CHECK-NOT:     %block
func.func @k_other_range(%x: memref<8x1024xi32>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  %low = arith.constant 2147483647 : i32
  %high = arith.constant 9223372036854775807 : i64
  %never = arith.constant 1024 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %c1 step %c1 iter_args(%so_far = %low) -> (i32) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %next = arith.minsi %so_far, %v : i32
      scf.yield %next : i32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %found = arith.cmpi eq, %v, %m : i32
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// No element need be as small as what the extremum begins with.
// REMARK: remark: narrow-searches: k_limit: declined: the extremum begins with another one
// CHECK-LABEL: @k_limit
// CHECK-NOT:     %block
func.func @k_limit(%x: memref<8x1024xi32>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  %low = arith.constant 7 : i32
  %high = arith.constant 9223372036854775807 : i64
  %never = arith.constant 1024 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (i32) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %next = arith.minsi %so_far, %v : i32
      scf.yield %next : i32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %found = arith.cmpi eq, %v, %m : i32
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// REMARK: remark: narrow-searches: k_others: declined: it looks at other values
// CHECK-LABEL: @k_others
// CHECK-NOT:     %block
func.func @k_others(%x: memref<8x1024xi32>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  %low = arith.constant 2147483647 : i32
  %high = arith.constant 9223372036854775807 : i64
  %never = arith.constant 1024 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (i32) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %next = arith.minsi %so_far, %v : i32
      scf.yield %next : i32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[0, %j] : memref<8x1024xi32>
      %found = arith.cmpi eq, %v, %m : i32
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// REMARK: remark: narrow-searches: k_stores: declined: a sweep does something else as well
// CHECK-LABEL: @k_stores
// CHECK-NOT:     %block
func.func @k_stores(%x: memref<8x1024xi32>, %y: memref<8xi64>, %z: memref<8x1024xi32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  %low = arith.constant 2147483647 : i32
  %high = arith.constant 9223372036854775807 : i64
  %never = arith.constant 1024 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (i32) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %next = arith.minsi %so_far, %v : i32
      scf.yield %next : i32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      loop.store %v, %z[%i, %j] : memref<8x1024xi32>
      %found = arith.cmpi eq, %v, %m : i32
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// REMARK: remark: narrow-searches: k_written: declined: it may read what is stored in between
// CHECK-LABEL: @k_written
// CHECK-NOT:     %block
func.func @k_written(%x: memref<8x1024xi32>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  %low = arith.constant 2147483647 : i32
  %high = arith.constant 9223372036854775807 : i64
  %never = arith.constant 1024 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (i32) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %next = arith.minsi %so_far, %v : i32
      scf.yield %next : i32
    }
    loop.store %m, %x[%i, 0] : memref<8x1024xi32>
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %found = arith.cmpi eq, %v, %m : i32
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// REMARK: remark: narrow-searches: k_first_seven: declined: what it looks for is no extremum
// CHECK-LABEL: @k_first_seven
// CHECK-NOT:     %block
func.func @k_first_seven(%x: memref<8x1024xi32>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  %low = arith.constant 2147483647 : i32
  %high = arith.constant 9223372036854775807 : i64
  %seven = arith.constant 7 : i32
  %never = arith.constant 1024 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (i32) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %next = arith.minsi %so_far, %v : i32
      scf.yield %next : i32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %found = arith.cmpi eq, %v, %seven : i32
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// The first element that is 7 or the smallest may stand in front of the smallest.
// REMARK: remark: narrow-searches: k_either: declined: what it looks for is no extremum
// CHECK-LABEL: @k_either
// CHECK-NOT:     %block
func.func @k_either(%x: memref<8x1024xi32>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  %low = arith.constant 2147483647 : i32
  %high = arith.constant 9223372036854775807 : i64
  %seven = arith.constant 7 : i32
  %never = arith.constant 1024 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (i32) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %next = arith.minsi %so_far, %v : i32
      scf.yield %next : i32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %least = arith.cmpi eq, %v, %m : i32
      %is_seven = arith.cmpi eq, %v, %seven : i32
      %found = arith.ori %is_seven, %least : i1
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// What stands for no place would be taken for the fourth one.
// REMARK: remark: narrow-searches: k_none: declined: a place may be none
// CHECK-LABEL: @k_none
// CHECK-NOT:     %block
func.func @k_none(%x: memref<8x1024xi32>, %y: memref<8xi64>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 1024 : index
  %low = arith.constant 2147483647 : i32
  %high = arith.constant 9223372036854775807 : i64
  %never = arith.constant 3 : i64
  scf.for %i = %begin to %end step %c1 {
    %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (i32) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %next = arith.minsi %so_far, %v : i32
      scf.yield %next : i32
    }
    %p = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %high) -> (i64) {
      %v = loop.load %x[%i, %j] : memref<8x1024xi32>
      %found = arith.cmpi eq, %v, %m : i32
      %k = loop.index[%j]
      %here = arith.index_cast %k : index to i64
      %place = arith.select %found, %here, %never : i64
      %next = arith.minsi %so_far, %place : i64
      scf.yield %next : i64
    }
    loop.store %p, %y[%i] : memref<8xi64>
  }
  func.return
}

// -----

// REMARK: remark: narrow-searches: k_plain: declined: there is no search
// CHECK-LABEL: @k_plain
func.func @k_plain(%x: memref<2048xf32>, %y: memref<1xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = arith.constant 2048 : index
  %low = arith.constant 0xff800000 : f32
  %m = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %low) -> (f32) {
    %v = loop.load %x[%j] : memref<2048xf32>
    %next = arith.maximumf %so_far, %v : f32
    scf.yield %next : f32
  }
  loop.store %m, %y[0] : memref<1xf32>
  func.return
}
