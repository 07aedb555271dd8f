// RUN: deplo-opt %s -p mask-tails --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p mask-tails --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// 77 are two times two vectors of 16, and 13; the largest so far is carried from one loop to the other.
// REMARK: remark: mask-tails: k_rows: 2 loops
// CHECK-LABEL: @k_rows
// CHECK:         [[A:%.*]] = scf.for %j = %c0 to %c64 step %c1 iter_args({{%.*}} = %low)
// CHECK:         [[M:%.*]] = scf.for %j_1 = %c64 to %c77 step %c1 iter_args({{%.*}} = [[A]])
// CHECK:           loop.load %x[%i, %j_1]
// CHECK:         scf.for %l = %c0 to %c64 step %c1
// CHECK:           arith.subf {{%.*}}, [[M]]
// CHECK:         scf.for %l_1 = %c64 to %c77 step %c1
// CHECK:           arith.subf {{%.*}}, [[M]]
func.func @k_rows(%x: memref<8x77xf32>, %y: memref<8x77xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512, interleave = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c77 = arith.constant 77 : index
  scf.for %i = %begin to %end step %c1 {
    %low = arith.constant 0xff800000 : f32
    %m = scf.for %j = %c0 to %c77 step %c1 iter_args(%so_far = %low) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<8x77xf32>
      %next = arith.maximumf %so_far, %v : f32
      scf.yield %next : f32
    }
    scf.for %l = %c0 to %c77 step %c1 {
      %w = loop.load %x[%i, %l] : memref<8x77xf32>
      %d = arith.subf %w, %m : f32
      loop.store %d, %y[%i, %l] : memref<8x77xf32>
    }
  }
  func.return
}

// -----

// Of 16 bits there are 32 in a vector; less than what is computed at once comes in whole vectors, too.
// REMARK: remark: mask-tails: k_short: 1 loop
// CHECK-LABEL: @k_short
// CHECK:         scf.for %j = %c0 to %c32 step %c1
// CHECK:         scf.for %j_1 = %c32 to %c50 step %c1
func.func @k_short(%x: memref<50xbf16>, %y: memref<50xbf16>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512, interleave = 4>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c50 = arith.constant 50 : index
  scf.for %j = %c0 to %c50 step %c1 {
    %v = loop.load %x[%j] : memref<50xbf16>
    loop.store %v, %y[%j] : memref<50xbf16>
  }
  func.return
}

// -----

// To fold a vector's elements takes longer than to fold two elements.
// REMARK: remark: mask-tails: k_few: declined: 2 elements are left beyond vectors of 16
// CHECK-LABEL: @k_few
// CHECK-NOT:     scf.for {{.*}} = %c48
func.func @k_few(%x: memref<8x50xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512, interleave = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c50 = arith.constant 50 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %c50 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%c0, %j] : memref<8x50xf32>
    %next = arith.addf %so_far, %v : f32
    scf.yield %next : f32
  }
  loop.store %s, %y[%c0] : memref<8xf32>
  func.return
}

// -----

// REMARK: remark: mask-tails: k_free: declined: LLVM decides how many vectors it folds at once
// CHECK-LABEL: @k_free
// CHECK-NOT:     scf.for {{.*}} = %c48
func.func @k_free(%x: memref<8x60xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c60 = arith.constant 60 : index
  %zero = arith.constant 0.0 : f32
  %s = scf.for %j = %c0 to %c60 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%c0, %j] : memref<8x60xf32>
    %next = arith.addf %so_far, %v : f32
    scf.yield %next : f32
  }
  loop.store %s, %y[%c0] : memref<8xf32>
  func.return
}

// -----

// REMARK: remark: mask-tails: k_small: declined: its 10 elements are less than a vector of 16; it does not go one by one from 0 on
// CHECK-LABEL: @k_small
func.func @k_small(%x: memref<10xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c10 = arith.constant 10 : index
  %zero = arith.constant 0.0 : f32
  scf.for %j = %c0 to %c10 step %c1 {
    loop.store %zero, %x[%j] : memref<10xf32>
  }
  scf.for %k = %begin to %end step %c1 {
    loop.store %zero, %x[%k] : memref<10xf32>
  }
  func.return
}

// -----

