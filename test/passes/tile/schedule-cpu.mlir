// RUN: deplo-opt %s -p tileify,schedule-cpu{target=cpu:avx512} --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p tileify,schedule-cpu{target=cpu:avx512},schedule-cpu{target=cpu:avx2} --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p tileify,schedule-cpu{target=cpu:avx2} --split-input-file | FileCheck %s --check-prefix=AVX2
// RUN: deplo-opt %s -p tileify,schedule-cpu{target=cpu:sse2} --split-input-file | FileCheck %s --check-prefix=SSE2
// RUN: not deplo-opt %s -p tileify,schedule-cpu{target=cpu:mmx} --split-input-file 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// UNKNOWN: unknown CPU 'mmx'; it is vectors (amx, avx512, avx2, neon, sse2), LLVM's name of a core
// CHECK-LABEL: loop.kernel @linear
// The smaller operand is packed: here it is the rows, so the block is turned, its rows are the columns.
// CHECK: tile.launch (%i = 128 : thread, %j = 512 : thread) schedule(#tile.schedule<m = 1, n = 0, block_m = 516, block_n = 128, block_k = 512, thread_m = 6, thread_n = 64, in_place = 1, ahead = 128, vectors = avx512>)
// AVX2-LABEL: loop.kernel @linear
// AVX2: thread_n = {{8|16|24}}, in_place = 1, vectors = avx2>
// REMARK: remark: schedule-cpu: linear: turned blocks of 516 by 128 of rows in place, register tiles of 6 by 64 for avx512
// REMARK: remark: schedule-cpu: linear: declined: it has a schedule already
func.func @main(%x: tensor<128x1024xf32>, %w: tensor<512x1024xf32>) -> tensor<128x512xf32> {
  %y = loop.kernel @linear(%x, %w) : (tensor<128x1024xf32>, tensor<512x1024xf32>) -> tensor<128x512xf32> {
  ^bb0(%x: memref<128x1024xf32>, %w: memref<512x1024xf32>, %out: memref<128x512xf32>):
    loop.for %i = 0 to 128 {
      loop.for %j = 0 to 512 {
        %s = loop.for %k = 0 to 1024 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<128x1024xf32>
          %q = loop.load %w[%j, %k] : memref<512x1024xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %out[%i, %j] : memref<128x512xf32>
      }
    }
  }
  func.return %y : tensor<128x512xf32>
}

// -----

// REMARK: schedule-cpu: few: declined: 8192 multiply-adds are too few to pack operands for
func.func @main(%x: tensor<8x64xf32>, %w: tensor<16x64xf32>) -> tensor<8x16xf32> {
  %y = loop.kernel @few(%x, %w) : (tensor<8x64xf32>, tensor<16x64xf32>) -> tensor<8x16xf32> {
  ^bb0(%x: memref<8x64xf32>, %w: memref<16x64xf32>, %out: memref<8x16xf32>):
    loop.for %i = 0 to 8 {
      loop.for %j = 0 to 16 {
        %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<8x64xf32>
          %q = loop.load %w[%j, %k] : memref<16x64xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %out[%i, %j] : memref<8x16xf32>
      }
    }
  }
  func.return %y : tensor<8x16xf32>
}

// -----

// REMARK: schedule-cpu: one_row: declined: 1 rows are too few to pack columns for
func.func @main(%x: tensor<1x512xf32>, %w: tensor<512x512xf32>) -> tensor<1x512xf32> {
  %y = loop.kernel @one_row(%x, %w) : (tensor<1x512xf32>, tensor<512x512xf32>) -> tensor<1x512xf32> {
  ^bb0(%x: memref<1x512xf32>, %w: memref<512x512xf32>, %out: memref<1x512xf32>):
    loop.for %i = 0 to 1 {
      loop.for %j = 0 to 512 {
        %s = loop.for %k = 0 to 512 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<1x512xf32>
          %q = loop.load %w[%j, %k] : memref<512x512xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %out[%i, %j] : memref<1x512xf32>
      }
    }
  }
  func.return %y : tensor<1x512xf32>
}

// -----

// REMARK: schedule-cpu: distance: declined: it sums what is no product
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %y = loop.kernel @distance(%x, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x64xf32>, %w: memref<64x64xf32>, %out: memref<64x64xf32>):
    loop.for %i = 0 to 64 {
      loop.for %j = 0 to 64 {
        %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<64x64xf32>
          %q = loop.load %w[%j, %k] : memref<64x64xf32>
          %r = arith.subf %p, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %out[%i, %j] : memref<64x64xf32>
      }
    }
  }
  func.return %y : tensor<64x64xf32>
}

