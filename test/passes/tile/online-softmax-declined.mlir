// RUN: deplo-opt %s -p 'online-softmax{target=cpu:avx512}' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p 'online-softmax{target=cpu:avx512}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// REMARK: online-softmax: wrong_shift: declined: its rows are not shifted by their maximum
// REMARK: online-softmax: wrong_sum: declined: its rows are not divided by their sum
// REMARK: online-softmax: no_scores: declined: its exponents are of no scores, or of several
func.func @main(%q: tensor<20x6xf32>, %k: tensor<130x6xf32>, %v: tensor<130x5xf32>, %x: tensor<20x130xf32>) -> (tensor<20x5xf32>, tensor<20x5xf32>, tensor<20x5xf32>) {
  %s = loop.kernel @scores(%q, %k) : (tensor<20x6xf32>, tensor<130x6xf32>) -> tensor<20x130xf32> {
  ^bb0(%q: memref<20x6xf32>, %k: memref<130x6xf32>, %s: memref<20x130xf32>):
    tile.launch (%i = 20 : thread, %j = 130 : thread) {
      %t = loop.for %d = 0 to 6 reduce(add) -> f32 {
        %a = loop.load %q[%i, %d] : memref<20x6xf32>
        %b = loop.load %k[%j, %d] : memref<130x6xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %s[%i, %j] : memref<20x130xf32>
    }
  }
  %a = loop.kernel @least(%s) : (tensor<20x130xf32>) -> tensor<20x130xf32> {
  ^bb0(%s: memref<20x130xf32>, %p: memref<20x130xf32>):
    tile.launch (%i = 20 : thread) {
      %m = loop.for %j = 0 to 130 reduce(min) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        loop.yield %a : f32
      }
      %l = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %c : f32
      }
      loop.for %j = 0 to 130 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        loop.store %d, %p[%i, %j] : memref<20x130xf32>
      }
    }
  }
  %y1 = loop.kernel @wrong_shift(%a, %v) : (tensor<20x130xf32>, tensor<130x5xf32>) -> tensor<20x5xf32> {
  ^bb0(%p: memref<20x130xf32>, %v: memref<130x5xf32>, %y: memref<20x5xf32>):
    tile.launch (%i = 20 : thread, %d = 5 : thread) {
      %t = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<20x130xf32>
        %b = loop.load %v[%j, %d] : memref<130x5xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<20x5xf32>
    }
  }
  %b = loop.kernel @summed(%s) : (tensor<20x130xf32>) -> tensor<20x130xf32> {
  ^bb0(%s: memref<20x130xf32>, %p: memref<20x130xf32>):
    tile.launch (%i = 20 : thread) {
      %m = loop.for %j = 0 to 130 reduce(max) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        loop.yield %a : f32
      }
      %l = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %a : f32
      }
      loop.for %j = 0 to 130 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        loop.store %d, %p[%i, %j] : memref<20x130xf32>
      }
    }
  }
  %y2 = loop.kernel @wrong_sum(%b, %v) : (tensor<20x130xf32>, tensor<130x5xf32>) -> tensor<20x5xf32> {
  ^bb0(%p: memref<20x130xf32>, %v: memref<130x5xf32>, %y: memref<20x5xf32>):
    tile.launch (%i = 20 : thread, %d = 5 : thread) {
      %t = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<20x130xf32>
        %b = loop.load %v[%j, %d] : memref<130x5xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<20x5xf32>
    }
  }
  %c = loop.kernel @given(%x) : (tensor<20x130xf32>) -> tensor<20x130xf32> {
  ^bb0(%s: memref<20x130xf32>, %p: memref<20x130xf32>):
    tile.launch (%i = 20 : thread) {
      %m = loop.for %j = 0 to 130 reduce(max) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        loop.yield %a : f32
      }
      %l = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %c : f32
      }
      loop.for %j = 0 to 130 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        loop.store %d, %p[%i, %j] : memref<20x130xf32>
      }
    }
  }
  %y3 = loop.kernel @no_scores(%c, %v) : (tensor<20x130xf32>, tensor<130x5xf32>) -> tensor<20x5xf32> {
  ^bb0(%p: memref<20x130xf32>, %v: memref<130x5xf32>, %y: memref<20x5xf32>):
    tile.launch (%i = 20 : thread, %d = 5 : thread) {
      %t = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<20x130xf32>
        %b = loop.load %v[%j, %d] : memref<130x5xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<20x5xf32>
    }
  }
  func.return %y1, %y2, %y3 : tensor<20x5xf32>, tensor<20x5xf32>, tensor<20x5xf32>
}

