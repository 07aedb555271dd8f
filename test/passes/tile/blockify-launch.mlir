// RUN: deplo-opt %s -p blockify-launch{target=sm_90a} --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p blockify-launch{target=cpu} --split-input-file | FileCheck %s --check-prefix=CPU
// RUN: deplo-opt %s -p blockify-launch,blockify-launch --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p blockify-launch{threads=32} --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p blockify-launch{target=cpu} --split-input-file --check-each-pass >/dev/null
// RUN: not deplo-opt %s -p blockify-launch{target=sm_1} --split-input-file 2>&1 | FileCheck %s --check-prefix=TARGET

// TARGET: error: {{.*}}unknown target 'sm_1'; deplo compiles for cpu, sm_80, sm_90a, sm_100a, sm_120

// The inner axis is split, 18944 = 74 * 256; indices are recomposed.
// CHECK-LABEL: loop.kernel @gelu
// CHECK:         tile.launch (%i = 32 : block, %j_block = 74 : block, %j_thread = 256 : thread) schedule(#tile.schedule<threads = 256>) {
// CHECK-NEXT:      loop.load %in[%i, %j_block * 256 + %j_thread]
// CHECK:           loop.store %{{.+}}, %out[%i, %j_block * 256 + %j_thread]
// A CPU block is about 4096 accesses: a fifth of the row, in a loop of its own.
// CPU-LABEL:   loop.kernel @gelu
// CPU:           tile.launch (%i = 32 : block, %j_block = 10 : block) schedule(#tile.schedule<serial = 1895>) {
// CPU-NEXT:        loop.for %j_serial = 0 to 1895 {
// CPU-NEXT:          %[[in:.+]] = loop.test[%j_block * 1895 + %j_serial < 18944]
// CPU-NEXT:          scf.if %[[in]] {
// REMARK: remark: blockify-launch: gelu: 2368 blocks of 256 threads
// REMARK: remark: blockify-launch: gelu: declined: the launch is partitioned already
func.func @main(%x: tensor<32x18944xf32>) -> tensor<32x18944xf32> {
  %y = loop.kernel @gelu(%x) : (tensor<32x18944xf32>) -> tensor<32x18944xf32> {
  ^bb0(%in: memref<32x18944xf32>, %out: memref<32x18944xf32>):
    tile.launch (%i = 32 : thread, %j = 18944 : thread) {
      %v = loop.load %in[%i, %j] : memref<32x18944xf32>
      %e = math.exp %v : f32
      loop.store %e, %out[%i, %j] : memref<32x18944xf32>
    }
  }
  func.return %y : tensor<32x18944xf32>
}

// -----

// A tail is masked; a short inner axis is threads whole, and the next one fills the block.
// CHECK-LABEL: loop.kernel @ragged
// CHECK:         tile.launch (%i_block = 3 : block, %i_thread = 51 : thread, %j = 5 : thread) schedule(#tile.schedule<threads = 255>) {
// CHECK-NEXT:      %[[in:.+]] = loop.test[%i_block * 51 + %i_thread < 131]
// CHECK-NEXT:      scf.if %[[in]] {
// CPU-LABEL:   loop.kernel @ragged
// CPU:           tile.launch () schedule(#tile.schedule<serial = 655>) {
// CPU-NEXT:        loop.for %i = 0 to 131 {
// CPU-NEXT:          loop.for %j = 0 to 5 {
func.func @main(%x: tensor<131x5xf32>) -> tensor<131x5xf32> {
  %y = loop.kernel @ragged(%x) : (tensor<131x5xf32>) -> tensor<131x5xf32> {
  ^bb0(%in: memref<131x5xf32>, %out: memref<131x5xf32>):
    tile.launch (%i = 131 : thread, %j = 5 : thread) {
      %v = loop.load %in[%i, %j] : memref<131x5xf32>
      loop.store %v, %out[%i, %j] : memref<131x5xf32>
    }
  }
  func.return %y : tensor<131x5xf32>
}

// -----

// Declined: threads that combine must stay together.
// REMARK: remark: blockify-launch: sum: declined: its threads already work together
func.func @main(%x: tensor<32xf32>) -> tensor<32xf32> {
  %y = loop.kernel @sum(%x) : (tensor<32xf32>) -> tensor<32xf32> {
  ^bb0(%in: memref<32xf32>, %out: memref<32xf32>):
    tile.launch (%t = 32 : thread) {
      %v = loop.load %in[%t] : memref<32xf32>
      %s = tile.combine add %v over(%t) : f32
      loop.store %s, %out[%t] : memref<32xf32>
    }
  }
  func.return %y : tensor<32xf32>
}

