// The program between the passes goes to stderr; stdout has the result only.

// RUN: deplo-opt %s -p cse,canonicalize --print-ir-after-all 2>&1 >%t.out | FileCheck %s --check-prefix=AFTER
// RUN: FileCheck %s --check-prefix=OUT < %t.out
// AFTER: // -----// IR Dump After cse //----- //
// AFTER-NEXT: {{^}}builtin.module {{{$}}
// AFTER: arith.constant 4
// AFTER: // -----// IR Dump After canonicalize //----- //
// AFTER: arith.constant 9
// OUT-NOT: IR Dump
// OUT: arith.constant 9

// RUN: deplo-opt %s -p cse,canonicalize --print-ir-before-all 2>&1 >/dev/null | FileCheck %s --check-prefix=BEFORE
// BEFORE: // -----// IR Dump Before cse //----- //
// BEFORE: // -----// IR Dump Before canonicalize //----- //
// BEFORE: arith.constant 4
// BEFORE-NOT: arith.constant 9

// RUN: deplo-opt %s -p cse,canonicalize --print-ir-after-change 2>&1 >/dev/null | FileCheck %s --check-prefix=CHANGE
// CHANGE: // -----// IR Dump After cse (no change) //----- //
// CHANGE: // -----// IR Dump After canonicalize //----- //
// CHANGE: --- before canonicalize
// CHANGE: +++ after canonicalize
// CHANGE: -    %c = arith.addi
// CHANGE: +    %c = arith.constant 9 : i32

// RUN: rm -rf %t.tree && deplo-opt %s -p cse,canonicalize --print-ir-tree-dir %t.tree >/dev/null
// RUN: FileCheck %s --check-prefix=TREE < %t.tree/000_input.mlir
// RUN: FileCheck %s --check-prefix=TREE < %t.tree/001_cse.mlir
// RUN: FileCheck %s --check-prefix=OUT < %t.tree/002_canonicalize.mlir
// TREE: {{^}}builtin.module {{{$}}
// TREE: arith.constant 4

func.func @sum() -> i32 {
  %a = arith.constant 4 : i32
  %b = arith.constant 5 : i32
  %c = arith.addi %a, %b : i32
  func.return %c : i32
}
