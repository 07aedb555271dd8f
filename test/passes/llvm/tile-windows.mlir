// The sums of large windows stay in registers, for a tile of rows and columns of results at once.
// RUN: deplo-opt %s -p tile-windows{target=cpu:avx512} | FileCheck %s
// RUN: deplo-opt %s -p tile-windows{target=cpu:avx512} --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p tile-windows{target=cpu:avx2} --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=AVX2

// A window of 5 by 5, 3 rows of 20 results: all rows at once, two vectors of each, the second of which ends behind
// the last column, and so does what it reads.
// REMARK: remark: tile-windows: k_window: 1 loop
// CHECK-LABEL: @k_window
// CHECK:         %sums = memref.alloc() {alignment = 64 : i64} : memref<96xf32>
// CHECK-NEXT:    %window = memref.alloc() {alignment = 64 : i64} : memref<8x1x24xf32>
// CHECK:         scf.for %k_tile = %{{.+}} to %{{.+}} step
// CHECK:           scf.for %l_tile = %{{.+}} to %{{.+}} step
// CHECK:             %[[sums:.+]] = scf.for %m = %{{.+}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>) {
// CHECK-COUNT-5:       loop.load %w[%{{.+}}, %m]
// CHECK:               %[[origin:.+]] = loop.index[%{{.+}} * 24 + %{{.+}} + %m]
// CHECK:               vector.load %window[%{{.+}}, %{{.+}}, %[[origin]]] : memref<8x1x24xf32>, vector<16xf32>
// CHECK-COUNT-13:      vector.load %window
// CHECK-NOT:           vector.load
// CHECK:               scf.yield
// CHECK-COUNT-6:     vector.store %{{.+}}, %sums
// CHECK:           scf.for %k = %{{.+}} to %{{.+}} step
// CHECK:             scf.for %l = %{{.+}} to %c20 step
// CHECK:               %[[s:.+]] = loop.load %sums[
// CHECK:               %[[n:.+]] = arith.negf %[[s]]
// CHECK:               loop.store %[[n]], %y[%k, %l]
// CHECK:         memref.dealloc %sums
func.func @k_window(%w: memref<5x5xf32>, %y: memref<3x20xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %window = memref.alloc() {alignment = 64 : i64} : memref<7x1x24xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  scf.for %k = %c0 to %c3 step %c1 {
    scf.for %l = %c0 to %c20 step %c1 {
      %s = scf.for %n = %c0 to %c5 step %c1 iter_args(%a = %zero) -> (f32) {
        %t = scf.for %m = %c0 to %c5 step %c1 iter_args(%b = %zero) -> (f32) {
          %v = loop.load %window[%k + %n, 0, %l + %m] : memref<7x1x24xf32>
          %f = loop.load %w[%n, %m] : memref<5x5xf32>
          %p = arith.mulf %v, %f : f32
          %next = arith.addf %b, %p : f32
          scf.yield %next : f32
        }
        %next = arith.addf %a, %t : f32
        scf.yield %next : f32
      }
      %minus = arith.negf %s : f32
      loop.store %minus, %y[%k, %l] : memref<3x20xf32>
    }
  }
  memref.dealloc %window : memref<7x1x24xf32>
  func.return
}

// Rows two apart, every second element of which lies at once; 15 factors leave no room in 16 registers.
// REMARK: remark: tile-windows: k_apart: 1 loop
// AVX2: remark: tile-windows: k_apart: declined: a column of its factors does not fit the registers
// CHECK-LABEL: @k_apart
// CHECK:         loop.index[%{{.+}} * 96 + %m mod 2 * 24 + %{{.+}} + %m floordiv 2]
// CHECK:         vector.load %window
func.func @k_apart(%w: memref<20x20xf32>, %x: memref<19x2x24xf32>, %y: memref<3x20xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %window = memref.alloc() {alignment = 64 : i64} : memref<19x2x24xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c15 = arith.constant 15 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  scf.for %k = %c0 to %c3 step %c1 {
    scf.for %l = %c0 to %c20 step %c1 {
      %s = scf.for %n = %c0 to %c15 step %c1 iter_args(%a = %zero) -> (f32) {
        %t = scf.for %m = %c0 to %c5 step %c1 iter_args(%b = %zero) -> (f32) {
          %v = loop.load %window[%k * 2 + %n, %m mod 2, %l + %m floordiv 2] : memref<19x2x24xf32>
          %f = loop.load %w[%n, %m] : memref<20x20xf32>
          %p = arith.mulf %v, %f : f32
          %next = arith.addf %b, %p : f32
          scf.yield %next : f32
        }
        %next = arith.addf %a, %t : f32
        scf.yield %next : f32
      }
      loop.store %s, %y[%k, %l] : memref<3x20xf32>
    }
  }
  memref.dealloc %window : memref<19x2x24xf32>
  func.return
}

