// What each check of the cuda dialect says.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{threads must be between 1 and 1024, got 0}}
"cuda.func"() <{sym_name = "k", function_type = () -> (), blocks = #sym.extent<1>, threads = 0 : i64, index_type = i32}> ({
^bb0:
}) : () -> ()

// -----

// expected-error@+1 {{indices are computed in i32 or i64, got i16}}
"cuda.func"() <{sym_name = "k", function_type = () -> (), blocks = #sym.extent<1>, threads = 1 : i64, index_type = i16}> ({
^bb0:
}) : () -> ()

// -----

// expected-error@+1 {{is not a C++ identifier}}
"cuda.func"() <{sym_name = "evil\0A}; system(1); //", function_type = () -> (), blocks = #sym.extent<1>, threads = 1 : i64, index_type = i32}> ({
^bb0:
}) : () -> ()

// -----

// expected-error@+1 {{the body's arguments differ from the function type}}
"cuda.func"() <{sym_name = "k", function_type = (memref<64xf32>) -> (), blocks = #sym.extent<1>, threads = 1 : i64, index_type = i32}> ({
^bb0:
}) : () -> ()

// -----

// expected-error@+1 {{arguments are memrefs or tensor maps, got f32}}
cuda.func @k(%x: f32) blocks(1) threads(1) index(i32) {
}

// -----

// expected-error@+1 {{index must be i32 or i64, got f32}}
cuda.func @k() blocks(1) threads(1) index(f32) {
}

// -----

// expected-error@+1 {{element type ui8 is i8 in a kernel}}
cuda.func @k(%x: memref<64xui8>) blocks(1) threads(1) index(i32) {
}

// -----

// What C++ has no form for is listed: predicates and types that it does not compare or add, functions that
// passes before expand, memory of other dialects.
// expected-error@+1 {{C++ has no form for arith.cmpf one of f32 to i1, arith.addf of f16, math.asin of f32, memref.alloca of memref<4xf32>}}
cuda.func @k(%x: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  %p = arith.cmpf one, %v, %v : f32
  %q = arith.cmpf one, %v, %v : f32
  %s = arith.addf %g, %g : f16
  %a = math.asin %v : f32
  %m = memref.alloca() : memref<4xf32>
}

// -----

// expected-error@+1 {{a loop is to be unrolled, or it is not}}
cuda.func @k() blocks(4) threads(32) index(i32) {
  %c1 = arith.constant 1 : index
  scf.for %k = %c1 to %c1 step %c1 {
  } {unroll, rolled}
}

// -----

// expected-error@+1 {{registers have no addresses: places in own are numbers, or follow from counters of loops that are unrolled}}
cuda.func @k() blocks(4) threads(32) index(i32) {
  %own = loop.registers : memref<4xf32, "registers">
  %t = kernel.thread_id
  %v = loop.load %own[%t mod 4] : memref<4xf32, "registers">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = arith.constant 0.0 : f32
  // expected-error@+1 {{sums that are on their way are read by 'arith.addf'}}
  %a, %b, %c, %d = kernel.wgmma %xs[0] by %xs[0] plus (%z, %z, %z, %z) of 64 by 8 leaving 1 : memref<8192xbf16, "shared"> by memref<8192xbf16, "shared">
  %sum = arith.addf %a, %b : f32
}

// -----

// expected-error@+1 {{C++ has no form for arith.addi of i1, arith.cmpi slt of i1, arith.extsi of i1 to i32, arith.fptosi of f32 to i8}}
cuda.func @k(%x: memref<64xf32>, %h: memref<64xi1>) blocks(4) threads(32) index(i32) {
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xi1>
  %s = arith.addi %g, %g : i1
  %p = arith.cmpi slt, %g, %g : i1
  %i = arith.extsi %g : i1 to i32
  %n = arith.fptosi %v : f32 to i8
}

// -----

// expected-error@+1 {{C++ has no form for arith.truncf of f64 to bf16, arith.constant of vector<2xf32>}}
cuda.func @k() blocks(4) threads(32) index(i32) {
  %v = arith.constant 1.0 : f64
  %b = arith.truncf %v : f64 to bf16
  %c = arith.constant dense<1.0> : vector<2xf32>
}

// -----

// expected-error@+1 {{element type i7 is not supported}}
cuda.func @k() blocks(4) threads(32) index(i32) {
  %v = arith.constant 1 : i7
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{C++ shuffles 32- and 64-bit values, not f16}}
  %s = kernel.shuffle %g xor 1 : f16
}

// -----

cuda.func @k(%x: !kernel.tensor_map<16x64xf32>) blocks(4) threads(32) index(i32) {
  %s = kernel.shared align 128 : memref<1023xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{!kernel.tensor_map<16x64xf32> does not fit into memref<1023xf32, "shared">}}
  kernel.bulk_copy %x[0, 0] to %s[0] barrier %full[0] : !kernel.tensor_map<16x64xf32> to memref<1023xf32, "shared">
}

// -----

