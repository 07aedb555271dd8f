// What each check of the cuda dialect says.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{threads must be between 1 and 1024, got 0}}
"cuda.func"() <{sym_name = "k", function_type = () -> (), blocks = #sym.extent<1>, threads = 0 : i64, index_type = i32}> ({
^bb0:
}) : () -> ()

// -----

// expected-error@+1 {{index arithmetic is in i32 or i64, got i16}}
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
"cuda.func"() <{sym_name = "k", function_type = (!cuda.ptr<f32>) -> (), blocks = #sym.extent<1>, threads = 1 : i64, index_type = i32}> ({
^bb0:
}) : () -> ()

// -----

// expected-error@+1 {{arguments are pointers or tensor maps, got f32}}
cuda.func @k(%x: f32) blocks(1) threads(1) index(i32) {
}

// -----

// expected-error@+1 {{index must be i32 or i64, got f32}}
cuda.func @k() blocks(1) threads(1) index(f32) {
}

// -----

// expected-error@+1 {{element type ui8 is i8 in a kernel}}
cuda.func @k(%x: !cuda.ptr<ui8>) blocks(1) threads(1) index(i32) {
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{value is f32, result f64}}
  %l = "cuda.literal"() <{value = 1.0 : f32}> : () -> f64
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{element type ui8 is i8 in a kernel}}
  %l = "cuda.literal"() <{value = 1 : ui8}> : () -> ui8
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{expected one expression, got 2}}
  %l = "cuda.index"(%t) <{map = affine_map<(d0) -> (d0, d0)>}> : (index) -> index
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{index over 2 dims does not match its 1 operands}}
  %l = "cuda.index"(%t) <{map = affine_map<(d0, d1) -> (d0)>}> : (index) -> index
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{needs at least one condition}}
  %l = "cuda.test"(%t) <{set = affine_set<(d0) : ()>}> : (index) -> i1
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{index over 2 dims does not match its 1 operands}}
  %l = "cuda.test"(%t) <{set = affine_set<(d0, d1) : (d0 >= 0)>}> : (index) -> i1
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{'++' is not a prefix operator of C++}}
  %l = cuda.unary "++" %v : f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{'**' is not an infix operator of C++}}
  %l = cuda.binary "**" %v, %v : (f32, f32) -> f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{'<' gives i1, not f32}}
  %l = cuda.binary "<" %v, %v : (f32, f32) -> f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{'system' is not a C++ math function deplo calls}}
  %l = cuda.call "system"(%v) : (f32) -> f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{powf takes 2 arguments}}
  %l = cuda.call "powf"(%v) : (f32) -> f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{exp takes and gives f64}}
  %l = cuda.call "exp"(%v) : (f32) -> f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{erf takes and gives f64}}
  %l = cuda.call "erf"(%v) : (f32) -> f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{'trap' is not a PTX instruction deplo uses}}
  %l = cuda.ptx "trap" %v : (f32) -> f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{cvt.rn.f16.f32 takes (f32) and gives f16}}
  %l = cuda.ptx "cvt.rn.f16.f32" %v : (f32) -> f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{f16, bf16 and tf32 are converted by PTX instructions}}
  %l = cuda.cast %g : f16 to f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{an address is one flat offset, got 2}}
  %l = "cuda.load"(%x, %t) <{map = affine_map<(d0) -> (d0, d0)>}> : (!cuda.ptr<f32, const>, index) -> f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{loads f32, not f64}}
  %l = cuda.load %x[%t] : !cuda.ptr<f32, const> -> f64
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{stores through a pointer to const}}
  cuda.store %v, %x[%t] : f32, !cuda.ptr<f32, const>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{stores f16 to !cuda.ptr<f32>}}
  cuda.store %g, %y[%t] : f16, !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{extent must be positive, got 0}}
  %s = cuda.shared 0 : !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{shared memory is not const}}
  %s = cuda.shared 4 : !cuda.ptr<f32, const>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{C++ shuffles 32- and 64-bit values, not f16}}
  %s = cuda.shuffle_xor %g, 1 : f16
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{lane mask must be between 1 and 31}}
  %s = cuda.shuffle_xor %v, 32 : f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{assigns to a cuda.variable only}}
  cuda.assign %v, %v : f32
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{extent must not be negative, got -1}}
  cuda.for %k = 0 to -1 {
  }
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  // expected-error@+1 {{is to be unrolled, or it is not}}
  "cuda.for"() <{extent = #sym.extent<4>, unroll, rolled}> ({
  ^bb0(%k: index):
  }) : () -> ()
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{loops count from 0; put the offset into the index}}
  cuda.for %k = 1 to 4 {
  }
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  // expected-error@+1 {{body must take exactly the loop counter, an index}}
  "cuda.for"() <{extent = #sym.extent<4>}> ({
  ^bb0:
  }) : () -> ()
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f32>, %h: !cuda.ptr<f16>) blocks(4) threads(32) index(i32) {
  %t = cuda.thread_idx
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  %g = cuda.load %h[0] : !cuda.ptr<f16> -> f16
  %b = cuda.binary "<" %v, %v : (f32, f32) -> i1
  // expected-error@+1 {{the blocks of an if take no arguments}}
  "cuda.if"(%b) ({
  ^bb0(%a: index):
  }, {}) : (i1) -> ()
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %h: !cuda.ptr<f16, const>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 64 align 8 : !cuda.ptr<f32>
  // expected-error@+1 {{align must be a power of two from 4 to 1024, got 3}}
  %z = cuda.shared 64 align 3 : !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %h: !cuda.ptr<f16, const>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 64 align 8 : !cuda.ptr<f32>
  // expected-error@+1 {{cp.async copies 4, 8 or 16 bytes, not 2}}
  cuda.cp_async %x[0] to %s[0] bytes 2 : !cuda.ptr<f32, const> to !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %h: !cuda.ptr<f16, const>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 64 align 8 : !cuda.ptr<f32>
  // expected-error@+1 {{cp.async of 16 bytes to shared memory aligned to 8}}
  cuda.cp_async %x[0] to %s[0] bytes 16 : !cuda.ptr<f32, const> to !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %h: !cuda.ptr<f16, const>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 64 align 8 : !cuda.ptr<f32>
  // expected-error@+1 {{the destination must be the result of a cuda.shared}}
  cuda.cp_async %x[0] to %y[0] bytes 4 : !cuda.ptr<f32, const> to !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %h: !cuda.ptr<f16, const>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 64 align 8 : !cuda.ptr<f32>
  // expected-error@+1 {{copies f16 to f32}}
  cuda.cp_async %h[0] to %s[0] bytes 4 : !cuda.ptr<f16, const> to !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %h: !cuda.ptr<f16, const>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 64 align 8 : !cuda.ptr<f32>
  // expected-error@+1 {{an address is one flat offset, got 2}}
  cuda.cp_async %x[0, 1] to %s[0] bytes 4 : !cuda.ptr<f32, const> to !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %h: !cuda.ptr<f16, const>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 64 align 8 : !cuda.ptr<f32>
  // expected-error@+1 {{leaves 0 to 7 groups pending, not 9}}
  cuda.cp_async_wait 9
}

