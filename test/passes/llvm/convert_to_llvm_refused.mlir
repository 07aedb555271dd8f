// What earlier passes should have rewritten is refused, with their name.

// RUN: deplo-opt %s --split-input-file --verify-diagnostics -p convert-to-llvm

func.func @k(%x: memref<8xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{scf.for has a region; run `loops-to-branches` first}}
  scf.for %i = %block_begin to %block_end step %c1 {
  }
  func.return
}

// -----

func.func @k(%x: memref<8xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %v = loop.load %x[0] : memref<8xf32>
  // expected-error@+1 {{math.exp cannot become an `llvm` operation: run `expand-math` first}}
  %e = math.exp %v : f32
  loop.store %e, %x[0] : memref<8xf32>
  func.return
}

// -----

// expected-error@+1 {{@k is a kernel: its last arguments are the first block, the one after the last, and the status word}}
func.func @k(%x: memref<?xf32, #sym.extents<s0>>) attributes {deplo.kernel} {
  %v = loop.load %x[s0 - 1] : memref<?xf32, #sym.extents<s0>>
  loop.store %v, %x[0] : memref<?xf32, #sym.extents<s0>>
  func.return
}

// -----

// expected-error@+1 {{@k is a kernel: its last arguments are}}
func.func @k() attributes {deplo.kernel} {
  func.return
}

// -----

func.func private @deplo_exp_f32(f32) -> f32
func.func @k(%x: memref<8xf32>, %block_begin: index, %block_end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %v = loop.load %x[0] : memref<8xf32>
  %e = func.call @deplo_exp_f32(%v) : (f32) -> f32
  loop.store %e, %x[0] : memref<8xf32>
  func.return
}
// expected-error@+1 {{@helper has no attribute `deplo.kernel` and stays a `func.func`, but calls @deplo_exp_f32, which becomes an `llvm.func`}}
func.func @helper(%x: f32) -> f32 {
  %e = func.call @deplo_exp_f32(%x) : (f32) -> f32
  func.return %e : f32
}
