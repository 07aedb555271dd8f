// What each check of the kernel dialect says.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

// expected-error@+1 {{blocks must not be negative, got -1}}
kernel.func @k() blocks(-1) threads(1) {
}

// -----

// expected-error@+1 {{resident must be 1 or more, got 0}}
kernel.func @k() blocks(1) threads(1) resident(0) {
}

// -----

// expected-error@+1 {{indices are computed in i32 or i64, got i16}}
kernel.func @k() blocks(1) threads(1) index(i16) {
}

// -----

// expected-error@+1 {{index must be i32 or i64, got f32}}
kernel.func @k() blocks(1) threads(1) index(f32) {
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

// expected-error@+1 {{arguments are memrefs, tensor maps or index, got f32}}
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
  // expected-error@+1 {{0 bytes of shared memory; a block may have 1 to 232448}}
  %s = kernel.shared : memref<0xf32, "shared">
}

// -----

kernel.func @k(%x: memref<4xf32>) blocks(4) threads(32) {
  %t = kernel.thread_id
  %v = loop.load %x[0] : memref<4xf32>
  // expected-error@+1 {{232452 bytes of shared memory; a block may have 1 to 232448}}
  %s = kernel.shared : memref<58113xf32, "shared">
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
  // expected-error@+1 {{element type ui8 is i8 in a kernel}}
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
  // expected-error@+1 {{expected a memref type, got tensor<4xf32>}}
  %a = kernel.alloc : tensor<4xf32>
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
  // expected-error@+1 {{shared memory must be the result of a kernel.shared}}
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

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{declares 1 to 64 barriers, not 0}}
  %z = kernel.mbarriers 0
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{declares 1 to 64 barriers, not 65}}
  %z = kernel.mbarriers 65
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{counts arrivals of 1 to 1024, not 0}}
  kernel.mbarrier_init %full[0], 0
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{counts arrivals of 1 to 1024, not 1025}}
  kernel.mbarrier_init %full[0], 1025
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{expects 1 to 1048575, not 1048576}}
  kernel.mbarrier_expect_bytes %full[0], 1048576
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{the number of a barrier is one expression, got 2}}
  kernel.mbarrier_wait %full[0, 1] parity[0]
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{a parity is one expression, got 0}}
  kernel.mbarrier_wait %full[0] parity[]
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  %z = "test.op"() : () -> !kernel.mbarriers
  // expected-error@+1 {{the barrier must be declared in the same kernel}}
  kernel.mbarrier_wait %z[0] parity[0]
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{copies by a !kernel.tensor_map, got memref<64xf32>}}
  kernel.bulk_copy %y[0] to %s[0, 0, 0] barrier %full[0] : memref<64xf32> to memref<2x16x64xf32, "shared">
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{1 coordinates of a box of rank 2}}
  kernel.bulk_copy %x[0] to %s[0, 0, 0] barrier %full[0] : !kernel.tensor_map<16x64xf32> to memref<2x16x64xf32, "shared">
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{copies to shared memory, not to memref<64xf32>}}
  kernel.bulk_copy %x[0, 0] to %y[0] barrier %full[0] : !kernel.tensor_map<16x64xf32> to memref<64xf32>
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{2 indices into rank-3 memref<2x16x64xf32, "shared">}}
  kernel.bulk_copy %x[0, 0] to %s[0, 0] barrier %full[0] : !kernel.tensor_map<16x64xf32> to memref<2x16x64xf32, "shared">
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  %z = kernel.shared align 128 : memref<16x65xf32, "shared">
  // expected-error@+1 {{a box of !kernel.tensor_map<16x64xf32> does not fill rows of memref<16x65xf32, "shared">}}
  kernel.bulk_copy %x[0, 0] to %z[0, 0] barrier %full[0] : !kernel.tensor_map<16x64xf32> to memref<16x65xf32, "shared">
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 64 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{needs shared memory aligned to 128 bytes, it is aligned to 64; declare it with kernel.shared align 128}}
  kernel.bulk_copy %x[0, 0] to %s[0, 0, 0] barrier %full[0] : !kernel.tensor_map<16x64xf32> to memref<2x16x64xf32, "shared">
}