// -----

// REMARK: online-softmax: differences: declined: its scores are no sums of products
func.func @main(%q: tensor<20x6xf32>, %k: tensor<130x6xf32>, %v: tensor<130x5xf32>) -> tensor<20x5xf32> {
  %s = loop.kernel @scores(%q, %k) : (tensor<20x6xf32>, tensor<130x6xf32>) -> tensor<20x130xf32> {
  ^bb0(%q: memref<20x6xf32>, %k: memref<130x6xf32>, %s: memref<20x130xf32>):
    tile.launch (%i = 20 : thread, %j = 130 : thread) {
      %t = loop.for %d = 0 to 6 reduce(add) -> f32 {
        %a = loop.load %q[%i, %d] : memref<20x6xf32>
        %b = loop.load %k[%j, %d] : memref<130x6xf32>
        %c = arith.subf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %s[%i, %j] : memref<20x130xf32>
    }
  }
  %p = loop.kernel @weights(%s) : (tensor<20x130xf32>) -> tensor<20x130xf32> {
  ^bb0(%s: memref<20x130xf32>, %p: memref<20x130xf32>):
    tile.launch (%i = 20 : thread) {
      %m = loop.for %j = 0 to 130 reduce(max) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        loop.yield %a : f32
      }
      %l = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %c : f32
      }
      loop.for %j = 0 to 130 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        loop.store %d, %p[%i, %j] : memref<20x130xf32>
      }
    }
  }
  %y = loop.kernel @differences(%p, %v) : (tensor<20x130xf32>, tensor<130x5xf32>) -> tensor<20x5xf32> {
  ^bb0(%p: memref<20x130xf32>, %v: memref<130x5xf32>, %y: memref<20x5xf32>):
    tile.launch (%i = 20 : thread, %d = 5 : thread) {
      %t = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<20x130xf32>
        %b = loop.load %v[%j, %d] : memref<130x5xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<20x5xf32>
    }
  }
  func.return %y : tensor<20x5xf32>
}

// -----

// REMARK: online-softmax: both: declined: a factor of its scores depends on rows and columns
func.func @main(%q: tensor<20x6xf32>, %k: tensor<130x6xf32>, %v: tensor<130x5xf32>) -> tensor<20x5xf32> {
  %s = loop.kernel @scores(%q, %k) : (tensor<20x6xf32>, tensor<130x6xf32>) -> tensor<20x130xf32> {
  ^bb0(%q: memref<20x6xf32>, %k: memref<130x6xf32>, %s: memref<20x130xf32>):
    tile.launch (%i = 20 : thread, %j = 130 : thread) {
      %t = loop.for %d = 0 to 6 reduce(add) -> f32 {
        %a = loop.load %q[(%i + %j) mod 20, %d] : memref<20x6xf32>
        %b = loop.load %k[%j, %d] : memref<130x6xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %s[%i, %j] : memref<20x130xf32>
    }
  }
  %p = loop.kernel @weights(%s) : (tensor<20x130xf32>) -> tensor<20x130xf32> {
  ^bb0(%s: memref<20x130xf32>, %p: memref<20x130xf32>):
    tile.launch (%i = 20 : thread) {
      %m = loop.for %j = 0 to 130 reduce(max) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        loop.yield %a : f32
      }
      %l = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %c : f32
      }
      loop.for %j = 0 to 130 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        loop.store %d, %p[%i, %j] : memref<20x130xf32>
      }
    }
  }
  %y = loop.kernel @both(%p, %v) : (tensor<20x130xf32>, tensor<130x5xf32>) -> tensor<20x5xf32> {
  ^bb0(%p: memref<20x130xf32>, %v: memref<130x5xf32>, %y: memref<20x5xf32>):
    tile.launch (%i = 20 : thread, %d = 5 : thread) {
      %t = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<20x130xf32>
        %b = loop.load %v[%j, %d] : memref<130x5xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<20x5xf32>
    }
  }
  func.return %y : tensor<20x5xf32>
}

// -----

