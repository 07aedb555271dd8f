// RUN: deplo-opt %s -p narrow-results --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p narrow-results --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p narrow-results --split-input-file --check-each-pass >/dev/null

// All readers round it, one of them in two places: it is stored as they do, and they load that.
// REMARK: remark: narrow-results: sums: 1 result as the readers round it
// CHECK-LABEL: func.func @main
// CHECK:       %s = loop.kernel @sums(%x) : (tensor<8xf32>) -> tensor<8xbf16>
// CHECK:         %[[r:.+]] = arith.truncf %v : f32 to bf16
// CHECK-NEXT:    loop.store %[[r]], %out[%i] : memref<8xbf16>
// CHECK:       loop.kernel @reads(%s) : (tensor<8xbf16>) -> tensor<8xbf16>
// CHECK:         %[[a:.+]] = loop.load %in[%i] : memref<8xbf16>
// CHECK-NEXT:    %[[b:.+]] = loop.load %in[7 - %i] : memref<8xbf16>
// CHECK-NEXT:    arith.extf %[[a]]
// CHECK-NEXT:    arith.extf %[[b]]
// CHECK-NOT:     arith.truncf %in
func.func @main(%x: tensor<8xf32>) -> tensor<8xbf16> {
  %s = loop.kernel @sums(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<8xf32>, %out: memref<8xf32>):
    loop.for %i = 0 to 8 {
      %u = loop.load %in[%i] : memref<8xf32>
      %v = arith.addf %u, %u : f32
      loop.store %v, %out[%i] : memref<8xf32>
    }
  }
  %y = loop.kernel @reads(%s) : (tensor<8xf32>) -> tensor<8xbf16> {
  ^bb0(%in: memref<8xf32>, %out: memref<8xbf16>):
    loop.for %i = 0 to 8 {
      %u = loop.load %in[%i] : memref<8xf32>
      %a = arith.truncf %u : f32 to bf16
      %t = loop.load %in[7 - %i] : memref<8xf32>
      %b = arith.truncf %t : f32 to bf16
      %c = arith.extf %a : bf16 to f32
      %d = arith.extf %b : bf16 to f32
      %e = arith.addf %c, %d : f32
      %f = arith.truncf %e : f32 to bf16
      loop.store %f, %out[%i] : memref<8xbf16>
    }
  }
  func.return %y : tensor<8xbf16>
}

// -----

// One reader wants more of it than is left after rounding; and a result of the program is what it is.
// REMARK: remark: narrow-results: both: declined: not all that reads a result rounds it, and to the same type
// REMARK: remark: narrow-results: reads: declined: not all that reads a result rounds it, and to the same type
// CHECK:       loop.kernel @both(%x) : (tensor<8xf32>) -> tensor<8xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = loop.kernel @both(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<8xf32>, %out: memref<8xf32>):
    loop.for %i = 0 to 8 {
      %u = loop.load %in[%i] : memref<8xf32>
      %v = arith.addf %u, %u : f32
      loop.store %v, %out[%i] : memref<8xf32>
    }
  }
  %y = loop.kernel @reads(%s) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<8xf32>, %out: memref<8xf32>):
    loop.for %i = 0 to 8 {
      %u = loop.load %in[%i] : memref<8xf32>
      %a = arith.truncf %u : f32 to bf16
      %c = arith.extf %a : bf16 to f32
      %e = arith.addf %c, %u : f32
      loop.store %e, %out[%i] : memref<8xf32>
    }
  }
  func.return %y : tensor<8xf32>
}

// -----

// Two results that lie one behind the other in what is rounded: each branch rounds what it loads, so each is
// stored as that. A branch that computes something keeps the rounding behind it.
// REMARK: remark: narrow-results: left: 1 result as the readers round it
// REMARK: remark: narrow-results: right: 1 result as the readers round it
// CHECK-LABEL: func.func @main(%x: tensor<4xf32>, %z: tensor<4xf32>)
// CHECK:       %l = loop.kernel @left(%x) : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK:       %r = loop.kernel @right(%x) : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK:       loop.kernel @both(%l, %r) : (tensor<4xbf16>, tensor<4xbf16>) -> tensor<8xbf16>
// CHECK:         %[[v:.+]] = scf.if %{{.+}} -> (bf16) {
// CHECK-NEXT:      %[[a:.+]] = loop.load %a[%i] : memref<4xbf16>
// CHECK-NEXT:      scf.yield %[[a]] : bf16
// CHECK:           %[[b:.+]] = loop.load %b[%i - 4] : memref<4xbf16>
// CHECK-NEXT:      scf.yield %[[b]] : bf16
// CHECK:         loop.store %[[v]], %out[%i] : memref<8xbf16>
// CHECK:       loop.kernel @other
// CHECK:         %[[w:.+]] = scf.if %{{.+}} -> (f32) {
// CHECK:         arith.truncf %[[w]] : f32 to bf16
func.func @main(%x: tensor<4xf32>, %z: tensor<4xf32>) -> (tensor<8xbf16>, tensor<8xbf16>) {
  %l = loop.kernel @left(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%in: memref<4xf32>, %out: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %u = loop.load %in[%i] : memref<4xf32>
      %v = arith.addf %u, %u : f32
      loop.store %v, %out[%i] : memref<4xf32>
    }
  }
  %r = loop.kernel @right(%x) : (tensor<4xf32>) -> tensor<4xf32> {
  ^bb0(%in: memref<4xf32>, %out: memref<4xf32>):
    loop.for %i = 0 to 4 {
      %u = loop.load %in[%i] : memref<4xf32>
      %v = arith.mulf %u, %u : f32
      loop.store %v, %out[%i] : memref<4xf32>
    }
  }
  %y = loop.kernel @both(%l, %r) : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xbf16> {
  ^bb0(%a: memref<4xf32>, %b: memref<4xf32>, %out: memref<8xbf16>):
    loop.for %i = 0 to 8 {
      %t = loop.test[%i < 4]
      %v = scf.if %t -> (f32) {
        %p = loop.load %a[%i] : memref<4xf32>
        scf.yield %p : f32
      } else {
        %q = loop.load %b[%i - 4] : memref<4xf32>
        scf.yield %q : f32
      }
      %n = arith.truncf %v : f32 to bf16
      loop.store %n, %out[%i] : memref<8xbf16>
    }
  }
  %o = loop.kernel @other(%z) : (tensor<4xf32>) -> tensor<8xbf16> {
  ^bb0(%a: memref<4xf32>, %out: memref<8xbf16>):
    loop.for %i = 0 to 8 {
      %t = loop.test[%i < 4]
      %v = scf.if %t -> (f32) {
        %p = loop.load %a[%i] : memref<4xf32>
        scf.yield %p : f32
      } else {
        %q = arith.constant 0.0 : f32
        scf.yield %q : f32
      }
      %n = arith.truncf %v : f32 to bf16
      loop.store %n, %out[%i] : memref<8xbf16>
    }
  }
  func.return %y, %o : tensor<8xbf16>, tensor<8xbf16>
}
