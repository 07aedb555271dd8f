// What xDSL attaches to an op is told: as the message of an exception that has none, else as a note.

// RUN: not deplo-opt -p x86-regalloc-verify-liveness %s 2>&1 | FileCheck %s
// CHECK: attached-messages.mlir:[[# @LINE + 2]]:11: error: x86-regalloc-verify-liveness: p should not be read after in/out usage
x86_func.func @f(%p: !x86.reg64<rax>) {
  %ptr2 = x86.r.inc %p : (!x86.reg64<rax>) -> !x86.reg64<rax>
  %val = x86.dm.mov [%p] : (!x86.reg64<rax>) -> !x86.reg64<rcx>
  x86_func.ret
}