// -----

kernel.func @k(%x: !kernel.tensor_map<16x64xf32>, %y: memref<64xf32>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{is not proven to be a multiple of 128 bytes}}
  kernel.bulk_copy %x[0, 0] to %s[0, 0, %t * 16] barrier %full[0] : !kernel.tensor_map<16x64xf32> to memref<2x16x64xf32, "shared">
}

// -----

kernel.func @k(%x: !kernel.tensor_map<8x64xbf16, swizzle 128>) blocks(4) threads(16) {
  %s = kernel.shared align 512 : memref<8x64xbf16, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{needs shared memory aligned to 1024 bytes, it is aligned to 512}}
  kernel.bulk_copy %x[0, 0] to %s[0, 0] barrier %full[0] : !kernel.tensor_map<8x64xbf16, swizzle 128> to memref<8x64xbf16, "shared">
}

// -----

func.func @main(%x: memref<512x64xf32>) {
  // expected-error@+1 {{a box has 1 to 5 axes, not 0}}
  %m = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<f32>
  func.return
}

// -----

func.func @main(%x: memref<512x64xf32>) {
  // expected-error@+1 {{a box has 1 to 5 axes, not 6}}
  %m = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<1x1x1x1x1x64xf32>
  func.return
}

// -----

func.func @main(%x: memref<512x64xf32>) {
  // expected-error@+1 {{extents of a box are 1 to 256, not 16, 257}}
  %m = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<16x257xf32>
  func.return
}

// -----

func.func @main(%x: memref<512x64xf32>) {
  // expected-error@+1 {{extents of a box are 1 to 256, not 0, 64}}
  %m = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<0x64xf32>
  func.return
}

// -----

func.func @main(%x: memref<512x64xf32>) {
  // expected-error@+1 {{element type ui16 is not supported}}
  %m = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<16x64xui16>
  func.return
}

// -----

func.func @main(%x: memref<512x64xf32>) {
  // expected-error@+1 {{swizzle is 32, 64 or 128 bytes wide, not 96}}
  %m = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<16x8xf32, swizzle 96>
  func.return
}

// -----

func.func @main(%x: memref<512x64xf32>) {
  // expected-error@+1 {{rows of a box are multiples of 16 bytes, not 8}}
  %m = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<16x2xf32>
  func.return
}

// -----

func.func @main(%x: memref<512x64xf32>) {
  // expected-error@+1 {{rows of a box are at most as wide as its swizzle, 64 bytes, not 128}}
  %m = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<16x32xf32, swizzle 64>
  func.return
}

// -----

func.func @main(%x: memref<512x64xf32>) {
  // expected-error@+1 {{!kernel.tensor_map<16x64xf16> is no box of memref<512x64xf32>}}
  %m = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<16x64xf16>
  func.return
}

// -----

func.func @main(%x: memref<512x64xf32>) {
  // expected-error@+1 {{!kernel.tensor_map<64xf32> is no box of memref<512x64xf32>}}
  %m = kernel.tensor_map %x : memref<512x64xf32> to !kernel.tensor_map<64xf32>
  func.return
}

// -----

func.func @main(%x: memref<32x64xf32, "shared">) {
  // expected-error@+1 {{describes global memory, got memref<32x64xf32, "shared">}}
  %m = kernel.tensor_map %x : memref<32x64xf32, "shared"> to !kernel.tensor_map<16x64xf32>
  func.return
}

// -----

func.func @main(%x: memref<512x63xf32>) {
  // expected-error@+1 {{the stride of axis 0 of memref<512x63xf32> is not proven to be a multiple of 16 bytes}}
  %m = kernel.tensor_map %x : memref<512x63xf32> to !kernel.tensor_map<16x32xf32>
  func.return
}

// -----

