// What each check of the kernel dialect says.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{blocks must not be negative, got -1}}
kernel.func @k() blocks(-1) threads(1) {
}

// -----

// expected-error@+1 {{threads must be between 1 and 1024, got 0}}
kernel.func @k() blocks(1) threads(0) {
}

// -----

// expected-error@+1 {{threads must be between 1 and 1024, got 2048}}
kernel.func @k() blocks(1) threads(2048) {
}

// -----

// expected-error@+1 {{the body's arguments differ from the function type}}
"kernel.func"() <{sym_name = "k", function_type = (index) -> (), blocks = #sym.extent<1>, threads = 1 : i64}> ({
^bb0:
}) : () -> ()

// -----

// expected-error@+1 {{a kernel returns nothing; it stores to memory}}
"kernel.func"() <{sym_name = "k", function_type = () -> index, blocks = #sym.extent<1>, threads = 1 : i64}> ({
^bb0:
}) : () -> ()

// -----

// expected-error@+1 {{arguments are memrefs or index, got f32}}
kernel.func @k(%x: f32) blocks(1) threads(1) {
}

// -----

kernel.func @k(%x: memref<4xf32>) blocks(4) threads(32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<4xf32>
  // expected-error@+1 {{must be in memory space "shared"}}
  %s = kernel.shared : memref<4xf32>
}

// -----

kernel.func @k(%x: memref<4xf32>) blocks(4) threads(32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<4xf32>
  // expected-error@+1 {{0 bytes of static shared memory; a kernel may have 1 to 49152}}
  %s = kernel.shared : memref<0xf32, "shared">
}

// -----

kernel.func @k(%x: memref<4xf32>) blocks(4) threads(32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<4xf32>
  // expected-error@+1 {{49156 bytes of static shared memory; a kernel may have 1 to 49152}}
  %s = kernel.shared : memref<12289xf32, "shared">
}

// -----

kernel.func @k(%x: memref<4xf32>) blocks(4) threads(32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<4xf32>
  // expected-error@+1 {{lane mask must be between 1 and 31}}
  %s = kernel.shuffle %v xor 0 : f32
}

// -----

kernel.func @k(%x: memref<4xf32>) blocks(4) threads(32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<4xf32>
  // expected-error@+1 {{lane mask must be between 1 and 31}}
  %s = kernel.shuffle %v xor 32 : f32
}

// -----

kernel.func @k(%x: memref<4xf32>) blocks(4) threads(32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<4xf32>
  %c = "test.op"() : () -> ui8
  // expected-error@+1 {{element type ui8 is not supported}}
  %s = kernel.shuffle %c xor 1 : ui8
}

// -----

kernel.func @k(%x: memref<4xf32>) blocks(4) threads(32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<4xf32>
  // expected-error@+1 {{operand is used with type i1, but has been previously used or defined with type f32}}
  kernel.assert %v, "message"
}

// -----

func.func @main() {
  // expected-error@+1 {{offset must not be negative, got -64}}
  %a = kernel.alloc at -64 : memref<4xf32>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{threads must be between 1 and 1024, got 0}}
  "kernel.launch"() <{kernel = @k, blocks = #sym.extent<1>, threads = 0 : i64}> : () -> ()
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{launches kernels of the same module only}}
  "kernel.launch"() <{kernel = @m::@k, blocks = #sym.extent<1>, threads = 1 : i64}> : () -> ()
  func.return
}

// -----

func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error@+1 {{callee must read namespace.operator.overload, got 'exp'}}
  kernel.call "exp"(input = %x) into(%y) : memref<4xf32>, memref<4xf32>
  func.return
}

// -----

func.func @main(%x: memref<4xui16>, %y: memref<4xf32>) {
  // expected-error@+1 {{element type ui16 is not supported}}
  kernel.call "aten.exp.default"(input = %x) into(%y) : memref<4xui16>, memref<4xf32>
  func.return
}

// -----

