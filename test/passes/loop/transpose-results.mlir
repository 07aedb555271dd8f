// RUN: deplo-opt %s -p transpose-results --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p transpose-results --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p transpose-results --split-input-file --check-each-pass >/dev/null

// Rows of channels are summed up: the product stores them side by side.
// REMARK: remark: transpose-results: product: its results lie as their readers go through them
// REMARK: remark: transpose-results: sums: declined: it is no contraction
// CHECK:       %c = loop.kernel @product(%w, %x) : (tensor<32x8xf32>, tensor<20x8xf32>) -> tensor<20x32xf32>
// CHECK:         loop.for %p = 0 to 20 {
// CHECK-NEXT:      loop.for %j = 0 to 32 {
// CHECK-NEXT:        loop.for %k
// CHECK-NEXT:          loop.load %w[%j, %k]
// CHECK-NEXT:          loop.load %x[%p, %k]
// CHECK:             loop.store %s, %out[%p, %j] : memref<20x32xf32>
// CHECK:       loop.kernel @sums(%c) : (tensor<20x32xf32>) -> tensor<20xf32>
// CHECK:           loop.load %c[%p, %j] : memref<20x32xf32>
func.func @main(%w: tensor<32x8xf32>, %x: tensor<20x8xf32>) -> tensor<20xf32> {
  %c = loop.kernel @product(%w, %x) : (tensor<32x8xf32>, tensor<20x8xf32>) -> tensor<32x20xf32> {
  ^bb0(%w: memref<32x8xf32>, %x: memref<20x8xf32>, %out: memref<32x20xf32>):
    loop.for %j = 0 to 32 {
      loop.for %p = 0 to 20 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %a = loop.load %w[%j, %k] : memref<32x8xf32>
          %b = loop.load %x[%p, %k] : memref<20x8xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%j, %p] : memref<32x20xf32>
      }
    }
  }
  %y = loop.kernel @sums(%c) : (tensor<32x20xf32>) -> tensor<20xf32> {
  ^bb0(%c: memref<32x20xf32>, %out: memref<20xf32>):
    loop.for %p = 0 to 20 {
      %s = loop.for %j = 0 to 32 reduce(add) -> f32 {
        %v = loop.load %c[%j, %p] : memref<32x20xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%p] : memref<20xf32>
    }
  }
  func.return %y : tensor<20xf32>
}

// -----

// One reader goes along rows, the other one down columns; and what the program returns lies as it says.
// REMARK: remark: transpose-results: product: declined: its readers go through it in different ways
// REMARK: remark: transpose-results: returned: declined: a result of the program lies as it is
// CHECK:       loop.kernel @product(%w, %x) : (tensor<32x8xf32>, tensor<20x8xf32>) -> tensor<32x20xf32>
func.func @main(%w: tensor<32x8xf32>, %x: tensor<20x8xf32>) -> (tensor<20xf32>, tensor<32xf32>, tensor<32x20xf32>) {
  %c = loop.kernel @product(%w, %x) : (tensor<32x8xf32>, tensor<20x8xf32>) -> tensor<32x20xf32> {
  ^bb0(%w: memref<32x8xf32>, %x: memref<20x8xf32>, %out: memref<32x20xf32>):
    loop.for %j = 0 to 32 {
      loop.for %p = 0 to 20 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %a = loop.load %w[%j, %k] : memref<32x8xf32>
          %b = loop.load %x[%p, %k] : memref<20x8xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%j, %p] : memref<32x20xf32>
      }
    }
  }
  %y = loop.kernel @sums(%c) : (tensor<32x20xf32>) -> tensor<20xf32> {
  ^bb0(%c: memref<32x20xf32>, %out: memref<20xf32>):
    loop.for %p = 0 to 20 {
      %s = loop.for %j = 0 to 32 reduce(add) -> f32 {
        %v = loop.load %c[%j, %p] : memref<32x20xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%p] : memref<20xf32>
    }
  }
  %z = loop.kernel @others(%c) : (tensor<32x20xf32>) -> tensor<32xf32> {
  ^bb0(%c: memref<32x20xf32>, %out: memref<32xf32>):
    loop.for %j = 0 to 32 {
      %s = loop.for %p = 0 to 20 reduce(add) -> f32 {
        %v = loop.load %c[%j, %p] : memref<32x20xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%j] : memref<32xf32>
    }
  }
  %r = loop.kernel @returned(%w, %x) : (tensor<32x8xf32>, tensor<20x8xf32>) -> tensor<32x20xf32> {
  ^bb0(%w: memref<32x8xf32>, %x: memref<20x8xf32>, %out: memref<32x20xf32>):
    loop.for %j = 0 to 32 {
      loop.for %p = 0 to 20 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %a = loop.load %w[%j, %k] : memref<32x8xf32>
          %b = loop.load %x[%p, %k] : memref<20x8xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%j, %p] : memref<32x20xf32>
      }
    }
  }
  func.return %y, %z, %r : tensor<20xf32>, tensor<32xf32>, tensor<32x20xf32>
}

// -----

