// RUN: deplo-opt %s -p 'distribute-sweeps{least=100}' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'distribute-sweeps{least=100}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'distribute-sweeps{least=100},distribute-sweeps{least=100}' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'distribute-sweeps{least=100},split-reduce,chunk-reduce,cooperative-reduce,keep-rows,blockify-launch,materialize-tile,lower-to-cuda' --split-input-file --check-each-pass >/dev/null

// A norm: the sum and what is made of it in one kernel, where it is stored, too; the loop that stores becomes a launch
// over all elements. A factor that depends on no sweep is loaded where it is needed.
// CHECK:       %f, %r = loop.kernel @norm_sweep1(%x, %w) : (tensor<2x130xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
// CHECK:         tile.launch (%i = 2 : thread) {
// CHECK:           %s = loop.for %k = 0 to 130 reduce(add) -> f32 {
// CHECK:           %r = arith.mulf %s, %g : f32
// CHECK-NEXT:      loop.store %r, %sums[%i]
// CHECK-NEXT:      loop.store %r, %r_rows[%i]
// CHECK:       %y = loop.kernel @norm(%x, %w, %r) : (tensor<2x130xf32>, tensor<2xf32>, tensor<2xf32>) -> tensor<2x130xf32> {
// CHECK:         tile.launch (%i = 2 : thread, %j = 130 : thread) {
// CHECK-NEXT:      %r = loop.load %r_rows[%i]
// CHECK-NEXT:      %g = loop.load %weight[%i]
// CHECK-NEXT:      %v = loop.load %in[%i, %j]
// CHECK:       func.return %f, %y
// REMARK: remark: distribute-sweeps: norm: 2 sweeps, a kernel each
func.func @main(%x: tensor<2x130xf32>, %w: tensor<2xf32>) -> (tensor<2xf32>, tensor<2x130xf32>) {
  %f, %y = loop.kernel @norm(%x, %w) : (tensor<2x130xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2x130xf32>) {
  ^bb0(%in: memref<2x130xf32>, %weight: memref<2xf32>, %sums: memref<2xf32>, %out: memref<2x130xf32>):
    tile.launch (%i = 2 : thread) {
      %g = loop.load %weight[%i] : memref<2xf32>
      %s = loop.for %k = 0 to 130 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<2x130xf32>
        loop.yield %v : f32
      }
      %r = arith.mulf %s, %g : f32
      loop.for %j = 0 to 130 {
        %v = loop.load %in[%i, %j] : memref<2x130xf32>
        %d = arith.subf %v, %r : f32
        %e = arith.mulf %d, %g : f32
        loop.store %e, %out[%i, %j] : memref<2x130xf32>
      }
      loop.store %r, %sums[%i] : memref<2xf32>
    }
  }
  func.return %f, %y : tensor<2xf32>, tensor<2x130xf32>
}

// -----

// Three kernels in a row: the last one needs both of what the first two compute.
// CHECK:       %m = loop.kernel @softmax_sweep1(%x)
// CHECK:       %s = loop.kernel @softmax_sweep2(%x, %m)
// CHECK:       %y = loop.kernel @softmax(%x, %m, %s)
// CHECK:         tile.launch (%j = 141 : thread) {
// CHECK-NEXT:      %m = loop.load %m_rows[]
// CHECK-NEXT:      %s = loop.load %s_rows[]
// REMARK: remark: distribute-sweeps: softmax: 3 sweeps, a kernel each
func.func @main(%x: tensor<141xf32>) -> tensor<141xf32> {
  %y = loop.kernel @softmax(%x) : (tensor<141xf32>) -> tensor<141xf32> {
  ^bb0(%in: memref<141xf32>, %out: memref<141xf32>):
    tile.launch () {
      %m = loop.for %k = 0 to 141 reduce(max) -> f32 {
        %v = loop.load %in[%k] : memref<141xf32>
        loop.yield %v : f32
      }
      %s = loop.for %k = 0 to 141 reduce(add) -> f32 {
        %v = loop.load %in[%k] : memref<141xf32>
        %d = arith.subf %v, %m : f32
        loop.yield %d : f32
      }
      loop.for %j = 0 to 141 {
        %v = loop.load %in[%j] : memref<141xf32>
        %d = arith.subf %v, %m : f32
        %e = arith.divf %d, %s : f32
        loop.store %e, %out[%j] : memref<141xf32>
      }
    }
  }
  func.return %y : tensor<141xf32>
}

// -----