// expected-error@+1 {{expected a size such as s0, got s0 + 1}}
cuda.func @k(%x: memref<64xf32>) blocks(4) threads(32) index(i32) sizes(s0 + 1) {
}

// -----

cuda.func @k(%y: memref<64xf32>) blocks(4) threads(32) index(i32) {
  // expected-error@+1 {{begins at 24, which is no multiple of its alignment 16}}
  %s = kernel.shared align 16 at 24 : memref<64xf32, "shared">
}

// -----

// expected-error@+1 {{shared memory at 0 ends at 256, that at 252 begins before}}
cuda.func @k(%y: memref<64xf32>) blocks(4) threads(32) index(i32) {
  %s = kernel.shared at 252 : memref<64xf32, "shared">
  %t = kernel.shared at 0 : memref<64xf32, "shared">
}

// -----

// expected-error@+1 {{registers have no addresses: places in own are numbers, or follow from counters of loops that are unrolled}}
cuda.func @k() blocks(4) threads(32) index(i32) {
  %own = loop.registers : memref<4xf32, "registers">
  %t = kernel.thread_id
  %v = loop.load %own[%t mod 4] : memref<4xf32, "registers">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<512xf16, "shared">
  %z = arith.constant 0.000000e+00 : f32
  // expected-error@+1 {{multiplies bf16 by f16}}
  %a, %b, %c, %d = kernel.wgmma %xs[0] by %ws[0] plus (%z, %z, %z, %z) of 64 by 8 : memref<8192xbf16, "shared"> by memref<512xf16, "shared">
}

// -----

// expected-error@+1 {{registers have no addresses: places in own are numbers, or follow from counters of loops that are unrolled}}
cuda.func @k() blocks(4) threads(32) index(i32) {
  %own = loop.registers : memref<4xf32, "registers">
  %t = kernel.thread_id
  %v = loop.load %own[%t mod 4] : memref<4xf32, "registers">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = arith.constant 0.000000e+00 : f32
  // expected-error@+1 {{says of how many rows and columns}}
  %a, %b, %c, %d = kernel.wgmma %xs[0] by %xs[0] plus (%z, %z, %z, %z) : memref<8192xbf16, "shared"> by memref<8192xbf16, "shared">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %ws = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = arith.constant 0.000000e+00 : f32
  %h = arith.truncf %z : f32 to bf16
  // expected-error@+1 {{threads hold 64 rows of a warpgroup, not 128}}
  %a:4 = kernel.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws[0] plus (%z, %z, %z, %z) of 128 by 8 : bf16 by memref<8192xbf16, "shared">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %ws = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = arith.constant 0.000000e+00 : f32
  %h = arith.truncf %z : f32 to bf16
  // expected-error@+1 {{multiplies panels of 64 columns, got 8}}
  %a:4 = kernel.wgmma (%h, %h, %h, %h, %h, %h, %h, %h) by %ws[0] transposed plus (%z, %z, %z, %z) of 64 by 8 : bf16 by memref<8192xbf16, "shared">
}

// -----

// expected-error@+1 {{a copy arrives in 2 blocks of clusters of 1}}
cuda.func @k(%x: !kernel.tensor_map<16x64xf32>) blocks(4) threads(32) index(i32) {
  %s = kernel.shared align 128 : memref<1024xf32, "shared">
  %full = kernel.mbarriers 2
  kernel.bulk_copy %x[0, 0] to %s[0] barrier %full[0] multicast 2 : !kernel.tensor_map<16x64xf32> to memref<1024xf32, "shared">
}

// -----

// expected-error@+1 {{registers have no addresses: places in own are numbers, or follow from counters of loops that are unrolled}}
cuda.func @k() blocks(4) threads(32) index(i32) {
  %own = loop.registers : memref<4xf32, "registers">
  %t = kernel.thread_id
  %v = loop.load %own[%t mod 4] : memref<4xf32, "registers">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = arith.constant 0.000000e+00 : f32
  // expected-error@+1 {{multiplies panels of 64 columns, got 96}}
  %a:48 = kernel.wgmma %xs[0] by %xs[0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 96 : memref<8192xbf16, "shared"> by memref<8192xbf16, "shared">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %ws = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = arith.constant 0.000000e+00 : f32
  %h = arith.truncf %z : f32 to bf16
  // expected-error@+1 {{multiplies 16 positions at once, and 24 are not that often}}
  %a:32 = kernel.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws[0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 64 : bf16 by memref<8192xbf16, "shared">
}

// -----

// expected-error@+1 {{memory is one row of elements, got memref<4x8xf32>}}
cuda.func @k(%x: memref<4x8xf32>) blocks(4) threads(32) index(i32) {
}

// -----

// expected-error@+1 {{memory is one row of elements, got memref<4x8xf32, "shared">}}
cuda.func @k() blocks(4) threads(32) index(i32) {
  %s = kernel.shared : memref<4x8xf32, "shared">
}

// -----

// expected-error@+1 {{where shared memory lies is not decided before a cuda.func}}
kernel.func @k() blocks(4) threads(32) {
  %s = kernel.shared at 0 : memref<32xf32, "shared">
}
