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

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{value is f32, result f64}}
  %l = "cuda.literal"() <{value = 1.0 : f32}> : () -> f64
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{element type ui8 is i8 in a kernel}}
  %l = "cuda.literal"() <{value = 1 : ui8}> : () -> ui8
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{'++' is not a prefix operator of C++}}
  %l = cuda.unary "++" %v : f32
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{'**' is not an infix operator of C++}}
  %l = cuda.binary "**" %v, %v : (f32, f32) -> f32
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{'<' gives i1, not f32}}
  %l = cuda.binary "<" %v, %v : (f32, f32) -> f32
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{'system' is not a C++ math function deplo calls}}
  %l = cuda.call "system"(%v) : (f32) -> f32
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{powf takes 2 arguments}}
  %l = cuda.call "powf"(%v) : (f32) -> f32
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{exp takes and gives f64}}
  %l = cuda.call "exp"(%v) : (f32) -> f32
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{erf takes and gives f64}}
  %l = cuda.call "erf"(%v) : (f32) -> f32
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{'trap' is not a PTX instruction deplo uses}}
  %l = cuda.ptx "trap" %v : (f32) -> f32
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{cvt.rn.f16.f32 takes (f32) and gives f16}}
  %l = cuda.ptx "cvt.rn.f16.f32" %v : (f32) -> f32
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{f16, bf16 and tf32 are converted by PTX instructions}}
  %l = cuda.cast %g : f16 to f32
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

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{assigns to a cuda.variable only}}
  cuda.assign %v, %v : f32
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{extent must not be negative, got -1}}
  cuda.for %k = 0 to -1 {
  }
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  // expected-error@+1 {{is to be unrolled, or it is not}}
  "cuda.for"() <{extent = #sym.extent<4>, unroll, rolled}> ({
  ^bb0(%k: index):
  }) : () -> ()
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{loops count from 0; put the offset into the index}}
  cuda.for %k = 1 to 4 {
  }
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  // expected-error@+1 {{body must take exactly the loop counter, an index}}
  "cuda.for"() <{extent = #sym.extent<4>}> ({
  ^bb0:
  }) : () -> ()
}

// -----

cuda.func @k(%x: memref<64xf32>, %y: memref<64xf32>, %h: memref<64xf16>) blocks(4) threads(32) index(i32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<64xf32>
  %g = loop.load %h[0] : memref<64xf16>
  %b = cuda.binary "<" %v, %v : (f32, f32) -> i1
  // expected-error@+1 {{the blocks of an if take no arguments}}
  "cuda.if"(%b) ({
  ^bb0(%a: index):
  }, {}) : (i1) -> ()
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

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<512xf16, "shared">
  %z = cuda.literal 0.000000e+00 : f32
  // expected-error@+1 {{multiplies bf16 by f16}}
  %a, %b, %c, %d = kernel.wgmma %xs[0] by %ws[0] plus (%z, %z, %z, %z) of 64 by 8 : memref<8192xbf16, "shared"> by memref<512xf16, "shared">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = cuda.literal 0.000000e+00 : f32
  // expected-error@+1 {{says of how many rows and columns}}
  %a, %b, %c, %d = kernel.wgmma %xs[0] by %xs[0] plus (%z, %z, %z, %z) : memref<8192xbf16, "shared"> by memref<8192xbf16, "shared">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %ws = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = cuda.literal 0.000000e+00 : f32
  %h = cuda.ptx "cvt.rn.bf16.f32" %z : (f32) -> bf16
  // expected-error@+1 {{threads hold 64 rows of a warpgroup, not 128}}
  %a:4 = kernel.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws[0] plus (%z, %z, %z, %z) of 128 by 8 : bf16 by memref<8192xbf16, "shared">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %ws = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = cuda.literal 0.000000e+00 : f32
  %h = cuda.ptx "cvt.rn.bf16.f32" %z : (f32) -> bf16
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

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = cuda.literal 0.000000e+00 : f32
  // expected-error@+1 {{multiplies panels of 64 columns, got 96}}
  %a:48 = kernel.wgmma %xs[0] by %xs[0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 96 : memref<8192xbf16, "shared"> by memref<8192xbf16, "shared">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %ws = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = cuda.literal 0.000000e+00 : f32
  %h = cuda.ptx "cvt.rn.bf16.f32" %z : (f32) -> bf16
  // expected-error@+1 {{multiplies 16 positions at once, and 24 are not that often}}
  %a:32 = kernel.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws[0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 64 : bf16 by memref<8192xbf16, "shared">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = kernel.shared align 1024 : memref<8192xbf16, "shared">
  %z = cuda.literal 0.0 : f32
  // expected-error@+1 {{only what a cuda.variable is can be added onto}}
  kernel.wgmma %xs[0] by %xs[0] onto (%z, %z, %z, %z) of 64 by 8 : memref<8192xbf16, "shared"> by memref<8192xbf16, "shared">
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %z = cuda.literal 0.0 : f32
  // expected-error@+1 {{only what a cuda.variable is can be added onto}}
  kernel.wgmma_wait onto (%z)
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
