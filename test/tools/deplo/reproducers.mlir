// A reproducer is run again, and made smaller.

// RUN: rm -rf %t && mkdir %t && cd %t
// RUN: not deplo-opt %s -p 'cse,convert-memref-to-ptr,canonicalize' --crash-reproducer repro.mlir
// RUN: not deplo repro repro.mlir 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN-DAG: repro.mlir:{{[0-9:]+}} error: convert-memref-to-ptr: Unsupported layout type
// AGAIN-DAG: it fails, with exit code 1

// RUN: deplo reduce repro.mlir -o small.mlir 2>&1 | FileCheck %s --check-prefix=REDUCED
// REDUCED: DiagnosticException in pass 'convert-memref-to-ptr': 16 lines became 8, {{[0-9]+}} programs tried
// RUN: FileCheck %s --check-prefix=SMALL < small.mlir
// SMALL:      // configuration: --pass-pipeline='builtin.module(convert-memref-to-ptr)'
// SMALL-NEXT: builtin.module {
// SMALL-NEXT:   func.func @main(%a: memref<4x4xf32, affine_map<(d0, d1) -> (d1, d0)>>, %i: index, %j: index, %d: f32) {
// SMALL-NEXT:     %0 = memref.load %a[%i, %j]
// SMALL-NEXT:     %e = arith.mulf %d, %0 : f32
// SMALL-NEXT:     func.return
// SMALL-NEXT:   }
// SMALL-NEXT: }

// What does not fail, or is no reproducer, is said to be so.

// RUN: echo "// configuration: --pass-pipeline='builtin.module(cse)'" > fine.mlir && cat %s >> fine.mlir
// RUN: deplo repro fine.mlir | FileCheck %s --check-prefix=FINE
// FINE: it does not fail any more
// RUN: not deplo reduce fine.mlir 2>&1 | FileCheck %s --check-prefix=NOTHING
// NOTHING: error: this reproducer does not fail: there is nothing to reduce
// RUN: not deplo repro none.mlir 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: cannot read none.mlir: {{.*}}No such file or directory
// RUN: not deplo reduce %s 2>&1 | FileCheck %s --check-prefix=NOT-ONE
// NOT-ONE: error: {{.*}}reproducers.mlir is not a reproducer: its first line must be // configuration

func.func @other(%a: f32) -> f32 {
  %0 = arith.addf %a, %a : f32
  func.return %0 : f32
}
func.func @main(%a: memref<4x4xf32, affine_map<(d0, d1) -> (d1, d0)>>, %i: index, %u: f32) -> (f32, f32) {
  %c1 = arith.constant 1 : index
  %j = arith.addi %i, %c1 : index
  %b = arith.mulf %u, %u : f32
  %0 = memref.load %a[%i, %j] : memref<4x4xf32, affine_map<(d0, d1) -> (d1, d0)>>
  %d = arith.addf %0, %b : f32
  %e = arith.mulf %d, %0 : f32
  func.return %d, %e : f32, f32
}