// REMARK: online-softmax: shared: declined: weights is needed elsewhere, too
// REMARK: online-softmax: again: declined: it needs its weights for more than the sum
// REMARK: online-softmax: halves: declined: it stores under a condition
func.func @main(%q: tensor<20x6xf32>, %k: tensor<130x6xf32>, %v: tensor<130x5xf32>) -> (tensor<20x5xf32>, tensor<20x5xf32>, tensor<20x5xf32>) {
  %s = loop.kernel @scores(%q, %k) : (tensor<20x6xf32>, tensor<130x6xf32>) -> tensor<20x130xf32> {
  ^bb0(%q: memref<20x6xf32>, %k: memref<130x6xf32>, %s: memref<20x130xf32>):
    tile.launch (%i = 20 : thread, %j = 130 : thread) {
      %t = loop.for %d = 0 to 6 reduce(add) -> f32 {
        %a = loop.load %q[%i, %d] : memref<20x6xf32>
        %b = loop.load %k[%j, %d] : memref<130x6xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %s[%i, %j] : memref<20x130xf32>
    }
  }
  %p = loop.kernel @weights(%s) : (tensor<20x130xf32>) -> tensor<20x130xf32> {
  ^bb0(%s: memref<20x130xf32>, %p: memref<20x130xf32>):
    tile.launch (%i = 20 : thread) {
      %m = loop.for %j = 0 to 130 reduce(max) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        loop.yield %a : f32
      }
      %l = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %c : f32
      }
      loop.for %j = 0 to 130 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        loop.store %d, %p[%i, %j] : memref<20x130xf32>
      }
    }
  }
  %y1 = loop.kernel @shared(%p, %v) : (tensor<20x130xf32>, tensor<130x5xf32>) -> tensor<20x5xf32> {
  ^bb0(%p: memref<20x130xf32>, %v: memref<130x5xf32>, %y: memref<20x5xf32>):
    tile.launch (%i = 20 : thread, %d = 5 : thread) {
      %t = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<20x130xf32>
        %b = loop.load %v[%j, %d] : memref<130x5xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<20x5xf32>
    }
  }
  %y2 = loop.kernel @again(%p, %v) : (tensor<20x130xf32>, tensor<130x5xf32>) -> tensor<20x5xf32> {
  ^bb0(%p: memref<20x130xf32>, %v: memref<130x5xf32>, %y: memref<20x5xf32>):
    tile.launch (%i = 20 : thread, %d = 5 : thread) {
      %t = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<20x130xf32>
        %b = loop.load %v[%j, %d] : memref<130x5xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      %z = loop.load %p[%i, %d] : memref<20x130xf32>
      %u = arith.addf %t, %z : f32
      loop.store %u, %y[%i, %d] : memref<20x5xf32>
    }
  }
  %y3 = loop.kernel @halves(%p, %v) : (tensor<20x130xf32>, tensor<130x5xf32>) -> tensor<20x5xf32> {
  ^bb0(%p: memref<20x130xf32>, %v: memref<130x5xf32>, %y: memref<20x5xf32>):
    tile.launch (%i = 20 : thread, %d = 5 : thread) {
      %t = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<20x130xf32>
        %b = loop.load %v[%j, %d] : memref<130x5xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      %z = loop.test[%i < 10]
      scf.if %z {
        loop.store %t, %y[%i, %d] : memref<20x5xf32>
      } else {
        %u = arith.negf %t : f32
        loop.store %u, %y[%i, %d] : memref<20x5xf32>
      }
    }
  }
  func.return %y1, %y2, %y3 : tensor<20x5xf32>, tensor<20x5xf32>, tensor<20x5xf32>
}

// -----

// REMARK: online-softmax: loops: declined: it is not one launch
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = loop.kernel @loops(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4xf32>, %y: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %a = loop.load %x[%i] : memref<4xf32>
      loop.store %a, %y[%i] : memref<4xf32>
    }
  }
  %z = loop.kernel @launch(%y) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%y: memref<4xf32>, %z: memref<4xf32>):
    tile.launch (%i = 4 : thread) {
      %a = loop.load %y[%i] : memref<4xf32>
      loop.store %a, %z[%i] : memref<4xf32>
    }
  }
  func.return %z : tensor<4xf32>
}

// -----

