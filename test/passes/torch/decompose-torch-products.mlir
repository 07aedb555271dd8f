// RUN: deplo-opt %s -p decompose-torch --split-input-file --check-each-pass | FileCheck %s
// RUN: deplo-opt %s -p decompose-torch{target=cpu} --split-input-file | FileCheck %s --check-prefix=CPU
// RUN: deplo-opt %s -p torch-to-cuda --split-input-file | FileCheck %s --check-prefix=CUDA

// What is multiplied is rounded before it is repeated; the bias is not.
// CHECK-LABEL: func.func @main(%x:
// CHECK: [[XT:%.*]] = tensor_ir.cast %x : tensor<64x64xf32> to tensor<64x64xtf32>
// CHECK: [[X:%.*]] = tensor_ir.cast [[XT]] : tensor<64x64xtf32> to tensor<64x64xf32>
// CHECK: [[WT:%.*]] = tensor_ir.cast %w : tensor<64x64xf32> to tensor<64x64xtf32>
// CHECK: [[W:%.*]] = tensor_ir.cast [[WT]]
// CHECK: tensor_ir.index_map (i, j, k) -> [[X]][i, k]
// CHECK: tensor_ir.index_map (i, j, k) -> [[W]][j, k]
// CHECK-NOT: to tensor<64x64xtf32>
// CUDA: arith.truncf %{{.*}} : f32 to tf32
// CUDA: kernel.mma ({{.*}}) by ({{.*}}) : tf32
builtin.module attributes {deplo.products = {matmul = tf32}} {
  func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>, %b: tensor<64xf32>) -> tensor<64x64xf32> {
    %y = torch.linear %x, %w, %b : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>) -> tensor<64x64xf32>
    func.return %y : tensor<64x64xf32>
  }
}

// -----

// Of what was bf16 already nothing is rounded, and nothing of an f64.
// CHECK-LABEL: func.func @main(%short:
// CHECK-NOT: to tensor<{{.*}}tf32>
// CHECK: func.return
builtin.module attributes {deplo.products = {matmul = tf32}} {
  func.func @main(%short: tensor<4x3xbf16>, %long: tensor<3x4xf64>) -> (tensor<4x4xbf16>, tensor<3x3xf64>) {
    %t = torch.t %short : (tensor<4x3xbf16>) -> tensor<3x4xbf16>
    %y = torch.mm %short, %t : (tensor<4x3xbf16>, tensor<3x4xbf16>) -> tensor<4x4xbf16>
    %u = torch.t %long : (tensor<3x4xf64>) -> tensor<4x3xf64>
    %z = torch.mm %long, %u : (tensor<3x4xf64>, tensor<4x3xf64>) -> tensor<3x3xf64>
    func.return %y, %z : tensor<4x4xbf16>, tensor<3x3xf64>
  }
}

// -----

// A setting of convolutions says nothing of other products. Windows are rounded as they are read; on a GPU, whose
// tensor cores multiply matrices, they are not rounded at all.
// CPU-LABEL: func.func @main(%image:
// CPU: [[WINDOW:%.*]] = tensor_ir.index_map {{.*}} -> %image[
// CPU: [[SHORT:%.*]] = tensor_ir.cast [[WINDOW]] : {{.*}} to tensor<1x2x6x6x2x3x3xbf16>
// CPU: tensor_ir.cast [[SHORT]]
// CPU: tensor_ir.cast %{{.*}} : {{.*}} to tensor<1x2x6x6x2x3x3xbf16>
// CPU: tensor_ir.reduce
// CPU-NOT: bf16>
// CHECK-LABEL: func.func @main(%image:
// CHECK-NOT: bf16>
builtin.module attributes {deplo.products = {convolution = bf16}} {
  func.func @main(%image: tensor<1x2x6x6xf32>, %w: tensor<2x2x3x3xf32>, %m: tensor<6x6xf32>) -> tensor<1x2x6x6xf32> {
    %y = torch.convolution %image, %w, none {stride = [1, 1], padding = [1, 1], dilation = [1, 1], transposed = false, output_padding = [0, 0], groups = 1} : (tensor<1x2x6x6xf32>, tensor<2x2x3x3xf32>) -> tensor<1x2x6x6xf32>
    %z = torch.matmul %y, %m : (tensor<1x2x6x6xf32>, tensor<6x6xf32>) -> tensor<1x2x6x6xf32>
    func.return %z : tensor<1x2x6x6xf32>
  }
}
