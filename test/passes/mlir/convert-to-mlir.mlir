// RUN: deplo-opt %s -p convert-to-mlir --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p convert-to-mlir --split-input-file -v 2>&1 | FileCheck %s --check-prefix=WHY

// Blocks run in parallel; accesses have arithmetic of their own; the result is an argument.
// CHECK-LABEL: func.func @k_neg(
// CHECK-SAME:    %x: memref<12x8xf32>, %y: memref<12x8xf32>) {
// CHECK:         "scf.parallel"(%c0, %c3, %c1)
// CHECK:         ^bb0(%b: index):
// CHECK:           scf.for %i = %c0 to %c4
// CHECK:             arith.divsi
// CHECK:             %[[R:.*]] = arith.muli %b, %{{.*}} : index
// CHECK:             %[[S:.*]] = arith.addi %[[R]], %i : index
// CHECK:             memref.load %x[%[[S]], %{{.*}}] : memref<12x8xf32>
// CHECK:             arith.cmpi slt, %i, %{{.*}} : index
// CHECK:             scf.if
// CHECK:               memref.store
// CHECK:           scf.reduce
// CHECK-LABEL: func.func @program(%x: memref<12x8xf32>, %y: memref<12x8xf32>) {
// CHECK-NEXT:    %t = memref.alloc() {alignment = 64 : i64} : memref<12x8xf32>
// CHECK-NEXT:    func.call @k_neg(%x, %t)
// CHECK-NEXT:    func.call @k_neg(%t, %y)
// CHECK-NEXT:    memref.dealloc %t
// CHECK-NEXT:    func.return
// WHY: convert-to-mlir: k_neg: runs 3 blocks in one call
func.func @k_neg(%x: memref<12x8xf32>, %y: memref<12x8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %b = %begin to %end step %c1 {
    scf.for %i = %c0 to %c4 step %c1 {
      %h = loop.index[%i floordiv 2]
      %v = loop.load %x[%b * 4 + %i, %h] : memref<12x8xf32>
      %ok = loop.test[%i < 3]
      scf.if %ok {
        loop.store %v, %y[%b * 4 + %i, %h] : memref<12x8xf32>
      }
    }
  }
  func.return
}
func.func @main(%x: memref<12x8xf32>) -> memref<12x8xf32> {
  %t = kernel.alloc at 0 : memref<12x8xf32>
  kernel.launch @k_neg(%x, %t) blocks(3) threads(1) : memref<12x8xf32>, memref<12x8xf32>
  %y = kernel.alloc : memref<12x8xf32>
  kernel.launch @k_neg(%t, %y) blocks(3) threads(1) : memref<12x8xf32>, memref<12x8xf32>
  func.return %y : memref<12x8xf32>
}

// -----

// One block is no parallel loop. Scratch buffers are the block's, small ones on its stack, and so is what is
// written to them in front of all blocks. What is unused goes.
// CHECK-LABEL: func.func @k_scratch
// CHECK-NOT:     scf.parallel
// CHECK:         scf.for %b
// CHECK-NEXT:      memref.alloca() {alignment = 64 : i64} : memref<4xf32>
// CHECK-NEXT:      memref.alloc() {alignment = 64 : i64} : memref<40000xf32>
// CHECK-NEXT:      scf.for %f = %c0 to %c4 step %c1 {
// CHECK:             memref.store
// CHECK:           memref.dealloc %{{.*}} : memref<40000xf32>
// CHECK-NEXT:    }
// CHECK-NEXT:    func.return
// A result that is an input is copied.
// CHECK:       func.func @program(%x: memref<4xf32>, %y: memref<4xf32>, %[[X:.*]]: memref<4xf32>, %[[Y:.*]]: memref<4xf32>)
// CHECK:         "memref.copy"(%x, %[[X]])
// CHECK:         "memref.copy"(%y, %[[Y]])
func.func @k_scratch(%x: memref<4xf32>, %y: memref<4xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c1 = arith.constant 1 : index
  %s = memref.alloc() {alignment = 64 : i64} : memref<4xf32>
  %l = memref.alloc() {alignment = 64 : i64} : memref<40000xf32>
  %n = memref.alloc() {alignment = 64 : i64} : memref<7xf32>
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  scf.for %f = %c0 to %c4 step %c1 {
    %zero = arith.constant 0.0 : f32
    loop.store %zero, %s[%f] : memref<4xf32>
  }
  scf.for %b = %begin to %end step %c1 {
    %v = loop.load %x[%b] : memref<4xf32>
    loop.store %v, %s[%b] : memref<4xf32>
    loop.store %v, %l[%b] : memref<40000xf32>
    loop.store %v, %y[%b] : memref<4xf32>
  }
  memref.dealloc %s : memref<4xf32>
  memref.dealloc %l : memref<40000xf32>
  memref.dealloc %n : memref<7xf32>
  func.return
}
func.func @main(%x: memref<4xf32>) -> (memref<4xf32>, memref<4xf32>, memref<4xf32>) {
  %y = kernel.alloc : memref<4xf32>
  kernel.launch @k_scratch(%x, %y) blocks(1) threads(1) : memref<4xf32>, memref<4xf32>
  func.return %y, %x, %y : memref<4xf32>, memref<4xf32>, memref<4xf32>
}

