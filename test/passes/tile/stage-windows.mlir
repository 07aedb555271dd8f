// What the windows of a block read is copied once, with what lies around it, and tested once.
// RUN: deplo-opt %s --assume=in-bounds,stored-once -p stage-windows --split-input-file | FileCheck %s
// RUN: deplo-opt %s --assume=in-bounds,stored-once -p stage-windows --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --assume=in-bounds,stored-once -p stage-windows --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s --assume=in-bounds,stored-once -p stage-windows,lower-tile-to-scf --split-input-file | FileCheck %s --check-prefix=SCF
// RUN: deplo-opt %s --assume=in-bounds,stored-once -p stage-windows,lower-tile-to-scf{vectors=false} --split-input-file | FileCheck %s --check-prefix=PLAIN

// A window of 3 by 3, three of whose rows a block has; what relu makes of an element is computed once, too.
// CHECK-LABEL: loop.kernel @depthwise
// CHECK:         tile.launch (%j = 4 : block, %k_block = 3 : block) {
// CHECK-NEXT:      %window = tile.pack (%r = 5, %c = 12) : memref<5x12xf32, "shared"> {
// CHECK-NEXT:        %[[in:.+]] = loop.test[%k_block * 3 + %r >= 1, %k_block * 3 + %r < 10, %c >= 1, %c < 11]
// CHECK-NEXT:        %[[v:.+]] = scf.if %[[in]] -> (f32) {
// CHECK-NEXT:          %[[p:.+]] = loop.load %x[%j, %k_block * 3 + %r - 1, %c - 1]
// CHECK:               arith.maximumf %[[p]],
// CHECK:             tile.yield %[[v]] : f32
// CHECK:           loop.for %k = 0 to 3 {
// CHECK-NEXT:        loop.for %l = 0 to 10 {
// CHECK-NOT:           loop.test
// CHECK:               loop.load %window[%k + %n, %l + %m] : memref<5x12xf32, "shared">
// What is outside in every block is written in front of all blocks, rows that are in some before they are copied.
// SCF-LABEL: func.func @depthwise
// SCF:         %window = memref.alloc() {alignment = 64 : i64} : memref<5x1x12xf32>
// SCF:         scf.for %r = %c0 to %c5 step %c1 {
// SCF-NEXT:      scf.for %c = %c0 to %c12 step %c1 {
// SCF-NEXT:        arith.constant 0.000000e+00 : f32
// SCF-NEXT:        loop.store %{{.+}}, %window[%r, %c floordiv 12, %c mod 12]
// SCF:         scf.for %block = %block_begin to %block_end step %c1 {
// SCF:           scf.for %{{.+}} = %c0 to %[[first:.+]] step %c1 {
// SCF:           scf.for %[[row:.+]] = %[[first]] to %{{.+}} step %c1 {
// SCF-NEXT:        scf.for %[[column:.+]] = %c1 to %c11 step %c1 {
// SCF-NEXT:          loop.load %x[%j, %k_block * 3 + %[[row]] - 1, %[[column]] - 1]
// SCF:               loop.store %{{.+}}, %window[%[[row]], 0, %[[column]]]
// SCF:           loop.load %window[%k + %n, 0, %l + %m] : memref<5x1x12xf32>
// SCF:         memref.dealloc %window
// REMARK: remark: stage-windows: depthwise: 1 operand of windows
func.func @main(%x: tensor<4x9x10xf32>, %w: tensor<4x3x3xf32>) -> tensor<4x9x10xf32> {
  %y = loop.kernel @depthwise(%x, %w) : (tensor<4x9x10xf32>, tensor<4x3x3xf32>) -> tensor<4x9x10xf32> {
  ^bb0(%x: memref<4x9x10xf32>, %w: memref<4x3x3xf32>, %y: memref<4x9x10xf32>):
    tile.launch (%j = 4 : block, %k_block = 3 : block) {
      loop.for %k = 0 to 3 {
        loop.for %l = 0 to 10 {
          %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
            %t = loop.for %m = 0 to 3 reduce(add) -> f32 {
              %in = loop.test[%k_block * 3 + %k + %n >= 1, %k_block * 3 + %k + %n < 10, %l + %m >= 1, %l + %m < 11]
              %window = scf.if %in -> (f32) {
                %p = loop.load %x[%j, %k_block * 3 + %k + %n - 1, %l + %m - 1] : memref<4x9x10xf32>
                %zero = arith.constant 0.0 : f32
                %q = arith.maximumf %p, %zero : f32
                scf.yield %q : f32
              } else {
                %zero = arith.constant 0.0 : f32
                scf.yield %zero : f32
              }
              %f = loop.load %w[%j, %n, %m] : memref<4x3x3xf32>
              %u = arith.mulf %window, %f : f32
              loop.yield %u : f32
            }
            loop.yield %t : f32
          }
          loop.store %s, %y[%j, %k_block * 3 + %k, %l] : memref<4x9x10xf32>
        }
      }
    }
  }
  func.return %y : tensor<4x9x10xf32>
}

