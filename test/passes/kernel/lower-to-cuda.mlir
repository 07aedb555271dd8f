// RUN: deplo-opt %s --assume=race-free -p choose-index-width,lower-to-cuda --split-input-file | FileCheck %s
// RUN: deplo-opt %s --assume=race-free -p choose-index-width,lower-to-cuda -t cuda --split-input-file | FileCheck %s --check-prefix=CPP
// RUN: deplo-opt %s --assume=race-free -p choose-index-width,lower-to-cuda --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s --assume=race-free -p choose-index-width,lower-to-cuda --split-input-file --check-each-pass >/dev/null

// A loop-carried sum is a variable; the address is one flat offset; what is only read is const.
// CHECK-LABEL: cuda.func @rows(%in: memref<32xf32>, %out: memref<4xf32>) blocks(4) threads(1) index(i32) {
// CHECK:         %i = kernel.block_id
// CHECK-NEXT:    %zero = arith.constant 0.000000e+00 : f32
// CHECK-NEXT:    %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%a = %zero) -> (f32) {
// CHECK-NEXT:      %v = loop.load %in[%i * 8 + %k] : memref<32xf32>
// CHECK-NEXT:      %n = arith.addf %a, %v : f32
// CHECK-NEXT:      scf.yield %n : f32
// CHECK-NEXT:    }
// CHECK-NEXT:    loop.store %s, %out[%i] : memref<4xf32>
// CPP:      // <<<4, 1>>>
// CPP-NEXT: extern "C" __global__ void __launch_bounds__(1) rows(
// CPP-NEXT:     const float* __restrict__ in,
// CPP-NEXT:     float* __restrict__ out)
// CPP-NEXT: {
// CPP-NEXT:     const int i = blockIdx.x;
// CPP-NEXT:     float s = 0.0f;
// CPP-NEXT:     for (int k = 0; k < 8; ++k) {
// CPP-NEXT:         const float v = in[i * 8 + k];
// CPP-NEXT:         s = s + v;
// CPP-NEXT:     }
// CPP-NEXT:     out[i] = s;
// CPP-NEXT: }
// REMARK: remark: lower-to-cuda: rows: indices are i32
kernel.func @rows(%in: memref<4x8xf32>, %out: memref<4xf32>) blocks(4) threads(1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %i = kernel.block_id
  %zero = arith.constant 0.0 : f32
  %s = scf.for %k = %c0 to %c8 step %c1 iter_args(%a = %zero) -> (f32) {
    %v = loop.load %in[%i, %k] : memref<4x8xf32>
    %n = arith.addf %a, %v : f32
    scf.yield %n : f32
  }
  loop.store %s, %out[%i] : memref<4xf32>
}
func.func @main(%x: memref<4x8xf32>) -> memref<4xf32> {
  %y = kernel.alloc : memref<4xf32>
  kernel.launch @rows(%x, %y) blocks(4) threads(1) : memref<4x8xf32>, memref<4xf32>
  func.return %y : memref<4xf32>
}

// -----

// Two values that a loop exchanges are copied before either is assigned.
// CPP-LABEL: swap(
// CPP:           float a = x;
// CPP-NEXT:      float b = y;
// CPP-NEXT:      for (int k = 0; k < 3; ++k) {
// CPP-NEXT:          float [[b:.+]] = b;
// CPP-NEXT:          float [[a:.+]] = a;
// CPP-NEXT:          a = [[b]];
// CPP-NEXT:          b = [[a]];
// CPP-NEXT:      }
kernel.func @swap(%in: memref<2xf32>, %out: memref<2xf32>) blocks(1) threads(1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %x = loop.load %in[0] : memref<2xf32>
  %y = loop.load %in[1] : memref<2xf32>
  %a, %b = scf.for %k = %c0 to %c3 step %c1 iter_args(%p = %x, %q = %y) -> (f32, f32) {
    scf.yield %q, %p : f32, f32
  }
  loop.store %a, %out[0] : memref<2xf32>
  loop.store %b, %out[1] : memref<2xf32>
}
func.func @main(%x: memref<2xf32>) -> memref<2xf32> {
  %y = kernel.alloc : memref<2xf32>
  kernel.launch @swap(%x, %y) blocks(1) threads(1) : memref<2xf32>, memref<2xf32>
  func.return %y : memref<2xf32>
}

