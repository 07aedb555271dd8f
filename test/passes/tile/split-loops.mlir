// RUN: deplo-opt %s -p 'split-loops' --split-input-file --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p 'split-loops' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// The two sources of a concatenation.
// REMARK: remark: split-loops: cat: 1 loop became 2
// CHECK-LABEL: loop.kernel @cat
// CHECK:       loop.for %j = 0 to 5 {
// CHECK-NEXT:    loop.load %{{.*}}[%i, %j]
// CHECK-NEXT:    loop.store %{{.*}}[%i, %j]
// CHECK:       loop.for %j_1 = 0 to 3 {
// CHECK-NEXT:    loop.load %{{.*}}[%i, %j_1]
// CHECK-NEXT:    loop.store %{{.*}}[%i, %j_1 + 5]
// CHECK-NOT:   loop.test
func.func @main(%x: tensor<4x5xf32>, %y: tensor<4x3xf32>) -> tensor<4x8xf32> {
  %z = loop.kernel @cat(%x, %y) : (tensor<4x5xf32>, tensor<4x3xf32>) -> tensor<4x8xf32> {
  ^bb0(%a: memref<4x5xf32>, %b: memref<4x3xf32>, %out: memref<4x8xf32>):
    tile.launch (%i = 4 : block) schedule(#tile.schedule<serial = 8>) {
      loop.for %j = 0 to 8 {
        %first = loop.test [%j < 5]
        %v = scf.if %first -> (f32) {
          %l = loop.load %a[%i, %j] : memref<4x5xf32>
          scf.yield %l : f32
        } else {
          %r = loop.load %b[%i, %j - 5] : memref<4x3xf32>
          scf.yield %r : f32
        }
        loop.store %v, %out[%i, %j] : memref<4x8xf32>
      }
    }
  }
  func.return %z : tensor<4x8xf32>
}

// -----

// A window is tested at the borders only: between them no position of %w is outside.
// REMARK: remark: split-loops: window: 1 loop became 3
// CHECK-LABEL: loop.kernel @window
// CHECK:       loop.for %j = 0 to 1 {
// CHECK:         loop.test[%w >= 1]
// CHECK:       loop.for %j_1 = 0 to 4 {
// CHECK-NEXT:    loop.for %{{.*}} = 0 to 3 reduce(add)
// CHECK-NEXT:      loop.load %{{.*}}[%i, %j_1 + %{{.*}}]
// CHECK:       loop.for %j_2 = 0 to 1 {
// CHECK:         loop.test[%{{.*}} < 2]
func.func @main(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %z = loop.kernel @window(%x) : (tensor<4x6xf32>) -> tensor<4x6xf32> {
  ^bb0(%a: memref<4x6xf32>, %out: memref<4x6xf32>):
    tile.launch (%i = 4 : block) schedule(#tile.schedule<serial = 6>) {
      loop.for %j = 0 to 6 {
        %s = loop.for %w = 0 to 3 reduce(add) -> f32 {
          %in = loop.test [%j + %w >= 1, %j + %w < 7]
          %v = scf.if %in -> (f32) {
            %l = loop.load %a[%i, %j + %w - 1] : memref<4x6xf32>
            scf.yield %l : f32
          } else {
            %zero = arith.constant 0.0 : f32
            scf.yield %zero : f32
          }
          loop.yield %v : f32
        }
        loop.store %s, %out[%i, %j] : memref<4x6xf32>
      }
    }
  }
  func.return %z : tensor<4x6xf32>
}

// -----