// -----

// REMARK: schedule-cpu: squares: declined: no factor depends on other axes than the columns do
// REMARK: schedule-cpu: distances: declined: no product of factors that depend on different axes
// REMARK: schedule-cpu: both: declined: a factor depends on rows and columns
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %y = loop.kernel @squares(%x, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x64xf32>, %w: memref<64x64xf32>, %out: memref<64x64xf32>):
    loop.for %i = 0 to 64 {
      loop.for %j = 0 to 64 {
        %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<64x64xf32>
          %q = loop.load %w[%j, %k] : memref<64x64xf32>
          %d = arith.subf %p, %q : f32
          %r = arith.mulf %d, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %out[%i, %j] : memref<64x64xf32>
      }
    }
  }
  %z = loop.kernel @distances(%x, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x64xf32>, %w: memref<64x64xf32>, %out: memref<64x64xf32>):
    loop.for %i = 0 to 64 {
      loop.for %j = 0 to 64 {
        %s = loop.for %k = 0 to 64 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<64x64xf32>
          %q = loop.load %w[%j, %k] : memref<64x64xf32>
          %d = arith.subf %p, %q : f32
          %r = arith.mulf %d, %d : f32
          loop.yield %r : f32
        }
        loop.store %s, %out[%i, %j] : memref<64x64xf32>
      }
    }
  }
  %u = loop.kernel @both(%x, %w) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%x: memref<64x64xf32>, %w: memref<64x64xf32>, %out: memref<64x64xf32>):
    loop.for %i = 0 to 64 {
      loop.for %j = 0 to 64 {
        %s, %t = loop.for %k = 0 to 64 reduce(add, add) -> f32, f32 {
          %p = loop.load %x[%i, %k] : memref<64x64xf32>
          %q = loop.load %w[%j, %k] : memref<64x64xf32>
          %d = arith.subf %p, %q : f32
          %r = arith.mulf %d, %d : f32
          %o = arith.mulf %p, %q : f32
          loop.yield %r, %o : f32, f32
        }
        %st = arith.addf %s, %t : f32
        loop.store %st, %out[%i, %j] : memref<64x64xf32>
      }
    }
  }
  func.return %y, %z, %u : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// REMARK: schedule-cpu: exp: declined: no reduce loop in the body
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = loop.kernel @exp(%x) : (tensor<64xf32>) -> tensor<64xf32> {
  ^bb0(%x: memref<64xf32>, %out: memref<64xf32>):
    loop.for %i = 0 to 64 {
      %p = loop.load %x[%i] : memref<64xf32>
      %r = math.exp %p : f32
      loop.store %r, %out[%i] : memref<64xf32>
    }
  }
  func.return %y : tensor<64xf32>
}

// -----

// A product in two precisions.
// REMARK: schedule-cpu: mixed: declined: its sums have different types
func.func @main(%x: tensor<32x64xf32>, %w: tensor<64x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf64>) {
  %y, %z = loop.kernel @mixed(%x, %w) : (tensor<32x64xf32>, tensor<64x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf64>) {
  ^bb0(%x: memref<32x64xf32>, %w: memref<64x64xf32>, %out: memref<32x64xf32>, %wide: memref<32x64xf64>):
    loop.for %i = 0 to 32 {
      loop.for %j = 0 to 64 {
        %s, %t = loop.for %k = 0 to 64 reduce(add, add) -> f32, f64 {
          %p = loop.load %x[%i, %k] : memref<32x64xf32>
          %q = loop.load %w[%j, %k] : memref<64x64xf32>
          %r = arith.mulf %p, %q : f32
          %p64 = arith.extf %p : f32 to f64
          %q64 = arith.extf %q : f32 to f64
          %r64 = arith.mulf %p64, %q64 : f64
          loop.yield %r, %r64 : f32, f64
        }
        loop.store %s, %out[%i, %j] : memref<32x64xf32>
        loop.store %t, %wide[%i, %j] : memref<32x64xf64>
      }
    }
  }
  func.return %y, %z : tensor<32x64xf32>, tensor<32x64xf64>
}

// -----