// -----

// An axis of extent 0 is no blocks.
// CHECK-LABEL: loop.kernel @nothing
// CHECK:         tile.launch (%i = 0 : block
func.func @main(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  %y = loop.kernel @nothing(%x) : (tensor<0x4xf32>) -> tensor<0x4xf32> {
  ^bb0(%in: memref<0x4xf32>, %out: memref<0x4xf32>):
    tile.launch (%i = 0 : thread, %j = 4 : thread) {
      %v = loop.load %in[%i, %j] : memref<0x4xf32>
      loop.store %v, %out[%i, %j] : memref<0x4xf32>
    }
  }
  func.return %y : tensor<0x4xf32>
}

// -----

// On a CPU, reading a transposed operand takes rectangles: 1024 = 64 * 16 rows, 16 * 64 columns.
// CPU-LABEL:   loop.kernel @transpose
// CPU:           tile.launch (%i_block = 64 : block, %j_block = 16 : block) schedule(#tile.schedule<serial = 1024>) {
// CPU-NEXT:        loop.for %i_serial = 0 to 16 {
// CPU-NEXT:          loop.for %j_serial = 0 to 64 {
func.func @main(%x: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  %y = loop.kernel @transpose(%x) : (tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
  ^bb0(%in: memref<1024x1024xf32>, %out: memref<1024x1024xf32>):
    tile.launch (%i = 1024 : thread, %j = 1024 : thread) {
      %v = loop.load %in[%j, %i] : memref<1024x1024xf32>
      loop.store %v, %out[%i, %j] : memref<1024x1024xf32>
    }
  }
  func.return %y : tensor<1024x1024xf32>
}

// -----

// A counter that is read as a value becomes a `loop.index`.
// CHECK-LABEL: loop.kernel @positions
// CHECK:         %[[i:.+]] = loop.index[%i_block * 256 + %i_thread]
// CHECK-NEXT:    arith.index_cast %[[i]] : index to i64
func.func @main() -> tensor<500xi64> {
  %y = loop.kernel @positions() : () -> tensor<500xi64> {
  ^bb0(%out: memref<500xi64>):
    tile.launch (%i = 500 : thread) {
      %v = arith.index_cast %i : index to i64
      loop.store %v, %out[%i] : memref<500xi64>
    }
  }
  func.return %y : tensor<500xi64>
}

// -----

// A dynamic axis: as many threads, or on a CPU serial steps, as its hint says; what is past its end is masked.
// CHECK:      tile.launch (%i_block = (s0 - 1) floordiv 8 + 1 : block, %i_thread = 8 : thread)
// CHECK-NEXT:   %[[in:.+]] = loop.test[%i_block * 8 + %i_thread < s0]
// CHECK-NEXT:   scf.if %[[in]] {
// CHECK:          loop.load %in[%i_block * 8 + %i_thread, %k]
// CPU:      tile.launch (%i_block = (s0 - 1) floordiv 8 + 1 : block)
// CPU-NEXT:   loop.for %i_serial = 0 to 8 {
// CPU-NEXT:     %[[in:.+]] = loop.test[%i_block * 8 + %i_serial < s0]
// REMARK: remark: blockify-launch: rows: (s0 - 1) floordiv 8 + 1 blocks of 8 threads
func.func @main(%x: tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x1xf32, #sym.extents<s0>>
    attributes {sym.sizes = [#sym.size<"batch", 1, 64, hint = 8>, #sym.size<"seq", 2, 4096, hint = 100>]} {
  %y = loop.kernel @rows(%x) : (tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x1xf32, #sym.extents<s0>> {
  ^bb0(%in: memref<?x?xf32, #sym.extents<s0, s1>>, %out: memref<?x1xf32, #sym.extents<s0>>):
    tile.launch (%i = s0 : thread) {
      %s = loop.for %k = 0 to s1 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<?x?xf32, #sym.extents<s0, s1>>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i, 0] : memref<?x1xf32, #sym.extents<s0>>
    }
  }
  func.return %y : tensor<?x1xf32, #sym.extents<s0>>
}