// REMARK: online-softmax: few: declined: 3 by 130 scores are too few to be shared out
func.func @main(%q: tensor<3x6xf32>, %k: tensor<130x6xf32>, %v: tensor<130x5xf32>) -> tensor<3x5xf32> {
  %s = loop.kernel @scores(%q, %k) : (tensor<3x6xf32>, tensor<130x6xf32>) -> tensor<3x130xf32> {
  ^bb0(%q: memref<3x6xf32>, %k: memref<130x6xf32>, %s: memref<3x130xf32>):
    tile.launch (%i = 3 : thread, %j = 130 : thread) {
      %t = loop.for %d = 0 to 6 reduce(add) -> f32 {
        %a = loop.load %q[%i, %d] : memref<3x6xf32>
        %b = loop.load %k[%j, %d] : memref<130x6xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %s[%i, %j] : memref<3x130xf32>
    }
  }
  %p = loop.kernel @weights(%s) : (tensor<3x130xf32>) -> tensor<3x130xf32> {
  ^bb0(%s: memref<3x130xf32>, %p: memref<3x130xf32>):
    tile.launch (%i = 3 : thread) {
      %m = loop.for %j = 0 to 130 reduce(max) -> f32 {
        %a = loop.load %s[%i, %j] : memref<3x130xf32>
        loop.yield %a : f32
      }
      %l = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<3x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %c : f32
      }
      loop.for %j = 0 to 130 {
        %a = loop.load %s[%i, %j] : memref<3x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        loop.store %d, %p[%i, %j] : memref<3x130xf32>
      }
    }
  }
  %y = loop.kernel @few(%p, %v) : (tensor<3x130xf32>, tensor<130x5xf32>) -> tensor<3x5xf32> {
  ^bb0(%p: memref<3x130xf32>, %v: memref<130x5xf32>, %y: memref<3x5xf32>):
    tile.launch (%i = 3 : thread, %d = 5 : thread) {
      %t = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<3x130xf32>
        %b = loop.load %v[%j, %d] : memref<130x5xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<3x5xf32>
    }
  }
  func.return %y : tensor<3x5xf32>
}

// -----

// REMARK: online-softmax: wide: declined: rows of 6 and 520 elements are too long for a block
func.func @main(%q: tensor<20x6xf32>, %k: tensor<130x6xf32>, %v: tensor<130x520xf32>) -> tensor<20x520xf32> {
  %s = loop.kernel @scores(%q, %k) : (tensor<20x6xf32>, tensor<130x6xf32>) -> tensor<20x130xf32> {
  ^bb0(%q: memref<20x6xf32>, %k: memref<130x6xf32>, %s: memref<20x130xf32>):
    tile.launch (%i = 20 : thread, %j = 130 : thread) {
      %t = loop.for %d = 0 to 6 reduce(add) -> f32 {
        %a = loop.load %q[%i, %d] : memref<20x6xf32>
        %b = loop.load %k[%j, %d] : memref<130x6xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %s[%i, %j] : memref<20x130xf32>
    }
  }
  %p = loop.kernel @weights(%s) : (tensor<20x130xf32>) -> tensor<20x130xf32> {
  ^bb0(%s: memref<20x130xf32>, %p: memref<20x130xf32>):
    tile.launch (%i = 20 : thread) {
      %m = loop.for %j = 0 to 130 reduce(max) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        loop.yield %a : f32
      }
      %l = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        loop.yield %c : f32
      }
      loop.for %j = 0 to 130 {
        %a = loop.load %s[%i, %j] : memref<20x130xf32>
        %b = arith.subf %a, %m : f32
        %c = math.exp %b : f32
        %d = arith.divf %c, %l : f32
        loop.store %d, %p[%i, %j] : memref<20x130xf32>
      }
    }
  }
  %y = loop.kernel @wide(%p, %v) : (tensor<20x130xf32>, tensor<130x520xf32>) -> tensor<20x520xf32> {
  ^bb0(%p: memref<20x130xf32>, %v: memref<130x520xf32>, %y: memref<20x520xf32>):
    tile.launch (%i = 20 : thread, %d = 520 : thread) {
      %t = loop.for %j = 0 to 130 reduce(add) -> f32 {
        %a = loop.load %p[%i, %j] : memref<20x130xf32>
        %b = loop.load %v[%j, %d] : memref<130x520xf32>
        %c = arith.mulf %a, %b : f32
        loop.yield %c : f32
      }
      loop.store %t, %y[%i, %d] : memref<20x520xf32>
    }
  }
  func.return %y : tensor<20x520xf32>
}
