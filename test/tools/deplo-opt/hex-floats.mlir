// Floats written as bit patterns are read as MLIR reads them, and what is printed reads the same.

// RUN: deplo-opt %s --split-input-file --verify-diagnostics > %t
// RUN: FileCheck %s < %t
// RUN: deplo-opt %t | diff - %t

// CHECK: bytes_f16 = dense<[0x7c00, 1.000000e+00]> : tensor<2xf16>
// CHECK-SAME: bytes_f32 = dense<0xff800000> : tensor<1xf32>
// CHECK-SAME: complex = dense<(0x7f800000,1.000000e+00)> : tensor<2xcomplex<f32>>
// CHECK-SAME: elements_bf16 = dense<[0x7f80, 1.000000e+00, 0x7fc0]> : tensor<3xbf16>
// CHECK-SAME: elements_f16 = dense<[0x7c00, 1.000000e+00, 0x7e00]> : tensor<3xf16>
// CHECK-SAME: elements_f32 = dense<[0x7f800000, 1.000000e+00]> : tensor<2xf32>
// CHECK-SAME: elements_f64 = dense<[0x7ff0000000000000, 0xfff8000000000000]> : tensor<2xf64>
// CHECK-SAME: integers = dense<[16, 3]> : tensor<2xi32>
// CHECK-SAME: list = array<f32: 0x7f800000, 1.000000e+00>
// CHECK-SAME: scalar_bf16 = 0xff80 : bf16, scalar_f16 = 0x7e00 : f16, scalar_f32 = 0x7fc00000 : f32
// CHECK-SAME: splat = dense<0x7f800000> : tensor<3xf32>
"test.op"() {
  bytes_f16 = dense<"0x007C003C"> : tensor<2xf16>,
  bytes_f32 = dense<"0x000080FF"> : tensor<1xf32>,
  complex = dense<(0x7F800000, 1.0)> : tensor<2xcomplex<f32>>,
  elements_bf16 = dense<[0x7F80, 0x3F80, 0x7FC0]> : tensor<3xbf16>,
  elements_f16 = dense<[0x7C00, 0x3C00, 0x7E00]> : tensor<3xf16>,
  elements_f32 = dense<[0x7F800000, 0x3F800000]> : tensor<2xf32>,
  elements_f64 = dense<[0x7FF0000000000000, 0xFFF8000000000000]> : tensor<2xf64>,
  integers = dense<[0x10, 3]> : tensor<2xi32>,
  list = array<f32: 0x7F800000, 1.0>,
  scalar_bf16 = 0xFF80 : bf16, scalar_f16 = 0x7E00 : f16, scalar_f32 = 0x7FC00000 : f32,
  splat = dense<0x7F800000> : tensor<3xf32>
} : () -> ()

// -----
// expected-error@+1 {{0x1FFFF is wider than the 16 bits of f16}}
"test.op"() {a = dense<0x1FFFF> : tensor<1xf16>} : () -> ()

// -----
// expected-error@+1 {{0x1FFFFFFFF is wider than the 32 bits of f32}}
"test.op"() {a = 0x1FFFFFFFF : f32} : () -> ()

// -----
// expected-error@+1 {{a hexadecimal float has no minus}}
"test.op"() {a = -0x7F800000 : f32} : () -> ()

// -----
// expected-error@+1 {{0x7F800001 is a NaN that cannot be kept as a value of f32; write 0x7FC00001}}
"test.op"() {a = array<f32: 0x7F800001>} : () -> ()

// -----
// expected-error@+1 {{a NaN among the bytes cannot be kept as a value of f32}}
"test.op"() {a = dense<"0x0100807F"> : tensor<1xf32>} : () -> ()

// -----
// expected-error@+1 {{the bytes of a dense literal begin with 0x}}
"test.op"() {a = dense<"0000807F"> : tensor<1xf32>} : () -> ()

// -----
// expected-error@+1 {{versions of MLIR differ in the bytes of i1}}
"test.op"() {a = dense<"0x0F"> : tensor<8xi1>} : () -> ()
