// RUN: deplo-opt %s -p lower-tile-to-scf --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p tensor-to-llvm{target=cpu} --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p lower-tile-to-scf,interchange-columns,keep-in-output,prefetch-sweeps,mask-tails --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A block has 16 columns, copies what they begin as, and makes the updates one by one.
// Passes that change loops do not look at these.
// REMARK: remark: lower-tile-to-scf: k_y_scatter: makes its updates one by one, in 3 blocks
// REMARK-NOT: {{-columns|-output|-sweeps|-tails}}: k_
// CHECK-LABEL: func.func @k_y_scatter(%x: memref<5x40xf32>, %index: memref<400x1xi64>, %updates: memref<400x40xf32>, %y: memref<5x40xf32>
// CHECK-SAME: attributes {deplo.kernel, deplo.ordered}
// CHECK: scf.for %block = %block_begin to %block_end
// CHECK:   [[LEFT:%.*]] = loop.index[%block * -16 + %c40]
// CHECK:   %width = arith.minsi %c16, [[LEFT]]
// CHECK:   scf.for %n = %c0 to %c5
// CHECK:     [[OLD:%.*]] = loop.load %x[%n, %block * 16 + %e]
// CHECK:     loop.store [[OLD]], %y[%n, %block * 16 + %e]
// CHECK:   scf.for %k = %c0 to %c400
// CHECK:     loop.load %index[%k, 0]
// CHECK:     kernel.assert {{.*}}, "index out of range: expected 0 <= index < 5"
// CHECK:     %row = arith.index_cast
// CHECK:     scf.for [[E:%.*]] = %c0 to %width
// CHECK:       [[UPDATE:%.*]] = loop.load %updates[%k, %block * 16 + [[E]]]
// CHECK:       [[SO_FAR:%.*]] = loop.load %y[%row, %block * 16 + [[E]]]
// CHECK:       [[SUM:%.*]] = arith.addf [[SO_FAR]], [[UPDATE]]
// CHECK:       loop.store [[SUM]], %y[%row, %block * 16 + [[E]]]
// CHECK-LABEL: func.func @main
// CHECK: %y = kernel.alloc
// CHECK: kernel.launch @k_y_scatter(%x, %i, %u, %y) blocks(3)
func.func @main(%x: tensor<5x40xf32>, %i: tensor<400x1xi64>, %u: tensor<400x40xf32>) -> tensor<5x40xf32> {
  %y = tensor_ir.scatter add %x[%i] along 0 from %u : (tensor<5x40xf32>, tensor<400x1xi64>, tensor<400x40xf32>) -> tensor<5x40xf32>
  func.return %y : tensor<5x40xf32>
}

// -----

// Two scatters that are alike are one function. The second one's input is the first one's result, which nothing
// else reads: it is changed in place, by a function that does not get it twice.
// CHECK-LABEL: func.func @k_a_scatter(%x: memref<900xi32>, %index
// CHECK: loop.load %updates
// CHECK-NOT: arith.add
// CHECK-LABEL: func.func @k_c_scatter(%index: memref<900xi64>, %updates: memref<900xi32>, %y: memref<900xi32>
// CHECK-NOT: scf.for %n
// CHECK-LABEL: func.func @main
// CHECK: kernel.launch @k_a_scatter(%x, %i, %u, %a) blocks(1)
// CHECK: kernel.launch @k_a_scatter(%u, %i, %x, %b) blocks(1)
// CHECK: kernel.launch @k_c_scatter(%i, %a, %b) blocks(1)
// CHECK: func.return %b, %a
func.func @main(%x: tensor<900xi32>, %i: tensor<900xi64>, %u: tensor<900xi32>) -> (tensor<900xi32>, tensor<900xi32>) {
  %a = tensor_ir.scatter replace %x[%i] along 0 from %u : (tensor<900xi32>, tensor<900xi64>, tensor<900xi32>) -> tensor<900xi32>
  %b = tensor_ir.scatter replace %u[%i] along 0 from %x : (tensor<900xi32>, tensor<900xi64>, tensor<900xi32>) -> tensor<900xi32>
  %c = tensor_ir.scatter replace %b[%i] along 0 from %a : (tensor<900xi32>, tensor<900xi64>, tensor<900xi32>) -> tensor<900xi32>
  func.return %c, %a : tensor<900xi32>, tensor<900xi32>
}