// -----

cuda.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 1024 align 128 : !cuda.ptr<f32>
  %full = cuda.mbarriers 2
  // expected-error@+1 {{counts arrivals of 1 to 1024, not 0}}
  cuda.mbarrier_init %full[0], 0
}

// -----

cuda.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 1024 align 128 : !cuda.ptr<f32>
  %full = cuda.mbarriers 2
  // expected-error@+1 {{expects 1 to 1048575, not 0}}
  cuda.mbarrier_expect_tx %full[0], 0
}

// -----

cuda.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 1024 align 128 : !cuda.ptr<f32>
  %full = cuda.mbarriers 2
  // expected-error@+1 {{the destination must be the result of a cuda.shared}}
  cuda.bulk_tensor %x[0, 0] to %y[0] barrier %full[0] : !kernel.tensor_map<16x64xf32> to !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 1024 align 128 : !cuda.ptr<f32>
  %full = cuda.mbarriers 2
  // expected-error@+1 {{an address is one flat offset, got 2}}
  cuda.bulk_tensor %x[0, 0] to %s[0, 0] barrier %full[0] : !kernel.tensor_map<16x64xf32> to !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 1024 align 128 : !cuda.ptr<f32>
  %full = cuda.mbarriers 2
  %z = cuda.shared 1024 align 128 : !cuda.ptr<f16>
  // expected-error@+1 {{copies f32 to !cuda.ptr<f16>}}
  cuda.bulk_tensor %x[0, 0] to %z[0] barrier %full[0] : !kernel.tensor_map<16x64xf32> to !cuda.ptr<f16>
}

