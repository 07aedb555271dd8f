// RUN: deplo-opt %s -p coalesce-axes --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p coalesce-axes --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p coalesce-axes --split-input-file --check-each-pass >/dev/null

// The mean of three axes, which are the last ones of memory, and what is stored by the sweep after it. Axes of
// the launch stay.
// CHECK-LABEL: loop.kernel @planes
// CHECK:         loop.for %i = 0 to 2 {
// CHECK-NEXT:      loop.for %j = 0 to 3 {
// CHECK-NEXT:        %s = loop.for %k = 0 to 60 reduce(add) -> f32 {
// CHECK-NEXT:          %v = loop.load %x[%i, %j, %k floordiv 20, %k floordiv 5 mod 4, %k mod 5]
// CHECK-NEXT:          loop.yield %v
// CHECK-NEXT:        }
// CHECK-NEXT:        loop.for %k_1 = 0 to 60 {
// CHECK:               loop.store
// REMARK: remark: coalesce-axes: planes: 4 pairs of axes became one
func.func @main(%x: tensor<2x3x3x4x5xf32>) -> tensor<2x3x3x4x5xf32> {
  %y = loop.kernel @planes(%x) : (tensor<2x3x3x4x5xf32>) -> tensor<2x3x3x4x5xf32> {
  ^bb0(%x: memref<2x3x3x4x5xf32>, %out: memref<2x3x3x4x5xf32>):
    loop.for %i = 0 to 2 {
      loop.for %j = 0 to 3 {
        %s = loop.for %k = 0 to 3 reduce(add) -> f32 {
          %t = loop.for %l = 0 to 4 reduce(add) -> f32 {
            %u = loop.for %m = 0 to 5 reduce(add) -> f32 {
              %v = loop.load %x[%i, %j, %k, %l, %m] : memref<2x3x3x4x5xf32>
              loop.yield %v : f32
            }
            loop.yield %u : f32
          }
          loop.yield %t : f32
        }
        loop.for %k = 0 to 3 {
          loop.for %l = 0 to 4 {
            loop.for %m = 0 to 5 {
              %v = loop.load %x[%i, %j, %k, %l, %m] : memref<2x3x3x4x5xf32>
              %d = arith.subf %v, %s : f32
              loop.store %d, %out[%i, %j, %k, %l, %m] : memref<2x3x3x4x5xf32>
            }
          }
        }
      }
    }
  }
  func.return %y : tensor<2x3x3x4x5xf32>
}

// -----

// A group of channels of planes of one extent and of another: the flat place has no quotient.
// CHECK-LABEL: loop.kernel @groups
// CHECK:         loop.for %k = 0 to 24 reduce(max)
// CHECK-NEXT:      loop.load %x[%j * 2 + %k floordiv 12, %k mod 12]
// REMARK: remark: coalesce-axes: groups: 1 pair of axes became one
func.func @main(%x: tensor<6x12xi32>) -> tensor<3xi32> {
  %y = loop.kernel @groups(%x) : (tensor<6x12xi32>) -> tensor<3xi32> {
  ^bb0(%x: memref<6x12xi32>, %out: memref<3xi32>):
    loop.for %j = 0 to 3 {
      %s = loop.for %k = 0 to 2 reduce(max) -> i32 {
        %t = loop.for %l = 0 to 12 reduce(max) -> i32 {
          %v = loop.load %x[%j * 2 + %k, %l] : memref<6x12xi32>
          loop.yield %v : i32
        }
        loop.yield %t : i32
      }
      loop.store %s, %out[%j] : memref<3xi32>
    }
  }
  func.return %y : tensor<3xi32>
}

// -----