// Declined: one sweep; short rows; many rows; a result of two sweeps; no reduction; a schedule.
// REMARK: remark: distribute-sweeps: one: declined: it has one sweep
// REMARK: remark: distribute-sweeps: short: declined: 60 elements of a block are too few for a kernel for each sweep
// REMARK: remark: distribute-sweeps: many: declined: 70 blocks keep 132 processors busy
// REMARK: remark: distribute-sweeps: halves: declined: several sweeps store parts of a result
// REMARK: remark: distribute-sweeps: copy: declined: no reduce loop in the body
// REMARK: remark: distribute-sweeps: asked: declined: it has a schedule already
func.func @main(%x: tensor<130xf32>, %m: tensor<70x2000xf32>) -> (tensor<f32>, tensor<f32>, tensor<70xf32>, tensor<260xf32>, tensor<130xf32>, tensor<f32>) {
  %0 = loop.kernel @one(%x) : (tensor<130xf32>) -> tensor<f32> {
  ^bb0(%in: memref<130xf32>, %out: memref<f32>):
    tile.launch () {
      %s = loop.for %k = 0 to 130 reduce(max) -> f32 {
        %v = loop.load %in[%k] : memref<130xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[] : memref<f32>
    }
  }
  %1 = loop.kernel @short(%x) : (tensor<130xf32>) -> tensor<f32> {
  ^bb0(%in: memref<130xf32>, %out: memref<f32>):
    tile.launch () {
      %s = loop.for %k = 0 to 60 reduce(max) -> f32 {
        %v = loop.load %in[%k] : memref<130xf32>
        loop.yield %v : f32
      }
      %t = loop.for %k = 0 to 60 reduce(max) -> f32 {
        %v = loop.load %in[%k] : memref<130xf32>
        %d = arith.subf %s, %v : f32
        loop.yield %d : f32
      }
      loop.store %t, %out[] : memref<f32>
    }
  }
  %2 = loop.kernel @many(%m) : (tensor<70x2000xf32>) -> tensor<70xf32> {
  ^bb0(%in: memref<70x2000xf32>, %out: memref<70xf32>):
    tile.launch (%i = 70 : thread) {
      %s = loop.for %k = 0 to 2000 reduce(max) -> f32 {
        %v = loop.load %in[%i, %k] : memref<70x2000xf32>
        loop.yield %v : f32
      }
      %t = loop.for %k = 0 to 2000 reduce(max) -> f32 {
        %v = loop.load %in[%i, %k] : memref<70x2000xf32>
        %d = arith.subf %s, %v : f32
        loop.yield %d : f32
      }
      loop.store %t, %out[%i] : memref<70xf32>
    }
  }
  %3 = loop.kernel @halves(%x) : (tensor<130xf32>) -> tensor<260xf32> {
  ^bb0(%in: memref<130xf32>, %out: memref<260xf32>):
    tile.launch () {
      %s = loop.for %k = 0 to 130 reduce(max) -> f32 {
        %v = loop.load %in[%k] : memref<130xf32>
        loop.yield %v : f32
      }
      loop.for %j = 0 to 130 {
        loop.store %s, %out[%j] : memref<260xf32>
      }
      loop.for %j = 0 to 130 {
        loop.store %s, %out[%j + 130] : memref<260xf32>
      }
    }
  }
  %4 = loop.kernel @copy(%x) : (tensor<130xf32>) -> tensor<130xf32> {
  ^bb0(%in: memref<130xf32>, %out: memref<130xf32>):
    tile.launch () {
      loop.for %j = 0 to 130 {
        %v = loop.load %in[%j] : memref<130xf32>
        loop.store %v, %out[%j] : memref<130xf32>
      }
    }
  }
  %5 = loop.kernel @asked(%x) : (tensor<130xf32>) -> tensor<f32> {
  ^bb0(%in: memref<130xf32>, %out: memref<f32>):
    tile.launch () schedule(#tile.schedule<lanes = 128>) {
      %s = loop.for %k = 0 to 130 reduce(max) -> f32 {
        %v = loop.load %in[%k] : memref<130xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[] : memref<f32>
    }
  }
  func.return %0, %1, %2, %3, %4, %5 : tensor<f32>, tensor<f32>, tensor<70xf32>, tensor<260xf32>, tensor<130xf32>, tensor<f32>
}

// -----

// REMARK: remark: distribute-sweeps: dynamic: declined: an extent is not known
func.func @dynamic(%x: tensor<?xf32, #sym.extents<s0>>) -> tensor<f32>
    attributes {sym.sizes = [#sym.size<"seq", 2, 1000000, hint = 400>]} {
  %y = loop.kernel @dynamic(%x) : (tensor<?xf32, #sym.extents<s0>>) -> tensor<f32> {
  ^bb0(%in: memref<?xf32, #sym.extents<s0>>, %out: memref<f32>):
    tile.launch () {
      %s = loop.for %k = 0 to s0 reduce(max) -> f32 {
        %v = loop.load %in[%k] : memref<?xf32, #sym.extents<s0>>
        loop.yield %v : f32
      }
      %t = loop.for %k = 0 to s0 reduce(max) -> f32 {
        %v = loop.load %in[%k] : memref<?xf32, #sym.extents<s0>>
        %d = arith.subf %s, %v : f32
        loop.yield %d : f32
      }
      loop.store %t, %out[] : memref<f32>
    }
  }
  func.return %y : tensor<f32>
}

// -----

// REMARK: remark: distribute-sweeps: checked: declined: it checks indices from data
func.func @main(%x: tensor<100x130xf32>, %i: tensor<130xi64>) -> tensor<f32> {
  %y = loop.kernel @checked(%x, %i) : (tensor<100x130xf32>, tensor<130xi64>) -> tensor<f32> {
  ^bb0(%in: memref<100x130xf32>, %ids: memref<130xi64>, %out: memref<f32>):
    tile.launch () {
      %s = loop.for %k = 0 to 4 reduce(max) -> f32 {
        %v = loop.load %in[0, %k] : memref<100x130xf32>
        loop.yield %v : f32
      }
      %t = loop.for %k = 0 to 4 reduce(max) -> f32 {
        %d = loop.load %ids[%k] : memref<130xi64>
        %r = loop.checked_index %d below 100 : i64
        %v = loop.load %in[%r, %k] : memref<100x130xf32>
        %e = arith.subf %s, %v : f32
        loop.yield %e : f32
      }
      loop.store %t, %out[] : memref<f32>
    }
  }
  func.return %y : tensor<f32>
}
