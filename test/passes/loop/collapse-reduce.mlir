// RUN: deplo-opt %s -p collapse-reduce --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p collapse-reduce --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p collapse-reduce --split-input-file --check-each-pass >/dev/null

// Equal terms are counted. A sum begins with 0.0, which -0.0 is added to; that of integers wraps.
// CHECK-LABEL: loop.kernel @counted
// CHECK:         loop.for %i = 0 to 4 {
// CHECK-NEXT:      %v = loop.load %x[%i]
// CHECK-NEXT:      [[N:%.+]] = arith.constant 6.000000e+01 : f32
// CHECK-NEXT:      [[P:%.+]] = arith.mulf %v, [[N]]
// CHECK-NEXT:      [[Z:%.+]] = arith.constant 0.000000e+00
// CHECK-NEXT:      [[S:%.+]] = arith.addf [[P]], [[Z]]
// CHECK-NEXT:      loop.store [[S]], %out[%i]
// CHECK-NEXT:    }
// REMARK: remark: collapse-reduce: counted: 1 reduction became one iteration
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @counted(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %out: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %s = loop.for %k = 0 to 60 reduce(add) -> f32 {
        %v = loop.load %x[%i] : memref<4xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<4xf32>
    }
  }
  func.return %y : tensor<4xf32>
}

// -----

// 300 is 44 in i8. The largest of equal values is one of them, and so is any; two loops, one in the other.
// CHECK-LABEL: loop.kernel @folds
// CHECK:         arith.constant 44 : i8
// CHECK-NEXT:    arith.muli
// CHECK-NOT:     loop.for
// CHECK:         loop.store %n, %largest[]
// REMARK: remark: collapse-reduce: folds: 3 reductions became one iteration
func.func @main(%x: tensor<i8>) -> (tensor<i8>, tensor<i8>) {
  %y, %z = loop.kernel @folds(%x) : (tensor<i8>) -> (tensor<i8>, tensor<i8>) {
  ^bb0(%x: memref<i8>, %sum: memref<i8>, %largest: memref<i8>):
    %n = loop.load %x[] : memref<i8>
    %s = loop.for %i = 0 to 300 reduce(add) -> i8 {
      loop.yield %n : i8
    }
    loop.store %s, %sum[] : memref<i8>
    %m, %l = loop.for %j = 0 to 3 reduce(max, min) -> i8, i8 {
      %o = loop.for %k = 0 to 7 reduce(max) -> i8 {
        loop.yield %n : i8
      }
      loop.yield %o, %n : i8, i8
    }
    loop.store %m, %largest[] : memref<i8>
  }
  func.return %y, %z : tensor<i8>, tensor<i8>
}

// -----

// A row of a table, by an index that may be outside of it: then all terms are 0.
// CHECK-LABEL: loop.kernel @selected
// CHECK:           loop.for %j = 0 to 3 {
// CHECK-NEXT:        %id = loop.load %ids[%i]
// CHECK:             [[IN:%.+]] = arith.cmpi ult, %id, {{%.+}} : i64
// CHECK-NEXT:        [[AT:%.+]] = arith.select [[IN]], %id, {{%.+}} : i64
// CHECK-NEXT:        %k = arith.index_cast [[AT]] : i64 to index
// CHECK-NEXT:        loop.index[%k]
// CHECK:             %v = loop.load %table[%k, %j]
// CHECK-NEXT:        %w = arith.select %hit, %v, %zero
// CHECK-NEXT:        %wide = arith.extf %w : f16 to f32
// CHECK-NEXT:        [[ZERO:%.+]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:        [[S:%.+]] = arith.addf %wide, [[ZERO]]
// CHECK-NEXT:        loop.store [[S]], %out[%i, %j]
// REMARK: remark: collapse-reduce: selected: 1 reduction became one iteration
func.func @main(%table: tensor<9x3xf16>, %ids: tensor<5xi64>) -> tensor<5x3xf32> {
  %y = loop.kernel @selected(%table, %ids) : (tensor<9x3xf16>, tensor<5xi64>) -> tensor<5x3xf32> {
  ^bb0(%table: memref<9x3xf16>, %ids: memref<5xi64>, %out: memref<5x3xf32>):
    loop.for %i = 0 to 5 {
      loop.for %j = 0 to 3 {
        %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
          %o = loop.index [%k]
          %c = arith.index_cast %o : index to i64
          %id = loop.load %ids[%i] : memref<5xi64>
          %hit = arith.cmpi eq, %c, %id : i64
          %v = loop.load %table[%k, %j] : memref<9x3xf16>
          %zero = arith.constant 0.0 : f16
          %w = arith.select %hit, %v, %zero : f16
          %wide = arith.extf %w : f16 to f32
          loop.yield %wide : f32
        }
        loop.store %s, %out[%i, %j] : memref<5x3xf32>
      }
    }
  }
  func.return %y : tensor<5x3xf32>
}