// What is asked for takes the place of what the model decides, unless the contraction cannot have it.
// RUN: deplo-opt %s -p 'tileify,schedule-cpu{target=cpu:avx512 block_m=64 block_n=512 thread_m=4 turned=0 in_place=0}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=ASKED
// RUN: deplo-opt %s -p 'tileify,schedule-cpu{target=cpu:avx512 block_m=65}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=MISFIT
// ASKED: schedule-cpu: asked: blocks of 64 by 512, register tiles of 4 by 64 for avx512, as asked
// MISFIT: schedule-cpu: asked: declined: blocks of 65 by 128 are not made of register tiles of 6 by 64
// MISFIT: schedule-cpu: asked: turned blocks of 516 by 128 of rows in place, register tiles of 6 by 64 for avx512
// RUN: deplo-opt %s -p 'tileify,schedule-cpu{target=cpu:avx512 dot=1 thread_n=6}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=BOTH
// BOTH: schedule-cpu: asked: declined: a dot tile is not turned, and reads all operands in place
func.func @main(%x: tensor<128x1024xf32>, %w: tensor<512x1024xf32>) -> tensor<128x512xf32> {
  %y = loop.kernel @asked(%x, %w) : (tensor<128x1024xf32>, tensor<512x1024xf32>) -> tensor<128x512xf32> {
  ^bb0(%x: memref<128x1024xf32>, %w: memref<512x1024xf32>, %out: memref<128x512xf32>):
    loop.for %i = 0 to 128 {
      loop.for %j = 0 to 512 {
        %s = loop.for %k = 0 to 1024 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<128x1024xf32>
          %q = loop.load %w[%j, %k] : memref<512x1024xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %out[%i, %j] : memref<128x512xf32>
      }
    }
  }
  func.return %y : tensor<128x512xf32>
}

// -----

