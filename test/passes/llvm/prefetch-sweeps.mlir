// RUN: deplo-opt %s -p prefetch-sweeps | FileCheck %s
// RUN: deplo-opt %s -p prefetch-sweeps --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// Strips that divide the row. The second sweep finds the row in the cache; %w is the same for all rows.
// REMARK: remark: prefetch-sweeps: k_rows: 1 loop
// CHECK-LABEL: @k_rows
// CHECK:       %s = scf.for %strip = %c0 to %{{.*}} step %c1 iter_args(%{{.*}} = %zero) -> (f32) {
// CHECK-NEXT:    loop.prefetch %x[%i, %strip * 256] ahead 1024 : memref<8x1024xf32>
// CHECK-NEXT:    loop.prefetch %x[%i, %strip * 256 + 16] ahead 1024 : memref<8x1024xf32>
// CHECK-COUNT-14: loop.prefetch %x
// CHECK-NOT:     loop.prefetch
// CHECK:         scf.for %j = %c0 to %{{.*}} step %c1 iter_args
// CHECK-NEXT:      %[[J:.*]] = loop.index[%strip * 256 + %j]
// CHECK-NEXT:      loop.load %x[%i, %[[J]]]
// CHECK-NOT:   loop.prefetch
// CHECK:       scf.for %j_1 = %c0 to %c1024 step %c1 {
func.func @k_rows(%x: memref<8x1024xf32>, %w: memref<1024xf32>, %y: memref<8x1024xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<prefetch = 4096>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  scf.for %i = %begin to %end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %j = %c0 to %c1024 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<8x1024xf32>
      %u = loop.load %w[%j] : memref<1024xf32>
      %p = arith.mulf %u, %v : f32
      %next = arith.addf %so_far, %p : f32
      scf.yield %next : f32
    }
    scf.for %j_1 = %c0 to %c1024 step %c1 {
      %v_1 = loop.load %x[%i, %j_1] : memref<8x1024xf32>
      %q = arith.mulf %v_1, %s : f32
      loop.store %q, %y[%i, %j_1] : memref<8x1024xf32>
    }
  }
  func.return
}

// Where its order is free and it starts with what changes nothing, each strip of a reduction begins anew.
// REMARK: remark: prefetch-sweeps: k_free: 1 loop
// CHECK-LABEL: @k_free
// CHECK:       scf.for %strip = %c0 to %{{.*}} step %c1 iter_args(%[[SUM:.*]] = %zero, %[[MOST:.*]] = %low, %[[FIVE:.*]] = %five, %[[ORDERED:.*]] = %zero)
// CHECK:         %[[S:.*]], %[[M:.*]], %[[F:.*]], %[[O:.*]] = scf.for %j = %c0 to %{{.*}} step %c1
// CHECK-SAME:      iter_args(%{{.*}} = %zero, %{{.*}} = %low, %{{.*}} = %[[FIVE]], %{{.*}} = %[[ORDERED]])
// CHECK:         %[[SUMS:.*]] = arith.addf %[[SUM]], %[[S]] fastmath<reassoc> : f32
// CHECK-NEXT:    %[[MOSTS:.*]] = arith.maximumf %[[MOST]], %[[M]] fastmath<reassoc> : f32
// CHECK-NEXT:    scf.yield %[[SUMS]], %[[MOSTS]], %[[F]], %[[O]] : f32, f32, f32, f32
func.func @k_free(%x: memref<8x1024xf32>, %y: memref<4xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<prefetch = 4096>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant 0.0 : f32
  %five = arith.constant 5.0 : f32
  %low = arith.constant 0xFF800000 : f32
  scf.for %i = %begin to %end step %c1 {
    %a, %b, %c, %d = scf.for %j = %c0 to %c1024 step %c1 iter_args(%s = %zero, %m = %low, %f = %five, %o = %zero) -> (f32, f32, f32, f32) {
      %v = loop.load %x[%i, %j] : memref<8x1024xf32>
      %s_next = arith.addf %s, %v fastmath<reassoc> : f32
      %m_next = arith.maximumf %m, %v fastmath<reassoc> : f32
      %f_next = arith.addf %f, %v fastmath<reassoc> : f32
      %o_next = arith.addf %o, %v : f32
      scf.yield %s_next, %m_next, %f_next, %o_next : f32, f32, f32, f32
    }
    loop.store %a, %y[0] : memref<4xf32>
    loop.store %b, %y[1] : memref<4xf32>
    loop.store %c, %y[2] : memref<4xf32>
    loop.store %d, %y[3] : memref<4xf32>
  }
  func.return
}

