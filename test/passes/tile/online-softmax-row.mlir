// RUN: deplo-opt %s -p 'online-softmax{target=cpu:avx512}' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'online-softmax{target=cpu:avx512}' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'online-softmax{target=cpu:avx512}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// One query for each head: no column is needed twice. A row of minus infinities has weights of 0.
// REMARK: online-softmax: attention: a block computes 40 scores of a row at once
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    loop.kernel @attention(%q, %k, %v)
// CHECK:           tile.launch (%i = 16 : thread) {
// CHECK-NEXT:        %scores = tile.pack (%r = 1, %j = 40)
// CHECK-NEXT:          loop.for %d = 0 to 8 reduce(add)
// CHECK:             %max = loop.for %{{.*}} = 0 to 40 reduce(max)
// CHECK-NEXT:          loop.load %scores
// CHECK:             %powers = tile.pack (%{{.*}} = 1, %{{.*}} = 40)
// CHECK:               math.exp
// CHECK:             %weight = loop.for %{{.*}} = 0 to 40 reduce(add)
// CHECK-NEXT:          loop.load %powers
// CHECK:             %weights = tile.pack (%{{.*}} = 1, %{{.*}} = 40)
// CHECK:               [[PART:%.*]] = arith.divf {{%.*}}, %weight
// CHECK:               [[NONE:%.*]] = arith.cmpf oeq, %max
// CHECK-NEXT:          [[WEIGHT:%.*]] = arith.select [[NONE]], {{%.*}}, [[PART]]
// CHECK-NEXT:          tile.yield [[WEIGHT]]
// CHECK:             loop.for %d_1 = 0 to 4 {
// CHECK-NEXT:          %mean = loop.for %{{.*}} = 0 to 40 reduce(add)
// CHECK:               loop.store %mean, %y[%i, %d_1]
func.func @main(%q: tensor<16x8xf32>, %k: tensor<16x40x8xf32>, %v: tensor<16x40x4xf32>) -> tensor<16x4xf32> {
  %s = loop.kernel @scores(%q, %k) : (tensor<16x8xf32>, tensor<16x40x8xf32>) -> tensor<16x40xf32> {
  ^bb0(%q: memref<16x8xf32>, %k: memref<16x40x8xf32>, %s: memref<16x40xf32>):
    tile.launch (%i = 16 : thread, %j = 40 : thread) {
      %t = loop.for %d = 0 to 8 reduce(add) -> f32 {
        %a = loop.load %q[%i, %d] : memref<16x8xf32>
        %b = loop.load %k[%i, %j, %d] : memref<16x40x8xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %s[%i, %j] : memref<16x40xf32>
    }
  }
  %p = loop.kernel @weights(%s) : (tensor<16x40xf32>) -> tensor<16x40xf32> {
  ^bb0(%s: memref<16x40xf32>, %p: memref<16x40xf32>):
    tile.launch (%i = 16 : thread) {
      %m = loop.for %j = 0 to 40 reduce(max) -> f32 {
        %a = loop.load %s[%i, %j] : memref<16x40xf32>
        loop.yield %a : f32
      }
      %low = arith.constant 0xff800000 : f32
      %none = arith.cmpf oeq, %m, %low : f32
      %l = loop.for %j = 0 to 40 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<16x40xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %c : f32
      }
      loop.for %j = 0 to 40 {
        %zero = arith.constant 0.0 : f32
        %a = loop.load %s[%i, %j] : memref<16x40xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        %e = arith.select %none, %zero, %d : f32
        loop.store %e, %p[%i, %j] : memref<16x40xf32>
      }
    }
  }
  %y = loop.kernel @attention(%p, %v) : (tensor<16x40xf32>, tensor<16x40x4xf32>) -> tensor<16x4xf32> {
  ^bb0(%p: memref<16x40xf32>, %v: memref<16x40x4xf32>, %y: memref<16x4xf32>):
    tile.launch (%i = 16 : thread, %d = 4 : thread) {
      %t = loop.for %j = 0 to 40 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<16x40xf32>
        %b = loop.load %v[%i, %j, %d] : memref<16x40x4xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<16x4xf32>
    }
  }
  func.return %y : tensor<16x4xf32>
}

// -----