// -----

cuda.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 1024 align 16 : !cuda.ptr<f32>
  %full = cuda.mbarriers 2
  // expected-error@+1 {{!kernel.tensor_map<16x64xf32> needs shared memory aligned to 128 bytes, not 16}}
  cuda.bulk_tensor %x[0, 0] to %s[0] barrier %full[0] : !kernel.tensor_map<16x64xf32> to !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>) blocks(4) threads(16) index(i32) {
  %t = cuda.thread_idx
  %s = cuda.shared 64 align 8 : !cuda.ptr<f32>
  %a, %b = cuda.vector_load %x[%t * 2] : !cuda.ptr<f32, const> -> f32, f32
  // expected-error@+1 {{stores through a pointer to const}}
  cuda.vector_store %b, %a to %x[%t * 2] : f32, f32 to !cuda.ptr<f32, const>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>) blocks(4) threads(16) index(i32) {
  %t = cuda.thread_idx
  %s = cuda.shared 64 align 8 : !cuda.ptr<f32>
  %a, %b = cuda.vector_load %x[%t * 2] : !cuda.ptr<f32, const> -> f32, f32
  // expected-error@+1 {{16 bytes of shared memory aligned to 8}}
  cuda.vector_store %b, %a, %a, %b to %s[%t * 4] : f32, f32, f32, f32 to !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>) blocks(4) threads(16) index(i32) {
  %t = cuda.thread_idx
  %s = cuda.shared 64 align 8 : !cuda.ptr<f32>
  %a, %b = cuda.vector_load %x[%t * 2] : !cuda.ptr<f32, const> -> f32, f32
  // expected-error@+1 {{accesses memory by a pointer, got index}}
  cuda.vector_store %b, %a to %t[0] : f32, f32 to index
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>) blocks(4) threads(16) index(i32) {
  %t = cuda.thread_idx
  %s = cuda.shared 64 align 8 : !cuda.ptr<f32>
  %a, %b = cuda.vector_load %x[%t * 2] : !cuda.ptr<f32, const> -> f32, f32
  // expected-error@+1 {{an address is one flat offset, got 2}}
  cuda.vector_store %b, %a to %s[0, %t * 2] : f32, f32 to !cuda.ptr<f32>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f64>) blocks(4) threads(16) index(i32) {
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  // expected-error@+1 {{adds through a pointer that is not to const, got !cuda.ptr<f32, const>}}
  cuda.atomic_add %v, %x[0] : f32, !cuda.ptr<f32, const>
}

// -----

cuda.func @k(%x: !cuda.ptr<f32, const>, %y: !cuda.ptr<f64>) blocks(4) threads(16) index(i32) {
  %v = cuda.load %x[0] : !cuda.ptr<f32, const> -> f32
  // expected-error@+1 {{adds f32 to elements of f64}}
  cuda.atomic_add %v, %y[0] : f32, !cuda.ptr<f64>
}

// -----

cuda.func @k(%x: !kernel.tensor_map<16x64xf32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 1023 align 128 : !cuda.ptr<f32>
  %full = cuda.mbarriers 2
  // expected-error@+1 {{!kernel.tensor_map<16x64xf32> does not fit into 1023 elements}}
  cuda.bulk_tensor %x[0, 0] to %s[0] barrier %full[0] : !kernel.tensor_map<16x64xf32> to !cuda.ptr<f32>
}

// -----

// expected-error@+1 {{expected a size such as s0, got s0 + 1}}
cuda.func @k(%x: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) sizes(s0 + 1) {
}

// -----

cuda.func @k() blocks(4) threads(32) index(i32) {
  // expected-error@+1 {{extent must be positive, got 0}}
  %r = cuda.registers 0 : !cuda.ptr<f32>
}

// -----

cuda.func @k(%y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  // expected-error@+1 {{begins at 24, which is no multiple of its alignment 16}}
  %s = cuda.shared 64 align 16 at 24 : !cuda.ptr<f32>
}

// -----

// expected-error@+1 {{shared memory at 0 ends at 256, that at 252 begins before}}
cuda.func @k(%y: !cuda.ptr<f32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 64 at 252 : !cuda.ptr<f32>
  %t = cuda.shared 64 at 0 : !cuda.ptr<f32>
}