func.func @main(%x: memref<4x?xf32, #sym.extents<s0>>) {
  // expected-error@+1 {{the stride of axis 0 of memref<4x?xf32, #sym.extents<s0>> is not proven to be a multiple of 16 bytes}}
  %m = kernel.tensor_map %x : memref<4x?xf32, #sym.extents<s0>> to !kernel.tensor_map<4x32xf32>
  func.return
}

// -----

kernel.func @k(%x: memref<4x64xf32>, %d: memref<64xf64>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 8 : memref<64xf32, "shared">
  // expected-error@+1 {{a vector has 2, 4 or 8 elements, not 3}}
  %v0, %v1, %v2 = kernel.vector_load %x[0, 0] : memref<4x64xf32> -> f32, f32, f32
}

// -----

kernel.func @k(%x: memref<4x64xf32>, %d: memref<64xf64>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 8 : memref<64xf32, "shared">
  // expected-error@+1 {{the elements are f32, got f32, f16}}
  %v0, %v1 = kernel.vector_load %x[0, 0] : memref<4x64xf32> -> f32, f16
}

// -----

kernel.func @k(%x: memref<4x64xf32>, %d: memref<64xf64>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 8 : memref<64xf32, "shared">
  // expected-error@+1 {{a vector has at most 16 bytes, not 32}}
  %v0, %v1, %v2, %v3 = kernel.vector_load %d[0] : memref<64xf64> -> f64, f64, f64, f64
}

// -----

kernel.func @k(%x: memref<4x64xf32>, %d: memref<64xf64>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 8 : memref<64xf32, "shared">
  // expected-error@+1 {{the index into memref<4x64xf32> is not proven to be a multiple of 2 elements}}
  %v0, %v1 = kernel.vector_load %x[0, %t] : memref<4x64xf32> -> f32, f32
}

// -----

kernel.func @k(%x: memref<4x64xf32>, %d: memref<64xf64>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 8 : memref<64xf32, "shared">
  // expected-error@+1 {{1 indices into rank-2 memref<4x64xf32>}}
  %v0, %v1 = kernel.vector_load %x[0] : memref<4x64xf32> -> f32, f32
}

// -----

kernel.func @k(%x: memref<4x64xf32>, %d: memref<64xf64>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 8 : memref<64xf32, "shared">
  // expected-error@+1 {{needs shared memory aligned to 16 bytes, it is aligned to 8; declare it with kernel.shared align 16}}
  %v0, %v1, %v2, %v3 = kernel.vector_load %s[0] : memref<64xf32, "shared"> -> f32, f32, f32, f32
}

// -----

kernel.func @k(%x: memref<4x64xf32>, %d: memref<64xf64>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %s = kernel.shared align 8 : memref<64xf32, "shared">
  // expected-error@+1 {{accesses a memref, got index}}
  %v0, %v1, %v2, %v3 = kernel.vector_load %t[0] : index -> f32, f32, f32, f32
}

// -----

kernel.func @k(%x: memref<4x64xf32>, %h: memref<64xf16>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %v = loop.load %x[0, %t] : memref<4x64xf32>
  %w = loop.load %h[%t] : memref<64xf16>
  // expected-error@+1 {{adds f32, f64, i32 or i64 atomically, not f16}}
  kernel.atomic_add %w, %h[%t] : f16, memref<64xf16>
}

// -----

kernel.func @k(%x: memref<4x64xf32>, %h: memref<64xf16>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %v = loop.load %x[0, %t] : memref<4x64xf32>
  %w = loop.load %h[%t] : memref<64xf16>
  // expected-error@+1 {{adds f32 to elements of f16}}
  kernel.atomic_add %v, %h[%t] : f32, memref<64xf16>
}

// -----

kernel.func @k(%x: memref<4x64xf32>, %h: memref<64xf16>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %v = loop.load %x[0, %t] : memref<4x64xf32>
  %w = loop.load %h[%t] : memref<64xf16>
  // expected-error@+1 {{1 indices into rank-2 memref<4x64xf32>}}
  kernel.atomic_add %v, %x[%t] : f32, memref<4x64xf32>
}