// All cores share the columns of one row.
// REMARK: online-softmax: alone: declined: 1 rows are too few for 1 cores
// CHECK-NOT: tile.pack
func.func @main(%q: tensor<1x8xf32>, %k: tensor<1x40x8xf32>, %v: tensor<1x40x4xf32>) -> tensor<1x4xf32> {
  %s = loop.kernel @scores(%q, %k) : (tensor<1x8xf32>, tensor<1x40x8xf32>) -> tensor<1x40xf32> {
  ^bb0(%q: memref<1x8xf32>, %k: memref<1x40x8xf32>, %s: memref<1x40xf32>):
    tile.launch (%i = 1 : thread, %j = 40 : thread) {
      %t = loop.for %d = 0 to 8 reduce(add) -> f32 {
        %a = loop.load %q[%i, %d] : memref<1x8xf32>
        %b = loop.load %k[%i, %j, %d] : memref<1x40x8xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %s[%i, %j] : memref<1x40xf32>
    }
  }
  %p = loop.kernel @weights(%s) : (tensor<1x40xf32>) -> tensor<1x40xf32> {
  ^bb0(%s: memref<1x40xf32>, %p: memref<1x40xf32>):
    tile.launch (%i = 1 : thread) {
      %m = loop.for %j = 0 to 40 reduce(max) -> f32 {
        %a = loop.load %s[%i, %j] : memref<1x40xf32>
        loop.yield %a : f32
      }
      %low = arith.constant 0xff800000 : f32
      %none = arith.cmpf oeq, %m, %low : f32
      %l = loop.for %j = 0 to 40 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<1x40xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %c : f32
      }
      loop.for %j = 0 to 40 {
        %zero = arith.constant 0.0 : f32
        %a = loop.load %s[%i, %j] : memref<1x40xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        %e = arith.select %none, %zero, %d : f32
        loop.store %e, %p[%i, %j] : memref<1x40xf32>
      }
    }
  }
  %y = loop.kernel @alone(%p, %v) : (tensor<1x40xf32>, tensor<1x40x4xf32>) -> tensor<1x4xf32> {
  ^bb0(%p: memref<1x40xf32>, %v: memref<1x40x4xf32>, %y: memref<1x4xf32>):
    tile.launch (%i = 1 : thread, %d = 4 : thread) {
      %t = loop.for %j = 0 to 40 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<1x40xf32>
        %b = loop.load %v[%i, %j, %d] : memref<1x40x4xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<1x4xf32>
    }
  }
  func.return %y : tensor<1x4xf32>
}

// -----

// REMARK: online-softmax: long: declined: 1000000 scores of a row do not stay in the cache
// CHECK-NOT: tile.pack
func.func @main(%q: tensor<16x8xf32>, %k: tensor<16x1000000x8xf32>, %v: tensor<16x1000000x4xf32>) -> tensor<16x4xf32> {
  %s = loop.kernel @scores(%q, %k) : (tensor<16x8xf32>, tensor<16x1000000x8xf32>) -> tensor<16x1000000xf32> {
  ^bb0(%q: memref<16x8xf32>, %k: memref<16x1000000x8xf32>, %s: memref<16x1000000xf32>):
    tile.launch (%i = 16 : thread, %j = 1000000 : thread) {
      %t = loop.for %d = 0 to 8 reduce(add) -> f32 {
        %a = loop.load %q[%i, %d] : memref<16x8xf32>
        %b = loop.load %k[%i, %j, %d] : memref<16x1000000x8xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %s[%i, %j] : memref<16x1000000xf32>
    }
  }
  %p = loop.kernel @weights(%s) : (tensor<16x1000000xf32>) -> tensor<16x1000000xf32> {
  ^bb0(%s: memref<16x1000000xf32>, %p: memref<16x1000000xf32>):
    tile.launch (%i = 16 : thread) {
      %m = loop.for %j = 0 to 1000000 reduce(max) -> f32 {
        %a = loop.load %s[%i, %j] : memref<16x1000000xf32>
        loop.yield %a : f32
      }
      %low = arith.constant 0xff800000 : f32
      %none = arith.cmpf oeq, %m, %low : f32
      %l = loop.for %j = 0 to 1000000 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<16x1000000xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %c : f32
      }
      loop.for %j = 0 to 1000000 {
        %zero = arith.constant 0.0 : f32
        %a = loop.load %s[%i, %j] : memref<16x1000000xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        %e = arith.select %none, %zero, %d : f32
        loop.store %e, %p[%i, %j] : memref<16x1000000xf32>
      }
    }
  }
  %y = loop.kernel @long(%p, %v) : (tensor<16x1000000xf32>, tensor<16x1000000x4xf32>) -> tensor<16x4xf32> {
  ^bb0(%p: memref<16x1000000xf32>, %v: memref<16x1000000x4xf32>, %y: memref<16x4xf32>):
    tile.launch (%i = 16 : thread, %d = 4 : thread) {
      %t = loop.for %j = 0 to 1000000 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<16x1000000xf32>
        %b = loop.load %v[%i, %j, %d] : memref<16x1000000x4xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<16x4xf32>
    }
  }
  func.return %y : tensor<16x4xf32>
}