// -----

cuda.func @k() blocks(4) threads(32) index(i32) {
  // expected-error@+1 {{an array of registers is not const}}
  %r = cuda.registers 4 : !cuda.ptr<f32, const>
}

// -----

cuda.func @k() blocks(4) threads(32) index(i32) {
  // expected-error@+1 {{number must be 1 to 15, got 16}}
  cuda.bar_sync 16 threads 32
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = cuda.shared 8192 align 1024 : !cuda.ptr<bf16>
  %ws = cuda.shared 512 align 1024 : !cuda.ptr<f16>
  %z = cuda.literal 0.000000e+00 : f32
  // expected-error@+1 {{multiplies bf16 by f16}}
  %a, %b, %c, %d = cuda.wgmma %xs[0] by %ws[0] plus (%z, %z, %z, %z) of 64 by 8 : !cuda.ptr<bf16> by !cuda.ptr<f16>
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = cuda.shared 8192 align 1024 : !cuda.ptr<bf16>
  %z = cuda.literal 0.000000e+00 : f32
  // expected-error@+1 {{says of how many rows and columns}}
  %a, %b, %c, %d = cuda.wgmma %xs[0] by %xs[0] plus (%z, %z, %z, %z) : !cuda.ptr<bf16> by !cuda.ptr<bf16>
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %ws = cuda.shared 8192 align 1024 : !cuda.ptr<bf16>
  %z = cuda.literal 0.000000e+00 : f32
  %h = cuda.ptx "cvt.rn.bf16.f32" %z : (f32) -> bf16
  // expected-error@+1 {{threads hold 64 rows of a warpgroup, not 128}}
  %a:4 = cuda.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws[0] plus (%z, %z, %z, %z) of 128 by 8 : bf16 by !cuda.ptr<bf16>
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %ws = cuda.shared 8192 align 1024 : !cuda.ptr<bf16>
  %z = cuda.literal 0.000000e+00 : f32
  %h = cuda.ptx "cvt.rn.bf16.f32" %z : (f32) -> bf16
  // expected-error@+1 {{multiplies panels of 64 columns, got 8}}
  %a:4 = cuda.wgmma (%h, %h, %h, %h, %h, %h, %h, %h) by %ws[0] transposed plus (%z, %z, %z, %z) of 64 by 8 : bf16 by !cuda.ptr<bf16>
}

// -----

// expected-error@+1 {{a copy arrives in 2 blocks of clusters of 1}}
cuda.func @k(%x: !kernel.tensor_map<16x64xf32>) blocks(4) threads(32) index(i32) {
  %s = cuda.shared 1024 align 128 : !cuda.ptr<f32>
  %full = cuda.mbarriers 2
  cuda.bulk_tensor %x[0, 0] to %s[0] barrier %full[0] multicast 2 : !kernel.tensor_map<16x64xf32> to !cuda.ptr<f32>
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = cuda.shared 8192 align 1024 : !cuda.ptr<bf16>
  %z = cuda.literal 0.000000e+00 : f32
  // expected-error@+1 {{multiplies panels of 64 columns, got 96}}
  %a:48 = cuda.wgmma %xs[0] by %xs[0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 96 : !cuda.ptr<bf16> by !cuda.ptr<bf16>
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %ws = cuda.shared 8192 align 1024 : !cuda.ptr<bf16>
  %z = cuda.literal 0.000000e+00 : f32
  %h = cuda.ptx "cvt.rn.bf16.f32" %z : (f32) -> bf16
  // expected-error@+1 {{multiplies 16 positions at once, and 24 are not that often}}
  %a:32 = cuda.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws[0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 64 : bf16 by !cuda.ptr<bf16>
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %xs = cuda.shared 8192 align 1024 : !cuda.ptr<bf16>
  %z = cuda.literal 0.0 : f32
  // expected-error@+1 {{only what a cuda.variable is can be added onto}}
  cuda.wgmma %xs[0] by %xs[0] onto (%z, %z, %z, %z) of 64 by 8 : !cuda.ptr<bf16> by !cuda.ptr<bf16>
}

// -----

cuda.func @k() blocks(1) threads(128) index(i32) {
  %z = cuda.literal 0.0 : f32
  // expected-error@+1 {{only what a cuda.variable is can be added onto}}
  cuda.wgmma_wait onto (%z)
}