// -----

// Every second window of a signal, whose last block has fewer: a copy reads nothing past the end of the rows.
// CHECK-LABEL: loop.kernel @strided
// CHECK:         %window = tile.pack (%r = 2, %c = 12) phases 2 : memref<2x12xf32, "shared"> {
// CHECK-NEXT:      loop.test[%c >= 1, %c < 11, %i_block * 2 + %r < 5]
// CHECK:         loop.load %window[%i, %l * 2 + %m] : memref<2x12xf32, "shared">
// Elements at even and at odd columns lie apart: vectors of a line are shuffled, the last ends where the line does.
// SCF-LABEL: func.func @strided
// SCF:         %window = memref.alloc() {alignment = 64 : i64} : memref<2x2x6xf32>
// SCF:         %line = memref.alloc() {alignment = 64 : i64} : memref<1x12xf32>
// SCF:         arith.constant 0xff800000
// SCF:         loop.store %{{.+}}, %line[0, %{{.+}}]
// SCF:         scf.for %i_block = %block_begin to %block_end step %c1 {
// SCF:           scf.for %[[c:.+]] = %c1 to %c11 step %c1 {
// SCF-NEXT:        loop.load %x[%i_block * 2 + %[[r:.+]], %[[c]] - 1]
// SCF-NEXT:        loop.store %{{.+}}, %line[0, %[[c]]]
// SCF:           scf.for %part = %c0 to %c2 step %c1 {
// SCF-NEXT:        %[[next:.+]] = loop.index[%part * 4]
// SCF-NEXT:        %[[p:.+]] = arith.minsi %[[next]], %c2
// SCF-NEXT:        %[[first:.+]] = loop.index[%[[p]] * 2]
// SCF-NEXT:        %[[a:.+]] = vector.load %line[%c0, %[[first]]] : memref<1x12xf32>, vector<4xf32>
// SCF-NEXT:        %[[second:.+]] = loop.index[%[[p]] * 2 + 4]
// SCF-NEXT:        %[[b:.+]] = vector.load %line[%c0, %[[second]]] : memref<1x12xf32>, vector<4xf32>
// SCF-NEXT:        %[[even:.+]] = vector.shuffle %[[a]], %[[b]] [0, 2, 4, 6]
// SCF-NEXT:        vector.store %[[even]], %window[%[[r]], %c0, %[[p]]]
// SCF-NEXT:        %[[odd:.+]] = vector.shuffle %[[a]], %[[b]] [1, 3, 5, 7]
// SCF-NEXT:        vector.store %[[odd]], %window[%[[r]], %c1, %[[p]]]
// SCF:         loop.load %window[%i, %m mod 2, %m floordiv 2 + %l]
// Where no vectors are named, they are copied in one loop where both are inside.
// PLAIN-LABEL: func.func @strided
// PLAIN:         scf.for %[[c:.+]] = %c1 to %c5 step %c1 {
// PLAIN-NEXT:      %[[even:.+]] = loop.index[%[[c]] * 2]
// PLAIN-NEXT:      loop.load %x[%i_block * 2 + %r{{.*}}, %[[even]] - 1]
// PLAIN-NEXT:      loop.store %{{.+}}, %window[%r{{.*}}, 0, %[[c]]]
// PLAIN-NEXT:      %[[odd:.+]] = loop.index[%[[c]] * 2 + 1]
// PLAIN-NEXT:      loop.load %x[%i_block * 2 + %r{{.*}}, %[[odd]] - 1]
// PLAIN-NEXT:      loop.store %{{.+}}, %window[%r{{.*}}, 1, %[[c]]]
// PLAIN:         scf.for %{{.+}} = %c5 to %c6 step %c1 {
// PLAIN:         scf.for %{{.+}} = %c0 to %c1 step %c1 {
// REMARK: remark: stage-windows: strided: 1 operand of windows
func.func @main(%x: tensor<5x10xf32>) -> tensor<5x4xf32> {
  %y = loop.kernel @strided(%x) : (tensor<5x10xf32>) -> tensor<5x4xf32> {
  ^bb0(%x: memref<5x10xf32>, %y: memref<5x4xf32>):
    tile.launch (%i_block = 3 : block) schedule(#tile.schedule<width = 256>) {
      loop.for %i = 0 to 2 {
        %has = loop.test[%i_block * 2 + %i < 5]
        scf.if %has {
          loop.for %l = 0 to 4 {
            %s = loop.for %m = 0 to 6 reduce(max) -> f32 {
              %in = loop.test[%l * 2 + %m >= 1, %l * 2 + %m < 11]
              %window = scf.if %in -> (f32) {
                %p = loop.load %x[%i_block * 2 + %i, %l * 2 + %m - 1] : memref<5x10xf32>
                scf.yield %p : f32
              } else {
                %low = arith.constant 0xff800000 : f32
                scf.yield %low : f32
              }
              loop.yield %window : f32
            }
            loop.store %s, %y[%i_block * 2 + %i, %l] : memref<5x4xf32>
          }
        }
      }
    }
  }
  func.return %y : tensor<5x4xf32>
}

