// The dominance check that xDSL lacks.

// RUN: deplo-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK-LABEL: func.func @diamond
func.func @diamond(%c: i1, %x: i32) -> i32 {
  %top = arith.addi %x, %x : i32
  cf.cond_br %c, ^left, ^right
^left:
  %l = arith.addi %top, %x : i32
  cf.br ^join(%l : i32)
^right:
  %r = arith.muli %top, %x : i32
  cf.br ^join(%r : i32)
^join(%v: i32):
  %sum = arith.addi %top, %v : i32
  func.return %sum : i32
}

// -----

func.func @not_from_a_branch(%c: i1, %x: i32) -> i32 {
  cf.cond_br %c, ^left, ^right
^left:
  %l = arith.addi %x, %x : i32
  cf.br ^join
^right:
  cf.br ^join
^join:
  // expected-error@+1 {{operand #0 (%l) is defined in a block that does not dominate this use}}
  func.return %l : i32
}

// -----

// CHECK-LABEL: func.func @around_a_loop
func.func @around_a_loop(%c: i1, %x: i32) -> i32 {
  cf.br ^head
^head:
  %h = arith.addi %x, %x : i32
  cf.cond_br %c, ^head, ^exit
^exit:
  func.return %h : i32
}

// -----

// CHECK-LABEL: func.func @unreachable_code_is_not_checked
func.func @unreachable_code_is_not_checked(%x: i32) -> i32 {
  func.return %x : i32
^nobody:
  %a = arith.addi %b, %x : i32
  %b = arith.addi %a, %x : i32
  func.return %b : i32
}

// -----

func.func @used_above_its_definition_from_inside(%c: i1, %x: i32) -> i32 {
  scf.if %c {
    // expected-error@+1 {{operand #0 (%late) is used before it is defined}}
    %y = arith.addi %late, %x : i32
  }
  %late = arith.addi %x, %x : i32
  func.return %x : i32
}

// -----

// A module's body is a graph region, and so are the regions of ops of unknown dialects.
// CHECK: "test.op"(%late) : (i32) -> ()
"test.op"(%late) : (i32) -> ()
"test.op"() ({
  "test.op"(%inner, %late) : (i32, i32) -> ()
  %inner = "test.termop"() : () -> i32
}) : () -> ()
%late = "test.op"() : () -> i32

// -----

// A function in a graph region is none.
func.func @in_a_graph_region(%x: i32) -> i32 {
  // expected-error@+1 {{operand #0 (%late) is used before it is defined}}
  %y = arith.addi %late, %x : i32
  %late = arith.addi %x, %x : i32
  func.return %y : i32
}

// -----

// Nor is a loop.
%n = "test.op"() : () -> index
scf.for %i = %n to %n step %n {
  // expected-error@+1 {{operand #0 (%late) is used before it is defined}}
  "test.op"(%late) : (i32) -> ()
  %late = "test.op"() : () -> i32
}

// -----

// Blocks of a graph region are ordered by dominance, as in MLIR.
"test.op"() ({
  // expected-error@+1 {{operand #0 (%x) is defined in a block that does not dominate this use}}
  "test.termop"(%x) : (i32) -> ()
^other(%x: i32):
  "test.termop"() : () -> ()
}) : () -> ()

// -----

// What an inner region defines does not leave it.
"test.op"() ({
  %inner = "test.termop"() : () -> i32
}) : () -> ()
// expected-error@+1 {{value %inner is not defined}}
"test.op"(%inner) : (i32) -> ()