// -----

// Addresses past 2^31 are computed in long long; what the launch bounds say stays.
// CHECK-LABEL: cuda.func @big
// CHECK-SAME:    blocks(65536) threads(1) resident(2) index(i64)
// CPP:       __launch_bounds__(1, 2) big(
// CPP:         const long long i = blockIdx.x;
// REMARK: remark: lower-to-cuda: big: indices are i64
kernel.func @big(%in: memref<65536x65536xi8>, %out: memref<65536xi8>) blocks(65536) threads(1) resident(2) {
  %i = kernel.block_id
  %v = loop.load %in[%i, 65535] : memref<65536x65536xi8>
  loop.store %v, %out[%i] : memref<65536xi8>
}

// -----

// Integer sums wrap, so they are unsigned; half types convert by PTX; NaN wins a maximum; a float
// that does not fit an integer gives the smallest one.
// CPP-LABEL: scalars(
// CPP:         const unsigned [[A:.+]] = (unsigned)a;
// CPP:         const int sum = (int)
// CPP:         asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(h));
// CPP:         asm("max.NaN.f32 %0, %1, %2;" : "=f"(m) : "f"(wide), "f"(0.1f));
// CPP:         asm("mov.b32 %0, {0, %1};" : "=f"({{.+}}) : "h"({{.+}}));
// CPP:         {{.+}} ? {{.+}} : (-2147483647 - 1);
// CPP:         __int_as_float(0x7f800000)
// CPP:         __int_as_float(0x7fc00000)
kernel.func @scalars(%i: memref<1xi32>, %f: memref<1xf16>, %g: memref<1xbf16>, %out: memref<4xf32>, %oi: memref<2xi32>) blocks(1) threads(1) {
  %a = loop.load %i[0] : memref<1xi32>
  %sum = arith.addi %a, %a : i32
  loop.store %sum, %oi[0] : memref<2xi32>
  %h = loop.load %f[0] : memref<1xf16>
  %wide = arith.extf %h : f16 to f32
  %tenth = arith.constant 0.1 : f32
  %m = arith.maximumf %wide, %tenth : f32
  loop.store %m, %out[0] : memref<4xf32>
  %b = loop.load %g[0] : memref<1xbf16>
  %bf = arith.extf %b : bf16 to f32
  loop.store %bf, %out[1] : memref<4xf32>
  %int = arith.fptosi %m : f32 to i32
  loop.store %int, %oi[1] : memref<2xi32>
  %inf = arith.constant 0x7f800000 : f32
  loop.store %inf, %out[2] : memref<4xf32>
  %nan = arith.constant 0x7fc00000 : f32
  loop.store %nan, %out[3] : memref<4xf32>
}
func.func @main(%i: memref<1xi32>, %f: memref<1xf16>, %g: memref<1xbf16>) -> (memref<4xf32>, memref<2xi32>) {
  %y = kernel.alloc : memref<4xf32>
  %z = kernel.alloc : memref<2xi32>
  kernel.launch @scalars(%i, %f, %g, %y, %z) blocks(1) threads(1) : memref<1xi32>, memref<1xf16>, memref<1xbf16>, memref<4xf32>, memref<2xi32>
  func.return %y, %z : memref<4xf32>, memref<2xi32>
}

// -----

// Names from outside are mangled before they are text; the launch follows.
// CHECK-LABEL: cuda.func @k_{{[0-9a-f]+}}(
// CHECK:         kernel.launch @k_{{[0-9a-f]+}}(
// CPP-NOT: system
// CPP: extern "C" __global__ void __launch_bounds__(1) k_{{[0-9a-f]+}}(
// CPP-NEXT:     const float* __restrict__ float_1,
kernel.func @"evil\0A}; system(1); //"(%float: memref<1xf32>, %out: memref<1xf32>) blocks(1) threads(1) {
  %v = loop.load %float[0] : memref<1xf32>
  loop.store %v, %out[0] : memref<1xf32>
}
func.func @main(%x: memref<1xf32>) -> memref<1xf32> {
  %y = kernel.alloc : memref<1xf32>
  kernel.launch @"evil\0A}; system(1); //"(%x, %y) blocks(1) threads(1) : memref<1xf32>, memref<1xf32>
  func.return %y : memref<1xf32>
}