// -----

kernel.func @k(%x: memref<4x64xf32>, %h: memref<64xf16>) blocks(4) threads(16) {
  %t = kernel.thread_id
  %v = loop.load %x[0, %t] : memref<4x64xf32>
  %w = loop.load %h[%t] : memref<64xf16>
  // expected-error@+1 {{accesses a memref, got index}}
  kernel.atomic_add %v, %t[%t] : f32, index
}

// -----

// expected-error@+1 {{232464 bytes of shared memory in all; a block may have 232448}}
kernel.func @k(%x: memref<4xf32>) blocks(4) threads(32) {
  %s = kernel.shared : memref<58112xf32, "shared">
  %t = kernel.shared : memref<4xf32, "shared">
}

// -----

kernel.func @k() blocks(4) threads(64) {
  // expected-error@+1 {{number must be 1 to 15, got 0}}
  kernel.named_barrier 0 threads 64
}

// -----

kernel.func @k() blocks(4) threads(64) {
  // expected-error@+1 {{waits for whole warps: threads must be a multiple of 32 up to 1024, got 48}}
  kernel.named_barrier 1 threads 48
}

// -----

kernel.func @k(%y: memref<4xf32>) blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
  // expected-error@+1 {{sums that are on their way are read by 'loop.store'}}
  %a, %b, %c, %d = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) leaving 1 : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
  loop.store %a, %y[0] : memref<4xf32>
}

// -----

// Sums on their way may lie in registers, where nobody reads them before they are waited for.
kernel.func @k(%y: memref<4xf32>) blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
  %sums = loop.registers : memref<1xf32, "registers">
  // expected-error@+1 {{sums that are on their way are read by 'loop.store'}}
  %a, %b, %c, %d = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) leaving 1 : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
  loop.store %a, %sums[0] : memref<1xf32, "registers">
  %e = loop.load %sums[0] : memref<1xf32, "registers">
  loop.store %e, %y[0] : memref<4xf32>
}

// -----

kernel.func @k() blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 16 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
  // expected-error@+1 {{needs shared memory aligned to 1024 bytes, it is aligned to 16}}
  %a, %b, %c, %d = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
}

// -----

kernel.func @k() blocks(1) threads(256) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
  // expected-error@+1 {{256 threads are no warpgroups of 128 that share 64 rows evenly}}
  %a, %b, %c, %d = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
}

// -----

kernel.func @k() blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
  // expected-error@+1 {{gives 4 sums, not 2}}
  %a, %b = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z) : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
}

// -----

kernel.func @k() blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xi16, "shared">
  %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
  // expected-error@+1 {{multiplies bf16 or f16, got i16}}
  %a, %b, %c, %d = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) : memref<64x64xi16, "shared"> by memref<8x64xbf16, "shared">
}

// -----

kernel.func @k() blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<4x64xbf16, "shared">
  // expected-error@+1 {{multiplies 8 to 256 columns, a multiple of 8, not 4}}
  %a, %b, %c, %d = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) : memref<64x64xbf16, "shared"> by memref<4x64xbf16, "shared">
}

// -----

kernel.func @k() blocks(1) threads(192) {
  %z = arith.constant 0.0 : f32
  %h = arith.constant 0.0 : bf16
  %ws = kernel.shared align 1024 : memref<16x64xbf16, "shared">
  // expected-error@+1 {{192 threads are no warpgroups of 128 that share 64 rows evenly}}
  %a:8 = kernel.wgmma (%h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h, %h) by %ws[0, 0] plus (%z, %z, %z, %z, %z, %z, %z, %z) : bf16 by memref<16x64xbf16, "shared">
}

// -----

