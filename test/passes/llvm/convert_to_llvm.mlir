// Kernels in control-flow form become llvm functions; the host's main stays.

// RUN: deplo-opt %s --split-input-file -p convert-to-llvm | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p convert-to-llvm --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A counter is never negative, so its remainder is unsigned; a bool is one byte; a subtraction is not fused.
// REMARK: remark: convert-to-llvm: k: converted
// CHECK-LABEL: llvm.func @k(%x: !llvm.ptr {llvm.noalias}, %m: !llvm.ptr {llvm.noalias}, %block_begin: i64,
// CHECK-SAME:    %block_end: i64, %status: !llvm.ptr {llvm.noalias}) attributes {deplo.kernel} {
// CHECK:         %c1 = llvm.mlir.constant(1) : i64
// CHECK:         llvm.br ^[[HEAD:.*]](%block_begin : i64)
// CHECK:       ^[[HEAD]](%i: i64):
// CHECK-NEXT:    %[[MORE:.*]] = llvm.icmp "slt" %i, %block_end : i64
// CHECK-NEXT:    llvm.cond_br %[[MORE]], ^[[BODY:.*]], ^[[END:.*]]
// CHECK:       ^[[BODY]]:
// CHECK:         %[[ROW:.*]] = llvm.urem %i, %{{.*}} : i64
// CHECK:         %[[START:.*]] = llvm.mul %[[ROW]], %{{.*}} overflow<nsw> : i64
// CHECK:         %[[COLUMN:.*]] = llvm.udiv %i, %{{.*}} : i64
// CHECK:         %[[OFFSET:.*]] = llvm.add %[[START]], %[[COLUMN]] overflow<nsw> : i64
// CHECK:         %[[AT:.*]] = llvm.getelementptr inbounds %x[%[[OFFSET]]] : (!llvm.ptr, i64) -> !llvm.ptr, f32
// CHECK-NEXT:    %v = llvm.load %[[AT]] : !llvm.ptr -> f32
// CHECK-NEXT:    %w = llvm.fmul %v, %v {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK-NEXT:    %r = llvm.fsub %w, %v : f32
// CHECK-NEXT:    %d = llvm.fdiv %r, %v : f32
// CHECK:         %[[INSIDE:.*]] = llvm.icmp "sge" %{{.*}}, %{{.*}} : i64
// CHECK:         %[[POSITIVE:.*]] = llvm.fcmp "ogt" %d, %v : f32
// CHECK:         %both = llvm.and %[[INSIDE]], %[[POSITIVE]] : i1
// CHECK:         %[[BYTE:.*]] = llvm.zext %both : i1 to i8
// CHECK:         llvm.store %[[BYTE]], %{{.*}} : i8, !llvm.ptr
// CHECK:         llvm.br ^[[HEAD]](%{{.*}} : i64)

// CHECK:       func.func @main
// CHECK:         kernel.launch @k
func.func @k(%x: memref<3x4xf32>, %m: memref<12xi1>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c1 = arith.constant 1 : index
  cf.br ^head(%block_begin : index)
^head(%i: index):
  %more = arith.cmpi slt, %i, %block_end : index
  cf.cond_br %more, ^body, ^end
^body:
  %v = loop.load %x[%i mod 3, %i floordiv 3] : memref<3x4xf32>
  %w = arith.mulf %v, %v : f32
  %r = arith.subf %w, %v : f32
  %d = arith.divf %r, %v : f32
  %inside = loop.test [%i < 8]
  %positive = arith.cmpf ogt, %d, %v : f32
  %both = arith.andi %inside, %positive : i1
  loop.store %both, %m[%i] : memref<12xi1>
  %next = arith.addi %i, %c1 : index
  cf.br ^head(%next : index)
^end:
  func.return
}
func.func @main(%x: memref<3x4xf32>) -> memref<12xi1> {
  %m = kernel.alloc : memref<12xi1>
  kernel.launch @k(%x, %m) blocks(12) threads(1) : memref<3x4xf32>, memref<12xi1>
  func.return %m : memref<12xi1>
}

// -----

// A check that fails stores its number and leaves; the message stays with the function.
// CHECK-LABEL: llvm.func @check
// CHECK-SAME:    deplo.messages = ["index out of range"]
// CHECK:         llvm.cond_br %ok, ^[[ON:.*]], ^[[FAILED:.*]]
// CHECK:       ^[[ON]]:
// CHECK:         llvm.store %v
// CHECK:       ^[[FAILED]]:
// CHECK-NEXT:    %[[NUMBER:.*]] = llvm.mlir.constant(1) : i64
// CHECK-NEXT:    llvm.store %[[NUMBER]], %status : i64, !llvm.ptr
// CHECK-NEXT:    llvm.return
func.func @check(%x: memref<1xi8>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %v = loop.load %x[0] : memref<1xi8>
  %zero = arith.constant 0 : i8
  %ok = arith.cmpi sge, %v, %zero : i8
  kernel.assert %ok, "index out of range"
  loop.store %v, %x[0] : memref<1xi8>
  func.return
}

// -----

// What may be negative is divided with care.
// CHECK-LABEL: llvm.func @negative
// CHECK:         %[[LOW:.*]] = llvm.icmp "slt" %[[I:.*]], %{{.*}} : i64
// CHECK:         llvm.select %[[LOW]]
// CHECK:         llvm.sdiv
func.func @negative(%x: memref<8xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %minus = arith.constant -5 : index
  %i = arith.addi %block_begin, %minus : index
  %v = loop.load %x[%i floordiv 3 + 2] : memref<8xf32>
  loop.store %v, %x[0] : memref<8xf32>
  func.return
}