// -----

// Where upstream says nothing of the result, the code does: division, conversion, negative quotients of indices.
// CHECK-LABEL: func.func @k_total
// CHECK:         arith.floordivsi %{{.*}}, %{{.*}} : index
// CHECK:         cf.assert %{{.*}}, "a message"
// CHECK:         %[[SAFE:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
// CHECK:         arith.divsi %{{.*}}, %[[SAFE]] : i32
// CHECK:         arith.divsi %{{.*}}, %{{.*}} : i32
// CHECK:         %[[F:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : f32
// CHECK:         arith.fptosi %[[F]] : f32 to i32
// CHECK:         arith.trunci %{{.*}} : i32 to i8
func.func @k_total(%x: memref<4xi32>, %f: memref<4xf32>, %y: memref<4xi32>, %z: memref<4xi8>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c1 = arith.constant 1 : index
  %seven = arith.constant 7 : i32
  scf.for %b = %begin to %end step %c1 {
    %v = loop.load %x[%b] : memref<4xi32>
    %u = arith.index_cast %v : i32 to index
    %h = loop.index[%u floordiv 2]
    %w = loop.load %x[%h] : memref<4xi32>
    %ok = arith.cmpi ne, %w, %seven : i32
    kernel.assert %ok, "a message"
    %q = arith.divsi %v, %w : i32
    %r = arith.divsi %q, %seven : i32
    loop.store %r, %y[%b] : memref<4xi32>
    %g = loop.load %f[%b] : memref<4xf32>
    %i = arith.fptosi %g : f32 to i8
    loop.store %i, %z[%b] : memref<4xi8>
  }
  func.return
}
func.func @main(%x: memref<4xi32>, %f: memref<4xf32>) -> (memref<4xi32>, memref<4xi8>) {
  %y = kernel.alloc : memref<4xi32>
  %z = kernel.alloc : memref<4xi8>
  kernel.launch @k_total(%x, %f, %y, %z) blocks(4) threads(1) : memref<4xi32>, memref<4xf32>, memref<4xi32>, memref<4xi8>
  func.return %y, %z : memref<4xi32>, memref<4xi8>
}

// -----

// A kernel without blocks is not called.
// CHECK-LABEL: builtin.module
// CHECK-NOT:     k_nothing
// CHECK:       func.func @program
// CHECK-NEXT:    func.return
// WHY: convert-to-mlir: k_nothing: declined: there is nothing for it to do
func.func @k_nothing(%y: memref<0xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  func.return
}
func.func @main() -> memref<0xf32> {
  %y = kernel.alloc : memref<0xf32>
  kernel.launch @k_nothing(%y) blocks(0) threads(1) : memref<0xf32>
  func.return %y : memref<0xf32>
}

// -----

// Squares are copied element by element.
// CHECK-LABEL: func.func @k_turned
// CHECK:         %t = memref.alloca() {alignment = 64 : i64} : memref<16x16xf32>
// CHECK:         scf.for %row
// CHECK:           scf.for %column
// CHECK:             memref.load %x[%column, %{{.*}}] : memref<16x32xf32>
// CHECK:             memref.store %{{.*}}, %t[%row, %column] : memref<16x16xf32>
// CHECK:         memref.load %t
func.func @k_turned(%x: memref<16x32xf32>, %y: memref<2xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c1 = arith.constant 1 : index
  scf.for %b = %begin to %end step %c1 {
    %t = loop.transpose %x[0, %b * 16] along 0 : memref<16x32xf32> -> memref<16x16xf32>
    %v = loop.load %t[%b, 3] : memref<16x16xf32>
    loop.store %v, %y[%b] : memref<2xf32>
  }
  func.return
}
func.func @main(%x: memref<16x32xf32>) -> memref<2xf32> {
  %y = kernel.alloc : memref<2xf32>
  kernel.launch @k_turned(%x, %y) blocks(2) threads(1) : memref<16x32xf32>, memref<2xf32>
  func.return %y : memref<2xf32>
}
