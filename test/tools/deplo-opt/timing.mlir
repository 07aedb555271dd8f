// --timing lists each pass with its time on stderr.

// RUN: deplo-opt %s -p cse,canonicalize --timing 2>&1 >/dev/null | FileCheck %s
// CHECK: Execution time: {{[0-9.]+}} s
// CHECK: (parse)
// CHECK: {{[0-9.]+}} s {{ *[0-9.]+}} %  cse
// CHECK: {{[0-9.]+}} s {{ *[0-9.]+}} %  canonicalize
// CHECK: (print)

// RUN: deplo-opt %s -p cse --timing 2>/dev/null | FileCheck %s --check-prefix=OUT
// OUT-NOT: Execution time
// OUT: func.func private @f()
func.func private @f()