// -----

// Why an operand is not copied.
// REMARK: remark: stage-windows: same: declined: windows hardly overlap
// REMARK: remark: stage-windows: large: declined: a copy of what a block reads is too large
// REMARK: remark: stage-windows: triangle: declined: its elements are not told apart by rows and columns
// REMARK: remark: stage-windows: blocks: declined: an index is no sum of counters
// REMARK: remark: stage-windows: computed: declined: it reads what a loop around it computes
// REMARK: remark: stage-windows: other: declined: a condition chooses something else than a value or a constant
// REMARK: remark: stage-windows: plain: declined: it is in no reduction inside of a loop, all of known lengths
// REMARK: remark: stage-windows: packed: declined: it is packed already
// REMARK: remark: stage-windows: none: declined: no reduction has a condition
func.func @main(%x: tensor<8x64xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %same = loop.kernel @same(%x) : (tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %y: memref<8xf32>):
    tile.launch (%b = 8 : block) {
      loop.for %l = 0 to 30 {
        %s = loop.for %m = 0 to 2 reduce(add) -> f32 {
          %in = loop.test[%l * 2 + %m >= 1]
          %v = scf.if %in -> (f32) {
            %p = loop.load %x[%b, %l * 2 + %m - 1] : memref<8x64xf32>
            scf.yield %p : f32
          } else {
            %low = arith.constant 0.0 : f32
            scf.yield %low : f32
          }
          loop.yield %v : f32
        }
        loop.store %s, %y[%b] : memref<8xf32>
      }
    }
  }
  %large = loop.kernel @large(%x) : (tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %y: memref<8xf32>):
    tile.launch (%b = 8 : block) {
      loop.for %l = 0 to 40000 {
        %s = loop.for %m = 0 to 4 reduce(add) -> f32 {
          %in = loop.test[%l + %m >= 1, %l + %m < 65]
          %v = scf.if %in -> (f32) {
            %p = loop.load %x[%b, %l + %m - 1] : memref<8x64xf32>
            scf.yield %p : f32
          } else {
            %low = arith.constant 0.0 : f32
            scf.yield %low : f32
          }
          loop.yield %v : f32
        }
        loop.store %s, %y[%b] : memref<8xf32>
      }
    }
  }
  %triangle = loop.kernel @triangle(%x) : (tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %y: memref<8xf32>):
    tile.launch (%b = 8 : block) {
      loop.for %l = 0 to 60 {
        %s = loop.for %m = 0 to 4 reduce(add) -> f32 {
          %in = loop.test[%l - %m >= 0]
          %v = scf.if %in -> (f32) {
            %p = loop.load %x[%b, %l - %m] : memref<8x64xf32>
            scf.yield %p : f32
          } else {
            %low = arith.constant 0.0 : f32
            scf.yield %low : f32
          }
          loop.yield %v : f32
        }
        loop.store %s, %y[%b] : memref<8xf32>
      }
    }
  }
  %blocks = loop.kernel @blocks(%x) : (tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %y: memref<8xf32>):
    tile.launch (%b = 8 : block) {
      loop.for %l = 0 to 60 {
        %s = loop.for %m = 0 to 4 reduce(add) -> f32 {
          %in = loop.test[%l + %m >= 1]
          %v = scf.if %in -> (f32) {
            %p = loop.load %x[%b, (%l + %m) floordiv 2] : memref<8x64xf32>
            scf.yield %p : f32
          } else {
            %low = arith.constant 0.0 : f32
            scf.yield %low : f32
          }
          loop.yield %v : f32
        }
        loop.store %s, %y[%b] : memref<8xf32>
      }
    }
  }
  %computed = loop.kernel @computed(%x) : (tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %y: memref<8xf32>):
    tile.launch (%b = 8 : block) {
      loop.for %l = 0 to 60 {
        %s = loop.for %m = 0 to 4 reduce(add) -> f32 {
          %n = loop.index[%m * 0]
          %in = loop.test[%l + %m >= 1]
          %v = scf.if %in -> (f32) {
            %p = loop.load %x[%b, %l + %m - 1 + %n] : memref<8x64xf32>
            scf.yield %p : f32
          } else {
            %low = arith.constant 0.0 : f32
            scf.yield %low : f32
          }
          loop.yield %v : f32
        }
        loop.store %s, %y[%b] : memref<8xf32>
      }
    }
  }
  %other = loop.kernel @other(%x) : (tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %y: memref<8xf32>):
    tile.launch (%b = 8 : block) {
      loop.for %l = 0 to 60 {
        %s = loop.for %m = 0 to 4 reduce(add) -> f32 {
          %in = loop.test[%l + %m >= 1]
          %v = scf.if %in -> (f32) {
            %p = loop.load %x[%b, %l + %m - 1] : memref<8x64xf32>
            scf.yield %p : f32
          } else {
            %low = loop.load %x[%b, 0] : memref<8x64xf32>
            scf.yield %low : f32
          }
          loop.yield %v : f32
        }
        loop.store %s, %y[%b] : memref<8xf32>
      }
    }
  }
  %plain = loop.kernel @plain(%x) : (tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %y: memref<8xf32>):
    tile.launch (%b = 8 : block) {
      %in = loop.test[%b >= 1]
      %v = scf.if %in -> (f32) {
        %p = loop.load %x[%b, 0] : memref<8x64xf32>
        scf.yield %p : f32
      } else {
        %low = arith.constant 0.0 : f32
        scf.yield %low : f32
      }
      loop.store %v, %y[%b] : memref<8xf32>
    }
  }
  %packed = loop.kernel @packed(%x) : (tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %y: memref<8xf32>):
    tile.launch (%b = 8 : block) {
      %q = tile.pack (%r = 1, %c = 8) : memref<1x8xf32, "shared"> {
        %in = loop.test[%c >= 1]
        %v = scf.if %in -> (f32) {
          %p = loop.load %x[%b, %c - 1] : memref<8x64xf32>
          scf.yield %p : f32
        } else {
          %low = arith.constant 0.0 : f32
          scf.yield %low : f32
        }
        tile.yield %v : f32
      }
      %w = loop.load %q[0, 3] : memref<1x8xf32, "shared">
      loop.store %w, %y[%b] : memref<8xf32>
    }
  }
  %none = loop.kernel @none(%x) : (tensor<8x64xf32>) -> tensor<8xf32> {
  ^bb0(%x: memref<8x64xf32>, %y: memref<8xf32>):
    tile.launch (%b = 8 : block) {
      %w = loop.load %x[%b, 3] : memref<8x64xf32>
      loop.store %w, %y[%b] : memref<8xf32>
    }
  }
  func.return %same, %large, %triangle, %blocks, %computed, %other, %plain, %packed, %none : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}

