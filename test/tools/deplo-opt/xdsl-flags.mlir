// The flags of xdsl-opt that mlir-opt has not are taken with xDSL's meaning; what they print is on stdout.

// RUN: deplo-opt -f mlir %s -p cse,canonicalize,cse --print-between-passes --time-passes --split-input-file --parsing-diagnostics | FileCheck %s
// CHECK: Pass cse took {{[0-9.e-]+}} seconds
// CHECK-NEXT: IR after cse:
// CHECK-NEXT: builtin.module {
// CHECK: IR after canonicalize:
// CHECK-NOT: IR after cse:
// CHECK: func.func private @f()
func.func private @f()

// -----

// CHECK: xdsl-flags.mlir:[[# @LINE + 2]]:1: error: unknown op 'arith.adi'
// CHECK-NEXT: arith.adi
arith.adi

// RUN: echo 'builtin.module {}' | not deplo-opt --shrink | FileCheck %s --check-prefix=SHRINK
// SHRINK: builtin.module
// SHRINK: Failure, can't shrink
