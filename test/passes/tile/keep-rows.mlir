// RUN: deplo-opt %s -p keep-rows --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p keep-rows --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'keep-rows{stage=true}' --split-input-file | FileCheck %s --check-prefix=STAGE
// RUN: deplo-opt %s -p 'keep-rows{stage=true}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=STAGED
// RUN: deplo-opt %s --assume=in-bounds -p keep-rows,materialize-tile,lower-to-cuda --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s --assume=in-bounds -p 'keep-rows{stage=true},materialize-tile,lower-to-cuda' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s --assume=in-bounds -p tile-to-cuda -t cuda --split-input-file | FileCheck %s --check-prefix=CPP
// RUN: deplo-opt %s --assume=in-bounds -p keep-rows,tile-to-cuda -t cuda --split-input-file | FileCheck %s --check-prefix=KEPT

// Two sweeps read a row, under equal masks; what one sweep alone reads stays where it is.
// CHECK-LABEL: loop.kernel @norm
// CHECK:         %in_kept = loop.registers : memref<4xf32, "registers">
// CHECK-NEXT:    loop.for %k = 0 to 4 {
// CHECK-NEXT:      %[[in:.+]] = loop.test[%k * 32 + %lane < 100]
// CHECK-NEXT:      scf.if %[[in]] {
// CHECK-NEXT:        %in_1 = loop.load %in[%i, %k * 32 + %lane]
// CHECK-NEXT:        loop.store %in_1, %in_kept[%k] : memref<4xf32, "registers">
// CHECK-NEXT:      }
// CHECK-NEXT:    } attributes {unroll}
// CHECK-NEXT:    loop.for %k_1 = 0 to 4 reduce(add)
// CHECK:           loop.load %in_kept[%k_1]
// CHECK:         } attributes {unroll}
// CHECK:         loop.for %j = 0 to 4 {
// CHECK:           loop.load %in_kept[%j]
// CHECK-NEXT:      loop.load %w[%j * 32 + %lane]
// CHECK:         } attributes {unroll}
// STAGE-LABEL: loop.kernel @norm
// STAGE:         %in_smem = tile.stage %in[%i, 0] : memref<3x100xf32> -> memref<100xf32, "shared">
// STAGE-COUNT-2: loop.load %in_smem[%{{.+}} * 32 + %lane]
// REMARK: remark: keep-rows: norm: rows are kept in 4 registers
// STAGED: remark: keep-rows: norm: rows are kept in 400 bytes of the scratchpad
// CPP-NOT:     in_kept
// KEPT:        float in_kept[4];
// KEPT-NEXT:   #pragma unroll
// KEPT-NEXT:   for (int k = 0; k < 4; ++k) {
// KEPT:            in_kept[k] = in[i * 100 + k * 32 + lane];
func.func @main(%x: tensor<3x100xf32>, %w: tensor<100xf32>) -> tensor<3x100xf32> {
  %y = loop.kernel @norm(%x, %w) : (tensor<3x100xf32>, tensor<100xf32>) -> tensor<3x100xf32> {
  ^bb0(%in: memref<3x100xf32>, %w: memref<100xf32>, %out: memref<3x100xf32>):
    tile.launch (%i = 3 : block, %lane = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %p = loop.for %k = 0 to 4 reduce(add) -> f32 {
        %t = loop.test[%k * 32 + %lane < 100]
        %c = scf.if %t -> (f32) {
          %v = loop.load %in[%i, %k * 32 + %lane] : memref<3x100xf32>
          scf.yield %v : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.yield %c : f32
      }
      %s = tile.combine add %p over(%lane) : f32
      loop.for %j = 0 to 4 {
        %t = loop.test[%j * 32 + %lane < 100]
        scf.if %t {
          %v = loop.load %in[%i, %j * 32 + %lane] : memref<3x100xf32>
          %g = loop.load %w[%j * 32 + %lane] : memref<100xf32>
          %n = arith.divf %v, %s : f32
          %r = arith.mulf %n, %g : f32
          loop.store %r, %out[%i, %j * 32 + %lane] : memref<3x100xf32>
        }
      }
    }
  }
  func.return %y : tensor<3x100xf32>
}

// -----

// Two rows in a block, and neighbours in a loop of their own: the array has a place for each.
// CHECK-LABEL: loop.kernel @pairs
// CHECK:         %in_kept = loop.registers : memref<4xf32, "registers">
// CHECK:           loop.for %e = 0 to 2 {
// CHECK:             loop.store %in_1, %in_kept[%k * 2 + %e]
// CHECK:             loop.load %in_kept[%k_1 * 2 + %e_1]
// CHECK:             loop.load %in_kept[%j * 2 + %d]
// REMARK: remark: keep-rows: pairs: rows are kept in 4 registers
// STAGED: remark: keep-rows: pairs: declined: the threads of a block read several rows
func.func @main(%x: tensor<6x64xf32>) -> tensor<6x64xf32> {
  %y = loop.kernel @pairs(%x) : (tensor<6x64xf32>) -> tensor<6x64xf32> {
  ^bb0(%in: memref<6x64xf32>, %out: memref<6x64xf32>):
    tile.launch (%b = 3 : block, %i = 2 : thread, %lane = 16 : thread) schedule(#tile.schedule<threads = 32>) {
      %p = loop.for %k = 0 to 2 reduce(max) -> f32 {
        %c = loop.for %e = 0 to 2 reduce(max) -> f32 {
          %v = loop.load %in[%b * 2 + %i, (%k * 16 + %lane) * 2 + %e] : memref<6x64xf32>
          loop.yield %v : f32
        }
        loop.yield %c : f32
      }
      %s = tile.combine max %p over(%lane) : f32
      loop.for %j = 0 to 2 {
        loop.for %d = 0 to 2 {
          %v = loop.load %in[%b * 2 + %i, (%j * 16 + %lane) * 2 + %d] : memref<6x64xf32>
          %n = arith.subf %v, %s : f32
          loop.store %n, %out[%b * 2 + %i, (%j * 16 + %lane) * 2 + %d] : memref<6x64xf32>
        }
      }
    }
  }
  func.return %y : tensor<6x64xf32>
}

// -----

// Declined: each sweep reads elements of its own; a row that no thread has registers for, and no scratchpad either;
// a launch that is not shared out.
// REMARK: remark: keep-rows: apart: declined: no element is read by more than one sweep
// REMARK: remark: keep-rows: long: declined: rows need 2048 registers of a thread, which can spare 64
// REMARK: remark: keep-rows: alone: declined: its threads do not share sweeps
// STAGED: remark: keep-rows: long: declined: rows of 262144 bytes exceed the 231424 of a block's scratchpad
func.func @main(%x: tensor<2x65536xf32>) -> (tensor<2x32xf32>, tensor<2x65536xf32>, tensor<2x4xf32>) {
  %0 = loop.kernel @apart(%x) : (tensor<2x65536xf32>) -> tensor<2x32xf32> {
  ^bb0(%in: memref<2x65536xf32>, %out: memref<2x32xf32>):
    tile.launch (%i = 2 : block, %lane = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %p = loop.for %k = 0 to 2 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k * 32 + %lane] : memref<2x65536xf32>
        loop.yield %v : f32
      }
      %q = loop.for %k = 0 to 2 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k * 32 + %lane + 64] : memref<2x65536xf32>
        loop.yield %v : f32
      }
      %d = arith.subf %p, %q : f32
      loop.store %d, %out[%i, %lane] : memref<2x32xf32>
    }
  }
  %1 = loop.kernel @long(%x) : (tensor<2x65536xf32>) -> tensor<2x65536xf32> {
  ^bb0(%in: memref<2x65536xf32>, %out: memref<2x65536xf32>):
    tile.launch (%i = 2 : block, %lane = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %p = loop.for %k = 0 to 2048 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k * 32 + %lane] : memref<2x65536xf32>
        loop.yield %v : f32
      }
      %s = tile.combine add %p over(%lane) : f32
      loop.for %j = 0 to 2048 {
        %v = loop.load %in[%i, %j * 32 + %lane] : memref<2x65536xf32>
        %n = arith.subf %v, %s : f32
        loop.store %n, %out[%i, %j * 32 + %lane] : memref<2x65536xf32>
      }
    }
  }
  %2 = loop.kernel @alone(%x) : (tensor<2x65536xf32>) -> tensor<2x4xf32> {
  ^bb0(%in: memref<2x65536xf32>, %out: memref<2x4xf32>):
    tile.launch (%i = 2 : thread) {
      loop.for %j = 0 to 4 {
        %v = loop.load %in[%i, %j] : memref<2x65536xf32>
        loop.store %v, %out[%i, %j] : memref<2x4xf32>
      }
    }
  }
  func.return %0, %1, %2 : tensor<2x32xf32>, tensor<2x65536xf32>, tensor<2x4xf32>
}

