// With --xdsl-compatible, diagnostics, parts of the input and exit codes are those of xdsl-opt.

// RUN: deplo-opt %s --xdsl-compatible --split-input-file --verify-diagnostics --parsing-diagnostics -p torch-to-tensor | FileCheck %s

// A program is printed, and deplo's pipelines are known.
// CHECK: builtin.module {
// CHECK-NEXT: func.func private @f()
func.func private @f()
// ----- // a separator need not be the whole line

// What does not parse is shown with its whole token underlined, in the place it has in the file.
// CHECK: xdsl-compatible.mlir:[[# @LINE + 4]]:14
// CHECK-NEXT: func.func @h(42)
// CHECK-NEXT: {{^}}             ^^
// CHECK-NEXT: {{^}}             Expected argument or type
func.func @h(42)
// -----

// What does not verify is shown in the program's generic form.
// CHECK: operand 'lhs' at position 0 does not verify:
// CHECK: "builtin.module"() ({
// CHECK: | Operation does not verify: operand 'lhs' at position 0 does not verify:
func.func @g(%a: f32) {
  %0 = "arith.addi"(%a, %a) : (f32, f32) -> f32
  func.return
}

// Without these flags an error ends the run; it is told as Python tells it, without the traceback.
// RUN: not deplo-opt %s --xdsl-compatible --split-input-file 2>&1 | FileCheck %s --check-prefix=ERROR
// ERROR: func.func private @f()
// ERROR-NOT: Traceback
// ERROR: xdsl.utils.exceptions.ParseError: {{.*}}xdsl-compatible.mlir:16:14
// ERROR-NOT: builtin.module
