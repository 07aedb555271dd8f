// RUN: deplo-opt %s -p split-reduce --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p split-reduce --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'split-reduce{target=cpu}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=CPU
// RUN: deplo-opt %s -p split-reduce,chunk-reduce,cooperative-reduce,blockify-launch,materialize-tile,lower-to-cuda --split-input-file --check-each-pass >/dev/null

// A mean: the parts in one kernel, where the last one is shorter; the division where it was. What only the parts
// read is no input of the second kernel, nor the other way round.
// CHECK:       %s_parts = loop.kernel @mean_partial(%x) : (tensor<50003xf32>) -> tensor<4xf32> {
// CHECK:         tile.launch (%k_part = 4 : thread) {
// CHECK-NEXT:      %s = loop.for %k = 0 to 12512 reduce(add) -> f32 {
// CHECK-NEXT:        %[[in:.+]] = loop.test[%k_part * 12512 + %k < 50003]
// CHECK-NEXT:        scf.if %[[in]] -> (f32) {
// CHECK-NEXT:          loop.load %in[%k_part * 12512 + %k]
// CHECK:           loop.store %s, %s_parts[%k_part]
// CHECK:       %y = loop.kernel @mean_fold(%n, %s_parts) : (tensor<1xf32>, tensor<4xf32>) -> tensor<f32> {
// CHECK:           %s = loop.for %part = 0 to 4 reduce(add) -> f32 {
// CHECK-NEXT:        loop.load %s_parts[%part]
// CHECK:           loop.load %count[0]
// CHECK-NEXT:      arith.divf
// REMARK: remark: split-reduce: mean: 4 parts, folded by a second kernel
// CPU: remark: split-reduce: mean: declined: 50003 elements of a row are too few for a second kernel on a CPU
func.func @main(%x: tensor<50003xf32>, %n: tensor<1xf32>) -> tensor<f32> {
  %y = loop.kernel @mean(%x, %n) : (tensor<50003xf32>, tensor<1xf32>) -> tensor<f32> {
  ^bb0(%in: memref<50003xf32>, %count: memref<1xf32>, %out: memref<f32>):
    tile.launch () {
      %s = loop.for %k = 0 to 50003 reduce(add) -> f32 {
        %v = loop.load %in[%k] : memref<50003xf32>
        loop.yield %v : f32
      }
      %c = loop.load %count[0] : memref<1xf32>
      %m = arith.divf %s, %c : f32
      loop.store %m, %out[] : memref<f32>
    }
  }
  func.return %y : tensor<f32>
}

// -----

// Two results of one sweep have parts of their own. Of a sweep over several axes the outermost loop is split.
// CHECK:       %s_parts, %m_parts = loop.kernel @nested_partial(%x) : (tensor<3x80x480xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
// CHECK:         tile.launch (%k_part = 4 : thread, %i = 3 : thread) {
// CHECK-NEXT:      %s, %m = loop.for %k = 0 to 20 reduce(add, max) -> f32, f32 {
// CHECK-NEXT:        loop.for %l = 0 to 480 reduce(add, max) -> f32, f32 {
// CHECK-NEXT:          loop.load %in[%i, %k_part * 20 + %k, %l]
// CHECK:           loop.store %s, %s_parts[%k_part, %i]
// CHECK-NEXT:      loop.store %m, %m_parts[%k_part, %i]
// CHECK:           loop.for %part = 0 to 4 reduce(add, max) -> f32, f32 {
// REMARK: remark: split-reduce: nested: 4 parts, folded by a second kernel
func.func @main(%x: tensor<3x80x480xf32>) -> tensor<3xf32> {
  %y = loop.kernel @nested(%x) : (tensor<3x80x480xf32>) -> tensor<3xf32> {
  ^bb0(%in: memref<3x80x480xf32>, %out: memref<3xf32>):
    tile.launch (%i = 3 : thread) {
      %s, %m = loop.for %k = 0 to 80 reduce(add, max) -> f32, f32 {
        %t, %n = loop.for %l = 0 to 480 reduce(add, max) -> f32, f32 {
          %v = loop.load %in[%i, %k, %l] : memref<3x80x480xf32>
          loop.yield %v, %v : f32, f32
        }
        loop.yield %t, %n : f32, f32
      }
      %r = arith.divf %s, %m : f32
      loop.store %r, %out[%i] : memref<3xf32>
    }
  }
  func.return %y : tensor<3xf32>
}

// -----

