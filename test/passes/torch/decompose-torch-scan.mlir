// A scan becomes one of Tensor IR; its body is a function.

// RUN: deplo-opt %s --split-input-file --pass-pipeline=decompose-torch | FileCheck %s
// RUN: deplo-opt %s --split-input-file --pass-pipeline="torch-to-cuda{target=sm_90a}" --check-each-pass >/dev/null
// RUN: deplo-opt %s --split-input-file --pass-pipeline="torch-to-llvm{target=cpu}" --check-each-pass >/dev/null

// What is carried and given is stacked once; the last value is the last of the stack.
// CHECK-LABEL: func.func private @scan_step(
// CHECK:         tensor_ir.reduce add
// CHECK:         [[N:%.*]] = tensor_ir.elementwise tanh
// CHECK-NEXT:    func.return [[N]] : tensor<3x4xf32>
// CHECK-LABEL: func.func @main
// CHECK:         [[Y:%.*]] = tensor_ir.scan @scan_step carried(%h0) slices(%x) shared(%w) : (tensor<3x4xf32>, tensor<5x3x4xf32>, tensor<4x4xf32>) -> tensor<5x3x4xf32>
// CHECK:         tensor_ir.index_map (i, j, k) -> [[Y]][4, j, k] : (tensor<5x3x4xf32>) -> tensor<1x3x4xf32>
// CHECK:         func.return {{%.*}}, [[Y]]
func.func @main(%h0: tensor<3x4xf32>, %x: tensor<5x3x4xf32>, %w: tensor<4x4xf32>) -> (tensor<3x4xf32>, tensor<5x3x4xf32>) {
  %h, %hs = torch.scan carried(%h0) slices(%x) shared(%w) : (tensor<3x4xf32>, tensor<5x3x4xf32>, tensor<4x4xf32>) -> (tensor<3x4xf32>, tensor<5x3x4xf32>) {
  ^bb0(%a: tensor<3x4xf32>, %b: tensor<3x4xf32>, %c: tensor<4x4xf32>):
    %0 = torch.mm %a, %c : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
    %1 = torch.add %0, %b : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    %2 = torch.tanh %1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
    %3 = torch.clone %2 : (tensor<3x4xf32>) -> tensor<3x4xf32>
    torch.yield %2, %3 : tensor<3x4xf32>, tensor<3x4xf32>
  }
  func.return %h, %hs : tensor<3x4xf32>, tensor<5x3x4xf32>
}

// -----

// Three elements of f32 are padded to four, so that each slice begins at a multiple of 16 bytes. The first
// step to run is the last one, which the first value of the stack comes from.
// CHECK-LABEL: func.func private @scan_step(
// CHECK-LABEL: func.func @main
// CHECK:         [[P:%.*]] = tensor_ir.index_map {{.*}} -> tensor<5x4xf32>
// CHECK:         [[A:%.*]] = tensor_ir.scan @scan_step reversed carried({{%.*}}) slices([[P]]) shared() {{.*}} -> tensor<5x4xf32>
// CHECK:         [[C:%.*]] = tensor_ir.index_map (i, j) -> [[A]][i, j] : (tensor<5x4xf32>) -> tensor<5x3xf32>
// CHECK:         tensor_ir.index_map (i, j) -> [[C]][0, j] : (tensor<5x3xf32>) -> tensor<1x3xf32>
func.func @main(%h: tensor<3xf32>, %x: tensor<5x3xf32>) -> tensor<3xf32> {
  %y = torch.scan reversed carried(%h) slices(%x) shared() : (tensor<3xf32>, tensor<5x3xf32>) -> tensor<3xf32> {
  ^bb0(%a: tensor<3xf32>, %b: tensor<3xf32>):
    %0 = torch.sub %a, %b : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
    torch.yield %0 : tensor<3xf32>
  }
  func.return %y : tensor<3xf32>
}

// -----

// What a step only passes on is no result of the function: a value carried unchanged is shared, and outputs are
// what each step reads of the value carried, the slices, and the shared value in each step.
// CHECK-LABEL: func.func private @scan_step(
// CHECK:         [[S:%.*]] = tensor_ir.elementwise add
// CHECK-NEXT:    func.return [[S]] : tensor<4xf32>
// CHECK-LABEL: func.func @main
// CHECK:         [[A:%.*]] = tensor_ir.scan @scan_step carried(%h) slices(%x) shared(%k, %w) : {{.*}} -> tensor<5x4xf32>
// CHECK:         [[R:%.*]] = tensor_ir.index_map (i, j) -> [[A]][i, j] : (tensor<5x4xf32>) -> tensor<4x4xf32>
// CHECK:         [[B:%.*]] = tensor_ir.index_map (i, j) -> {{%.*}}[i, j] if i < 1 else [[R]][i - 1, j]
// CHECK:         [[K:%.*]] = tensor_ir.index_map (i, j) -> %k[j] : (tensor<4xf32>) -> tensor<5x4xf32>
// CHECK:         func.return {{%.*}}, {{%.*}}, [[B]], %x, [[K]]
func.func @main(%h: tensor<4xf32>, %k: tensor<4xf32>, %x: tensor<5x4xf32>, %w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>) {
  %y, %z, %before, %same, %kept = torch.scan carried(%h, %k) slices(%x) shared(%w) : (tensor<4xf32>, tensor<4xf32>, tensor<5x4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>):
    %0 = torch.mul %a, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = torch.add %0, %c : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    torch.yield %1, %b, %a, %c, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  func.return %y, %z, %before, %same, %kept : tensor<4xf32>, tensor<4xf32>, tensor<5x4xf32>, tensor<5x4xf32>, tensor<5x4xf32>
}

// -----

// An output that nothing reads is not computed.
// CHECK-LABEL: func.func private @scan_step(
// CHECK:         func.return {{%[a-z_0-9]*}} : tensor<4xf32>
func.func @main(%h: tensor<4xf32>, %x: tensor<5x4xf32>) -> tensor<4xf32> {
  %y, %unread = torch.scan carried(%h) slices(%x) shared() : (tensor<4xf32>, tensor<5x4xf32>) -> (tensor<4xf32>, tensor<5x4xf32>) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %0 = torch.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = torch.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
    torch.yield %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  func.return %y : tensor<4xf32>
}