// Blocks of 4: whether a block reads %a or %b depends on the block alone, so the counter leaves the condition. In blocks
// of 3 the second one straddles the limit, and is cut there.
// REMARK: remark: split-loops: blocks: the conditions of 1 loop are left to the blocks
// REMARK: remark: split-loops: straddled: 1 loop became 2
// CHECK-LABEL: loop.kernel @blocks
// CHECK:       loop.for %j = 0 to 4 {
// CHECK-NEXT:    loop.test[%b < 1]
// CHECK-LABEL: loop.kernel @straddled
// CHECK:       loop.for %j = 0 to 1 {
// CHECK-NEXT:    loop.test[%b < 2]
// CHECK:       loop.for %j_1 = 0 to 2 {
// CHECK-NEXT:    loop.test[%b < 1]
func.func @main(%x: tensor<4xf32>) -> (tensor<8xf32>, tensor<9xf32>) {
  %y = loop.kernel @blocks(%x) : (tensor<4xf32>) -> tensor<8xf32> {
  ^bb0(%a: memref<4xf32>, %out: memref<8xf32>):
    tile.launch (%b = 2 : block) schedule(#tile.schedule<serial = 4>) {
      loop.for %j = 0 to 4 {
        %in = loop.test [%b * 4 + %j < 4]
        %v = scf.if %in -> (f32) {
          %l = loop.load %a[%b * 4 + %j] : memref<4xf32>
          scf.yield %l : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.store %v, %out[%b * 4 + %j] : memref<8xf32>
      }
    }
  }
  %z = loop.kernel @straddled(%x) : (tensor<4xf32>) -> tensor<9xf32> {
  ^bb0(%a: memref<4xf32>, %out: memref<9xf32>):
    tile.launch (%b = 3 : block) schedule(#tile.schedule<serial = 3>) {
      loop.for %j = 0 to 3 {
        %in = loop.test [%b * 3 + %j < 4]
        %v = scf.if %in -> (f32) {
          %l = loop.load %a[%b * 3 + %j] : memref<4xf32>
          scf.yield %l : f32
        } else {
          %zero = arith.constant 0.0 : f32
          scf.yield %zero : f32
        }
        loop.store %v, %out[%b * 3 + %j] : memref<9xf32>
      }
    }
  }
  func.return %y, %z : tensor<8xf32>, tensor<9xf32>
}

// -----

// Why a loop stays.
// REMARK: remark: split-loops: plain: declined: no loop has a condition
// REMARK: remark: split-loops: reducing: declined: k: it reduces
// REMARK: remark: split-loops: dynamic: declined: j: its length is not known
// REMARK: remark: split-loops: outer: declined: j: no condition is one of its counter
// REMARK: remark: split-loops: same: declined: j: no condition changes
// REMARK: remark: split-loops: often: declined: j: a condition changes often
func.func @main(%x: tensor<8xf32>, %d: tensor<?xf32, #sym.extents<s0>>) -> (tensor<8xf32>, tensor<1xf32>, tensor<?xf32, #sym.extents<s0>>, tensor<8xf32>, tensor<8xf32>, tensor<96xf32>) {
  %p = loop.kernel @plain(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: memref<8xf32>, %out: memref<8xf32>):
    tile.launch () schedule(#tile.schedule<serial = 8>) {
      loop.for %j = 0 to 8 {
        %v = loop.load %a[%j] : memref<8xf32>
        loop.store %v, %out[%j] : memref<8xf32>
      }
    }
  }
  %q = loop.kernel @reducing(%x) : (tensor<8xf32>) -> tensor<1xf32> {
  ^bb0(%a: memref<8xf32>, %out: memref<1xf32>):
    tile.launch () schedule(#tile.schedule<serial = 1>) {
      %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
        %in = loop.test [%k < 4]
        %v = loop.load %a[%k] : memref<8xf32>
        %zero = arith.constant 0.0 : f32
        %w = arith.select %in, %v, %zero : f32
        loop.yield %w : f32
      }
      loop.store %s, %out[0] : memref<1xf32>
    }
  }
  %r = loop.kernel @dynamic(%d) : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>> {
  ^bb0(%a: memref<?xf32, #sym.extents<s0>>, %out: memref<?xf32, #sym.extents<s0>>):
    tile.launch () schedule(#tile.schedule<serial = 8>) {
      loop.for %j = 0 to s0 {
        %in = loop.test [%j < 4]
        %v = loop.load %a[%j] : memref<?xf32, #sym.extents<s0>>
        %zero = arith.constant 0.0 : f32
        %w = arith.select %in, %v, %zero : f32
        loop.store %w, %out[%j] : memref<?xf32, #sym.extents<s0>>
      }
    }
  }
  %s = loop.kernel @outer(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: memref<8xf32>, %out: memref<8xf32>):
    tile.launch (%b = 2 : block) schedule(#tile.schedule<serial = 4>) {
      loop.for %j = 0 to 4 {
        %in = loop.test [%b < 1]
        %v = loop.load %a[%b * 4 + %j] : memref<8xf32>
        %zero = arith.constant 0.0 : f32
        %w = arith.select %in, %v, %zero : f32
        loop.store %w, %out[%b * 4 + %j] : memref<8xf32>
      }
    }
  }
  %u = loop.kernel @same(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: memref<8xf32>, %out: memref<8xf32>):
    tile.launch () schedule(#tile.schedule<serial = 8>) {
      loop.for %j = 0 to 8 {
        %in = loop.test [%j < 9]
        %v = loop.load %a[%j] : memref<8xf32>
        %zero = arith.constant 0.0 : f32
        %w = arith.select %in, %v, %zero : f32
        loop.store %w, %out[%j] : memref<8xf32>
      }
    }
  }
  %t = loop.kernel @often(%x) : (tensor<8xf32>) -> tensor<96xf32> {
  ^bb0(%a: memref<8xf32>, %out: memref<96xf32>):
    tile.launch (%b = 8 : block) schedule(#tile.schedule<serial = 12>) {
      loop.for %j = 0 to 12 {
        %in = loop.test [%b - %j >= 0]
        %v = loop.load %a[%b] : memref<8xf32>
        %zero = arith.constant 0.0 : f32
        %w = arith.select %in, %v, %zero : f32
        loop.store %w, %out[%b * 12 + %j] : memref<96xf32>
      }
    }
  }
  func.return %p, %q, %r, %s, %u, %t : tensor<8xf32>, tensor<1xf32>, tensor<?xf32, #sym.extents<s0>>, tensor<8xf32>, tensor<8xf32>, tensor<96xf32>
}