// It lies as it is read.
// REMARK: remark: transpose-results: product: declined: it lies as its readers go through it
func.func @main(%w: tensor<32x8xf32>, %x: tensor<20x8xf32>) -> tensor<32xf32> {
  %c = loop.kernel @product(%w, %x) : (tensor<32x8xf32>, tensor<20x8xf32>) -> tensor<32x20xf32> {
  ^bb0(%w: memref<32x8xf32>, %x: memref<20x8xf32>, %out: memref<32x20xf32>):
    loop.for %j = 0 to 32 {
      loop.for %p = 0 to 20 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %a = loop.load %w[%j, %k] : memref<32x8xf32>
          %b = loop.load %x[%p, %k] : memref<20x8xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%j, %p] : memref<32x20xf32>
      }
    }
  }
  %z = loop.kernel @others(%c) : (tensor<32x20xf32>) -> tensor<32xf32> {
  ^bb0(%c: memref<32x20xf32>, %out: memref<32xf32>):
    loop.for %j = 0 to 32 {
      %s = loop.for %p = 0 to 20 reduce(add) -> f32 {
        %v = loop.load %c[%j, %p] : memref<32x20xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%j] : memref<32xf32>
    }
  }
  func.return %z : tensor<32xf32>
}

// -----

// Some numbers of rows are known by a call alone; and what is stored backwards is left as it is.
// REMARK: remark: transpose-results: dynamic: declined: an axis is dynamic
// REMARK: remark: transpose-results: backwards: declined: it is not stored element by element, in one place
func.func @main(%w: tensor<32x8xf32>, %x: tensor<?x8xf32, #sym.extents<s0>>, %v: tensor<20x8xf32>) -> (tensor<?xf32, #sym.extents<s0>>, tensor<20xf32>) attributes {sym.sizes = [#sym.size<"rows", 2, none>]} {
  %c = loop.kernel @dynamic(%w, %x) : (tensor<32x8xf32>, tensor<?x8xf32, #sym.extents<s0>>) -> tensor<32x?xf32, #sym.extents<s0>> {
  ^bb0(%w: memref<32x8xf32>, %x: memref<?x8xf32, #sym.extents<s0>>, %out: memref<32x?xf32, #sym.extents<s0>>):
    loop.for %j = 0 to 32 {
      loop.for %p = 0 to s0 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %a = loop.load %w[%j, %k] : memref<32x8xf32>
          %b = loop.load %x[%p, %k] : memref<?x8xf32, #sym.extents<s0>>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%j, %p] : memref<32x?xf32, #sym.extents<s0>>
      }
    }
  }
  %y = loop.kernel @dynamic_sums(%c) : (tensor<32x?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>> {
  ^bb0(%c: memref<32x?xf32, #sym.extents<s0>>, %out: memref<?xf32, #sym.extents<s0>>):
    loop.for %p = 0 to s0 {
      %s = loop.for %j = 0 to 32 reduce(add) -> f32 {
        %v = loop.load %c[%j, %p] : memref<32x?xf32, #sym.extents<s0>>
        loop.yield %v : f32
      }
      loop.store %s, %out[%p] : memref<?xf32, #sym.extents<s0>>
    }
  }
  %d = loop.kernel @backwards(%w, %v) : (tensor<32x8xf32>, tensor<20x8xf32>) -> tensor<32x20xf32> {
  ^bb0(%w: memref<32x8xf32>, %x: memref<20x8xf32>, %out: memref<32x20xf32>):
    loop.for %j = 0 to 32 {
      loop.for %p = 0 to 20 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %a = loop.load %w[%j, %k] : memref<32x8xf32>
          %b = loop.load %x[%p, %k] : memref<20x8xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[31 - %j, %p] : memref<32x20xf32>
      }
    }
  }
  %z = loop.kernel @sums(%d) : (tensor<32x20xf32>) -> tensor<20xf32> {
  ^bb0(%c: memref<32x20xf32>, %out: memref<20xf32>):
    loop.for %p = 0 to 20 {
      %s = loop.for %j = 0 to 32 reduce(add) -> f32 {
        %v = loop.load %c[%j, %p] : memref<32x20xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%p] : memref<20xf32>
    }
  }
  func.return %y, %z : tensor<?xf32, #sym.extents<s0>>, tensor<20xf32>
}

// -----

// A product of it and something else goes through it by blocks.
// REMARK: remark: transpose-results: product: declined: a contraction sweeps it, which copies what it reads as it needs it
func.func @main(%w: tensor<32x8xf32>, %x: tensor<20x8xf32>, %v: tensor<16x32xf32>) -> tensor<20x16xf32> {
  %c = loop.kernel @product(%w, %x) : (tensor<32x8xf32>, tensor<20x8xf32>) -> tensor<32x20xf32> {
  ^bb0(%w: memref<32x8xf32>, %x: memref<20x8xf32>, %out: memref<32x20xf32>):
    loop.for %j = 0 to 32 {
      loop.for %p = 0 to 20 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %a = loop.load %w[%j, %k] : memref<32x8xf32>
          %b = loop.load %x[%p, %k] : memref<20x8xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%j, %p] : memref<32x20xf32>
      }
    }
  }
  %y = loop.kernel @again(%c, %v) : (tensor<32x20xf32>, tensor<16x32xf32>) -> tensor<20x16xf32> {
  ^bb0(%c: memref<32x20xf32>, %v: memref<16x32xf32>, %out: memref<20x16xf32>):
    loop.for %p = 0 to 20 {
      loop.for %i = 0 to 16 {
        %s = loop.for %j = 0 to 32 reduce(add) -> f32 {
          %a = loop.load %c[%j, %p] : memref<32x20xf32>
          %b = loop.load %v[%i, %j] : memref<16x32xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%p, %i] : memref<20x16xf32>
      }
    }
  }
  func.return %y : tensor<20x16xf32>
}