// -----

// REMARK: remark: lower-tile-to-scf: k_v_sort: puts rows in order, in 4 blocks
// All of a row is wanted: its words are shared out by one byte of their keys after the other.
// CHECK-LABEL: func.func @k_v_sort(%x: memref<4x600xf32>, %values: memref<4x600xf32>, %positions: memref<4x600xi64>
// CHECK-DAG: %words = memref.alloc() {alignment = 64 : i64} : memref<1200xi64>
// CHECK-DAG: %table = memref.alloc() {alignment = 64 : i64} : memref<1024xi32>
// CHECK: scf.for %block
// CHECK:   scf.for %j = %c0 to %c600
// CHECK:     %key = arith.xori
// CHECK:     loop.store %word, %words
// CHECK:   [[SORTED:%.*]] = scf.for %byte = %c0 to %c4 step %c1 iter_args([[BASE:%.*]] = %c0)
// CHECK:     arith.cmpi eq, {{.*}}, %c600
// CHECK:     scf.if
// CHECK:     } else {
// CHECK:       loop.store {{.*}}, %table
// CHECK:       loop.store {{.*}}, %words
// CHECK:   scf.for %r = %c0 to %c600
// CHECK:     loop.load %words[[[SORTED]] + %r]
// CHECK:     loop.store {{.*}}, %positions[%block, %r]
// CHECK:     loop.store {{.*}}, %values[%block, %r]
// CHECK:   memref.dealloc %words
func.func @main(%x: tensor<4x600xf32>) -> (tensor<4x600xf32>, tensor<4x600xi64>) {
  %v, %i = tensor_ir.sort %x along 1 : tensor<4x600xf32> -> (tensor<4x600xf32>, tensor<4x600xi64>)
  func.return %v, %i : tensor<4x600xf32>, tensor<4x600xi64>
}

// -----

// Few words count how many are smaller.
// CHECK-LABEL: func.func @k_v_sort(%x: memref<60x4000xi8>
// CHECK-NOT: %table
// CHECK:   scf.for %i = %c0 to %c60
// CHECK:     scf.for %j_1 = %c0 to %c60 step %c1 iter_args
// CHECK:       arith.cmpi ult
// CHECK:     loop.store {{.*}}, %words
func.func @main(%x: tensor<60x4000xi8>) -> (tensor<60x4000xi8>, tensor<60x4000xi64>) {
  %v, %i = tensor_ir.sort %x along 0 descending : tensor<60x4000xi8> -> (tensor<60x4000xi8>, tensor<60x4000xi64>)
  func.return %v, %i : tensor<60x4000xi8>, tensor<60x4000xi64>
}

// -----

// The first five: parts of 32, 32, 64, 128, ... elements; what is below the limit is appended, chunk by chunk.
// CHECK-LABEL: func.func @k_v_sort(%x: memref<1000xf32>
// CHECK: scf.for %part = %c0 to %c6 step %c1 iter_args([[START:%.*]] = %c0, [[END:%.*]] = %c32,
// CHECK:   scf.for %chunk
// CHECK:     [[ANY:%.*]] = scf.for %e = %c0 to %c16 step %c1 iter_args
// CHECK:     scf.if [[ANY]] -> (index)
// CHECK:   arith.cmpi ule, {{.*}}, %c128
func.func @main(%x: tensor<1000xf32>) -> (tensor<5xf32>, tensor<5xi64>) {
  %v, %i = tensor_ir.sort %x along 0 : tensor<1000xf32> -> (tensor<5xf32>, tensor<5xi64>)
  func.return %v, %i : tensor<5xf32>, tensor<5xi64>
}

// -----

