// What operations that find an extent in their data refuse.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

func.func @axes(%m: tensor<6x4xi1>) {
  // expected-error@+1 {{its arguments give a result of shape [24, 2], not [24, 3]}}
  %0 = torch.nonzero %m : (tensor<6x4xi1>) -> tensor<24x3xi64>
  func.return
}

// -----

func.func @scalar(%m: tensor<6xi1>) {
  // expected-error@+1 {{finds how many elements axis 0 has, of a result []}}
  %0 = torch.nonzero %m : (tensor<6xi1>) -> tensor<i64>
  func.return
}

// -----

func.func @selected(%x: tensor<6xf32>) {
  // expected-error@+1 {{mask must hold bools}}
  %0 = torch.masked_select %x, %x : (tensor<6xf32>, tensor<6xf32>) -> tensor<3xf32>
  func.return
}

// -----

func.func @masked(%x: tensor<6x4xf32>, %m: tensor<5xi1>) {
  // expected-error@+1 {{a mask [5] from axis 0 does not fit [6, 4]}}
  %0 = torch.index %x, [%m] : (tensor<6x4xf32>, tensor<5xi1>) -> tensor<3x4xf32>
  func.return
}

// -----

func.func @put(%x: tensor<6x4xf32>, %m: tensor<6xi1>, %v: tensor<3x5xf32>) {
  // expected-error@+1 {{values [3, 5] do not fit [3, 4]}}
  %0 = torch.index_put %x, [%m], %v : (tensor<6x4xf32>, tensor<6xi1>, tensor<3x5xf32>) -> tensor<6x4xf32>
  func.return
}

// -----

func.func @counts(%x: tensor<6xf32>) {
  // expected-error@+1 {{a result [5] or [3] does not fit}}
  %0, %1, %2 = torch._unique2 %x : (tensor<6xf32>) -> (tensor<3xf32>, tensor<5xi64>, tensor<3xi64>)
  func.return
}

// -----

func.func @slices(%x: tensor<6x4xf32>) {
  // expected-error@+1 {{compares slices along an axis, not elements}}
  %0, %1, %2 = torch.unique_consecutive %x {dim = 0} : (tensor<6x4xf32>) -> (tensor<3xf32>, tensor<0xi64>, tensor<0xi64>)
  func.return
}