// Two axes apart, a row that is read again, and a window.
// REMARK: remark: coalesce-axes: apart: declined: the axes do not lie along each other in memory
// REMARK: remark: coalesce-axes: again: declined: the axes do not lie along each other in memory
// REMARK: remark: coalesce-axes: window: declined: the axes do not lie along each other in memory
// REMARK: remark: coalesce-axes: divided: declined: the place of an element divides an axis
func.func @main(%x: tensor<4x5x6xf32>, %w: tensor<6xf32>) -> (tensor<5xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<f32>) {
  %a = loop.kernel @apart(%x) : (tensor<4x5x6xf32>) -> tensor<5xf32> {
  ^bb0(%x: memref<4x5x6xf32>, %out: memref<5xf32>):
    loop.for %j = 0 to 5 {
      %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %t = loop.for %l = 0 to 6 reduce(add) -> f32 {
          %v = loop.load %x[%k, %j, %l] : memref<4x5x6xf32>
          loop.yield %v : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%j] : memref<5xf32>
    }
  }
  %b = loop.kernel @again(%x, %w) : (tensor<4x5x6xf32>, tensor<6xf32>) -> tensor<4xf32> {
  ^bb0(%x: memref<4x5x6xf32>, %w: memref<6xf32>, %out: memref<4xf32>):
    loop.for %j = 0 to 4 {
      %s = loop.for %k = 0 to 5 reduce(add) -> f32 {
        %t = loop.for %l = 0 to 6 reduce(add) -> f32 {
          %v = loop.load %x[%j, %k, %l] : memref<4x5x6xf32>
          %u = loop.load %w[%l] : memref<6xf32>
          %p = arith.mulf %v, %u : f32
          loop.yield %p : f32
        }
        loop.yield %t : f32
      }
      loop.store %s, %out[%j] : memref<4xf32>
    }
  }
  %c = loop.kernel @window(%x) : (tensor<4x5x6xf32>) -> tensor<3x4xf32> {
  ^bb0(%x: memref<4x5x6xf32>, %out: memref<3x4xf32>):
    loop.for %i = 0 to 3 {
      loop.for %j = 0 to 4 {
        %s = loop.for %k = 0 to 3 reduce(max) -> f32 {
          %t = loop.for %l = 0 to 3 reduce(max) -> f32 {
            %v = loop.load %x[0, %i + %k, %j + %l] : memref<4x5x6xf32>
            loop.yield %v : f32
          }
          loop.yield %t : f32
        }
        loop.store %s, %out[%i, %j] : memref<3x4xf32>
      }
    }
  }
  %d = loop.kernel @divided(%x) : (tensor<4x5x6xf32>) -> tensor<f32> {
  ^bb0(%x: memref<4x5x6xf32>, %out: memref<f32>):
    %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
      %t = loop.for %l = 0 to 6 reduce(add) -> f32 {
        %v = loop.load %x[%k, 0, %l floordiv 2] : memref<4x5x6xf32>
        loop.yield %v : f32
      }
      loop.yield %t : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  func.return %a, %b, %c, %d : tensor<5xf32>, tensor<4xf32>, tensor<3x4xf32>, tensor<f32>
}

// -----

// What is done between the loops, another fold, a condition, and a loop that does not run.
// REMARK: remark: coalesce-axes: between: declined: no loop is all that another one does
// REMARK: remark: coalesce-axes: folds: declined: no loop is all that another one does
// REMARK: remark: coalesce-axes: triangle: declined: an index or a condition is computed from the axes
// REMARK: remark: coalesce-axes: empty: declined: it has no iterations
func.func @main(%x: tensor<4x6xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  %a = loop.kernel @between(%x) : (tensor<4x6xf32>) -> tensor<f32> {
  ^bb0(%x: memref<4x6xf32>, %out: memref<f32>):
    %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
      %t = loop.for %l = 0 to 6 reduce(add) -> f32 {
        %v = loop.load %x[%k, %l] : memref<4x6xf32>
        loop.yield %v : f32
      }
      %e = math.exp %t : f32
      loop.yield %e : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  %b = loop.kernel @folds(%x) : (tensor<4x6xf32>) -> tensor<f32> {
  ^bb0(%x: memref<4x6xf32>, %out: memref<f32>):
    %s = loop.for %k = 0 to 4 reduce(max) -> f32 {
      %t = loop.for %l = 0 to 6 reduce(add) -> f32 {
        %v = loop.load %x[%k, %l] : memref<4x6xf32>
        loop.yield %v : f32
      }
      loop.yield %t : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  %c = loop.kernel @triangle(%x) : (tensor<4x6xf32>) -> tensor<f32> {
  ^bb0(%x: memref<4x6xf32>, %out: memref<f32>):
    %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
      %t = loop.for %l = 0 to 6 reduce(add) -> f32 {
        %v = loop.load %x[%k, %l] : memref<4x6xf32>
        %in = loop.test [%k >= %l]
        %zero = arith.constant 0.0 : f32
        %w = arith.select %in, %v, %zero : f32
        loop.yield %w : f32
      }
      loop.yield %t : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  %d = loop.kernel @empty(%x) : (tensor<4x6xf32>) -> tensor<f32> {
  ^bb0(%x: memref<4x6xf32>, %out: memref<f32>):
    %s = loop.for %k = 0 to 4 reduce(add) -> f32 {
      %t = loop.for %l = 0 to 0 reduce(add) -> f32 {
        %v = loop.load %x[%k, %l] : memref<4x6xf32>
        loop.yield %v : f32
      }
      loop.yield %t : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  func.return %a, %b, %c, %d : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}

// -----

// The outer axis may be a size, the inner one not.
// CHECK-LABEL: loop.kernel @outer
// CHECK:         loop.for %k = 0 to s0 * 6 reduce(add)
// REMARK: remark: coalesce-axes: outer: 1 pair of axes became one
// REMARK: remark: coalesce-axes: inner: declined: the extent of the inner axis is dynamic
func.func @main(%x: tensor<?x6xf32, #sym.extents<s0>>) -> (tensor<f32>, tensor<f32>) attributes {sym.sizes = [#sym.size<"rows", 1, 4096>]} {
  %a = loop.kernel @outer(%x) : (tensor<?x6xf32, #sym.extents<s0>>) -> tensor<f32> {
  ^bb0(%x: memref<?x6xf32, #sym.extents<s0>>, %out: memref<f32>):
    %s = loop.for %k = 0 to s0 reduce(add) -> f32 {
      %t = loop.for %l = 0 to 6 reduce(add) -> f32 {
        %v = loop.load %x[%k, %l] : memref<?x6xf32, #sym.extents<s0>>
        loop.yield %v : f32
      }
      loop.yield %t : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  %b = loop.kernel @inner(%x) : (tensor<?x6xf32, #sym.extents<s0>>) -> tensor<f32> {
  ^bb0(%x: memref<?x6xf32, #sym.extents<s0>>, %out: memref<f32>):
    %s = loop.for %l = 0 to 6 reduce(add) -> f32 {
      %t = loop.for %k = 0 to s0 reduce(add) -> f32 {
        %v = loop.load %x[%k, %l] : memref<?x6xf32, #sym.extents<s0>>
        loop.yield %v : f32
      }
      loop.yield %t : f32
    }
    loop.store %s, %out[] : memref<f32>
  }
  func.return %a, %b : tensor<f32>, tensor<f32>
}
