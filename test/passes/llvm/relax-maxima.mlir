// RUN: deplo-opt %s -p relax-maxima --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p relax-maxima --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'relax-maxima{target="cpu:neon"}' --split-input-file | FileCheck %s --check-prefix=NEON

// A softmax: where an exponent is NaN, so is the sum, and all that is divided by it.
// REMARK: remark: relax-maxima: k_softmax: 1 loop
// CHECK-LABEL: @k_softmax
// CHECK:       %m = scf.for
// CHECK:         arith.maximumf %largest, %v{{.*}} fastmath<reassoc,nnan>
// CHECK:       [[ANY:%.*]] = llvm.inline_asm {{.*}} "", "=x,0" %m : (f32) -> f32
// NEON:        llvm.inline_asm {{.*}} "", "=w,0" %m : (f32) -> f32
// CHECK:       scf.for
// CHECK:         [[D:%.*]] = arith.subf %v{{.*}}, [[ANY]] : f32
// CHECK-NEXT:    math.exp [[D]] {at_most_zero} : f32
// CHECK:       scf.for
// CHECK:         [[E:%.*]] = arith.subf %v{{.*}}, [[ANY]] : f32
// CHECK-NEXT:    math.exp [[E]] {at_most_zero} : f32
// CHECK-NEXT:    arith.divf
func.func @k_softmax(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %low = arith.constant 0xff800000 : f32
  %zero = arith.constant 0.0 : f32
  %m = scf.for %j = %c0 to %c8 step %c1 iter_args(%largest = %low) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %next = arith.maximumf %largest, %v fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    %next = arith.addf %so_far, %e fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<8xf32>
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    %p = arith.divf %e, %s : f32
    loop.store %p, %y[%j] : memref<8xf32>
  }
  func.return
}

// -----

// The powers alone are stored: NaN has to stand where it stood, and the others where they were.
// REMARK: remark: relax-maxima: k_powers: declined: what is stored may be no NaN where one of its operands is
// CHECK-LABEL: @k_powers
// CHECK-NOT:   nnan
func.func @k_powers(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %low = arith.constant 0xff800000 : f32
  %zero = arith.constant 0.0 : f32
  %m = scf.for %j = %c0 to %c8 step %c1 iter_args(%largest = %low) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %next = arith.maximumf %largest, %v fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    loop.store %e, %y[%j] : memref<8xf32>
    %next = arith.addf %so_far, %e fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  func.return
}

// -----

// Nothing is added up that would be NaN, and a comparison tells what the maximum is.
// REMARK: remark: relax-maxima: k_max: declined: no sum of powers is shifted by it
// REMARK: remark: relax-maxima: k_compared: declined: arith.{{cmpf|select}} depends on it
// REMARK: remark: relax-maxima: k_others: declined: no sum of powers is shifted by it
// CHECK-NOT:   nnan
func.func @k_max(%x: memref<8xf32>, %y: memref<1xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %low = arith.constant 0xff800000 : f32
  %m = scf.for %j = %c0 to %c8 step %c1 iter_args(%largest = %low) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %next = arith.maximumf %largest, %v fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  loop.store %m, %y[0] : memref<1xf32>
  func.return
}

func.func @k_compared(%x: memref<8xf32>, %y: memref<1xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %low = arith.constant 0xff800000 : f32
  %zero = arith.constant 0.0 : f32
  %m = scf.for %j = %c0 to %c8 step %c1 iter_args(%largest = %low) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %next = arith.maximumf %largest, %v fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  %none = arith.cmpf oeq, %m, %low : f32
  %shift = arith.select %none, %zero, %m : f32
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %d = arith.subf %v, %shift : f32
    %e = math.exp %d : f32
    %next = arith.addf %so_far, %e fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  loop.store %s, %y[0] : memref<1xf32>
  func.return
}

// The sum is of other numbers than the maximum.
func.func @k_others(%x: memref<8xf32>, %z: memref<8xf32>, %y: memref<1xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %low = arith.constant 0xff800000 : f32
  %zero = arith.constant 0.0 : f32
  %m = scf.for %j = %c0 to %c8 step %c1 iter_args(%largest = %low) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %next = arith.maximumf %largest, %v fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %z[%j] : memref<8xf32>
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    %next = arith.addf %so_far, %e fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  loop.store %s, %y[0] : memref<1xf32>
  func.return
}

// -----

// Maxima that are folded in order, of what is written, and of what a loop computes.
// REMARK: remark: relax-maxima: k_in_order: declined: it is folded in order
// REMARK: remark: relax-maxima: k_in_place: declined: its operands may change
// REMARK: remark: relax-maxima: k_nested: declined: its operands are not only computed
// CHECK-LABEL: @k_in_order
// CHECK-NOT:   nnan
func.func @k_in_order(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %low = arith.constant 0xff800000 : f32
  %zero = arith.constant 0.0 : f32
  %m = scf.for %j = %c0 to %c8 step %c1 iter_args(%largest = %low) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %next = arith.maximumf %largest, %v : f32
    scf.yield %next : f32
  }
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    %next = arith.addf %so_far, %e fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<8xf32>
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    %p = arith.divf %e, %s : f32
    loop.store %p, %y[%j] : memref<8xf32>
  }
  func.return
}

func.func @k_in_place(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %low = arith.constant 0xff800000 : f32
  %zero = arith.constant 0.0 : f32
  %m = scf.for %j = %c0 to %c8 step %c1 iter_args(%largest = %low) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %next = arith.maximumf %largest, %v fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    %next = arith.addf %so_far, %e fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<8xf32>
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    %p = arith.divf %e, %s : f32
    loop.store %p, %x[%j] : memref<8xf32>
  }
  func.return
}

func.func @k_nested(%x: memref<8xf32>, %y: memref<8xf32>, %begin: index, %end: index, %status: memref<1xi64>) attributes {deplo.kernel} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %low = arith.constant 0xff800000 : f32
  %zero = arith.constant 0.0 : f32
  %m = scf.for %j = %c0 to %c8 step %c1 iter_args(%largest = %low) -> (f32) {
    %v = scf.for %k = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %w = loop.load %x[%k] : memref<8xf32>
      %more = arith.addf %so_far, %w : f32
      scf.yield %more : f32
    }
    %next = arith.maximumf %largest, %v fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  %s = scf.for %j = %c0 to %c8 step %c1 iter_args(%so_far = %zero) -> (f32) {
    %v = loop.load %x[%j] : memref<8xf32>
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    %next = arith.addf %so_far, %e fastmath<reassoc> : f32
    scf.yield %next : f32
  }
  scf.for %j = %c0 to %c8 step %c1 {
    %v = loop.load %x[%j] : memref<8xf32>
    %d = arith.subf %v, %m : f32
    %e = math.exp %d : f32
    %p = arith.divf %e, %s : f32
    loop.store %p, %y[%j] : memref<8xf32>
  }
  func.return
}