// -----

// Six places to cut are too many.
// REMARK: remark: split-loops: places: declined: j: it would become 7 loops
func.func @main(%x: tensor<8xi64>) -> tensor<8xi64> {
  %z = loop.kernel @places(%x) : (tensor<8xi64>) -> tensor<8xi64> {
  ^bb0(%a: memref<8xi64>, %out: memref<8xi64>):
    tile.launch () schedule(#tile.schedule<serial = 8>) {
      loop.for %j = 0 to 8 {
        %0 = loop.load %a[%j] : memref<8xi64>
        %c1 = loop.test [%j < 1]
        %c2 = loop.test [%j < 2]
        %c3 = loop.test [%j < 3]
        %c4 = loop.test [%j < 4]
        %c5 = loop.test [%j < 5]
        %c6 = loop.test [%j < 6]
        %v1 = arith.extui %c1 : i1 to i64
        %v2 = arith.extui %c2 : i1 to i64
        %v3 = arith.extui %c3 : i1 to i64
        %v4 = arith.extui %c4 : i1 to i64
        %v5 = arith.extui %c5 : i1 to i64
        %v6 = arith.extui %c6 : i1 to i64
        %s1 = arith.addi %v1, %v2 : i64
        %s2 = arith.addi %s1, %v3 : i64
        %s3 = arith.addi %s2, %v4 : i64
        %s4 = arith.addi %s3, %v5 : i64
        %s5 = arith.addi %s4, %v6 : i64
        %s = arith.addi %s5, %0 : i64
        loop.store %s, %out[%j] : memref<8xi64>
      }
    }
  }
  func.return %z : tensor<8xi64>
}

// -----

// Rows that come side by side, in blocks of 4 as `blockify-launch` makes them; the last one has 2.
// REMARK: remark: split-loops: rows: declined: i_serial: rows that come side by side and strips of columns end where the condition does
// CHECK-LABEL: @rows
// CHECK:         loop.for %i_serial = 0 to 4 {
// CHECK-NEXT:      [[IN:%.*]] = loop.test[%i_block * 4 + %i_serial < 10]
func.func @main(%x: tensor<10x8xf32>) -> tensor<10x8xf32> {
  %z = loop.kernel @rows(%x) : (tensor<10x8xf32>) -> tensor<10x8xf32> {
  ^bb0(%a: memref<10x8xf32>, %out: memref<10x8xf32>):
    tile.launch (%i_block = 3 : block) schedule(#tile.schedule<width = 512, interleave = 1, rows = 4, serial = 4>) {
      loop.for %i_serial = 0 to 4 {
        %in = loop.test [%i_block * 4 + %i_serial < 10]
        scf.if %in {
          loop.for %j = 0 to 8 {
            %0 = loop.load %a[%i_block * 4 + %i_serial, %j] : memref<10x8xf32>
            loop.store %0, %out[%i_block * 4 + %i_serial, %j] : memref<10x8xf32>
          }
        }
      }
    }
  }
  func.return %z : tensor<10x8xf32>
}
