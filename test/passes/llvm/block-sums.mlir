// RUN: deplo-opt %s -p block-sums --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p block-sums --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// 16 additions of each of 4 vectors of 16 are one block; what is no sum is carried from block to block.
// REMARK: remark: block-sums: k_rows: 1 loop
// CHECK-LABEL: @k_rows
// CHECK:         %low =
// CHECK-NEXT:    [[Z:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    [[W:%.*]] = arith.extf %zero : f32 to f64
// CHECK-NEXT:    [[R:%.*]], %m = scf.for %block = %c0 to %c65536 step %c1024 iter_args([[A:%.*]] = [[W]], [[B:%.*]] = %low) -> (f64, f32)
// CHECK-NEXT:      [[E:%.*]] = loop.index[%block + 1024]
// CHECK-NEXT:      [[S:%.*]], [[M:%.*]] = scf.for %j = %block to [[E]] step %c1 iter_args({{%.*}} = [[Z]], {{%.*}} = [[B]]) -> (f32, f32)
// CHECK:           [[L:%.*]] = arith.extf [[S]] : f32 to f64
// CHECK-NEXT:      [[N:%.*]] = arith.addf [[A]], [[L]] fastmath<reassoc> : f64
// CHECK-NEXT:      scf.yield [[N]], [[M]]
// CHECK:         [[F:%.*]] = arith.truncf [[R]] : f64 to f32
// CHECK-NEXT:    loop.store [[F]], %y[]
func.func @k_rows(%x: memref<65536xf32>, %y: memref<f32>, %z: memref<f32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c65536 = arith.constant 65536 : index
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xff800000 : f32
  %s, %m = scf.for %j = %c0 to %c65536 step %c1 iter_args(%so_far = %zero, %most = %low) -> (f32, f32) {
    %v = loop.load %x[%j] : memref<65536xf32>
    %next = arith.addf %so_far, %v fastmath<reassoc> : f32
    %larger = arith.maximumf %most, %v fastmath<reassoc> : f32
    scf.yield %next, %larger : f32, f32
  }
  loop.store %s, %y[] : memref<f32>
  loop.store %m, %z[] : memref<f32>
  func.return
}

// -----

// A length that no block divides, or a size: the last block is shorter. Vectors of 256 bits, one at once, are
// 128 elements in a block; f64 stays f64.
// REMARK: remark: block-sums: k_sizes: 1 loop
// CHECK-LABEL: @k_sizes
// CHECK:         scf.for %block = %c0 to %n step %c64 iter_args([[A:%.*]] = %zero) -> (f64)
// CHECK-NEXT:      [[I:%.*]] = loop.index[%block + 64]
// CHECK-NEXT:      [[E:%.*]] = arith.minsi [[I]], %n : index
// CHECK-NEXT:      scf.for %j = %block to [[E]] step %c1
// CHECK-NOT:     arith.extf
func.func @k_sizes(%x: memref<?xf64>, %y: memref<f64>, %n: index, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 256, interleave = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %zero = arith.constant 0.0 : f64
  %s = scf.for %j = %c0 to %n step %c1 iter_args(%so_far = %zero) -> (f64) {
    %v = loop.load %x[%j] : memref<?xf64>
    %next = arith.addf %so_far, %v fastmath<reassoc> : f64
    scf.yield %next : f64
  }
  loop.store %s, %y[] : memref<f64>
  func.return
}

// -----

// Terms that lie apart are added up one by one, in f64; so are those that a loop inside computes.
// REMARK: remark: block-sums: k_apart: 1 loop
// CHECK-LABEL: @k_apart
// CHECK:         [[W:%.*]] = arith.extf %zero : f32 to f64
// CHECK-NEXT:    [[R:%.*]] = scf.for %i = %c0 to %c200 step %c1 iter_args([[A:%.*]] = [[W]]) -> (f64)
// CHECK:           [[T:%.*]] = scf.for %j = %c0 to %c8 step %c1 iter_args({{%.*}} = %zero) -> (f32)
// CHECK:           [[L:%.*]] = arith.extf [[T]] : f32 to f64
// CHECK-NEXT:      [[N:%.*]] = arith.addf [[A]], [[L]] : f64
// CHECK-NEXT:      scf.yield [[N]]
// CHECK:         arith.truncf [[R]] : f64 to f32
func.func @k_apart(%x: memref<8x200xf32>, %y: memref<f32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c200 = arith.constant 200 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %i = %c0 to %c200 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %t = scf.for %j = %c0 to %c8 step %c1 iter_args(%part = %zero) -> (f32) {
      %v = loop.load %x[%j, %i] : memref<8x200xf32>
      %sum = arith.addf %part, %v : f32
      scf.yield %sum : f32
    }
    %next = arith.addf %so_far, %t : f32
    scf.yield %next : f32
  }
  loop.store %s, %y[] : memref<f32>
  func.return
}

// -----

// REMARK: remark: block-sums: k_short: declined: its 1024 additions are few
// REMARK: remark: block-sums: k_none: declined: nothing is added up
func.func @k_short(%x: memref<1024xf32>, %y: memref<f32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %c1024 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<1024xf32>
    %next = arith.addf %so_far, %v fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  loop.store %s, %y[] : memref<f32>
  func.return
}
func.func @k_none(%x: memref<4096xf32>, %y: memref<4096xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4096 = arith.constant 4096 : index
  scf.for %j = %c0 to %c4096 step %c1 {
    %v = loop.load %x[%j] : memref<4096xf32>
    loop.store %v, %y[%j] : memref<4096xf32>
  }
  func.return
}
