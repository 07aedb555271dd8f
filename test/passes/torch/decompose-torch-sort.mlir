// RUN: deplo-opt %s --pass-pipeline=decompose-torch | FileCheck %s
// RUN: sed 's/x8x/x40000x/g' %s > %t.long.mlir
// RUN: not deplo-opt %t.long.mlir --pass-pipeline=decompose-torch 2>&1 | FileCheck %s --check-prefix=LONG
// RUN: sed 's/4x8x/100x32000x/g; s/4x3x/100x3x/g' %s > %t.work.mlir
// RUN: not deplo-opt %t.work.mlir --pass-pipeline=decompose-torch 2>&1 | FileCheck %s --check-prefix=WORK
// LONG: torch.topk: the order of 40000 elements, more than 32768
// WORK: torch.topk: an order that takes 1.0e+11 comparisons, more than 4.3e+09

// Half types are compared as f32, which changes no value.
// CHECK-LABEL: func.func @topk
// CHECK-NEXT: [[WIDE:%.*]] = tensor_ir.cast %a : tensor<4x8xbf16> to tensor<4x8xf32>
// CHECK-NEXT: [[V:%.*]], %{{.*}} = tensor_ir.sort [[WIDE]] along 1 descending : tensor<4x8xf32> -> (tensor<4x3xf32>, tensor<4x3xi64>)
// CHECK-NEXT: tensor_ir.cast [[V]] : tensor<4x3xf32> to tensor<4x3xbf16>
func.func @topk(%a: tensor<4x8xbf16>) -> (tensor<4x3xbf16>, tensor<4x3xi64>) {
  %0, %1 = torch.topk %a {k = 3} : (tensor<4x8xbf16>) -> (tensor<4x3xbf16>, tensor<4x3xi64>)
  func.return %0, %1 : tensor<4x3xbf16>, tensor<4x3xi64>
}

// CHECK-LABEL: func.func @sort
// CHECK-NEXT: tensor_ir.sort %a along 0 : tensor<4x7xf32> -> (tensor<4x7xf32>, tensor<4x7xi64>)
// CHECK-NEXT: func.return
func.func @sort(%a: tensor<4x7xf32>) -> (tensor<4x7xf32>, tensor<4x7xi64>) {
  %0, %1 = torch.sort_stable %a {stable = true, dim = 0} : (tensor<4x7xf32>) -> (tensor<4x7xf32>, tensor<4x7xi64>)
  func.return %0, %1 : tensor<4x7xf32>, tensor<4x7xi64>
}

// One place of the order is wanted; NaN is the median of what holds one.
// CHECK-LABEL: func.func @median
// CHECK: [[PLACE:%.*]] = tensor_ir.constant 3 : tensor<4x1xi64>
// CHECK: [[I:%.*]] = tensor_ir.nth_element [[PLACE]] of %a along 1
// CHECK: tensor_ir.gather
// CHECK: [[FIRST:%.*]] = tensor_ir.reduce min
// CHECK: [[NAN:%.*]] = tensor_ir.constant nan
// CHECK: tensor_ir.elementwise select(%{{.*}}, [[NAN]]
func.func @median(%a: tensor<4x7xf32>) -> (tensor<4xf32>, tensor<4xi64>) {
  %0, %1 = torch.median_dim %a {dim = 1} : (tensor<4x7xf32>) -> (tensor<4xf32>, tensor<4xi64>)
  func.return %0, %1 : tensor<4xf32>, tensor<4xi64>
}

// Where the middle is depends on how many numbers there are.
// CHECK-LABEL: func.func @nanmedian
// CHECK: tensor_ir.reduce add
// CHECK: [[PLACE:%.*]] = tensor_ir.elementwise truncdiv
// CHECK: tensor_ir.nth_element [[PLACE]] of %a along 0
func.func @nanmedian(%a: tensor<7xf32>) -> tensor<f32> {
  %0 = torch.nanmedian %a : (tensor<7xf32>) -> tensor<f32>
  func.return %0 : tensor<f32>
}

// CHECK-LABEL: func.func @cummax
// CHECK: [[MAX:%.*]] = tensor_ir.reduce max
// CHECK: [[AT:%.*]] = tensor_ir.reduce max
func.func @cummax(%a: tensor<7xf32>) -> (tensor<7xf32>, tensor<7xi64>) {
  %0, %1 = torch.cummax %a {dim = 0} : (tensor<7xf32>) -> (tensor<7xf32>, tensor<7xi64>)
  func.return %0, %1 : tensor<7xf32>, tensor<7xi64>
}

// A value is after each bound that is not at or above it; of 7 bounds three are looked at.
// CHECK-LABEL: func.func @bucketize
// CHECK: [[START:%.*]] = tensor_ir.constant 0 : tensor<3x4xi64>
// CHECK: [[END:%.*]] = tensor_ir.constant 7 : tensor<3x4xi64>
// CHECK: [[BOTH:%.*]] = tensor_ir.elementwise add([[START]], [[END]])
// CHECK: [[MIDDLE:%.*]] = tensor_ir.elementwise shr([[BOTH]], {{.*}})
// CHECK: [[SEARCHING:%.*]] = tensor_ir.elementwise lt([[START]], [[END]])
// CHECK: [[PLACE:%.*]] = tensor_ir.elementwise min([[MIDDLE]], {{.*}})
// CHECK: [[BOUND:%.*]] = tensor_ir.gather %{{.*}}[{{.*}}] along 0
// CHECK: [[BEYOND:%.*]] = tensor_ir.elementwise ge([[BOUND]], %a)
// CHECK: [[NOT:%.*]] = tensor_ir.elementwise not([[BEYOND]])
// CHECK: [[BEFORE:%.*]] = tensor_ir.elementwise and([[SEARCHING]], [[NOT]])
// CHECK: tensor_ir.elementwise select([[BEFORE]], {{.*}}, [[START]])
// CHECK: tensor_ir.elementwise select([[BEFORE]], [[END]], [[MIDDLE]])
// CHECK-COUNT-2: tensor_ir.elementwise ge
// CHECK-NOT: tensor_ir.elementwise ge
func.func @bucketize(%a: tensor<3x4xf32>, %b: tensor<7xf32>) -> tensor<3x4xi64> {
  %0 = torch.bucketize %a, %b : (tensor<3x4xf32>, tensor<7xf32>) -> tensor<3x4xi64>
  func.return %0 : tensor<3x4xi64>
}

// Sequences in rows have values in rows; a sorter is checked.
// CHECK-LABEL: func.func @searchsorted
// CHECK: tensor_ir.gather %{{.*}}[%c] along 0
// CHECK: [[SORTED:%.*]] = tensor_ir.gather
// CHECK-COUNT-3: tensor_ir.elementwise gt(
func.func @searchsorted(%a: tensor<3x4xf32>, %b: tensor<3x2xf32>, %c: tensor<3x4xi64>) -> tensor<3x2xi32> {
  %0 = torch.searchsorted %a, %b, %c {out_int32 = true, right = true} : (tensor<3x4xf32>, tensor<3x2xf32>, tensor<3x4xi64>) -> tensor<3x2xi32>
  func.return %0 : tensor<3x2xi32>
}
