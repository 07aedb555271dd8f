// A program in a file is executed on any level, as it is or as passes leave it; --compare checks a hand edit.
// RUN: deplo-opt %s --run --inputs ones --print-results | FileCheck %s
// RUN: deplo-opt %s -p loop-to-cuda --run --compare %s | FileCheck %s --check-prefix=CUDA
// RUN: deplo-opt %s -p loop-to-llvm --run --target cpu --compare %s --inputs random:7 | FileCheck %s --check-prefix=CPU
// RUN: deplo-opt %s --run --entry twice --inputs ones | FileCheck %s --check-prefix=TWICE
// RUN: not deplo-opt %s --compare %S/Inputs/sums.mlir 2>&1 | FileCheck %s --check-prefix=DIFFERS
// RUN: not deplo-opt %s --run --entry none 2>&1 | FileCheck %s --check-prefix=ENTRY
// RUN: not deplo-opt %s -p loop-to-llvm --run 2>&1 | FileCheck %s --check-prefix=NATIVE

// CHECK:      @main on ones, in the interpreter
// CHECK-NEXT: result #0: tensor<2xf32>, from 3 to 3, mean 3
// CHECK-NEXT: [3. 3.]
// CUDA:       result #0: memref<2xf32>
// CUDA-NEXT:  the other program computes the same
// CPU:        @main on random:7, on this CPU
// CPU:        the other program computes the same
// TWICE:      @twice on ones, in the interpreter
// TWICE-NEXT: result #0: tensor<2x3xf32>, from 2 to 2, mean 2
// DIFFERS:    error: the programs differ: result #0: {{.*}} elements differ
// ENTRY:      error: --run: the program has no function @none with a body; its functions: @main, @twice
// NATIVE:     error: the interpreter cannot execute it: {{.*}}--target cpu compiles and runs it
func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  %sum = loop.kernel @sum(%x) : (tensor<2x3xf32>) -> tensor<2xf32> {
  ^bb0(%xs: memref<2x3xf32>, %out: memref<2xf32>):
    loop.for %i = 0 to 2 {
      %s = loop.for %j = 0 to 3 reduce(add) -> f32 {
        %v = loop.load %xs[%i, %j] : memref<2x3xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<2xf32>
    }
  }
  func.return %sum : tensor<2xf32>
}

func.func @twice(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %y = loop.kernel @add(%x) : (tensor<2x3xf32>) -> tensor<2x3xf32> {
  ^bb0(%xs: memref<2x3xf32>, %out: memref<2x3xf32>):
    loop.for %i = 0 to 2 {
      loop.for %j = 0 to 3 {
        %v = loop.load %xs[%i, %j] : memref<2x3xf32>
        %w = arith.addf %v, %v : f32
        loop.store %w, %out[%i, %j] : memref<2x3xf32>
      }
    }
  }
  func.return %y : tensor<2x3xf32>
}
