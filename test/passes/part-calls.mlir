// A loop and a choice that data decide: their parts are functions, lowered as @main is.
// RUN: deplo-opt %s --pass-pipeline=tensor-to-loop,loop-to-tile | FileCheck %s --check-prefix=TILE
// RUN: deplo-opt %s --pass-pipeline=tensor-to-loop,loop-to-tile,tile-to-kernel | FileCheck %s --check-prefix=HOST
// RUN: deplo-opt %s --run | FileCheck %s --check-prefix=EXEC
// RUN: deplo-opt %s --pass-pipeline=tensor-to-loop,loop-to-tile,tile-to-kernel,kernel-to-cuda --check-each-pass | FileCheck %s --check-prefix=HOST
// RUN: deplo run %s --target cpu | FileCheck %s --check-prefix=NATIVE
// RUN: deplo-opt %s --pass-pipeline=tensor-to-loop,loop-to-tile,tile-to-kernel,kernel-to-cuda -t cuda | FileCheck %s --check-prefix=CUDA
// RUN: deplo explain %s --target cpu --schedule-only | FileCheck %s --check-prefix=LINES

// TILE-LABEL: func.func private @test
// TILE: loop.kernel @k_go
// TILE-LABEL: func.func @main
// TILE: tensor_ir.call "deplo.while_loop.default"(test = "test", body = "body", carried = [%n, %x], shared = [%w])

// HOST-LABEL: func.func private @body
// HOST-COUNT-2: kernel.launch
// HOST: func.return
// HOST-LABEL: func.func @main
// HOST: kernel.call "deplo.while_loop.default"(test = "test", body = "body", carried = [{{%.*}}, %x], shared = [%w]) into({{%.*}}, [[Y:%.*]])
// HOST: kernel.call "deplo.cond.default"(predicate = {{%.*}}, if_true = "twice", if_false = "itself", shared = {{\[}}[[Y]]]) into

// CUDA-COUNT-6: __global__
// LINES-COUNT-6: tileify
// EXEC: result #0: tensor<4xf32>
// NATIVE: target     cpu, 6 kernels
// NATIVE: result     agrees with the interpreter
func.func private @test(%n: tensor<i64>, %x: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<i1> {
  %five = tensor_ir.constant 5 : tensor<i64>
  %go = tensor_ir.elementwise lt(%n, %five) : (tensor<i64>, tensor<i64>) -> tensor<i1>
  func.return %go : tensor<i1>
}
func.func private @body(%n: tensor<i64>, %x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<i64>, tensor<4xf32>) {
  %one = tensor_ir.constant 1 : tensor<i64>
  %m = tensor_ir.elementwise add(%n, %one) : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %y = tensor_ir.elementwise mul(%x, %w) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %m, %y : tensor<i64>, tensor<4xf32>
}
func.func private @twice(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = tensor_ir.elementwise add(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
func.func private @itself(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>, %p: tensor<i1>) -> tensor<4xf32> {
  %n = tensor_ir.constant 0 : tensor<i64>
  %m, %y = tensor_ir.call "deplo.while_loop.default"(test = "test", body = "body", carried = [%n, %x], shared = [%w]) : (tensor<i64>, tensor<4xf32>, tensor<4xf32>) -> (tensor<i64>, tensor<4xf32>)
  %z = tensor_ir.call "deplo.cond.default"(predicate = %p, if_true = "twice", if_false = "itself", shared = [%y]) : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  func.return %z : tensor<4xf32>
}