// What is left of a row that no strips divide is a loop of its own; elements of 2 bytes are 32 to a line.
// REMARK: remark: prefetch-sweeps: k_rest: 1 loop
// CHECK-LABEL: @k_rest
// CHECK:       %[[STRIPS:.*]] = arith.constant 2 : index
// CHECK:       %[[SUM:.*]] = scf.for %strip = %c0 to %[[STRIPS]] step %c1
// CHECK-NEXT:    loop.prefetch %x[%i, %strip * 256] ahead 512 : memref<8x521xf16>
// CHECK-NEXT:    loop.prefetch %x[%i, %strip * 256 + 32] ahead 512 : memref<8x521xf16>
// CHECK:       %[[REST:.*]] = arith.constant 9 : index
// CHECK-NEXT:  %s = scf.for %j_1 = %c0 to %[[REST]] step %c1 iter_args(%{{.*}} = %[[SUM]]) -> (f16) {
// CHECK-NEXT:    loop.index[%[[STRIPS]] * 256 + %j_1]
func.func @k_rest(%x: memref<8x521xf16>, %y: memref<8xf16>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<prefetch = 1024, width = 512>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c521 = arith.constant 521 : index
  scf.for %i = %begin to %end step %c1 {
    %zero = arith.constant 0.0 : f16
    %s = scf.for %j = %c0 to %c521 step %c1 iter_args(%so_far = %zero) -> (f16) {
      %v = loop.load %x[%i, %j] : memref<8x521xf16>
      %next = arith.addf %so_far, %v : f16
      scf.yield %next : f16
    }
    loop.store %s, %y[%i] : memref<8xf16>
  }
  func.return
}

// A short row is one strip.
// REMARK: remark: prefetch-sweeps: k_short: 1 loop
// CHECK-LABEL: @k_short
// CHECK:       scf.for %i
// CHECK:         loop.prefetch %x[%i, %c0] ahead 256 : memref<8x32xf32>
// CHECK-NEXT:    loop.prefetch %x[%i, %c0 + 16] ahead 256 : memref<8x32xf32>
// CHECK-NEXT:    scf.for %j
func.func @k_short(%x: memref<8x32xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<prefetch = 1024>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c32 = arith.constant 32 : index
  scf.for %i = %begin to %end step %c1 {
    %zero = arith.constant 0.0 : f32
    %s = scf.for %j = %c0 to %c32 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%i, %j] : memref<8x32xf32>
      %next = arith.addf %so_far, %v : f32
      scf.yield %next : f32
    }
    loop.store %s, %y[%i] : memref<8xf32>
  }
  func.return
}

// Why nothing is asked for: columns of a strip do not go on where the strip ends.
// REMARK: remark: prefetch-sweeps: k_columns: declined: a loop walks along nothing that is read for the first time
// REMARK: remark: prefetch-sweeps: k_few: declined: a loop has 8 iterations; a loop does not run from 0 to a constant
// REMARK: remark: prefetch-sweeps: k_none: declined: there is no loop
// REMARK: remark: prefetch-sweeps: k_near: declined: its schedule asks for no prefetching
// CHECK-LABEL: @k_columns
// CHECK-NOT:   loop.prefetch
func.func @k_columns(%x: memref<64x256xf32>, %y: memref<256xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<prefetch = 1024>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  scf.for %i = %c0 to %c64 step %c1 {
    scf.for %j = %c0 to %c64 step %c1 {
      %v = loop.load %x[%i, %j] : memref<64x256xf32>
      loop.store %v, %y[%j] : memref<256xf32>
    }
  }
  func.return
}
func.func @k_few(%x: memref<64x8xf32>, %y: memref<64x8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<prefetch = 1024>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %i = %begin to %end step %c1 {
    scf.for %j = %c0 to %c8 step %c1 {
      %v = loop.load %x[%i, %j] : memref<64x8xf32>
      loop.store %v, %y[%i, %j] : memref<64x8xf32>
    }
    scf.for %j_1 = %c0 to %end step %c1 {
      %v_1 = loop.load %x[%i, %j_1] : memref<64x8xf32>
      loop.store %v_1, %y[%i, %j_1] : memref<64x8xf32>
    }
  }
  func.return
}
func.func @k_none(%x: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<prefetch = 1024>} {
  func.return
}
func.func @k_near(%x: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<prefetch = 0>} {
  func.return
}

// Rows whose distance depends on a size.
// REMARK: remark: prefetch-sweeps: k_sizes: declined: a loop walks along nothing that is read for the first time
func.func @k_sizes(%x: memref<?x?x4096xf32, #sym.extents<s0, s1>>, %y: memref<8xf32>) attributes {deplo.kernel, deplo.schedule = #tile.schedule<prefetch = 4096>} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c4096 = arith.constant 4096 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %c0 to %c8 step %c1 {
    %s = scf.for %j = %c0 to %c4096 step %c1 iter_args(%a = %zero) -> (f32) {
      %v = loop.load %x[%i mod s0, %i floordiv s0, %j] : memref<?x?x4096xf32, #sym.extents<s0, s1>>
      %n = arith.addf %a, %v : f32
      scf.yield %n : f32
    }
    loop.store %s, %y[%i] : memref<8xf32>
  }
  func.return
}
