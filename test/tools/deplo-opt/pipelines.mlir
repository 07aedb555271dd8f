// Both spellings of a pipeline, with options, mean the same.

// RUN: deplo-opt %s --pass-pipeline='canonicalize,cse' | FileCheck %s
// RUN: deplo-opt %s --pass-pipeline='builtin.module(canonicalize, cse)' | FileCheck %s
// RUN: deplo-opt %s -p canonicalize -o %t && FileCheck %s < %t
// RUN: deplo-opt - < %s -p canonicalize | FileCheck %s

// CHECK-LABEL: func.func @sum
// CHECK-NEXT: %[[C:.*]] = arith.constant 9 : i32
// CHECK-NEXT: func.return %[[C]]
func.func @sum() -> i32 {
  %a = arith.constant 4 : i32
  %b = arith.constant 5 : i32
  %c = arith.addi %a, %b : i32
  func.return %c : i32
}
