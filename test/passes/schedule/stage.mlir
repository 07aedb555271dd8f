// What several sweeps read is read once, and kept in registers or in shared memory.
// RUN: deplo-opt %s --split-input-file -p 'tileify,bind{axis=i to=block},partial{across=thread parts=8},stage{to=registers}' --check-each-pass | FileCheck %s
// RUN: deplo-opt %s --split-input-file -p 'tileify,bind{axis=i to=block},partial{across=thread parts=8},stage{of=x to=shared}' --check-each-pass | FileCheck %s --check-prefix=SHARED
// RUN: deplo-opt %s --split-input-file -p 'tileify,stage{of=y to=registers},stage{of=x to=shared},stage{of=x,m to=registers},stage{to=registers}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: not deplo-opt %s --split-input-file -p 'tileify,stage{of=x}' 2>&1 | FileCheck %s --check-prefix=WHERE

// RUN: deplo-opt %s --split-input-file -p 'tileify,stage{to=registers}' --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=LONG

// LONG: remark: stage: long: declined: a thread would keep 130 elements of a row, 128 at most
// WHERE: pass 'stage': to is one of registers, shared, not nothing
// REMARK: remark: stage: norm: declined: no element of y is read by more than one sweep; elements of x and m are
// REMARK: remark: stage: norm: declined: the threads of a block read several rows
// REMARK: remark: stage: norm: x and m are kept in registers
// REMARK: remark: stage: norm: declined: no element is read by more than one sweep

// CHECK:       tile.launch (%i = 5 : block, %lane = 8 : thread) {
// CHECK-DAG:     %x_kept = loop.registers : memref<5xf32, "registers">
// CHECK-DAG:     %m_kept = loop.registers : memref<5xf32, "registers">
// CHECK:         loop.for %k = 0 to 5 {
// CHECK-NEXT:      loop.test[%k * 8 + %lane < 36]
// CHECK:             loop.store %{{.*}}, %x_kept[%k]
// CHECK:             loop.store %{{.*}}, %m_kept[%k]
// CHECK:         } attributes {unroll}
// CHECK:         reduce(add) -> f32 {
// CHECK:             loop.load %x_kept
// CHECK:         loop.for %j = 0 to 5 {
// CHECK:             loop.load %x_kept[%j]
// CHECK:             loop.load %m_kept[%j]

// SHARED:       %x_smem = tile.stage %x[%i, 0] : memref<5x36xf32> -> memref<36xf32, "shared">
// SHARED:             loop.load %x_smem[%k * 8 + %lane]
// SHARED-NEXT:        loop.load %m[%i, %k * 8 + %lane]
func.func @main(%x: tensor<5x36xf32>, %m: tensor<5x36xf32>) -> tensor<5x36xf32> {
  %y = loop.kernel @norm(%x, %m) : (tensor<5x36xf32>, tensor<5x36xf32>) -> tensor<5x36xf32> {
  ^bb0(%x: memref<5x36xf32>, %m: memref<5x36xf32>, %y: memref<5x36xf32>):
    loop.for %i = 0 to 5 {
      %s = loop.for %k = 0 to 36 reduce(add) -> f32 {
        %v = loop.load %x[%i, %k] : memref<5x36xf32>
        %f = loop.load %m[%i, %k] : memref<5x36xf32>
        %p = arith.mulf %v, %f : f32
        loop.yield %p : f32
      }
      loop.for %j = 0 to 36 {
        %w = loop.load %x[%i, %j] : memref<5x36xf32>
        %g = loop.load %m[%i, %j] : memref<5x36xf32>
        %q = arith.mulf %w, %g : f32
        %d = arith.subf %q, %s : f32
        loop.store %d, %y[%i, %j] : memref<5x36xf32>
      }
    }
  }
  func.return %y : tensor<5x36xf32>
}

// -----

func.func @main(%x: tensor<2x130xf32>) -> tensor<2x130xf32> {
  %y = loop.kernel @long(%x) : (tensor<2x130xf32>) -> tensor<2x130xf32> {
  ^bb0(%x: memref<2x130xf32>, %y: memref<2x130xf32>):
    loop.for %i = 0 to 2 {
      %s = loop.for %k = 0 to 130 reduce(max) -> f32 {
        %v = loop.load %x[%i, %k] : memref<2x130xf32>
        loop.yield %v : f32
      }
      loop.for %j = 0 to 130 {
        %w = loop.load %x[%i, %j] : memref<2x130xf32>
        %d = arith.subf %w, %s : f32
        loop.store %d, %y[%i, %j] : memref<2x130xf32>
      }
    }
  }
  func.return %y : tensor<2x130xf32>
}