// -----

// STAGED: remark: keep-rows: prefix: declined: the length of a row is not known
func.func @main(%x: tensor<2x?xf32, #sym.extents<s0>>) -> tensor<2x64xf32>
    attributes {sym.sizes = [#sym.size<"seq", 64, 4096, hint = 100>]} {
  %0 = loop.kernel @prefix(%x) : (tensor<2x?xf32, #sym.extents<s0>>) -> tensor<2x64xf32> {
  ^bb0(%in: memref<2x?xf32, #sym.extents<s0>>, %out: memref<2x64xf32>):
    tile.launch (%i = 2 : block, %lane = 32 : thread) schedule(#tile.schedule<threads = 32>) {
      %p = loop.for %k = 0 to 2 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k * 32 + %lane] : memref<2x?xf32, #sym.extents<s0>>
        loop.yield %v : f32
      }
      %s = tile.combine add %p over(%lane) : f32
      loop.for %j = 0 to 2 {
        %v = loop.load %in[%i, %j * 32 + %lane] : memref<2x?xf32, #sym.extents<s0>>
        %n = arith.subf %v, %s : f32
        loop.store %n, %out[%i, %j * 32 + %lane] : memref<2x64xf32>
      }
    }
  }
  func.return %0 : tensor<2x64xf32>
}

// -----

// The schedule says where: in shared memory, or nowhere.
// CHECK-LABEL: loop.kernel @shared
// CHECK:         %x_smem = tile.stage %x[%i, 0]
// REMARK: remark: keep-rows: shared: rows are kept in 256 bytes of the scratchpad
// REMARK: remark: keep-rows: nowhere: declined: the schedule keeps nothing
func.func @main(%x: tensor<2x64xf32>) -> (tensor<2x64xf32>, tensor<2x64xf32>) {
  %0 = loop.kernel @shared(%x) : (tensor<2x64xf32>) -> tensor<2x64xf32> {
  ^bb0(%x: memref<2x64xf32>, %out: memref<2x64xf32>):
    tile.launch (%i = 2 : block, %lane = 32 : thread) schedule(#tile.schedule<threads = 32, keep = shared>) {
      %p = loop.for %k = 0 to 2 reduce(add) -> f32 {
        %v = loop.load %x[%i, %k * 32 + %lane] : memref<2x64xf32>
        loop.yield %v : f32
      }
      %s = tile.combine add %p over(%lane) : f32
      loop.for %j = 0 to 2 {
        %v = loop.load %x[%i, %j * 32 + %lane] : memref<2x64xf32>
        %n = arith.subf %v, %s : f32
        loop.store %n, %out[%i, %j * 32 + %lane] : memref<2x64xf32>
      }
    }
  }
  %1 = loop.kernel @nowhere(%0) : (tensor<2x64xf32>) -> tensor<2x64xf32> {
  ^bb0(%x: memref<2x64xf32>, %out: memref<2x64xf32>):
    tile.launch (%i = 2 : block, %lane = 32 : thread) schedule(#tile.schedule<threads = 32, keep = nowhere>) {
      %p = loop.for %k = 0 to 2 reduce(add) -> f32 {
        %v = loop.load %x[%i, %k * 32 + %lane] : memref<2x64xf32>
        loop.yield %v : f32
      }
      %s = tile.combine add %p over(%lane) : f32
      loop.for %j = 0 to 2 {
        %v = loop.load %x[%i, %j * 32 + %lane] : memref<2x64xf32>
        %n = arith.subf %v, %s : f32
        loop.store %n, %out[%i, %j * 32 + %lane] : memref<2x64xf32>
      }
    }
  }
  func.return %0, %1 : tensor<2x64xf32>, tensor<2x64xf32>
}

// -----

// More than the 48 KB that a kernel may declare: the launch asks for it.
// STAGE-LABEL: loop.kernel @large
// STAGE:         tile.stage %x[%i, 0] : memref<2x16384xf32> -> memref<16384xf32, "shared">
// STAGED: remark: keep-rows: large: rows are kept in 65536 bytes of the scratchpad
func.func @main(%x: tensor<2x16384xf32>) -> tensor<2x16384xf32> {
  %0 = loop.kernel @large(%x) : (tensor<2x16384xf32>) -> tensor<2x16384xf32> {
  ^bb0(%x: memref<2x16384xf32>, %out: memref<2x16384xf32>):
    tile.launch (%i = 2 : block, %lane = 1024 : thread) schedule(#tile.schedule<threads = 1024>) {
      %p = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %v = loop.load %x[%i, %k * 1024 + %lane] : memref<2x16384xf32>
        loop.yield %v : f32
      }
      %s = tile.combine add %p over(%lane) : f32
      loop.for %j = 0 to 16 {
        %v = loop.load %x[%i, %j * 1024 + %lane] : memref<2x16384xf32>
        %n = arith.subf %v, %s : f32
        loop.store %n, %out[%i, %j * 1024 + %lane] : memref<2x16384xf32>
      }
    }
  }
  func.return %0 : tensor<2x16384xf32>
}