// A loop is cut whatever its length is, also one that folds.
// REMARK: remark: mask-tails: k_sizes: 2 loops
// CHECK-LABEL: @k_sizes
// CHECK:         [[LENGTH:%.*]] = arith.maxsi %n, %c0{{.*}} : index
// CHECK-NEXT:    %whole = arith.andi [[LENGTH]], %cm32 : index
// CHECK-NEXT:    scf.for %j = %c0{{.*}} to %whole step %c1 {
// CHECK:           math.exp
// CHECK:         scf.for %j_1 = %whole to %n step %c1 {
// CHECK:           math.exp
// CHECK:         [[FOLDED:%.*]] = scf.for %k = %c0{{.*}} to %whole_1 step %c1 iter_args({{.*}} = %zero)
// CHECK:         scf.for %k_1 = %whole_1 to %n step %c1 iter_args({{.*}} = [[FOLDED]])
func.func @k_sizes(%x: memref<?xf32, #sym.extents<s0>>, %y: memref<?xf32, #sym.extents<s0>>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512, interleave = 2>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %n = loop.index[s0]
  scf.for %j = %c0 to %n step %c1 {
    %v = loop.load %x[%j] : memref<?xf32, #sym.extents<s0>>
    %e = math.exp %v : f32
    loop.store %e, %y[%j] : memref<?xf32, #sym.extents<s0>>
  }
  %zero = arith.constant 0.0 : f32
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%k] : memref<?xf32, #sym.extents<s0>>
    %next = arith.addf %so_far, %v : f32
    scf.yield %next : f32
  }
  loop.store %sum, %y[%c0] : memref<?xf32, #sym.extents<s0>>
  func.return
}

// -----

// A number is read where it is, whatever place of the row is computed.
// REMARK: remark: mask-tails: k_number: 1 loop
// CHECK-LABEL: @k_number
// CHECK:         scf.for %j_1 = %c16 to %c28 step %c1
func.func @k_number(%x: memref<28xf32>, %n: memref<f32>, %y: memref<28xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c28 = arith.constant 28 : index
  scf.for %j = %c0 to %c28 step %c1 {
    %a = loop.load %x[%j] : memref<28xf32>
    %b = loop.load %n[] : memref<f32>
    %v = arith.addf %a, %b : f32
    loop.store %v, %y[%j] : memref<28xf32>
  }
  func.return
}

// -----

// Where the other elements are read, too, and there are functions to compute, vectors of them are shuffled.
// REMARK: remark: mask-tails: k_pairs: 1 loop
// CHECK-LABEL: @k_pairs
// CHECK:         scf.for %j_1 = %c16 to %c28 step %c1
func.func @k_pairs(%x: memref<56xf32>, %y: memref<28xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c28 = arith.constant 28 : index
  scf.for %j = %c0 to %c28 step %c1 {
    %a = loop.load %x[%j * 2] : memref<56xf32>
    %b = loop.load %x[%j * 2 + 1] : memref<56xf32>
    %e = math.exp %a : f32
    %v = arith.addf %e, %b : f32
    loop.store %v, %y[%j] : memref<28xf32>
  }
  func.return
}

// -----

// Under a mask, each of the elements that are read would be loaded alone.
// REMARK: remark: mask-tails: k_skips: declined: it leaves out elements of what it reads
// CHECK-LABEL: @k_skips
func.func @k_skips(%x: memref<56xf32>, %y: memref<28xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c28 = arith.constant 28 : index
  scf.for %j = %c0 to %c28 step %c1 {
    %v = loop.load %x[%j * 2 + 1] : memref<56xf32>
    loop.store %v, %y[%j] : memref<28xf32>
  }
  func.return
}

// -----

// REMARK: remark: mask-tails: k_tiles: declined: its schedule has no `width` of vectors
// REMARK: remark: mask-tails: k_none: declined: there is no loop
func.func @k_tiles(%x: memref<10xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  func.return
}
func.func @k_none(%x: memref<10xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512>} {
  func.return
}

// -----

// What carries vectors is made of whole ones; an index is as long as an i64.
// REMARK: remark: mask-tails: k_vectors: declined: it computes vectors
// CHECK-LABEL: @k_vectors
// CHECK-NOT:     scf.for {{.*}} = %c16
func.func @k_vectors(%x: memref<77xf32>, %y: memref<16xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512, interleave = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c77 = arith.constant 77 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %s = scf.for %j = %c0 to %c77 step %c1 iter_args(%so_far = %zero) -> (vector<16xf32>) {
    %v = loop.load %x[%j] : memref<77xf32>
    %w = vector.broadcast %v : f32 to vector<16xf32>
    %next = vector.fma %w, %w, %so_far : vector<16xf32>
    scf.yield %next : vector<16xf32>
  }
  vector.store %s, %y[%c0] : memref<16xf32>, vector<16xf32>
  func.return
}

// -----

// REMARK: remark: mask-tails: k_places: 1 loop
// CHECK-LABEL: @k_places
// CHECK:         scf.for %j = %c0 to %c72
func.func @k_places(%x: memref<79xf32>, %y: memref<1xindex>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<width = 512, interleave = 1>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c79 = arith.constant 79 : index
  %s = scf.for %j = %c0 to %c79 step %c1 iter_args(%so_far = %c0) -> (index) {
    %v = loop.load %x[%j] : memref<79xf32>
    %zero = arith.constant 0.0 : f32
    %above = arith.cmpf ogt, %v, %zero : f32
    %next = arith.select %above, %j, %so_far : index
    scf.yield %next : index
  }
  func.return
}
