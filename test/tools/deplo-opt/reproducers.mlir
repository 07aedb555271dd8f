// A pass that fails leaves a file that shows the failure again.

// RUN: rm -rf %t && mkdir %t
// RUN: not deplo-opt %s -p 'cse,convert-memref-to-ptr{lower-func=false},canonicalize' --crash-reproducer %t/repro.mlir 2>%t/first
// RUN: FileCheck %s --check-prefix=FILE < %t/repro.mlir
// FILE: // configuration: --pass-pipeline='builtin.module(convert-memref-to-ptr,canonicalize)'
// FILE: builtin.module
// RUN: FileCheck %s --check-prefix=ERROR < %t/first
// ERROR: error: convert-memref-to-ptr: Unsupported layout type
// RUN: not deplo-opt --run-reproducer %t/repro.mlir 2>&1 | FileCheck %s --check-prefix=ERROR

// RUN: not deplo-opt --run-reproducer %s 2>&1 | FileCheck %s --check-prefix=NOT-ONE
// NOT-ONE: error: {{.*}}reproducers.mlir is not a reproducer

// An error nobody foresaw is one line, and leaves a directory.

// RUN: cd %t && not deplo-opt %s -p 'cse,apply-individual-rewrite{matched-operation-index=1 operation-name="a" pattern-name="b"}' 2>%t/internal
// RUN: FileCheck %s --check-prefix=INTERNAL < %t/internal
// INTERNAL: error: internal error in pass 'apply-individual-rewrite': ValueError:
// INTERNAL-NOT: Traceback
// INTERNAL: note: a reproducer is in {{.*}}deplo-repro-{{[0-9a-f]+}}; run it with deplo repro
// RUN: cat %t/deplo-repro-*/input.mlir | FileCheck %s --check-prefix=DIRECTORY
// DIRECTORY: // configuration: --pass-pipeline='builtin.module(cse,apply-individual-rewrite{
// RUN: grep -q xdsl %t/deplo-repro-*/env.json
// RUN: grep -q Traceback %t/deplo-repro-*/traceback.txt
// RUN: %python -c "import glob, subprocess; subprocess.run(['deplo-opt', '--run-reproducer', *glob.glob('%t/deplo-repro-*')])" 2>&1 | FileCheck %s --check-prefix=AGAIN
// AGAIN: input.mlir:{{[0-9:]+}} error: internal error in pass 'apply-individual-rewrite'

func.func @f(%a: memref<4x4xf32, affine_map<(d0, d1) -> (d1, d0)>>, %i: index) -> f32 {
  %0 = memref.load %a[%i, %i] : memref<4x4xf32, affine_map<(d0, d1) -> (d1, d0)>>
  func.return %0 : f32
}
