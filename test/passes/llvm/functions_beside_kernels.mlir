// What only functions beside kernels call stays declared as they call it.
// RUN: deplo-opt %s -p expand-math,convert-to-llvm --remarks 2>&1 | FileCheck %s

// CHECK: remark: convert-to-llvm: no `deplo.kernel` function
// CHECK: func.func private @deplo_erf_f64(f64) -> f64
// CHECK: func.func @helper
// CHECK: func.call @deplo_erf_f64
func.func @helper(%x: f64) -> f64 {
  %e = math.erf %x : f64
  func.return %e : f64
}