// Few rows of operands that lie along K are not packed; where K is not made of vectors, they are.
// RUN: deplo-opt %s -p 'tileify,schedule-cpu{target=cpu:avx512 dot=1 in_place=0 turned=0}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=DOT
// DOT: schedule-cpu: uneven: declined: a dot tile needs operands that are vectors along K
// CHECK-LABEL: loop.kernel @few_rows
// CHECK: schedule(#tile.schedule<m = 0, n = 1, block_m = 12, block_n = {{[0-9]+}}, block_k = 512, thread_m = {{[0-9]}}, thread_n = {{[0-9]}}, dot = 1, vectors = avx512>)
// CHECK-LABEL: loop.kernel @uneven
// CHECK-NOT: dot = 1
// REMARK: schedule-cpu: few_rows: blocks of 12 by {{[0-9]+}}, dot tiles of {{[0-9]}} by {{[0-9]}} for avx512
func.func @main(%x: tensor<12x1024xf32>, %w: tensor<512x1024xf32>, %v: tensor<512x1020xf32>, %u: tensor<16x1020xf32>) -> (tensor<12x512xf32>, tensor<16x512xf32>) {
  %y = loop.kernel @few_rows(%x, %w) : (tensor<12x1024xf32>, tensor<512x1024xf32>) -> tensor<12x512xf32> {
  ^bb0(%x: memref<12x1024xf32>, %w: memref<512x1024xf32>, %out: memref<12x512xf32>):
    loop.for %i = 0 to 12 {
      loop.for %j = 0 to 512 {
        %s = loop.for %k = 0 to 1024 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<12x1024xf32>
          %q = loop.load %w[%j, %k] : memref<512x1024xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %out[%i, %j] : memref<12x512xf32>
      }
    }
  }
  %z = loop.kernel @uneven(%u, %v) : (tensor<16x1020xf32>, tensor<512x1020xf32>) -> tensor<16x512xf32> {
  ^bb0(%x: memref<16x1020xf32>, %v: memref<512x1020xf32>, %out: memref<16x512xf32>):
    loop.for %i = 0 to 16 {
      loop.for %j = 0 to 512 {
        %s = loop.for %k = 0 to 1020 reduce(add) -> f32 {
          %p = loop.load %x[%i, %k] : memref<16x1020xf32>
          %q = loop.load %v[%j, %k] : memref<512x1020xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %out[%i, %j] : memref<16x512xf32>
      }
    }
  }
  func.return %y, %z : tensor<12x512xf32>, tensor<16x512xf32>
}

// -----

// Eight sums and their factors are more than SSE2 has registers: some go to memory.
// SSE2-LABEL: loop.kernel @eight
// SSE2: thread_m = 1, thread_n = 4, {{.*}}vectors = sse2>
func.func @main(%x: tensor<64x64xf32>, %w0: tensor<64x64xf32>, %w1: tensor<64x64xf32>, %w2: tensor<64x64xf32>, %w3: tensor<64x64xf32>, %w4: tensor<64x64xf32>, %w5: tensor<64x64xf32>, %w6: tensor<64x64xf32>, %w7: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  %y:8 = loop.kernel @eight(%x, %w0, %w1, %w2, %w3, %w4, %w5, %w6, %w7) : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>) {
  ^bb0(%x: memref<64x64xf32>, %w0: memref<64x64xf32>, %w1: memref<64x64xf32>, %w2: memref<64x64xf32>, %w3: memref<64x64xf32>, %w4: memref<64x64xf32>, %w5: memref<64x64xf32>, %w6: memref<64x64xf32>, %w7: memref<64x64xf32>, %o0: memref<64x64xf32>, %o1: memref<64x64xf32>, %o2: memref<64x64xf32>, %o3: memref<64x64xf32>, %o4: memref<64x64xf32>, %o5: memref<64x64xf32>, %o6: memref<64x64xf32>, %o7: memref<64x64xf32>):
    loop.for %i = 0 to 64 {
      loop.for %j = 0 to 64 {
        %s:8 = loop.for %k = 0 to 64 reduce(add, add, add, add, add, add, add, add) -> f32, f32, f32, f32, f32, f32, f32, f32 {
          %a = loop.load %x[%i, %k] : memref<64x64xf32>
          %b0 = loop.load %w0[%k, %j] : memref<64x64xf32>
          %p0 = arith.mulf %a, %b0 : f32
          %b1 = loop.load %w1[%k, %j] : memref<64x64xf32>
          %p1 = arith.mulf %a, %b1 : f32
          %b2 = loop.load %w2[%k, %j] : memref<64x64xf32>
          %p2 = arith.mulf %a, %b2 : f32
          %b3 = loop.load %w3[%k, %j] : memref<64x64xf32>
          %p3 = arith.mulf %a, %b3 : f32
          %b4 = loop.load %w4[%k, %j] : memref<64x64xf32>
          %p4 = arith.mulf %a, %b4 : f32
          %b5 = loop.load %w5[%k, %j] : memref<64x64xf32>
          %p5 = arith.mulf %a, %b5 : f32
          %b6 = loop.load %w6[%k, %j] : memref<64x64xf32>
          %p6 = arith.mulf %a, %b6 : f32
          %b7 = loop.load %w7[%k, %j] : memref<64x64xf32>
          %p7 = arith.mulf %a, %b7 : f32
          loop.yield %p0, %p1, %p2, %p3, %p4, %p5, %p6, %p7 : f32, f32, f32, f32, f32, f32, f32, f32
        }
        loop.store %s#0, %o0[%i, %j] : memref<64x64xf32>
        loop.store %s#1, %o1[%i, %j] : memref<64x64xf32>
        loop.store %s#2, %o2[%i, %j] : memref<64x64xf32>
        loop.store %s#3, %o3[%i, %j] : memref<64x64xf32>
        loop.store %s#4, %o4[%i, %j] : memref<64x64xf32>
        loop.store %s#5, %o5[%i, %j] : memref<64x64xf32>
        loop.store %s#6, %o6[%i, %j] : memref<64x64xf32>
        loop.store %s#7, %o7[%i, %j] : memref<64x64xf32>
      }
    }
  }
  func.return %y#0, %y#1, %y#2, %y#3, %y#4, %y#5, %y#6, %y#7 : tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// Weights of a window of 1 by 1 are rows of channels, and may stay where they are.
// CHECK-LABEL: loop.kernel @window_of_one
// CHECK: schedule(#tile.schedule<m = 0, n = 1, {{.*}}in_place = 1, {{.*}}vectors = avx512>)
func.func @main(%x: tensor<256x49xf32>, %w: tensor<512x256x1x1xf32>) -> tensor<512x49xf32> {
  %y = loop.kernel @window_of_one(%x, %w) : (tensor<256x49xf32>, tensor<512x256x1x1xf32>) -> tensor<512x49xf32> {
  ^bb0(%x: memref<256x49xf32>, %w: memref<512x256x1x1xf32>, %out: memref<512x49xf32>):
    loop.for %i = 0 to 512 {
      loop.for %j = 0 to 49 {
        %s = loop.for %k = 0 to 256 reduce(add) -> f32 {
          %p = loop.load %x[%k, %j] : memref<256x49xf32>
          %q = loop.load %w[%i, %k, 0, 0] : memref<512x256x1x1xf32>
          %r = arith.mulf %p, %q : f32
          loop.yield %r : f32
        }
        loop.store %s, %out[%i, %j] : memref<512x49xf32>
      }
    }
  }
  func.return %y : tensor<512x49xf32>
}