kernel.func @k() blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %h = arith.constant 0.0 : bf16
  %ws = kernel.shared align 1024 : memref<16x64xbf16, "shared">
  // expected-error@+1 {{gives 32 sums, not 8}}
  %a:8 = kernel.wgmma (%h, %h, %h, %h, %h, %h, %h, %h) by %ws[0, 0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z) : bf16 by memref<16x64xbf16, "shared">
}

// -----

// expected-error@+1 {{a cluster has 2 to 8 blocks, not 1}}
kernel.func @k() blocks(4) threads(32) cluster(1) {
}

// -----

kernel.func @k() blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<3x64x64xbf16, "shared">
  // expected-error@+1 {{multiplies 64 by 128 where a transposed slab of columns has all its panels; got memref<3x64x64xbf16, "shared">}}
  %a:64 = kernel.wgmma %xs[0, 0] by %ws[0, 0, 0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 128 : memref<64x64xbf16, "shared"> by memref<3x64x64xbf16, "shared">
}

// -----

// expected-error@+1 {{5 blocks are no whole number of clusters of 2}}
kernel.func @k() blocks(5) threads(32) cluster(2) {
}

// -----

kernel.func @k() blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<2x64x64xbf16, "shared">
  // expected-error@+1 {{multiplies 64 by 128 where a transposed slab of columns has all its panels; got memref<2x64x64xbf16, "shared">}}
  %a:64 = kernel.wgmma %xs[0, 0] by %ws[1, 0, 0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 128 : memref<64x64xbf16, "shared"> by memref<2x64x64xbf16, "shared">
}

// -----

// expected-error@+1 {{s0 blocks are no whole number of clusters of 2}}
kernel.func @k() blocks(s0) threads(32) cluster(2) {
}

// -----

kernel.func @k() blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  // expected-error@+1 {{multiplies 64 by 64 where a transposed slab of columns has all its panels; got memref<64x64xbf16, "shared">}}
  %a:32 = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) of 64 by 64 : memref<64x64xbf16, "shared"> by memref<64x64xbf16, "shared">
}

// -----

kernel.func @k() blocks(4) threads(32) {
  // expected-error@+1 {{only a barrier of a cluster can be relaxed}}
  kernel.barrier relaxed
}

// -----

// expected-error@+1 {{a copy arrives in 2 blocks of clusters of 4}}
kernel.func @k(%x: !kernel.tensor_map<16x64xf32>) blocks(4) threads(32) cluster(4) {
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  kernel.bulk_copy %x[0, 0] to %s[0, 0, 0] barrier %full[0] multicast 2 : !kernel.tensor_map<16x64xf32> to memref<2x16x64xf32, "shared">
}

// -----

kernel.func @k(%x: !kernel.tensor_map<8x64xf32>) blocks(4) threads(32) {
  %s = kernel.shared align 128 : memref<2x16x64xf32, "shared">
  %full = kernel.mbarriers 2
  // expected-error@+1 {{a box of !kernel.tensor_map<8x64xf32> does not fill rows of memref<2x16x64xf32, "shared">}}
  kernel.bulk_copy %x[0, 0] to %s[0, 4, 0] barrier %full[0] : !kernel.tensor_map<8x64xf32> to memref<2x16x64xf32, "shared">
}

// -----

kernel.func @k() blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<32x64xbf16, "shared">
  // expected-error@+1 {{multiplies 64 positions of rows by 32 of columns}}
  %a:32 = kernel.wgmma %xs[0, 0] by %ws[0, 0] transposed plus (%z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z, %z) : memref<64x64xbf16, "shared"> by memref<32x64xbf16, "shared">
}

// -----

kernel.func @k() blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
  // expected-error@+1 {{is joined to a product that does not follow it}}
  %a:4 = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) joined : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
}

// -----

kernel.func @k() blocks(1) threads(128) {
  %z = arith.constant 0.0 : f32
  %xs = kernel.shared align 1024 : memref<64x64xbf16, "shared">
  %ws = kernel.shared align 1024 : memref<8x64xbf16, "shared">
  %a:4 = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) joined : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
  // expected-error@+1 {{leaves 1 of products that begin 2 at a time}}
  %b:4 = kernel.wgmma %xs[0, 0] by %ws[0, 0] plus (%z, %z, %z, %z) leaving 1 : memref<64x64xbf16, "shared"> by memref<8x64xbf16, "shared">
}

