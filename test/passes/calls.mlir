// A call of PyTorch stands among the kernels at every stage, and in the host function fills buffers.
// RUN: deplo-opt %s --pass-pipeline=torch-to-tensor,tensor-to-loop,loop-to-tile | FileCheck %s --check-prefix=TILE
// RUN: deplo-opt %s --pass-pipeline=torch-to-tensor,tensor-to-loop,loop-to-tile,tile-to-kernel | FileCheck %s --check-prefix=HOST
// RUN: deplo-opt %s --pass-pipeline=torch-to-cuda | FileCheck %s --check-prefix=HOST
// RUN: deplo-opt %s --pass-pipeline=torch-to-llvm | FileCheck %s --check-prefix=HOST

// What a call gets and gives is never fused away and never in the arena; a constant for it is made.
// TILE-LABEL: func.func @main
// TILE: %exp = loop.kernel @k_exp
// TILE: %u, %s = tensor_ir.call "aten.linalg_eigh.default"(A = permute(%exp, [1, 0]))
// TILE: %half = loop.kernel @k_half
// TILE: %c = tensor_ir.call "aten.mul.Tensor"(input = %s, other = %half)
// TILE: %y = loop.kernel @k_y

// HOST-LABEL: func.func @main
// HOST-NEXT: [[EXP:%.*]] = kernel.alloc : memref<4x4xf32>
// HOST-NEXT: kernel.launch @k_exp_pointwise({{%.*}}, [[EXP]])
// HOST-NEXT: [[U:%.*]] = kernel.alloc : memref<4x4xf32>
// HOST-NEXT: [[S:%.*]] = kernel.alloc : memref<4xf32>
// HOST-NEXT: kernel.call "aten.linalg_eigh.default"(A = permute([[EXP]], [1, 0])) into([[U]], [[S]]) : memref<4x4xf32>, memref<4x4xf32>, memref<4xf32>
// HOST-NEXT: [[HALF:%.*]] = kernel.alloc : memref<4xf32>
// HOST-NEXT: kernel.launch @k_half_layout([[HALF]])
// HOST-NEXT: [[C:%.*]] = kernel.alloc : memref<4xcomplex<f32>>
// HOST-NEXT: kernel.call "aten.mul.Tensor"(input = [[S]], other = [[HALF]]) into([[C]]) attributes {deplo.reason = "why"} : memref<4xf32>, memref<4xf32>, memref<4xcomplex<f32>>
// HOST-NEXT: [[Y:%.*]] = kernel.alloc : memref<4x4xf32>
// HOST-NEXT: kernel.launch @k_y_pointwise([[U]], [[Y]])
// HOST-NEXT: func.return [[Y]]
func.func @main(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %exp = torch.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %u, %s = torch.call "aten.linalg_eigh.default"(A = permute(%exp, [1, 0])) : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
  %half = torch.full {size = [4], fill_value = 0.5 : f64} : () -> tensor<4xf32>
  %c = torch.call "aten.mul.Tensor"(input = %s, other = %half) attributes {deplo.reason = "why"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xcomplex<f32>>
  %y = torch.neg %u : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return %y : tensor<4x4xf32>
}