// -----

// What another product is added to is read once, as that one goes through its results.
// REMARK: remark: transpose-results: product: its results lie as their readers go through them
// CHECK:       %c = loop.kernel @product(%w, %x) : (tensor<32x8xf32>, tensor<20x8xf32>) -> tensor<20x32xf32>
// CHECK:       loop.kernel @added(%c, %u, %v)
// CHECK:           loop.load %c[%p, %j] : memref<20x32xf32>
func.func @main(%w: tensor<32x8xf32>, %x: tensor<20x8xf32>, %u: tensor<20x16xf32>, %v: tensor<32x16xf32>) -> tensor<20x32xf32> {
  %c = loop.kernel @product(%w, %x) : (tensor<32x8xf32>, tensor<20x8xf32>) -> tensor<32x20xf32> {
  ^bb0(%w: memref<32x8xf32>, %x: memref<20x8xf32>, %out: memref<32x20xf32>):
    loop.for %j = 0 to 32 {
      loop.for %p = 0 to 20 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %a = loop.load %w[%j, %k] : memref<32x8xf32>
          %b = loop.load %x[%p, %k] : memref<20x8xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        loop.store %s, %out[%j, %p] : memref<32x20xf32>
      }
    }
  }
  %y = loop.kernel @added(%c, %u, %v) : (tensor<32x20xf32>, tensor<20x16xf32>, tensor<32x16xf32>) -> tensor<20x32xf32> {
  ^bb0(%c: memref<32x20xf32>, %u: memref<20x16xf32>, %v: memref<32x16xf32>, %out: memref<20x32xf32>):
    loop.for %p = 0 to 20 {
      loop.for %j = 0 to 32 {
        %s = loop.for %i = 0 to 16 reduce(add) -> f32 {
          %a = loop.load %u[%p, %i] : memref<20x16xf32>
          %b = loop.load %v[%j, %i] : memref<32x16xf32>
          %m = arith.mulf %a, %b : f32
          loop.yield %m : f32
        }
        %r = loop.load %c[%j, %p] : memref<32x20xf32>
        %t = arith.addf %s, %r : f32
        loop.store %t, %out[%p, %j] : memref<20x32xf32>
      }
    }
  }
  func.return %y : tensor<20x32xf32>
}

// -----

// Of two results, one would lie otherwise than the other.
// REMARK: remark: transpose-results: two: declined: its results would have different orders
func.func @main(%w: tensor<32x8xf32>, %x: tensor<20x8xf32>) -> (tensor<20xf32>, tensor<16xf32>) {
  %c, %d = loop.kernel @two(%w, %x) : (tensor<32x8xf32>, tensor<20x8xf32>) -> (tensor<32x20x16xf32>, tensor<32x20x16xf32>) {
  ^bb0(%w: memref<32x8xf32>, %x: memref<20x8xf32>, %out: memref<32x20x16xf32>, %other: memref<32x20x16xf32>):
    loop.for %j = 0 to 32 {
      loop.for %p = 0 to 20 {
        loop.for %q = 0 to 16 {
          %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
            %a = loop.load %w[%j, %k] : memref<32x8xf32>
            %b = loop.load %x[%p, %k] : memref<20x8xf32>
            %m = arith.mulf %a, %b : f32
            loop.yield %m : f32
          }
          loop.store %s, %out[%j, %p, %q] : memref<32x20x16xf32>
          loop.store %s, %other[%j, %p, %q] : memref<32x20x16xf32>
        }
      }
    }
  }
  %y = loop.kernel @sums(%c) : (tensor<32x20x16xf32>) -> tensor<20xf32> {
  ^bb0(%c: memref<32x20x16xf32>, %out: memref<20xf32>):
    loop.for %p = 0 to 20 {
      %s = loop.for %j = 0 to 32 reduce(add) -> f32 {
        %v = loop.load %c[%j, %p, 3] : memref<32x20x16xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%p] : memref<20xf32>
    }
  }
  %z = loop.kernel @others(%d) : (tensor<32x20x16xf32>) -> tensor<16xf32> {
  ^bb0(%c: memref<32x20x16xf32>, %out: memref<16xf32>):
    loop.for %q = 0 to 16 {
      %s = loop.for %p = 0 to 20 reduce(add) -> f32 {
        %v = loop.load %c[5, %p, %q] : memref<32x20x16xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%q] : memref<16xf32>
    }
  }
  func.return %y, %z : tensor<20xf32>, tensor<16xf32>
}
