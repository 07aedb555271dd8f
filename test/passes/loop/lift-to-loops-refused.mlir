// RUN: not deplo-opt %s -p lift-to-loops 2>&1 | FileCheck %s

// CHECK: error: {{.*}}'tensor_ir.elementwise'{{.*}} has a dynamic extent
// CHECK-SAME: compile with constant shapes
func.func @main(%x: tensor<?xf32>) -> tensor<?xf32> {
  %y = tensor_ir.elementwise neg(%x) : (tensor<?xf32>) -> tensor<?xf32>
  func.return %y : tensor<?xf32>
}