// A key of 64 bits comes in two halves, and the positions in the order of the lower one.
// CHECK-LABEL: func.func @k_v_sort(%x: memref<?xf64, #sym.extents<s0>>
// CHECK-DAG: %words = memref.alloc({{.*}}) {alignment = 64 : i64} : memref<?xi64, #sym.extents<s0 * 2>>
// CHECK: %key = arith.xori
// CHECK: scf.for %byte
// CHECK: arith.shrui %key_1
// CHECK: scf.for %byte_1
func.func @main(%x: tensor<?xf64, #sym.extents<s0>>) -> (tensor<?xf64, #sym.extents<s0>>, tensor<?xi64, #sym.extents<s0>>) attributes {sym.sizes = [#sym.size<"n", 2, 900, hint = 300>]} {
  %v, %i = tensor_ir.sort %x along 0 : tensor<?xf64, #sym.extents<s0>> -> (tensor<?xf64, #sym.extents<s0>>, tensor<?xi64, #sym.extents<s0>>)
  func.return %v, %i : tensor<?xf64, #sym.extents<s0>>, tensor<?xi64, #sym.extents<s0>>
}

// -----

// The first few of a row of any length: as many parts as the length has twice the first one, or it alone.
// CHECK-LABEL: func.func @k_v_sort
// CHECK:         [[LEFT:%.*]] = arith.index_cast {{%.*}} : index to i64
// CHECK:         scf.for %bit = %c0 to %c31 step %c1 iter_args
// CHECK:           arith.shrui [[LEFT]]
// CHECK:         %parts = arith.index_cast
// CHECK:         scf.for %part = %c0 to %parts step %c1
func.func @main(%x: tensor<?xf32, #sym.extents<s0>>) -> (tensor<3xf32>, tensor<3xi64>) attributes {sym.sizes = [#sym.size<"n", 3, 900, hint = 300>]} {
  %v, %i = tensor_ir.sort %x along 0 : tensor<?xf32, #sym.extents<s0>> -> (tensor<3xf32>, tensor<3xi64>)
  func.return %v, %i : tensor<3xf32>, tensor<3xi64>
}

// -----

// The key at a place, bit by bit: as many are below it as stand before; then its position among its equals.
// CHECK-LABEL: func.func @k_i_nth_element(%places: memref<4x2xi64>
// CHECK-DAG: %keys = memref.alloc() {alignment = 64 : i64} : memref<600xi32>
// CHECK:   %key = arith.xori
// CHECK:   [[KEY:%.*]] = arith.xori %key, {{.*}}
// CHECK:   loop.store [[KEY]], %keys[%j]
// CHECK:   [[PLACE:%.*]] = arith.trunci
// CHECK:   scf.for %step = %c0 to %c32 step %c1
// CHECK:     scf.for {{.*}} = %c0 to %c600
// CHECK:       arith.cmpi slt
// CHECK:     arith.cmpi ule, {{.*}}, [[PLACE]]
// CHECK:   scf.for {{.*}} = %c0 to %c10 step %c1
// CHECK:     arith.cmpi eq
// CHECK:   loop.store {{.*}}, %positions[%block, %r]
func.func @main(%n: tensor<4x2xi64>, %x: tensor<4x600xf32>) -> tensor<4x2xi64> {
  %i = tensor_ir.nth_element %n of %x along 1 : (tensor<4x2xi64>, tensor<4x600xf32>) -> tensor<4x2xi64>
  func.return %i : tensor<4x2xi64>
}

// -----

// A position in a row of any length has as many bits as a size may have.
// CHECK-LABEL: func.func @k_i_nth_element
// CHECK-DAG: %keys = memref.alloc(%s0) {alignment = 64 : i64} : memref<?xi64, #sym.extents<s0>>
// CHECK:     scf.for %step = %c0 to %c64 step %c1
// CHECK:     scf.for %step_1 = %c0 to %c31 step %c1
func.func @main(%n: tensor<1xi64>, %x: tensor<?xf64, #sym.extents<s0>>) -> tensor<1xi64> attributes {sym.sizes = [#sym.size<"n", 2, 900, hint = 300>]} {
  %i = tensor_ir.nth_element %n of %x along 0 : (tensor<1xi64>, tensor<?xf64, #sym.extents<s0>>) -> tensor<1xi64>
  func.return %i : tensor<1xi64>
}
