// Threads or blocks fold sweeps in parts.
// RUN: deplo-opt %s -p 'tileify,bind{axis=i to=block},partial{across=thread parts=8}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'tileify,split{axis=i by=2},bind{axis=i_outer to=block},partial{across=thread parts=4 vector=2 into=t}' --check-each-pass | FileCheck %s --check-prefix=VECTOR
// RUN: deplo-opt %s -p 'tileify,partial{across=thread parts=4 columns=true kernel=norm}' --check-each-pass | FileCheck %s --check-prefix=COLUMNS
// RUN: deplo-opt %s -p 'tileify,partial{across=block parts=3 grain=16}' --check-each-pass --remarks 2>&1 | FileCheck %s --check-prefix=BLOCKS
// RUN: deplo-opt %s -p 'tileify,partial{across=thread parts=8},partial{across=thread parts=8}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'tileify,partial{across=thread parts=8 vector=8},bind{axis=i to=block},partial{across=block parts=8},partial{across=thread parts=8 into=i}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=MISFIT
// RUN: not deplo-opt %s -p 'partial{across=thread parts=3}' 2>&1 | FileCheck %s --check-prefix=THREE
// RUN: not deplo-opt %s -p 'partial{parts=4}' 2>&1 | FileCheck %s --check-prefix=NOWHERE

// RUN: not deplo-opt %s -p 'partial{across=block parts=4 vector=2}' 2>&1 | FileCheck %s --check-prefix=BLOCK-VECTOR
// RUN: not deplo-opt %s -p 'partial{across=thread parts=4 grain=2}' 2>&1 | FileCheck %s --check-prefix=GRAIN
// RUN: deplo-opt %s -p 'tileify,partial{across=block parts=4 grain=16 kernel=mean}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=FEWER

// BLOCK-VECTOR: pass 'partial': vector, columns and into are about threads that share a sweep, not blocks
// GRAIN: pass 'partial': grain is about the parts of blocks; threads take every so many elements
// FEWER: remark: partial: mean: declined: 36 elements are 3 parts of 16, not 4
// THREE: pass 'partial': parts is a power of two, at most 1024, across threads, not 3
// NOWHERE: pass 'partial': across is one of thread, block, not nothing
// REMARK: remark: partial: norm: 8 threads share each sweep
// REMARK: remark: partial: norm: declined: its threads already work together
// MISFIT: remark: partial: norm: declined: its sweeps go in vectors of 4 at most, not 8
// MISFIT: remark: partial: norm: declined: the launch is partitioned already
// MISFIT: remark: partial: norm: declined: another axis is named i

// Each lane visits every eighth element; one of them stores what there is one of.
// CHECK-LABEL: loop.kernel @norm
// CHECK:         tile.launch (%i = 5 : block, %lane = 8 : thread) {
// CHECK-NEXT:      %s_part = loop.for %k = 0 to 5 reduce(add) -> f32 {
// CHECK-NEXT:        [[IN:%.+]] = loop.test[%k * 8 + %lane < 36]
// CHECK-NEXT:        scf.if [[IN]] -> (f32) {
// CHECK-NEXT:          loop.load %x[%i, %k * 8 + %lane]
// CHECK:           %s = tile.combine add %s_part over(%lane) : f32
// CHECK-NEXT:      [[FIRST:%.+]] = loop.test[%lane < 1]
// CHECK-NEXT:      scf.if [[FIRST]] {
// CHECK-NEXT:        loop.store %s, %z[%i]
// CHECK:           loop.for %j = 0 to 5 {
// CHECK:             loop.store %d, %y[%i, %j * 8 + %lane]

// Rows past the last one contribute nothing, in vectors or one by one.
// VECTOR:       tile.launch (%i_outer = 3 : block, %i_inner = 2 : thread, %t = 4 : thread) {
// VECTOR-NEXT:    loop.for %k = 0 to 5 reduce(add) -> f32 {
// VECTOR-NEXT:      loop.test[%i_outer * 2 + %i_inner < 5, %k * 4 + %t < 18]
// VECTOR:             loop.for %e = 0 to 2 reduce(add) -> f32 {
// VECTOR-NEXT:          loop.load %x[%i_outer * 2 + %i_inner, %k * 8 + %t * 2 + %e]

// COLUMNS: tile.launch (%lane = 4 : thread, %i = 5 : thread) {

// BLOCKS: remark: partial: norm: declined: it has 2 sweeps, not one
// BLOCKS: remark: partial: mean: 3 parts, folded by a second kernel
// BLOCKS:       loop.kernel @mean_partial(%x) : (tensor<5x36xf32>) -> tensor<3x5xf32> {
// BLOCKS:         tile.launch (%k_part = 3 : thread, %i = 5 : thread) {
// BLOCKS-NEXT:      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
// BLOCKS-NEXT:        loop.test[%k_part * 16 + %k < 36]
// BLOCKS:       loop.kernel @mean_fold(
// BLOCKS:           %s = loop.for %part = 0 to 3 reduce(add) -> f32 {
// BLOCKS-NEXT:        %partial = loop.load %s_parts[%part, %i]
func.func @main(%x: tensor<5x36xf32>, %n: tensor<1xf32>) -> (tensor<5x36xf32>, tensor<5xf32>, tensor<5xf32>) {
  %y, %z = loop.kernel @norm(%x) : (tensor<5x36xf32>) -> (tensor<5x36xf32>, tensor<5xf32>) {
  ^bb0(%x: memref<5x36xf32>, %y: memref<5x36xf32>, %z: memref<5xf32>):
    loop.for %i = 0 to 5 {
      %s = loop.for %k = 0 to 36 reduce(add) -> f32 {
        %v = loop.load %x[%i, %k] : memref<5x36xf32>
        loop.yield %v : f32
      }
      loop.store %s, %z[%i] : memref<5xf32>
      loop.for %j = 0 to 36 {
        %w = loop.load %x[%i, %j] : memref<5x36xf32>
        %d = arith.subf %w, %s : f32
        loop.store %d, %y[%i, %j] : memref<5x36xf32>
      }
    }
  }
  %m = loop.kernel @mean(%x, %n) : (tensor<5x36xf32>, tensor<1xf32>) -> tensor<5xf32> {
  ^bb0(%x: memref<5x36xf32>, %n: memref<1xf32>, %m: memref<5xf32>):
    loop.for %i = 0 to 5 {
      %s = loop.for %k = 0 to 36 reduce(add) -> f32 {
        %v = loop.load %x[%i, %k] : memref<5x36xf32>
        loop.yield %v : f32
      }
      %c = loop.load %n[0] : memref<1xf32>
      %d = arith.mulf %s, %c : f32
      loop.store %d, %m[%i] : memref<5xf32>
    }
  }
  func.return %y, %z, %m : tensor<5x36xf32>, tensor<5xf32>, tensor<5xf32>
}
