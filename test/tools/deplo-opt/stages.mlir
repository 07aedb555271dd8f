// The text of each stage, with the rest of the road, leads to the same CUDA source, byte for byte.

// RUN: deplo-opt %s -p torch-to-cuda{target=sm_90a} -t cuda -o %t.cu
// RUN: FileCheck %s < %t.cu
// CHECK: __global__ {{.*}}k_rms_norm

// RUN: deplo-opt %s -p torch-to-tensor -o %t.tensor
// RUN: FileCheck %s --check-prefix=TENSOR < %t.tensor
// RUN: deplo-opt %t.tensor -p 'builtin.module(tensor-to-cuda{target=sm_90a})' -t cuda | diff %t.cu -
// TENSOR: tensor_ir.reduce

// RUN: deplo-opt %t.tensor -p tensor-to-loop -o %t.loop
// RUN: FileCheck %s --check-prefix=LOOP < %t.loop
// RUN: deplo-opt %t.loop --pass-pipeline='loop-to-cuda{target=sm_90a}' -t cuda | diff %t.cu -
// LOOP: loop.kernel @k_rms_norm

// RUN: deplo-opt %t.loop -p loop-to-tile{target=sm_90a} -o %t.tile
// RUN: FileCheck %s --check-prefix=TILE < %t.tile
// RUN: deplo-opt %t.tile -p tile-to-cuda{target=sm_90a} -t cuda | diff %t.cu -
// TILE: tile.launch

// RUN: deplo-opt %t.tile -p tile-to-kernel{target=sm_90a} -o %t.kernel
// RUN: FileCheck %s --check-prefix=KERNEL < %t.kernel
// RUN: deplo-opt %t.kernel -p kernel-to-cuda{target=sm_90a} -t cuda | diff %t.cu -
// KERNEL: kernel.func @k_rms_norm

// xDSL's own driver takes the same road.
// RUN: xdsl-opt %s -p torch-to-cuda{target=sm_90a} -t cuda | diff %t.cu -

// The generic form of each stage says the same as its custom form.
// RUN: deplo-opt %t.tensor --print-op-generic | deplo-opt | diff %t.tensor -
// RUN: deplo-opt %t.loop --print-op-generic | deplo-opt | diff %t.loop -
// RUN: deplo-opt %t.tile --print-op-generic | deplo-opt | diff %t.tile -
// RUN: deplo-opt %t.kernel --print-op-generic | deplo-opt | diff %t.kernel -

// And each pass on the road keeps the meaning, as far as it can be run.
// RUN: deplo-opt %t.tensor -p tensor-to-cuda --check-each-pass 2>%t.err >/dev/null && not grep error %t.err
// RUN: deplo-opt %t.tensor -p tensor-to-llvm --check-each-pass 2>%t.err >/dev/null && not grep error %t.err

func.func @main(%x: tensor<1x4x64xf32>, %p_weight: tensor<64xf32>) -> tensor<1x4x64xf32> {
  %rms_norm = torch.rms_norm %x, %p_weight {normalized_shape = [64], eps = 1.1920929e-07 : f64} : (tensor<1x4x64xf32>, tensor<64xf32>) -> tensor<1x4x64xf32>
  func.return %rms_norm : tensor<1x4x64xf32>
}
