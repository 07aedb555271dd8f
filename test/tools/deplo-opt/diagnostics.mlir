// Each part of the input fails by itself, at the line it has in the file, with one located line and a caret.

// RUN: not deplo-opt %s --split-input-file 2>&1 | FileCheck %s --strict-whitespace

// CHECK:      {{.*}}diagnostics.mlir:9:8: error: 'arith.addi' op Expected 2 operands, but got 1
// CHECK-NEXT:{{^}}  %0 = "arith.addi"(%a) : (i32) -> i32
// CHECK-NEXT:{{^}}       ^
func.func @operands(%a: i32) {
  %0 = "arith.addi"(%a) : (i32) -> i32
  func.return
}

// -----

// CHECK:      {{.*}}:18:8: error: unknown op 'arith.adi'; did you mean the op
// CHECK:      {{^}}       ^
func.func @unknown_op(%a: i32) {
  %0 = arith.adi %a, %a : i32
  func.return
}

// -----

// CHECK:      {{.*}}:26:25: error: value %summ is not defined; did you mean %sum?
func.func @undefined(%sum: i32) {
  %0 = arith.addi %sum, %summ : i32
  func.return
}

// -----

// CHECK:      {{.*}}:34:8: error: 'arith.addi' op operand #0 (%later) is used before it is defined
func.func @dominance(%a: i32) {
  %0 = arith.addi %later, %a : i32
  %later = arith.addi %a, %a : i32
  func.return
}

// -----

// A part without mistakes is still printed.
// CHECK:      func.func private @fine()
func.func private @fine()