// -----

kernel.func @k(%x: memref<16xf32>) blocks(1) threads(32) {
  %v = loop.load %x[0] : memref<16xf32>
  // expected-error@+1 {{multiplies at least one element of each, got 0 elements of rows and 1 of a column}}
  kernel.mma () by (%v) : f32
}

// -----

func.func @main(%x: memref<8x4xf32>, %y: memref<9x4xf32>) {
  // expected-error@+1 {{slices and stacks need one number of steps, not 0, as their first axis, got memref<8x4xf32>, memref<9x4xf32>}}
  kernel.loop carried() slices(%a = %x) stacks(%b = %y) : memref<8x4xf32>, memref<9x4xf32> {
  }
  func.return
}

// -----

func.func @main(%y: memref<9x3xf32>) {
  // expected-error@+1 {{slices must begin at multiples of 16 bytes}}
  kernel.loop carried() slices() stacks(%b = %y) : memref<9x3xf32> {
  }
  func.return
}

// -----

func.func @main(%h: memref<8xf32>, %y: memref<9x4xf32>) {
  // expected-error@+1 {{carries what is no slice of the stack of the same number}}
  kernel.loop carried(%a = %h) slices() stacks(%b = %y) : memref<8xf32>, memref<9x4xf32> {
  }
  func.return
}

// -----

func.func @main(%h: memref<4xf32>) {
  // expected-error@+1 {{must have a stack, and one for each value that it carries}}
  kernel.loop carried(%a = %h) slices() stacks() : memref<4xf32> {
  }
  func.return
}

// -----

func.func @main(%x: memref<9x4x4xf32>, %y: memref<9x4xf32>) {
  kernel.loop carried() slices(%a = %x) stacks(%b = %y) : memref<9x4x4xf32>, memref<9x4xf32> {
    // expected-error@+1 {{a loop cannot stand in another one}}
    kernel.loop carried() slices() stacks(%c = %a) : memref<4x4xf32> {
    }
  }
  func.return
}

// -----

// The second turn reads what the first one has overwritten.
kernel.func @add(%a: memref<4xf32>, %b: memref<4xf32>, %c: memref<4xf32>) blocks(1) threads(4) {
  %i = kernel.thread_id
  %u = loop.load %a[%i] : memref<4xf32>
  %v = loop.load %b[%i] : memref<4xf32>
  %y = arith.addf %u, %v : f32
  loop.store %y, %c[%i] : memref<4xf32>
}
func.func @main(%h: memref<4xf32>, %x: memref<9x4xf32>) -> memref<9x4xf32> {
  %p = kernel.alloc at 0 : memref<4xf32>
  kernel.launch @add(%h, %h, %p) blocks(1) threads(4) : memref<4xf32>, memref<4xf32>, memref<4xf32>
  %s = kernel.alloc : memref<9x4xf32>
  kernel.loop carried(%b = %h) slices(%t = %x) stacks(%n = %s) : memref<4xf32>, memref<9x4xf32>, memref<9x4xf32> {
    %e = kernel.alloc at 64 : memref<4xf32>
    // expected-error@+1 {{'kernel.launch' op reads %p, whose place holds another buffer}}
    kernel.launch @add(%b, %p, %e) blocks(1) threads(4) : memref<4xf32>, memref<4xf32>, memref<4xf32>
    %d = kernel.alloc at 0 : memref<4xf32>
    kernel.launch @add(%e, %t, %d) blocks(1) threads(4) : memref<4xf32>, memref<4xf32>, memref<4xf32>
    kernel.launch @add(%d, %d, %n) blocks(1) threads(4) : memref<4xf32>, memref<4xf32>, memref<4xf32>
  }
  func.return %s : memref<9x4xf32>
}
