// Every op gets the place it was parsed from, unless it brings a location of its own.

// RUN: deplo-opt %s --print-debuginfo | FileCheck %s
// CHECK: arith.constant 4 : i32 loc("{{.*}}locations.mlir":6:8)
func.func @f() -> i32 {
  %a = arith.constant 4 : i32
  // CHECK: arith.constant 5 : i32 loc("model.py":12:3)
  %b = arith.constant 5 : i32 loc("model.py":12:3)
  func.return %a : i32
}