// -----

// Copied is what is wide already: it is widened once, not in each window.
// CHECK-LABEL: loop.kernel @narrow
// CHECK:         tile.pack (%{{.+}} = 1, %{{.+}} = 17) : memref<1x17xf32, "shared">
// CHECK:           scf.if
// CHECK-NEXT:        %[[p:.+]] = loop.load %x
// CHECK-NEXT:        %[[w:.+]] = arith.extf %[[p]] : bf16 to f32
// CHECK-NEXT:        scf.yield %[[w]] : f32
// CHECK-NEXT:      } else {
// CHECK:             arith.constant 0.000000e+00 : f32
// CHECK:           tile.yield
// CHECK-NOT:     arith.extf
func.func @main(%x: tensor<8x15xbf16>) -> tensor<8x15xf32> {
  %0 = loop.kernel @narrow(%x) : (tensor<8x15xbf16>) -> tensor<8x15xf32> {
  ^bb0(%x: memref<8x15xbf16>, %out: memref<8x15xf32>):
    tile.launch (%c = 8 : block) {
      loop.for %j = 0 to 15 {
        %s = loop.for %m = 0 to 3 reduce(add) -> f32 {
          %in = loop.test[%j + %m >= 1, %j + %m < 16]
          %v = scf.if %in -> (bf16) {
            %p = loop.load %x[%c, %j + %m - 1] : memref<8x15xbf16>
            scf.yield %p : bf16
          } else {
            %zero = arith.constant 0.0 : bf16
            scf.yield %zero : bf16
          }
          %w = arith.extf %v : bf16 to f32
          loop.yield %w : f32
        }
        loop.store %s, %out[%c, %j] : memref<8x15xf32>
      }
    }
  }
  func.return %0 : tensor<8x15xf32>
}