// Declined: few elements; many results; two sweeps; no reduction; a contraction; a check.
// REMARK: remark: split-reduce: few: declined: 1000 elements of a block are too few for a second kernel
// REMARK: remark: split-reduce: many: declined: 100 blocks keep 132 processors busy
// CPU: remark: split-reduce: many: declined: 100 rows keep the cores busy
// REMARK: remark: split-reduce: two: declined: it has 2 sweeps, not one
// REMARK: remark: split-reduce: copy: declined: no reduce loop
// REMARK: remark: split-reduce: matmul: declined: a contraction
// REMARK: remark: split-reduce: checked: declined: it checks indices from data
// REMARK: remark: split-reduce: empty: declined: it has no result to compute
func.func @main(%x: tensor<100x40000xf32>, %i: tensor<40000xi64>) -> (tensor<f32>, tensor<100xf32>, tensor<f32>, tensor<100xf32>, tensor<2x2xf32>, tensor<f32>) {
  %0 = loop.kernel @few(%x) : (tensor<100x40000xf32>) -> tensor<f32> {
  ^bb0(%in: memref<100x40000xf32>, %out: memref<f32>):
    tile.launch () {
      %s = loop.for %k = 0 to 1000 reduce(add) -> f32 {
        %v = loop.load %in[0, %k] : memref<100x40000xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[] : memref<f32>
    }
  }
  %1 = loop.kernel @many(%x) : (tensor<100x40000xf32>) -> tensor<100xf32> {
  ^bb0(%in: memref<100x40000xf32>, %out: memref<100xf32>):
    tile.launch (%i = 100 : thread) {
      %s = loop.for %k = 0 to 40000 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<100x40000xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<100xf32>
    }
  }
  %2 = loop.kernel @two(%x) : (tensor<100x40000xf32>) -> tensor<f32> {
  ^bb0(%in: memref<100x40000xf32>, %out: memref<f32>):
    tile.launch () {
      %m = loop.for %k = 0 to 40000 reduce(max) -> f32 {
        %v = loop.load %in[0, %k] : memref<100x40000xf32>
        loop.yield %v : f32
      }
      %s = loop.for %k = 0 to 40000 reduce(add) -> f32 {
        %v = loop.load %in[0, %k] : memref<100x40000xf32>
        %d = arith.subf %v, %m : f32
        loop.yield %d : f32
      }
      loop.store %s, %out[] : memref<f32>
    }
  }
  %3 = loop.kernel @copy(%x) : (tensor<100x40000xf32>) -> tensor<100xf32> {
  ^bb0(%in: memref<100x40000xf32>, %out: memref<100xf32>):
    tile.launch () {
      loop.for %j = 0 to 100 {
        %v = loop.load %in[%j, %j] : memref<100x40000xf32>
        loop.store %v, %out[%j] : memref<100xf32>
      }
    }
  }
  %4 = loop.kernel @matmul(%x) : (tensor<100x40000xf32>) -> tensor<2x2xf32> {
  ^bb0(%in: memref<100x40000xf32>, %out: memref<2x2xf32>):
    tile.launch (%i = 2 : thread, %j = 2 : thread) {
      %s = loop.for %k = 0 to 40000 reduce(add) -> f32 {
        %a = loop.load %in[%i, %k] : memref<100x40000xf32>
        %b = loop.load %in[%j + 2, %k] : memref<100x40000xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %out[%i, %j] : memref<2x2xf32>
    }
  }
  %5 = loop.kernel @checked(%x, %i) : (tensor<100x40000xf32>, tensor<40000xi64>) -> tensor<f32> {
  ^bb0(%in: memref<100x40000xf32>, %ids: memref<40000xi64>, %out: memref<f32>):
    tile.launch () {
      %s = loop.for %k = 0 to 40000 reduce(add) -> f32 {
        %d = loop.load %ids[%k] : memref<40000xi64>
        %r = loop.checked_index %d below 100 : i64
        %v = loop.load %in[%r, %k] : memref<100x40000xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[] : memref<f32>
    }
  }
  func.return %0, %1, %2, %3, %4, %5 : tensor<f32>, tensor<100xf32>, tensor<f32>, tensor<100xf32>, tensor<2x2xf32>, tensor<f32>
}

// -----

func.func @empty(%x: tensor<40000x0xf32>) -> tensor<0xf32> {
  %y = loop.kernel @empty(%x) : (tensor<40000x0xf32>) -> tensor<0xf32> {
  ^bb0(%in: memref<40000x0xf32>, %out: memref<0xf32>):
    tile.launch (%j = 0 : thread) {
      %s = loop.for %k = 0 to 40000 reduce(add) -> f32 {
        %v = loop.load %in[%k, %j] : memref<40000x0xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%j] : memref<0xf32>
    }
  }
  func.return %y : tensor<0xf32>
}

// -----

// REMARK: remark: split-reduce: dynamic: declined: an extent is not known
func.func @dynamic(%x: tensor<?xf32, #sym.extents<s0>>) -> tensor<f32>
    attributes {sym.sizes = [#sym.size<"seq", 2, 1000000, hint = 40000>]} {
  %y = loop.kernel @dynamic(%x) : (tensor<?xf32, #sym.extents<s0>>) -> tensor<f32> {
  ^bb0(%in: memref<?xf32, #sym.extents<s0>>, %out: memref<f32>):
    tile.launch () {
      %s = loop.for %k = 0 to s0 reduce(add) -> f32 {
        %v = loop.load %in[%k] : memref<?xf32, #sym.extents<s0>>
        loop.yield %v : f32
      }
      loop.store %s, %out[] : memref<f32>
    }
  }
  func.return %y : tensor<f32>
}

// -----

// A CPU has longer parts, as many for any number of cores; the columns of a matrix are read row by row.
// CPU: remark: split-reduce: whole: 4 parts, folded by a second kernel
// CPU: remark: split-reduce: columns: declined: a CPU reads columns row by row
// REMARK: remark: split-reduce: whole: 32 parts, folded by a second kernel
// REMARK: remark: split-reduce: columns: 32 parts, folded by a second kernel
func.func @main(%x: tensor<65536x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  %0 = loop.kernel @whole(%x) : (tensor<65536x4xf32>) -> tensor<f32> {
  ^bb0(%in: memref<65536x4xf32>, %out: memref<f32>):
    tile.launch () {
      %s = loop.for %k = 0 to 262144 reduce(max) -> f32 {
        %v = loop.load %in[%k floordiv 4, %k mod 4] : memref<65536x4xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[] : memref<f32>
    }
  }
  %1 = loop.kernel @columns(%x) : (tensor<65536x4xf32>) -> tensor<4xf32> {
  ^bb0(%in: memref<65536x4xf32>, %out: memref<4xf32>):
    tile.launch (%i = 4 : thread) {
      %s = loop.for %k = 0 to 65536 reduce(max) -> f32 {
        %v = loop.load %in[%k, %i] : memref<65536x4xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<4xf32>
    }
  }
  func.return %0, %1 : tensor<f32>, tensor<4xf32>
}
