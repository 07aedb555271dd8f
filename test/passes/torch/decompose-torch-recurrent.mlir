// A recurrent network is a scan: the product of the input is of all steps at once, the step is a function.

// RUN: deplo-opt %s --split-input-file --pass-pipeline=decompose-torch | FileCheck %s
// RUN: deplo-opt %s --split-input-file --pass-pipeline="torch-to-cuda{target=sm_90a}" --check-each-pass >/dev/null

// CHECK-LABEL: func.func private @rnn_tanh_step(
// CHECK:         tensor_ir.reduce add
// CHECK:         tensor_ir.elementwise tanh
// CHECK-LABEL: func.func @main
// CHECK:         tensor_ir.index_map (i, j, k, l) -> %x[i, j, l] : (tensor<5x3x8xf32>) -> tensor<5x3x4x8xf32>
// CHECK:         [[Y:%.*]] = tensor_ir.scan @rnn_tanh_step carried({{%.*}}) slices({{%.*}}) shared(%w_hh) : (tensor<3x4xf32>, tensor<5x3x4xf32>, tensor<4x4xf32>) -> tensor<5x3x4xf32>
// CHECK:         tensor_ir.index_map (i, j, k) -> [[Y]][4, j, k] : (tensor<5x3x4xf32>) -> tensor<1x3x4xf32>
func.func @main(%x: tensor<5x3x8xf32>, %h: tensor<1x3x4xf32>, %w_ih: tensor<4x8xf32>, %w_hh: tensor<4x4xf32>) -> (tensor<5x3x4xf32>, tensor<1x3x4xf32>) {
  %y, %last = torch.rnn_tanh %x, %h, [%w_ih, %w_hh] {has_biases = false, num_layers = 1, dropout = 0.0 : f64, train = false, bidirectional = false, batch_first = false}
    : (tensor<5x3x8xf32>, tensor<1x3x4xf32>, tensor<4x8xf32>, tensor<4x4xf32>) -> (tensor<5x3x4xf32>, tensor<1x3x4xf32>)
  func.return %y, %last : tensor<5x3x4xf32>, tensor<1x3x4xf32>
}

// -----

// Two directions are two scans; what they give stands next to each other. Three elements of f32 are padded to
// four, so that each slice begins at a multiple of 16 bytes.
// CHECK-LABEL: func.func private @rnn_relu_step(
// CHECK-LABEL: func.func private @rnn_relu_step_2(
// CHECK-LABEL: func.func @main
// CHECK:         [[A:%.*]] = tensor_ir.scan @rnn_relu_step carried({{%.*}}) {{.*}} -> tensor<5x1x4xf32>
// CHECK:         [[F:%.*]] = tensor_ir.index_map (i, j, k) -> [[A]][i, 0, k] : (tensor<5x1x4xf32>) -> tensor<5x1x3xf32>
// CHECK:         [[B:%.*]] = tensor_ir.scan @rnn_relu_step_2 reversed carried
// CHECK:         [[G:%.*]] = tensor_ir.index_map (i, j, k) -> [[B]][i, 0, k]
// CHECK:         tensor_ir.index_map (i, j, k) -> [[G]][0, 0, k]
// CHECK:         tensor_ir.index_map (i, j, k) -> [[F]][i, 0, k] if k < 3 else [[G]][i, 0, k - 3]
func.func @main(%x: tensor<5x1x8xf32>, %h: tensor<2x1x3xf32>, %w: tensor<3x8xf32>, %v: tensor<3x3xf32>) -> (tensor<5x1x6xf32>, tensor<2x1x3xf32>) {
  %y, %last = torch.rnn_relu %x, %h, [%w, %v, %w, %v] {has_biases = false, num_layers = 1, dropout = 0.0 : f64, train = false, bidirectional = true, batch_first = false}
    : (tensor<5x1x8xf32>, tensor<2x1x3xf32>, tensor<3x8xf32>, tensor<3x3xf32>, tensor<3x8xf32>, tensor<3x3xf32>) -> (tensor<5x1x6xf32>, tensor<2x1x3xf32>)
  func.return %y, %last : tensor<5x1x6xf32>, tensor<2x1x3xf32>
}