// -----

// The windows of an image with a border of 2, around which is 0. Where the element of the image is read, says the
// condition inside, and that is no condition for the border.
// REMARK: remark: stage-windows: border: declined: a condition in it says what it reads
func.func @main(%x: tensor<15xf32>) -> tensor<17xf32> {
  %0 = loop.kernel @border(%x) : (tensor<15xf32>) -> tensor<17xf32> {
  ^bb0(%x: memref<15xf32>, %out: memref<17xf32>):
    tile.launch () {
      loop.for %j = 0 to 17 {
        %s = loop.for %m = 0 to 3 reduce(add) -> f32 {
          %in = loop.test[%j + %m >= 1, %j + %m < 18]
          %v = scf.if %in -> (f32) {
            %image = loop.test[%j + %m >= 2]
            %w = scf.if %image -> (f32) {
              %p = loop.load %x[%j + %m - 2] : memref<15xf32>
              scf.yield %p : f32
            } else {
              %two = arith.constant 2.0 : f32
              scf.yield %two : f32
            }
            scf.yield %w : f32
          } else {
            %zero = arith.constant 0.0 : f32
            scf.yield %zero : f32
          }
          loop.yield %v : f32
        }
        loop.store %s, %out[%j] : memref<17xf32>
      }
    }
  }
  func.return %0 : tensor<17xf32>
}

// -----