// Of rows and columns that end sooner, room for the most, and as many tiles as there are.
// REMARK: remark: tile-windows: k_clipped: 1 loop
// CHECK-LABEL: @k_clipped
// CHECK:         %sums = memref.alloc() {alignment = 64 : i64} : memref<96xf32>
// CHECK:         [[DOWN:%.*]] = loop.index[(%place + 2) floordiv 3]
// CHECK:         [[ACROSS:%.*]] = loop.index[(%place_1 + 31) floordiv 32]
// CHECK:         scf.for %k_tile = %{{.+}} to [[DOWN]] step
// CHECK:           scf.for %l_tile = %{{.+}} to [[ACROSS]] step
// CHECK:           arith.minsi %{{.+}}, %place : index
// CHECK:             scf.for %l = %{{.+}} to %place_1 step
func.func @k_clipped(%w: memref<5x5xf32>, %y: memref<3x20xf32>, %h: index, %v: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %window = memref.alloc() {alignment = 64 : i64} : memref<7x1x24xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c5 = arith.constant 5 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  %high = arith.minsi %h, %c3 : index
  %place = arith.maxsi %high, %c0 : index
  %wide = arith.minsi %v, %c20 : index
  %place_1 = arith.maxsi %wide, %c0 : index
  scf.for %k = %c0 to %place step %c1 {
    scf.for %l = %c0 to %place_1 step %c1 {
      %s = scf.for %n = %c0 to %c5 step %c1 iter_args(%a = %zero) -> (f32) {
        %t = scf.for %m = %c0 to %c5 step %c1 iter_args(%b = %zero) -> (f32) {
          %v1 = loop.load %window[%k + %n, 0, %l + %m] : memref<7x1x24xf32>
          %f = loop.load %w[%n, %m] : memref<5x5xf32>
          %p = arith.mulf %v1, %f : f32
          %next = arith.addf %b, %p : f32
          scf.yield %next : f32
        }
        %next = arith.addf %a, %t : f32
        scf.yield %next : f32
      }
      loop.store %s, %y[%k, %l] : memref<3x20xf32>
    }
  }
  memref.dealloc %window : memref<7x1x24xf32>
  func.return
}