// -----

// The counter counts down, from an index; one of two conditions is an equality, and so is what is not unequal.
// CHECK-LABEL: loop.kernel @diagonal
// CHECK:         loop.for %i = 0 to 5 {
// CHECK:           [[START:%.+]] = loop.index[%i + 2]
// CHECK-NEXT:      [[WIDE:%.+]] = arith.index_cast [[START]] : index to i32
// CHECK-NEXT:      [[AT:%.+]] = arith.subi [[WIDE]], %id
// CHECK:           arith.cmpi ult, [[AT]]
// CHECK:           loop.for %l = 0 to 4 {
// CHECK-NOT:       reduce
// REMARK: remark: collapse-reduce: diagonal: 2 reductions became one iteration
func.func @main(%x: tensor<4xi32>, %ids: tensor<5xi32>, %mask: tensor<4xi1>) -> (tensor<5xi32>, tensor<5x4xi1>) {
  %y, %z = loop.kernel @diagonal(%x, %ids, %mask) : (tensor<4xi32>, tensor<5xi32>, tensor<4xi1>) -> (tensor<5xi32>, tensor<5x4xi1>) {
  ^bb0(%x: memref<4xi32>, %ids: memref<5xi32>, %mask: memref<4xi1>, %out: memref<5xi32>, %any: memref<5x4xi1>):
    loop.for %i = 0 to 5 {
      %id = loop.load %ids[%i] : memref<5xi32>
      %s = loop.for %k = 0 to 4 reduce(max) -> i32 {
        %o = loop.index [%i - %k + 2]
        %c = arith.index_cast %o : index to i32
        %miss = arith.cmpi ne, %id, %c : i32
        %v = loop.load %x[%k] : memref<4xi32>
        %low = arith.constant -2147483648 : i32
        %w = arith.select %miss, %low, %v : i32
        loop.yield %w : i32
      }
      loop.store %s, %out[%i] : memref<5xi32>
      loop.for %l = 0 to 4 {
        %a = loop.for %k = 0 to 4 reduce(any) -> i1 {
          %m = loop.load %mask[%k] : memref<4xi1>
          %o = loop.index [%k]
          %c = arith.index_cast %o : index to i32
          %next = arith.addi %c, %id : i32
          %p = loop.index [%l]
          %d = arith.index_cast %p : index to i32
          %hit = arith.cmpi eq, %next, %d : i32
          %both = arith.andi %m, %hit : i1
          loop.yield %both : i1
        }
        loop.store %a, %any[%i, %l] : memref<5x4xi1>
      }
    }
  }
  func.return %y, %z : tensor<5xi32>, tensor<5x4xi1>
}

// -----