func.func @main(%x: memref<4xf32>, %y: memref<4xf32>) {
  // expected-error@+1 {{2 buffers need as many types, got 1}}
  kernel.call "aten.exp.default"(input = %x) into(%y) : memref<4xf32>
  func.return
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  // expected-error@+1 {{align must be a power of two from 4 to 1024, got 12}}
  %s = kernel.shared align 12 : memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  // expected-error@+1 {{align must be a power of two from 4 to 1024, got 2}}
  %s = kernel.shared align 2 : memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  // expected-error@+1 {{align must be a power of two from 4 to 1024, got 2048}}
  %s = kernel.shared align 2048 : memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 16 : memref<64xf32, "shared">
  // expected-error@+1 {{1 indices into rank-2 memref<8x64xf32>}}
  kernel.async_copy %x[%t] to %s[%t] vector 1 : memref<8x64xf32> to memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 16 : memref<64xf32, "shared">
  // expected-error@+1 {{2 indices into rank-1 memref<64xf32, "shared">}}
  kernel.async_copy %x[0, %t] to %s[0, %t] vector 1 : memref<8x64xf32> to memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 16 : memref<64xf32, "shared">
  // expected-error@+1 {{copies from global to shared memory, not from memref<64xf32, "shared"> to memref<64xf32, "shared">}}
  kernel.async_copy %s[%t] to %s[%t + 16] vector 1 : memref<64xf32, "shared"> to memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  // expected-error@+1 {{copies from global to shared memory, not from memref<8x64xf32> to memref<8x64xf32>}}
  kernel.async_copy %x[0, %t] to %x[1, %t] vector 1 : memref<8x64xf32> to memref<8x64xf32>
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 16 : memref<64xf32, "shared">
  // expected-error@+1 {{a thread copies 4, 8 or 16 bytes, not 12}}
  kernel.async_copy %x[0, 0] to %s[0] vector 3 : memref<8x64xf32> to memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 16 : memref<64xf32, "shared">
  // expected-error@+1 {{a thread copies 4, 8 or 16 bytes, not 32}}
  kernel.async_copy %x[0, 0] to %s[0] vector 8 : memref<8x64xf32> to memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 16 : memref<64xf32, "shared">
  // expected-error@+1 {{the index into memref<8x64xf32> is not proven to be a multiple of 4 elements; accesses of several elements must be aligned}}
  kernel.async_copy %x[0, %t * 2] to %s[%t * 4] vector 4 : memref<8x64xf32> to memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 16 : memref<64xf32, "shared">
  // expected-error@+1 {{the index into memref<64xf32, "shared"> is not proven to be a multiple of 2 elements}}
  kernel.async_copy %x[0, %t * 2] to %s[%t] vector 2 : memref<8x64xf32> to memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x6xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 16 : memref<64xf32, "shared">
  // expected-error@+1 {{the index into memref<8x6xf32> is not proven to be a multiple of 4 elements}}
  kernel.async_copy %x[%t, 0] to %s[%t * 4] vector 4 : memref<8x6xf32> to memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x2xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 16 : memref<64xf32, "shared">
  // expected-error@+1 {{memref<8x2xf32> has no row of 4 elements}}
  kernel.async_copy %x[%t * 2, 0] to %s[%t * 4] vector 4 : memref<8x2xf32> to memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared : memref<64xf32, "shared">
  // expected-error@+1 {{needs shared memory aligned to 16 bytes, it is aligned to 4; declare it with kernel.shared align 16}}
  kernel.async_copy %x[0, %t * 4] to %s[%t * 4] vector 4 : memref<8x64xf32> to memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = "test.op"() : () -> memref<64xf32, "shared">
  // expected-error@+1 {{the destination must be the result of a kernel.shared}}
  kernel.async_copy %x[0, %t * 4] to %s[%t * 4] vector 4 : memref<8x64xf32> to memref<64xf32, "shared">
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  // expected-error@+1 {{leaves 0 to 7 groups pending, not -1}}
  kernel.async_wait -1
}

// -----

kernel.func @k(%x: memref<8x64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  // expected-error@+1 {{leaves 0 to 7 groups pending, not 8}}
  kernel.async_wait 8
}
