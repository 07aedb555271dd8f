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