// -----

// A dividend that may be negative is shifted before C++ divides it.
// CHECK-LABEL: cuda.func @shifted
// CHECK:         loop.load %in[(%i + 2) mod 4]
kernel.func @shifted(%in: memref<4xf32>, %out: memref<4xf32>) blocks(4) threads(1) {
  %i = kernel.block_id
  %v = loop.load %in[(%i - 2) mod 4] : memref<4xf32>
  loop.store %v, %out[%i] : memref<4xf32>
}
func.func @main(%x: memref<4xf32>) -> memref<4xf32> {
  %y = kernel.alloc : memref<4xf32>
  kernel.launch @shifted(%x, %y) blocks(4) threads(1) : memref<4xf32>, memref<4xf32>
  func.return %y : memref<4xf32>
}

// -----

// What an index is made of must fit too, though the address is small.
// CHECK-LABEL: cuda.func @intermediate
// CHECK-SAME:    index(i64)
// CHECK:         loop.load %in[%i * 100000 mod 7]
kernel.func @intermediate(%in: memref<7xf32>, %out: memref<30000xf32>) blocks(30000) threads(1) {
  %i = kernel.block_id
  %v = loop.load %in[(%i * 100000) mod 7] : memref<7xf32>
  loop.store %v, %out[%i] : memref<30000xf32>
}

// -----

// So must the parts of conditions.
// CHECK-LABEL: cuda.func @condition
// CHECK-SAME:    index(i64)
kernel.func @condition(%out: memref<30000xf32>) blocks(30000) threads(1) {
  %zero = arith.constant 0.0 : f32
  %i = kernel.block_id
  %t = loop.test [(%i * 100000) mod 7 >= 3]
  scf.if %t {
    loop.store %zero, %out[%i] : memref<30000xf32>
  }
}

// -----

// An index from data that was checked is as small as its extent, and never negative.
// CHECK-LABEL: cuda.func @checked
// CHECK-SAME:    index(i32)
// CHECK:         loop.load %in[%row floordiv 3]
kernel.func @checked(%id: memref<1xi64>, %in: memref<2xf32>, %out: memref<1xf32>) blocks(1) threads(1) {
  %v = loop.load %id[0] : memref<1xi64>
  %limit = arith.constant 6 : i64
  %inside = arith.cmpi ult, %v, %limit : i64
  kernel.assert %inside, "index out of range"
  %zero = arith.constant 0 : i64
  %safe = arith.select %inside, %v, %zero : i64
  %row = arith.index_cast %safe : i64 to index
  %e = loop.load %in[%row floordiv 3] : memref<2xf32>
  loop.store %e, %out[0] : memref<1xf32>
}

// -----

// Declined: nothing to lower.
// REMARK: remark: lower-to-cuda: no kernel.func in @main; tile-to-kernel makes it of Tile IR
func.func @main(%x: memref<4xf32>) -> memref<4xf32> {
  func.return %x : memref<4xf32>
}

// -----

// The sizes that a kernel uses are its last arguments.
// CHECK-LABEL: cuda.func @rows(
// CHECK-SAME:    blocks((s0 - 1) floordiv 8 + 1) threads(8) index(i64) sizes(s0, s1) {
// CHECK:         scf.for %k = %c0 to %s1 step %c1
// CHECK-NEXT:      loop.load %in[%i_block * s1 * 8 + %i_thread * s1 + %k]
// CPP-LABEL: // <<<(s0 - 1) / 8 + 1, 8>>>
// CPP:           float* __restrict__ out,
// CPP-NEXT:      const long long s0,
// CPP-NEXT:      const long long s1)
// CPP:           for (long long k = 0; k < s1; ++k) {
kernel.func @rows(%in: memref<?x?xf32, #sym.extents<s0, s1>>, %out: memref<?x1xf32, #sym.extents<s0>>) blocks((s0 - 1) floordiv 8 + 1) threads(8) {
  %s1 = loop.index[s1]
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %i_block = kernel.block_id
  %i_thread = kernel.thread_id
  %0 = loop.test[%i_block * 8 + %i_thread < s0]
  scf.if %0 {
    %1 = arith.constant 0.000000e+00 : f32
    %s = scf.for %k = %c0 to %s1 step %c1 iter_args(%s_so_far = %1) -> (f32) {
      %v = loop.load %in[%i_block * 8 + %i_thread, %k] : memref<?x?xf32, #sym.extents<s0, s1>>
      %s_next = arith.addf %s_so_far, %v : f32
      scf.yield %s_next : f32
    }
    loop.store %s, %out[%i_block * 8 + %i_thread, 0] : memref<?x1xf32, #sym.extents<s0>>
  }
}

