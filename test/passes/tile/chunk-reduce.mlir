// RUN: deplo-opt %s -p chunk-reduce --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p chunk-reduce,chunk-reduce --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p chunk-reduce,cooperative-reduce,keep-rows,blockify-launch,materialize-tile,lower-to-cuda --split-input-file --check-each-pass >/dev/null

// A block has 32 columns, and each of 16 threads a chunk of one; the chunks are combined across warps.
// CHECK-LABEL: loop.kernel @columns
// CHECK:         tile.launch (%j_block = 2 : block, %lane = 16 : thread, %j_thread = 32 : thread) schedule(#tile.schedule<threads = 512>) {
// CHECK-NEXT:      %s_part = loop.for %k = 0 to 7 reduce(add) -> f32 {
// CHECK-NEXT:        %[[in:.+]] = loop.test[%j_block * 32 + %j_thread < 50, %k * 16 + %lane < 100]
// CHECK-NEXT:        scf.if %[[in]] -> (f32) {
// CHECK-NEXT:          loop.load %in[%k * 16 + %lane, %j_block * 32 + %j_thread]
// CHECK:           %s = tile.combine add %s_part over(%lane) : f32
// CHECK-NEXT:      %first = loop.test[%j_block * 32 + %j_thread < 50, %lane < 1]
// REMARK: remark: chunk-reduce: columns: 16 threads share each of 32 columns of a block
// REMARK: remark: chunk-reduce: columns: declined: the launch is partitioned already
func.func @main(%x: tensor<100x50xf32>) -> tensor<50xf32> {
  %y = loop.kernel @columns(%x) : (tensor<100x50xf32>) -> tensor<50xf32> {
  ^bb0(%in: memref<100x50xf32>, %out: memref<50xf32>):
    tile.launch (%j = 50 : thread) {
      %s = loop.for %k = 0 to 100 reduce(add) -> f32 {
        %v = loop.load %in[%k, %j] : memref<100x50xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%j] : memref<50xf32>
    }
  }
  func.return %y : tensor<50xf32>
}

// -----

// Two sweeps over three columns: the threads of a block are chunks of four, and each keeps nothing.
// CHECK-LABEL: loop.kernel @deviation
// CHECK:         tile.launch (%lane = 8 : thread, %j_thread = 4 : thread) schedule(#tile.schedule<threads = 32>) {
// REMARK: remark: chunk-reduce: deviation: 8 threads share each of 4 columns of a block
func.func @main(%x: tensor<37x3xf32>) -> tensor<3xf32> {
  %y = loop.kernel @deviation(%x) : (tensor<37x3xf32>) -> tensor<3xf32> {
  ^bb0(%in: memref<37x3xf32>, %out: memref<3xf32>):
    tile.launch (%j = 3 : thread) {
      %m = loop.for %k = 0 to 37 reduce(max) -> f32 {
        %v = loop.load %in[%k, %j] : memref<37x3xf32>
        loop.yield %v : f32
      }
      %s = loop.for %k = 0 to 37 reduce(add) -> f32 {
        %v = loop.load %in[%k, %j] : memref<37x3xf32>
        %d = arith.subf %v, %m : f32
        loop.yield %d : f32
      }
      loop.store %s, %out[%j] : memref<3xf32>
    }
  }
  func.return %y : tensor<3xf32>
}

// -----

// A vector times a matrix: lanes along the columns read neighbours of the matrix, lanes along the rows would read
// neighbours of the vector alone. Blocks of 32 columns are too few; with 8, a warp reads four whole sectors still.
// CHECK-LABEL: loop.kernel @product
// CHECK:         tile.launch (%j_block = 8 : block, %lane = 128 : thread, %j_thread = 8 : thread)
// CHECK:             loop.load %v[%k * 128 + %lane]
// CHECK-NEXT:        loop.load %w[%k * 128 + %lane, %j_block * 8 + %j_thread]
// REMARK: remark: chunk-reduce: product: 128 threads share each of 8 columns of a block
func.func @main(%x: tensor<1024xf32>, %m: tensor<1024x64xf32>) -> tensor<64xf32> {
  %y = loop.kernel @product(%x, %m) : (tensor<1024xf32>, tensor<1024x64xf32>) -> tensor<64xf32> {
  ^bb0(%v: memref<1024xf32>, %w: memref<1024x64xf32>, %out: memref<64xf32>):
    tile.launch (%j = 64 : thread) {
      %s = loop.for %k = 0 to 1024 reduce(add) -> f32 {
        %a = loop.load %v[%k] : memref<1024xf32>
        %b = loop.load %w[%k, %j] : memref<1024x64xf32>
        %p = arith.mulf %a, %b : f32
        loop.yield %p : f32
      }
      loop.store %s, %out[%j] : memref<64xf32>
    }
  }
  func.return %y : tensor<64xf32>
}

// -----

// Declined: rows; short columns; many columns; what no threads can share.
// REMARK: remark: chunk-reduce: rows: declined: no reduction over columns
// REMARK: remark: chunk-reduce: short: declined: columns of 7 elements are too short to share
// REMARK: remark: chunk-reduce: many: declined: 80000 columns keep 132 processors busy, a thread each
// REMARK: remark: chunk-reduce: copy: declined: no reduce loop in the body
func.func @main(%x: tensor<9x80000xf32>) -> (tensor<9xf32>, tensor<60xf32>, tensor<80000xf32>, tensor<9x80xf32>) {
  %0 = loop.kernel @rows(%x) : (tensor<9x80000xf32>) -> tensor<9xf32> {
  ^bb0(%in: memref<9x80000xf32>, %out: memref<9xf32>):
    tile.launch (%i = 9 : thread) {
      %s = loop.for %k = 0 to 80 reduce(add) -> f32 {
        %v = loop.load %in[%i, %k] : memref<9x80000xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<9xf32>
    }
  }
  %1 = loop.kernel @short(%x) : (tensor<9x80000xf32>) -> tensor<60xf32> {
  ^bb0(%in: memref<9x80000xf32>, %out: memref<60xf32>):
    tile.launch (%i = 60 : thread) {
      %s = loop.for %k = 0 to 7 reduce(add) -> f32 {
        %v = loop.load %in[%k, %i] : memref<9x80000xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<60xf32>
    }
  }
  %2 = loop.kernel @many(%x) : (tensor<9x80000xf32>) -> tensor<80000xf32> {
  ^bb0(%in: memref<9x80000xf32>, %out: memref<80000xf32>):
    tile.launch (%i = 80000 : thread) {
      %s = loop.for %k = 0 to 9 reduce(add) -> f32 {
        %v = loop.load %in[%k, %i] : memref<9x80000xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<80000xf32>
    }
  }
  %3 = loop.kernel @copy(%x) : (tensor<9x80000xf32>) -> tensor<9x80xf32> {
  ^bb0(%in: memref<9x80000xf32>, %out: memref<9x80xf32>):
    tile.launch (%i = 9 : thread, %j = 80 : thread) {
      %v = loop.load %in[%i, %j] : memref<9x80000xf32>
      loop.store %v, %out[%i, %j] : memref<9x80xf32>
    }
  }
  func.return %0, %1, %2, %3 : tensor<9xf32>, tensor<60xf32>, tensor<80000xf32>, tensor<9x80xf32>
}