// -----

// REMARK: online-softmax: dynamic: declined: scores of one row are dynamic in number
// CHECK-NOT: tile.pack
func.func @main(%q: tensor<16x8xf32>, %k: tensor<16x?x8xf32, #sym.extents<s0>>, %v: tensor<16x?x4xf32, #sym.extents<s0>>) -> tensor<16x4xf32>
    attributes {sym.sizes = [#sym.size<"keys", 1, 4096, hint = 77>]} {
  %s = loop.kernel @scores(%q, %k) : (tensor<16x8xf32>, tensor<16x?x8xf32, #sym.extents<s0>>) -> tensor<16x?xf32, #sym.extents<s0>> {
  ^bb0(%q: memref<16x8xf32>, %k: memref<16x?x8xf32, #sym.extents<s0>>, %s: memref<16x?xf32, #sym.extents<s0>>):
    tile.launch (%i = 16 : thread, %j = s0 : thread) {
      %t = loop.for %d = 0 to 8 reduce(add) -> f32 {
        %a = loop.load %q[%i, %d] : memref<16x8xf32>
        %b = loop.load %k[%i, %j, %d] : memref<16x?x8xf32, #sym.extents<s0>>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %s[%i, %j] : memref<16x?xf32, #sym.extents<s0>>
    }
  }
  %p = loop.kernel @weights(%s) : (tensor<16x?xf32, #sym.extents<s0>>) -> tensor<16x?xf32, #sym.extents<s0>> {
  ^bb0(%s: memref<16x?xf32, #sym.extents<s0>>, %p: memref<16x?xf32, #sym.extents<s0>>):
    tile.launch (%i = 16 : thread) {
      %m = loop.for %j = 0 to s0 reduce(max) -> f32 {
        %a = loop.load %s[%i, %j] : memref<16x?xf32, #sym.extents<s0>>
        loop.yield %a : f32
      }
      %low = arith.constant 0xff800000 : f32
      %none = arith.cmpf oeq, %m, %low : f32
      %l = loop.for %j = 0 to s0 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<16x?xf32, #sym.extents<s0>>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %c : f32
      }
      loop.for %j = 0 to s0 {
        %zero = arith.constant 0.0 : f32
        %a = loop.load %s[%i, %j] : memref<16x?xf32, #sym.extents<s0>>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        %e = arith.select %none, %zero, %d : f32
        loop.store %e, %p[%i, %j] : memref<16x?xf32, #sym.extents<s0>>
      }
    }
  }
  %y = loop.kernel @dynamic(%p, %v) : (tensor<16x?xf32, #sym.extents<s0>>, tensor<16x?x4xf32, #sym.extents<s0>>) -> tensor<16x4xf32> {
  ^bb0(%p: memref<16x?xf32, #sym.extents<s0>>, %v: memref<16x?x4xf32, #sym.extents<s0>>, %y: memref<16x4xf32>):
    tile.launch (%i = 16 : thread, %d = 4 : thread) {
      %t = loop.for %j = 0 to s0 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<16x?xf32, #sym.extents<s0>>
        %b = loop.load %v[%i, %j, %d] : memref<16x?x4xf32, #sym.extents<s0>>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<16x4xf32>
    }
  }
  func.return %y : tensor<16x4xf32>
}
