// RUN: not deplo-opt %s -p decompose-torch 2>&1 | FileCheck %s

// CHECK: error: {{.*}}deplo.products gives for each of matmul, convolution the type bf16 or tf32, not {matmul = f16}
builtin.module attributes {deplo.products = {matmul = f16}} {
  func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
    %y = torch.mm %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    func.return %y : tensor<2x2xf32>
  }
}