// What is no tile, and why.
// REMARK: remark: tile-windows: k_small: declined: all factors of a window of at most 16 elements fit the registers
// REMARK: remark: tile-windows: k_largest: declined: it is no sum of products over the rows and columns of a window
// REMARK: remark: tile-windows: k_rows: declined: it is not known how many rows and columns there are
// REMARK: remark: tile-windows: k_array: declined: neighbours among its elements do not lie side by side in a copy of them
// REMARK: remark: tile-windows: k_each: declined: neighbours among its elements do not lie side by side in a copy of them
// REMARK: remark: tile-windows: k_factors: declined: its factors are not those of its neighbours
// REMARK: remark: tile-windows: k_none: declined: no rows of results are sums of windows
func.func @k_small(%w: memref<20x20xf32>, %x: memref<7x1x24xf32>, %y: memref<3x20xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %window = memref.alloc() {alignment = 64 : i64} : memref<7x1x24xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c15 = arith.constant 15 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  scf.for %k = %c0 to %c3 step %c1 {
    scf.for %l = %c0 to %c20 step %c1 {
      %s = scf.for %n = %c0 to %c4 step %c1 iter_args(%a = %zero) -> (f32) {
        %t = scf.for %m = %c0 to %c4 step %c1 iter_args(%b = %zero) -> (f32) {
          %v = loop.load %window[%k + %n, 0, %l + %m] : memref<7x1x24xf32>
          %f = loop.load %w[%n, %m] : memref<20x20xf32>
          %p = arith.mulf %v, %f : f32
          %next = arith.addf %b, %p : f32
          scf.yield %next : f32
        }
        %next = arith.addf %a, %t : f32
        scf.yield %next : f32
      }
      loop.store %s, %y[%k, %l] : memref<3x20xf32>
    }
  }
  memref.dealloc %window : memref<7x1x24xf32>
  func.return
}
func.func @k_largest(%w: memref<20x20xf32>, %x: memref<7x1x24xf32>, %y: memref<3x20xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %window = memref.alloc() {alignment = 64 : i64} : memref<7x1x24xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c15 = arith.constant 15 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  scf.for %k = %c0 to %c3 step %c1 {
    scf.for %l = %c0 to %c20 step %c1 {
      %s = scf.for %n = %c0 to %c5 step %c1 iter_args(%a = %zero) -> (f32) {
        %t = scf.for %m = %c0 to %c5 step %c1 iter_args(%b = %zero) -> (f32) {
          %v = loop.load %window[%k + %n, 0, %l + %m] : memref<7x1x24xf32>
          %f = loop.load %w[%n, %m] : memref<20x20xf32>
          %p = arith.mulf %v, %f : f32
          %next = arith.maximumf %b, %p : f32
          scf.yield %next : f32
        }
        %next = arith.addf %a, %t : f32
        scf.yield %next : f32
      }
      loop.store %s, %y[%k, %l] : memref<3x20xf32>
    }
  }
  memref.dealloc %window : memref<7x1x24xf32>
  func.return
}
func.func @k_rows(%w: memref<20x20xf32>, %x: memref<7x1x24xf32>, %y: memref<3x20xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %window = memref.alloc() {alignment = 64 : i64} : memref<7x1x24xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c15 = arith.constant 15 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  scf.for %k = %c0 to %end step %c1 {
    scf.for %l = %c0 to %c20 step %c1 {
      %s = scf.for %n = %c0 to %c5 step %c1 iter_args(%a = %zero) -> (f32) {
        %t = scf.for %m = %c0 to %c5 step %c1 iter_args(%b = %zero) -> (f32) {
          %v = loop.load %window[%k + %n, 0, %l + %m] : memref<7x1x24xf32>
          %f = loop.load %w[%n, %m] : memref<20x20xf32>
          %p = arith.mulf %v, %f : f32
          %next = arith.addf %b, %p : f32
          scf.yield %next : f32
        }
        %next = arith.addf %a, %t : f32
        scf.yield %next : f32
      }
      loop.store %s, %y[%k, %l] : memref<3x20xf32>
    }
  }
  memref.dealloc %window : memref<7x1x24xf32>
  func.return
}
func.func @k_array(%w: memref<20x20xf32>, %x: memref<7x1x24xf32>, %y: memref<3x20xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %window = memref.alloc() {alignment = 64 : i64} : memref<7x1x24xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c15 = arith.constant 15 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  scf.for %k = %c0 to %c3 step %c1 {
    scf.for %l = %c0 to %c20 step %c1 {
      %s = scf.for %n = %c0 to %c5 step %c1 iter_args(%a = %zero) -> (f32) {
        %t = scf.for %m = %c0 to %c5 step %c1 iter_args(%b = %zero) -> (f32) {
          %v = loop.load %x[%k + %n, 0, %l + %m] : memref<7x1x24xf32>
          %f = loop.load %w[%n, %m] : memref<20x20xf32>
          %p = arith.mulf %v, %f : f32
          %next = arith.addf %b, %p : f32
          scf.yield %next : f32
        }
        %next = arith.addf %a, %t : f32
        scf.yield %next : f32
      }
      loop.store %s, %y[%k, %l] : memref<3x20xf32>
    }
  }
  memref.dealloc %window : memref<7x1x24xf32>
  func.return
}
func.func @k_each(%w: memref<20x20xf32>, %x: memref<7x1x24xf32>, %y: memref<3x20xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %window = memref.alloc() {alignment = 64 : i64} : memref<7x1x24xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c15 = arith.constant 15 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  scf.for %k = %c0 to %c3 step %c1 {
    scf.for %l = %c0 to %c20 step %c1 {
      %s = scf.for %n = %c0 to %c5 step %c1 iter_args(%a = %zero) -> (f32) {
        %t = scf.for %m = %c0 to %c5 step %c1 iter_args(%b = %zero) -> (f32) {
          %v = loop.load %window[%k + %n, 0, %l * 2 + %m] : memref<7x1x24xf32>
          %f = loop.load %w[%n, %m] : memref<20x20xf32>
          %p = arith.mulf %v, %f : f32
          %next = arith.addf %b, %p : f32
          scf.yield %next : f32
        }
        %next = arith.addf %a, %t : f32
        scf.yield %next : f32
      }
      loop.store %s, %y[%k, %l] : memref<3x20xf32>
    }
  }
  memref.dealloc %window : memref<7x1x24xf32>
  func.return
}
func.func @k_factors(%w: memref<20x20xf32>, %x: memref<7x1x24xf32>, %y: memref<3x20xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %window = memref.alloc() {alignment = 64 : i64} : memref<7x1x24xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c4 = arith.constant 4 : index
  %c5 = arith.constant 5 : index
  %c15 = arith.constant 15 : index
  %c20 = arith.constant 20 : index
  %zero = arith.constant 0.0 : f32
  scf.for %k = %c0 to %c3 step %c1 {
    scf.for %l = %c0 to %c20 step %c1 {
      %s = scf.for %n = %c0 to %c5 step %c1 iter_args(%a = %zero) -> (f32) {
        %t = scf.for %m = %c0 to %c5 step %c1 iter_args(%b = %zero) -> (f32) {
          %v = loop.load %window[%k + %n, 0, %l + %m] : memref<7x1x24xf32>
          %f = loop.load %w[%n + %k, %m] : memref<20x20xf32>
          %p = arith.mulf %v, %f : f32
          %next = arith.addf %b, %p : f32
          scf.yield %next : f32
        }
        %next = arith.addf %a, %t : f32
        scf.yield %next : f32
      }
      loop.store %s, %y[%k, %l] : memref<3x20xf32>
    }
  }
  memref.dealloc %window : memref<7x1x24xf32>
  func.return
}
func.func @k_none(%y: memref<3xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  func.return
}