// -----

// REMARK: remark: convert-to-llvm: no `deplo.kernel` function (docs/passes.md) in @other; lower-tile-to-scf makes it of Tile IR
// CHECK-LABEL: func.func @other
func.func @other() {
  func.return
}

// -----

// REMARK: remark: convert-to-llvm: beside: declined: not a kernel: has no attribute `deplo.kernel`
// CHECK-LABEL: func.func @beside
func.func @beside() {
  func.return
}
func.func @marked(%x: memref<4xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  func.return
}

// -----

// The sizes that a kernel uses are arguments behind its buffers; divisions by them are unsigned where they can be.
// CHECK-LABEL: llvm.func @transposed(%x: !llvm.ptr {llvm.noalias}, %y: !llvm.ptr {llvm.noalias}, %s1: i64, %s2: i64,
// CHECK-SAME:    %block_begin: i64, {{.*}} deplo.sizes = [#builtin.int<1>, #builtin.int<2>]} {
// CHECK:         %[[COLUMN:.*]] = llvm.urem %i, %s2 : i64
// CHECK:         llvm.mul %[[COLUMN]], %s1 overflow<nsw>
// CHECK:         llvm.udiv %i, %s2 : i64
func.func @transposed(%x: memref<?x?xf32, #sym.extents<s2, s1>>, %y: memref<?xf32, #sym.extents<s1 * s2>>,
    %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c1 = arith.constant 1 : index
  cf.br ^head(%block_begin : index)
^head(%i: index):
  %more = arith.cmpi slt, %i, %block_end : index
  cf.cond_br %more, ^body, ^end
^body:
  %v = loop.load %x[%i mod s2, %i floordiv s2] : memref<?x?xf32, #sym.extents<s2, s1>>
  loop.store %v, %y[%i] : memref<?xf32, #sym.extents<s1 * s2>>
  %next = arith.addi %i, %c1 : index
  cf.br ^head(%next : index)
^end:
  func.return
}

// -----

// Where the order of a reduction is free, so is which zero is the larger one; else zeros are ordered.
// CHECK:       llvm.func @llvm.maximum.f32(f32, f32) -> f32
// CHECK-LABEL: llvm.func @k_largest
// CHECK:         llvm.call @llvm.maximum.f32(%a, %b) {fastmathFlags = #llvm.fastmath<nsz>}
// CHECK:         llvm.call_intrinsic "llvm.maximum.f32"(%a, %b)
func.func @k_largest(%x: memref<4xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %a = loop.load %x[0] : memref<4xf32>
  %b = loop.load %x[1] : memref<4xf32>
  %m = arith.maximumf %a, %b fastmath<reassoc> : f32
  loop.store %m, %x[2] : memref<4xf32>
  %n = arith.maximumf %a, %b : f32
  loop.store %n, %x[3] : memref<4xf32>
  func.return
}

// -----

// A float that fits becomes an integer by instructions that there are vectors of: whole first, then rounded.
// CHECK-LABEL: llvm.func @k_to_integer
// CHECK:         %[[WHOLE:.*]] = llvm.call_intrinsic "llvm.trunc.f32"(%v) : (f32) -> f32
// CHECK-NEXT:    %i = llvm.call_intrinsic "llvm.lrint.i32.f32"(%[[WHOLE]]) : (f32) -> i32
func.func @k_to_integer(%x: memref<4xf32>, %y: memref<4xi32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %v = loop.load %x[0] : memref<4xf32>
  %i = arith.fptosi %v : f32 to i32
  loop.store %i, %y[0] : memref<4xi32>
  func.return
}

// -----

// A masked load may begin in front of the array; of a vector in a buffer nobody knows where it begins, if it says so.
// CHECK-LABEL: llvm.func @k_masked
// CHECK:         %[[SOME:.*]] = llvm.call_intrinsic "llvm.smax.i64"(%n, %{{.*}}) : (i64, i64) -> i64
// CHECK:         %[[MOST:.*]] = llvm.call_intrinsic "llvm.smin.i64"(%[[SOME]], %{{.*}}) : (i64, i64) -> i64
// CHECK:         %mask = llvm.call_intrinsic "llvm.get.active.lane.mask.v8i1.i64"(%{{.*}}, %[[MOST]]) : (i64, i64) -> vector<8xi1>
// CHECK:         llvm.getelementptr %x[
// CHECK:         %v = llvm.call_intrinsic "llvm.masked.load.v8f32.p0"(%{{.*}}, %{{.*}}, %mask, %zeros) : (!llvm.ptr, i32, vector<8xi1>, vector<8xf32>) -> vector<8xf32>
// CHECK:         llvm.store %v, %{{.*}} {alignment = 4 : i64} : vector<8xf32>, !llvm.ptr
// CHECK:         llvm.store %v, %{{[^{]*}} : vector<8xf32>, !llvm.ptr
func.func @k_masked(%x: memref<40xf32>, %n: index, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %b = memref.alloc() {alignment = 64} : memref<64xf32>
  %zero = arith.constant 0.0 : f32
  %zeros = vector.broadcast %zero : f32 to vector<8xf32>
  %mask = vector.create_mask %n : vector<8xi1>
  %v = vector.maskedload %x[%n], %mask, %zeros : memref<40xf32>, vector<8xi1>, vector<8xf32> into vector<8xf32>
  vector.store %v, %b[%n] {anywhere} : memref<64xf32>, vector<8xf32>
  vector.store %v, %b[%n] : memref<64xf32>, vector<8xf32>
  func.return
}
