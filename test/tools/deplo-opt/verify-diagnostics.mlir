// Comments say which diagnostics must come; what is missing and what is too much is an error.

// RUN: deplo-opt %s --split-input-file --verify-diagnostics
// RUN: sed 's/Expected 2/Expected 3/' %s > %t.mlir
// RUN: not deplo-opt %t.mlir --split-input-file --verify-diagnostics 2>&1 | FileCheck %s
// CHECK: :11:8: error: unexpected error: {{.*}}Expected 2 operands, but got 1
// CHECK: :10:{{[0-9]+}}: error: expected error "Expected 3 operands" was not produced

func.func @next_line(%a: i32) {
  // expected-error@+1 {{Expected 2 operands}}
  %0 = "arith.addi"(%a) : (i32) -> i32
  func.return
}

// -----

func.func @same_line(%a: i32) {
  %0 = arith.adi %a : i32  // expected-error-re {{unknown op 'arith.{{[a-z]+}}'}}
  func.return
}

// -----

// expected-error@below {{unknown op 'func.fun'}}
func.fun @declared_below()