// 40000 elements of bf16 would do, but not of f32, which is what would be copied.
// REMARK: remark: stage-windows: wide: declined: a copy of what a block reads is too large
// CHECK-LABEL: loop.kernel @wide
// CHECK-NOT:     tile.pack
func.func @main(%x: tensor<40000xbf16>) -> tensor<40000xf32> {
  %0 = loop.kernel @wide(%x) : (tensor<40000xbf16>) -> tensor<40000xf32> {
  ^bb0(%x: memref<40000xbf16>, %out: memref<40000xf32>):
    tile.launch () {
      loop.for %j = 0 to 40000 {
        %s = loop.for %m = 0 to 3 reduce(add) -> f32 {
          %in = loop.test[%j + %m >= 1, %j + %m < 40001]
          %v = scf.if %in -> (bf16) {
            %p = loop.load %x[%j + %m - 1] : memref<40000xbf16>
            scf.yield %p : bf16
          } else {
            %zero = arith.constant 0.0 : bf16
            scf.yield %zero : bf16
          }
          %w = arith.extf %v : bf16 to f32
          loop.yield %w : f32
        }
        loop.store %s, %out[%j] : memref<40000xf32>
      }
    }
  }
  func.return %0 : tensor<40000xf32>
}

// -----

// An image of some size, of which a block has a part: what a copy reads is tested against the size.
// CHECK-LABEL: loop.kernel @sizes
// CHECK:         %window = tile.pack (%r = 5, %c = 10) : memref<5x10xf32, "shared"> {
// CHECK-NEXT:      loop.test[%k_block * 3 + %r >= 1, %k_block * 3 + %r < s0 + 1, %l_block * 8 + %c >= 1, %l_block * 8 + %c < s1 + 1]
// CHECK:         loop.for %k = 0 to 3 {
// CHECK-NEXT:      loop.for %l = 0 to 8 {
// CHECK-NEXT:        loop.test[%k_block * 3 + %k < s0, %l_block * 8 + %l < s1]
// CHECK:             loop.load %window[%k + %n, %l + %m] : memref<5x10xf32, "shared">
// SCF-LABEL: func.func @sizes
// SCF:         loop.index[s0 - %k_block * 3 + 1]
// SCF:         loop.index[s1 - %l_block * 8 + 1]
// SCF:         loop.load %window[%k + %n, 0, %l + %m] : memref<5x1x10xf32>
// REMARK: remark: stage-windows: sizes: 1 operand of windows
func.func @main(%x: tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x?xf32, #sym.extents<s0, s1>> attributes {sym.sizes = [#sym.size<"rows", 1, none, hint = 7>, #sym.size<"columns", 1, none, hint = 9>]} {
  %y = loop.kernel @sizes(%x) : (tensor<?x?xf32, #sym.extents<s0, s1>>) -> tensor<?x?xf32, #sym.extents<s0, s1>> {
  ^bb0(%x: memref<?x?xf32, #sym.extents<s0, s1>>, %y: memref<?x?xf32, #sym.extents<s0, s1>>):
    tile.launch (%k_block = (s0 - 1) floordiv 3 + 1 : block, %l_block = (s1 - 1) floordiv 8 + 1 : block) {
      loop.for %k = 0 to 3 {
        loop.for %l = 0 to 8 {
          %inside = loop.test[%k_block * 3 + %k < s0, %l_block * 8 + %l < s1]
          scf.if %inside {
            %s = loop.for %n = 0 to 3 reduce(add) -> f32 {
              %t = loop.for %m = 0 to 3 reduce(add) -> f32 {
                %in = loop.test[%k_block * 3 + %k + %n >= 1, %k_block * 3 + %k + %n < s0 + 1, %l_block * 8 + %l + %m >= 1, %l_block * 8 + %l + %m < s1 + 1]
                %window = scf.if %in -> (f32) {
                  %p = loop.load %x[%k_block * 3 + %k + %n - 1, %l_block * 8 + %l + %m - 1] : memref<?x?xf32, #sym.extents<s0, s1>>
                  scf.yield %p : f32
                } else {
                  %zero = arith.constant 0.0 : f32
                  scf.yield %zero : f32
                }
                loop.yield %window : f32
              }
              loop.yield %t : f32
            }
            loop.store %s, %y[%k_block * 3 + %k, %l_block * 8 + %l] : memref<?x?xf32, #sym.extents<s0, s1>>
          }
        }
      }
    }
  }
  func.return %y : tensor<?x?xf32, #sym.extents<s0, s1>>
}