// -----

// What may be a product is subtracted by a function that no compiler fuses with it: the difference of a product
// and its rounding is 0, whether the product comes from a branch, a choice or registers.
// CPP-LABEL: products(
// CPP:         const float m = v * v;
// CPP-NEXT:    const float fused = m + v;
// CPP-NEXT:    const float plain = fused - v;
// CPP-NEXT:    const float product = __fsub_rn(v, m);
// CPP:         const float branch = __fsub_rn(either, plain);
// CPP:         const float choice = __fsub_rn(chosen, branch);
// CPP:         const float register_1 = __fsub_rn(registers[1], choice);
// CPP:         const double wide = __dsub_rn(e, w);
kernel.func @products(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf64>) blocks(1) threads(4) {
  %t = kernel.thread_id
  %v = loop.load %x[%t] : memref<4xf32>
  %m = arith.mulf %v, %v : f32
  %fused = arith.addf %m, %v : f32
  %plain = arith.subf %fused, %v : f32
  %product = arith.subf %v, %m : f32
  %c = loop.test[%t >= 2]
  %either = scf.if %c -> (f32) {
    scf.yield %v : f32
  } else {
    %n = arith.mulf %product, %v : f32
    scf.yield %n : f32
  }
  %branch = arith.subf %either, %plain : f32
  %chosen = arith.select %c, %v, %m : f32
  %choice = arith.subf %chosen, %branch : f32
  %registers = loop.registers : memref<2xf32, "registers">
  loop.store %v, %registers[0] : memref<2xf32, "registers">
  loop.store %m, %registers[1] : memref<2xf32, "registers">
  %kept = loop.load %registers[1] : memref<2xf32, "registers">
  %register = arith.subf %kept, %choice : f32
  %w = arith.extf %register : f32 to f64
  %e = arith.mulf %w, %w : f64
  %wide = arith.subf %e, %w : f64
  loop.store %register, %y[%t] : memref<4xf32>
  loop.store %wide, %z[%t] : memref<4xf64>
}

// -----

// The second warp waits for nobody but itself.
// CHECK-LABEL: cuda.func @some
// CHECK:         kernel.named_barrier 1 threads 32
// CPP-LABEL:   some(
// CPP:           asm volatile("bar.sync 1, 32;" ::: "memory");
kernel.func @some(%x: memref<64xf32>) blocks(1) threads(64) {
  %t = kernel.thread_id
  %second = loop.test[%t >= 32]
  scf.if %second {
    kernel.named_barrier 1 threads 32
  }
}

// -----

// A division by 0 is a product with an infinity, about which no compiler warns; numbers that no address contains
// are not declared.
// CPP-LABEL: nothing(
// CPP-NOT:     blockIdx
// CPP-NOT:     ignored
// CPP:         const float q = v * __int_as_float(0x7f800000);
// CPP-NEXT:    const float r = v * __int_as_float(0xff800000);
// CPP-NEXT:    const float s = q / r;
kernel.func @nothing(%x: memref<4xf32>, %y: memref<4xf32>) blocks(1) threads(4) {
  %b = kernel.block_id
  %t = kernel.thread_id
  %ignored = loop.index[%b + %t]
  %v = loop.load %x[%t] : memref<4xf32>
  %zero = arith.constant 0.0 : f32
  %less = arith.constant -0.0 : f32
  %q = arith.divf %v, %zero : f32
  %r = arith.divf %v, %less : f32
  %s = arith.divf %q, %r : f32
  loop.store %s, %y[%t] : memref<4xf32>
}
