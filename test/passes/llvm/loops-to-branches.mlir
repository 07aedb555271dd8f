// RUN: deplo-opt %s -p loops-to-branches | FileCheck %s
// RUN: deplo-opt %s -p loops-to-branches --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK

// A loop that carries a sum, and a condition inside; what nothing uses is gone.
// REMARK: remark: loops-to-branches: k_nest: 3 operations
// CHECK-LABEL: @k_nest
// CHECK:         cf.br ^[[OUTER:bb[0-9]+]](%begin : index)
// CHECK:       ^[[OUTER]](%i: index):
// CHECK:         arith.cmpi slt, %i, %end : index
// CHECK-NEXT:    cf.cond_br %{{.*}}, ^[[BODY:bb[0-9]+]], ^[[DONE:bb[0-9]+]]
// CHECK:       ^[[BODY]]:
// CHECK:         cf.br ^[[INNER:bb[0-9]+]](%c0, %zero : index, f32)
// CHECK:       ^[[INNER]](%k: index, %sum: f32):
// CHECK:         cf.cond_br %{{.*}}, ^{{bb[0-9]+}}, ^[[AFTER:bb[0-9]+]]
// CHECK-NOT:     arith.mulf
// CHECK:         arith.addf
// CHECK:         cf.br ^[[INNER]]
// CHECK:       ^[[AFTER]]:
// CHECK:         cf.cond_br %first, ^[[THEN:bb[0-9]+]], ^[[ELSE:bb[0-9]+]]
// CHECK:       ^[[THEN]]:
// CHECK:         cf.br ^[[JOIN:bb[0-9]+]](%zero : f32)
// CHECK:       ^[[ELSE]]:
// CHECK:         cf.br ^[[JOIN]](%sum : f32)
// CHECK:       ^[[JOIN]](%{{.*}}: f32):
// CHECK-NOT:     scf.
// CHECK:         cf.br ^[[OUTER]]
// CHECK:       ^[[DONE]]:
// CHECK-NEXT:    func.return
func.func @k_nest(%x: memref<8x4xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant 0.0 : f32
  scf.for %i = %begin to %end step %c1 {
    %s = scf.for %k = %c0 to %c4 step %c1 iter_args(%sum = %zero) -> (f32) {
      %v = loop.load %x[%i, %k] : memref<8x4xf32>
      %unused = arith.mulf %v, %v : f32
      %next = arith.addf %sum, %v : f32
      scf.yield %next : f32
    }
    %first = arith.cmpi eq, %i, %c0 : index
    %r = scf.if %first -> (f32) {
      scf.yield %zero : f32
    } else {
      scf.yield %s : f32
    }
    loop.store %r, %y[%i] : memref<8xf32>
  }
  func.return
}

// REMARK: remark: loops-to-branches: k_flat: declined: it has neither loop nor condition
// CHECK-LABEL: @k_flat
// CHECK-NEXT:    %v = loop.load
func.func @k_flat(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %v = loop.load %x[%begin] : memref<8xf32>
  loop.store %v, %y[%begin] : memref<8xf32>
  func.return
}