// 0 times infinity, in a row that is not selected, is NaN.
// CHECK-LABEL: loop.kernel @one_hot
// CHECK:         reduce(add)
// REMARK: remark: collapse-reduce: one_hot: declined: more than one iteration may count
func.func @main(%x: tensor<9xf32>, %id: tensor<i64>) -> tensor<f32> {
  %y = loop.kernel @one_hot(%x, %id) : (tensor<9xf32>, tensor<i64>) -> tensor<f32> {
  ^bb0(%x: memref<9xf32>, %id: memref<i64>, %out: memref<f32>):
    %at = loop.load %id[] : memref<i64>
    %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
      %o = loop.index [%k]
      %c = arith.index_cast %o : index to i64
      %hit = arith.cmpi eq, %c, %at : i64
      %one = arith.uitofp %hit : i1 to f32
      %v = loop.load %x[%k] : memref<9xf32>
      %p = arith.mulf %one, %v : f32
      loop.yield %p : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// -----

// Of integers 0 is 0.
// CHECK-LABEL: loop.kernel @one_hot
// CHECK-NOT:     reduce
// REMARK: remark: collapse-reduce: one_hot: 1 reduction became one iteration
func.func @main(%x: tensor<9xi32>, %id: tensor<i64>) -> tensor<i32> {
  %y = loop.kernel @one_hot(%x, %id) : (tensor<9xi32>, tensor<i64>) -> tensor<i32> {
  ^bb0(%x: memref<9xi32>, %id: memref<i64>, %out: memref<i32>):
    %at = loop.load %id[] : memref<i64>
    %s = loop.for %k = 0 to 9 reduce(add) -> i32 {
      %o = loop.index [%k]
      %c = arith.index_cast %o : index to i64
      %hit = arith.cmpi eq, %c, %at : i64
      %one = arith.extui %hit : i1 to i32
      %v = loop.load %x[%k] : memref<9xi32>
      %p = arith.muli %one, %v : i32
      loop.yield %p : i32
    }
    loop.store %s, %out[] : memref<i32>
  }
  func.return %y : tensor<i32>
}

// -----

// What is not selected is 1; of the largest, 0 would not be neutral either.
// CHECK-LABEL: loop.kernel @elsewhere
// REMARK: remark: collapse-reduce: elsewhere: declined: more than one iteration may count
func.func @main(%x: tensor<9xf32>, %id: tensor<i64>) -> tensor<f32> {
  %y = loop.kernel @elsewhere(%x, %id) : (tensor<9xf32>, tensor<i64>) -> tensor<f32> {
  ^bb0(%x: memref<9xf32>, %id: memref<i64>, %out: memref<f32>):
    %at = loop.load %id[] : memref<i64>
    %s = loop.for %k = 0 to 9 reduce(max) -> f32 {
      %o = loop.index [%k]
      %c = arith.index_cast %o : index to i64
      %hit = arith.cmpi eq, %c, %at : i64
      %v = loop.load %x[%k] : memref<9xf32>
      %zero = arith.constant 0.0 : f32
      %p = arith.select %hit, %v, %zero : f32
      loop.yield %p : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// -----

// An index from data may be there twice, a half of a counter is, and a double of one may be none.
// REMARK: remark: collapse-reduce: twice: declined: what selects is no equality of the counter plus what is known before
// REMARK: remark: collapse-reduce: halves: declined: what selects is no equality of the counter plus what is known before
// REMARK: remark: collapse-reduce: doubles: declined: what selects is no equality of the counter plus what is known before
func.func @main(%x: tensor<9xf32>, %ids: tensor<9xi64>, %id: tensor<i64>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %y = loop.kernel @twice(%x, %ids, %id) : (tensor<9xf32>, tensor<9xi64>, tensor<i64>) -> tensor<f32> {
  ^bb0(%x: memref<9xf32>, %ids: memref<9xi64>, %id: memref<i64>, %out: memref<f32>):
    %at = loop.load %id[] : memref<i64>
    %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
      %c = loop.load %ids[%k] : memref<9xi64>
      %hit = arith.cmpi eq, %c, %at : i64
      %v = loop.load %x[%k] : memref<9xf32>
      %zero = arith.constant 0.0 : f32
      %p = arith.select %hit, %v, %zero : f32
      loop.yield %p : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  %z = loop.kernel @halves(%x, %id) : (tensor<9xf32>, tensor<i64>) -> tensor<f32> {
  ^bb0(%x: memref<9xf32>, %id: memref<i64>, %out: memref<f32>):
    %at = loop.load %id[] : memref<i64>
    %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
      %o = loop.index [%k floordiv 2]
      %c = arith.index_cast %o : index to i64
      %hit = arith.cmpi eq, %c, %at : i64
      %v = loop.load %x[%k] : memref<9xf32>
      %zero = arith.constant 0.0 : f32
      %p = arith.select %hit, %v, %zero : f32
      loop.yield %p : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  %w = loop.kernel @doubles(%x, %id) : (tensor<9xf32>, tensor<i64>) -> tensor<f32> {
  ^bb0(%x: memref<9xf32>, %id: memref<i64>, %out: memref<f32>):
    %at = loop.load %id[] : memref<i64>
    %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
      %o = loop.index [%k * 2]
      %c = arith.index_cast %o : index to i64
      %hit = arith.cmpi eq, %c, %at : i64
      %v = loop.load %x[%k] : memref<9xf32>
      %zero = arith.constant 0.0 : f32
      %p = arith.select %hit, %v, %zero : f32
      loop.yield %p : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  func.return %y, %z, %w : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// 1 and 257 are the same in i8.
// REMARK: remark: collapse-reduce: narrow: declined: the counter may wrap as i8
func.func @main(%x: tensor<300xf32>, %id: tensor<i8>) -> tensor<f32> {
  %y = loop.kernel @narrow(%x, %id) : (tensor<300xf32>, tensor<i8>) -> tensor<f32> {
  ^bb0(%x: memref<300xf32>, %id: memref<i8>, %out: memref<f32>):
    %at = loop.load %id[] : memref<i8>
    %s = loop.for %k = 0 to 300 reduce(add) -> f32 {
      %o = loop.index [%k]
      %c = arith.index_cast %o : index to i8
      %hit = arith.cmpi eq, %c, %at : i8
      %v = loop.load %x[%k] : memref<300xf32>
      %zero = arith.constant 0.0 : f32
      %p = arith.select %hit, %v, %zero : f32
      loop.yield %p : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  func.return %y : tensor<f32>
}

// -----

// REMARK: remark: collapse-reduce: power: declined: a product of equal factors is a power
// REMARK: remark: collapse-reduce: many: declined: equal terms are counted by 16777217, which is no f32
// REMARK: remark: collapse-reduce: none: declined: it has no iterations
// REMARK: remark: collapse-reduce: copy: declined: there is no reduction
func.func @main(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %y = loop.kernel @power(%x) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%x: memref<f32>, %out: memref<f32>):
    %v = loop.load %x[] : memref<f32>
    %s = loop.for %k = 0 to 3 reduce(mul) -> f32 {
      loop.yield %v : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  %w = loop.kernel @many(%x) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%x: memref<f32>, %out: memref<f32>):
    %v = loop.load %x[] : memref<f32>
    %s = loop.for %k = 0 to 16777217 reduce(add) -> f32 {
      loop.yield %v : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  %u = loop.kernel @none(%x) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%x: memref<f32>, %out: memref<f32>):
    %v = loop.load %x[] : memref<f32>
    %s = loop.for %k = 0 to 0 reduce(max) -> f32 {
      loop.yield %v : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  %t = loop.kernel @copy(%x) : (tensor<f32>) -> tensor<f32> {
  ^bb0(%x: memref<f32>, %out: memref<f32>):
    %v = loop.load %x[] : memref<f32>
    loop.store %v, %out[] : memref<f32>
  }
  func.return %y, %w, %u : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// A check stops the program whichever row is asked for; two reductions may need two rows.
// REMARK: remark: collapse-reduce: checked: declined: an iteration may do more than contribute
// REMARK: remark: collapse-reduce: two: declined: several reductions share the loop
func.func @main(%x: tensor<9xf32>, %ids: tensor<9xi64>, %id: tensor<i64>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %y = loop.kernel @checked(%x, %ids, %id) : (tensor<9xf32>, tensor<9xi64>, tensor<i64>) -> tensor<f32> {
  ^bb0(%x: memref<9xf32>, %ids: memref<9xi64>, %id: memref<i64>, %out: memref<f32>):
    %at = loop.load %id[] : memref<i64>
    %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
      %o = loop.index [%k]
      %c = arith.index_cast %o : index to i64
      %hit = arith.cmpi eq, %c, %at : i64
      %n = loop.load %ids[%k] : memref<9xi64>
      %row = loop.checked_index %n below 9 : i64
      %v = loop.load %x[%row] : memref<9xf32>
      %zero = arith.constant 0.0 : f32
      %p = arith.select %hit, %v, %zero : f32
      loop.yield %p : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  %z, %w = loop.kernel @two(%x, %id) : (tensor<9xf32>, tensor<i64>) -> (tensor<f32>, tensor<f32>) {
  ^bb0(%x: memref<9xf32>, %id: memref<i64>, %out: memref<f32>, %other: memref<f32>):
    %at = loop.load %id[] : memref<i64>
    %s, %t = loop.for %k = 0 to 9 reduce(add, add) -> f32, f32 {
      %o = loop.index [%k]
      %c = arith.index_cast %o : index to i64
      %hit = arith.cmpi eq, %c, %at : i64
      %v = loop.load %x[%k] : memref<9xf32>
      %zero = arith.constant 0.0 : f32
      %p = arith.select %hit, %v, %zero : f32
      loop.yield %p, %v : f32, f32
    }
    loop.store %s, %out[] : memref<f32>
    loop.store %t, %other[] : memref<f32>
  }
  func.return %y, %z, %w : tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// What a size counts is not known, which term counts is.
// REMARK: remark: collapse-reduce: dynamic: declined: equal terms are counted by a dynamic extent
// CHECK-LABEL: loop.kernel @rows
// CHECK-NOT:     reduce
// CHECK:         [[SIZE:%.+]] = loop.index[s0]
// CHECK-NEXT:    [[LIMIT:%.+]] = arith.index_cast [[SIZE]] : index to i64
// CHECK-NEXT:    arith.cmpi ult, %at, [[LIMIT]] : i64
// REMARK: remark: collapse-reduce: rows: 1 reduction became one iteration
func.func @main(%x: tensor<?xf32, #sym.extents<s0>>, %id: tensor<i64>) -> (tensor<f32>, tensor<f32>) attributes {sym.sizes = [#sym.size<"rows", 1, 4096>]} {
  %z = loop.kernel @dynamic(%id) : (tensor<i64>) -> tensor<f32> {
  ^bb0(%id: memref<i64>, %out: memref<f32>):
    %i = loop.load %id[] : memref<i64>
    %v = arith.sitofp %i : i64 to f32
    %s = loop.for %k = 0 to s0 reduce(add) -> f32 {
      loop.yield %v : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  %y = loop.kernel @rows(%x, %id) : (tensor<?xf32, #sym.extents<s0>>, tensor<i64>) -> tensor<f32> {
  ^bb0(%x: memref<?xf32, #sym.extents<s0>>, %id: memref<i64>, %out: memref<f32>):
    %at = loop.load %id[] : memref<i64>
    %s = loop.for %k = 0 to s0 reduce(add) -> f32 {
      %o = loop.index [%k]
      %c = arith.index_cast %o : index to i64
      %hit = arith.cmpi eq, %c, %at : i64
      %v = loop.load %x[%k] : memref<?xf32, #sym.extents<s0>>
      %zero = arith.constant 0.0 : f32
      %p = arith.select %hit, %v, %zero : f32
      loop.yield %p : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  func.return %z, %y : tensor<f32>, tensor<f32>
}

// -----

// Equal contributions to a mean add up to a weight, which is none of theirs.
// REMARK: remark: collapse-reduce: weighted: declined: what is weighted is folded together
// CHECK-LABEL: loop.kernel @weighted
// CHECK:         reduce(max, weight, mean)
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = loop.kernel @weighted(%x) : (tensor<3xf32>) -> tensor<3xf32> {
  ^bb0(%x: memref<3xf32>, %out: memref<3xf32>):
    loop.for %i = 0 to 3 {
      %v = loop.load %x[%i] : memref<3xf32>
      %one = arith.constant 1.0 : f32
      %max, %weight, %mean = loop.for %k = 0 to 5 reduce(max, weight, mean) -> f32, f32, f32 {
        loop.yield %v, %one, %v : f32, f32, f32
      }
      loop.store %weight, %out[%i] : memref<3xf32>
    }
  }
  func.return %y : tensor<3xf32>
}
