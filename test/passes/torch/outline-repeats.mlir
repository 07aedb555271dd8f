// RUN: deplo-opt %s -p outline-repeats --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p outline-repeats --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p outline-repeats --split-input-file --check-each-pass -o /dev/null

// Two equal layers become two calls. Weights and what all layers read are parameters; the cut is where
// one value crosses, the end of the residual connection, though the last operation is no part of a layer.
// CHECK-LABEL: func.func private @layer(%x: tensor<4xf32>, %scale: tensor<4xf32>, %w0: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    %a0 = torch.mul %x, %scale
// CHECK:         %h0 = torch.add %x, %g0
// CHECK-NEXT:    func.return %h0
// CHECK:       func.func @main
// CHECK-NEXT:    %scale = torch.exp %s
// CHECK-NEXT:    %h0 = func.call @layer(%x, %scale, %w0)
// CHECK-NEXT:    %h1 = func.call @layer(%h0, %scale, %w1)
// CHECK-NEXT:    %y = torch.neg %h1
// CHECK-NEXT:    func.return %y
// REMARK: remark: outline-repeats: layer: 2 times the same 8 operations
func.func @main(%x: tensor<4xf32>, %s: tensor<4xf32>, %w0: tensor<4xf32>, %w1: tensor<4xf32>) -> tensor<4xf32> {
  %scale = torch.exp %s : (tensor<4xf32>) -> tensor<4xf32>
  %a0 = torch.mul %x, %scale : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b0 = torch.tanh %a0 : (tensor<4xf32>) -> tensor<4xf32>
  %c0 = torch.mul %b0, %w0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d0 = torch.sigmoid %c0 : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = torch.sub %d0, %b0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f0 = torch.cos %e0 : (tensor<4xf32>) -> tensor<4xf32>
  %g0 = torch.sin %f0 : (tensor<4xf32>) -> tensor<4xf32>
  %h0 = torch.add %x, %g0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a1 = torch.mul %h0, %scale : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b1 = torch.tanh %a1 : (tensor<4xf32>) -> tensor<4xf32>
  %c1 = torch.mul %b1, %w1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d1 = torch.sigmoid %c1 : (tensor<4xf32>) -> tensor<4xf32>
  %e1 = torch.sub %d1, %b1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f1 = torch.cos %e1 : (tensor<4xf32>) -> tensor<4xf32>
  %g1 = torch.sin %f1 : (tensor<4xf32>) -> tensor<4xf32>
  %h1 = torch.add %h0, %g1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = torch.neg %h1 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}

// -----

// The second layer reads its own second value where the first reads its first: not a copy.
// CHECK-LABEL: func.func @main(%second: tensor<4xf32>)
// CHECK-NOT:     func.call
// REMARK: remark: outline-repeats: main: declined: no layer comes twice
func.func @main(%second: tensor<4xf32>) -> tensor<4xf32> {
  %a0 = torch.exp %second : (tensor<4xf32>) -> tensor<4xf32>
  %b0 = torch.tanh %a0 : (tensor<4xf32>) -> tensor<4xf32>
  %c0 = torch.cos %b0 : (tensor<4xf32>) -> tensor<4xf32>
  %d0 = torch.sigmoid %a0 : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = torch.sub %d0, %c0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f0 = torch.cos %e0 : (tensor<4xf32>) -> tensor<4xf32>
  %g0 = torch.sin %f0 : (tensor<4xf32>) -> tensor<4xf32>
  %h0 = torch.add %e0, %g0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a1 = torch.exp %h0 : (tensor<4xf32>) -> tensor<4xf32>
  %b1 = torch.tanh %a1 : (tensor<4xf32>) -> tensor<4xf32>
  %c1 = torch.cos %b1 : (tensor<4xf32>) -> tensor<4xf32>
  %d1 = torch.sigmoid %b1 : (tensor<4xf32>) -> tensor<4xf32>
  %e1 = torch.sub %d1, %c1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f1 = torch.cos %e1 : (tensor<4xf32>) -> tensor<4xf32>
  %g1 = torch.sin %f1 : (tensor<4xf32>) -> tensor<4xf32>
  %h1 = torch.add %e1, %g1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %h1 : tensor<4xf32>
}

// -----

// A chain of equal activations is too short to be a layer.
// CHECK-LABEL: func.func @main(%third: tensor<4xf32>)
// CHECK-NOT:     func.call
// REMARK: remark: outline-repeats: main: declined: no layer comes twice
func.func @main(%third: tensor<4xf32>) -> tensor<4xf32> {
  %a = torch.exp %third : (tensor<4xf32>) -> tensor<4xf32>
  %b = torch.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %c = torch.exp %b : (tensor<4xf32>) -> tensor<4xf32>
  %d = torch.exp %c : (tensor<4xf32>) -> tensor<4xf32>
  func.return %d : tensor<4xf32>
}

// -----

// The first layer reads one value twice where the second reads two: two parameters.
// CHECK-LABEL: func.func private @layer(%fourth: tensor<4xf32>, %fourth_1: tensor<4xf32>) -> tensor<4xf32> {
// CHECK-NEXT:    %a0 = torch.mul %fourth, %fourth_1
// CHECK-NEXT:    %b0 = torch.tanh %a0
// CHECK-NEXT:    %c0 = torch.sub %b0, %fourth_1
// CHECK:       func.func @main
// CHECK-NEXT:    %h0 = func.call @layer(%fourth, %fourth)
// CHECK-NEXT:    %h1 = func.call @layer(%h0, %w)
func.func @main(%fourth: tensor<4xf32>, %w: tensor<4xf32>) -> tensor<4xf32> {
  %a0 = torch.mul %fourth, %fourth : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b0 = torch.tanh %a0 : (tensor<4xf32>) -> tensor<4xf32>
  %c0 = torch.sub %b0, %fourth : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d0 = torch.sigmoid %c0 : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = torch.sub %d0, %c0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f0 = torch.cos %e0 : (tensor<4xf32>) -> tensor<4xf32>
  %g0 = torch.sin %f0 : (tensor<4xf32>) -> tensor<4xf32>
  %h0 = torch.add %e0, %g0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %a1 = torch.mul %h0, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %b1 = torch.tanh %a1 : (tensor<4xf32>) -> tensor<4xf32>
  %c1 = torch.sub %b1, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %d1 = torch.sigmoid %c1 : (tensor<4xf32>) -> tensor<4xf32>
  %e1 = torch.sub %d1, %c1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %f1 = torch.cos %e1 : (tensor<4xf32>) -> tensor<4xf32>
  %g1 = torch.sin %f1 : (tensor<4xf32>) -> tensor<4xf32>
  %h1 = torch.add %e1, %g1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return %h1 : tensor<4xf32>
}

// -----

// Scans repeat if their bodies do.
// CHECK-LABEL: func.func private @layer(
// CHECK:         torch.scan
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: func.call @layer(
// REMARK: remark: outline-repeats: layer: 2 times the same 8 operations
func.func @main(%x: tensor<4xf32>, %xs: tensor<3x4xf32>) -> tensor<4xf32> {
  %s0 = torch.scan carried(%x) slices(%xs) shared() : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<4xf32> {
  ^bb0(%p0: tensor<4xf32>, %q0: tensor<4xf32>):
    %r0 = torch.mul %p0, %q0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    torch.yield %r0 : tensor<4xf32>
  }
  %a0 = torch.tanh %s0 : (tensor<4xf32>) -> tensor<4xf32>
  %b0 = torch.sin %a0 : (tensor<4xf32>) -> tensor<4xf32>
  %c0 = torch.cos %b0 : (tensor<4xf32>) -> tensor<4xf32>
  %d0 = torch.exp %c0 : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = torch.neg %d0 : (tensor<4xf32>) -> tensor<4xf32>
  %f0 = torch.abs %e0 : (tensor<4xf32>) -> tensor<4xf32>
  %g0 = torch.sqrt %f0 : (tensor<4xf32>) -> tensor<4xf32>
  %s1 = torch.scan carried(%g0) slices(%xs) shared() : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<4xf32> {
  ^bb0(%p1: tensor<4xf32>, %q1: tensor<4xf32>):
    %r1 = torch.mul %p1, %q1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    torch.yield %r1 : tensor<4xf32>
  }
  %a1 = torch.tanh %s1 : (tensor<4xf32>) -> tensor<4xf32>
  %b1 = torch.sin %a1 : (tensor<4xf32>) -> tensor<4xf32>
  %c1 = torch.cos %b1 : (tensor<4xf32>) -> tensor<4xf32>
  %d1 = torch.exp %c1 : (tensor<4xf32>) -> tensor<4xf32>
  %e1 = torch.neg %d1 : (tensor<4xf32>) -> tensor<4xf32>
  %f1 = torch.abs %e1 : (tensor<4xf32>) -> tensor<4xf32>
  %g1 = torch.sqrt %f1 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %g1 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: torch.scan
// CHECK-NOT:     func.call
// REMARK: remark: outline-repeats: main: declined: no layer comes twice
func.func @main(%x: tensor<4xf32>, %xs: tensor<3x4xf32>) -> tensor<4xf32> {
  %s0 = torch.scan carried(%x) slices(%xs) shared() : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<4xf32> {
  ^bb0(%p0: tensor<4xf32>, %q0: tensor<4xf32>):
    %r0 = torch.mul %p0, %q0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    torch.yield %r0 : tensor<4xf32>
  }
  %a0 = torch.tanh %s0 : (tensor<4xf32>) -> tensor<4xf32>
  %b0 = torch.sin %a0 : (tensor<4xf32>) -> tensor<4xf32>
  %c0 = torch.cos %b0 : (tensor<4xf32>) -> tensor<4xf32>
  %d0 = torch.exp %c0 : (tensor<4xf32>) -> tensor<4xf32>
  %e0 = torch.neg %d0 : (tensor<4xf32>) -> tensor<4xf32>
  %f0 = torch.abs %e0 : (tensor<4xf32>) -> tensor<4xf32>
  %g0 = torch.sqrt %f0 : (tensor<4xf32>) -> tensor<4xf32>
  %s1 = torch.scan carried(%g0) slices(%xs) shared() : (tensor<4xf32>, tensor<3x4xf32>) -> tensor<4xf32> {
  ^bb0(%p1: tensor<4xf32>, %q1: tensor<4xf32>):
    %r1 = torch.add %p1, %q1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    torch.yield %r1 : tensor<4xf32>
  }
  %a1 = torch.tanh %s1 : (tensor<4xf32>) -> tensor<4xf32>
  %b1 = torch.sin %a1 : (tensor<4xf32>) -> tensor<4xf32>
  %c1 = torch.cos %b1 : (tensor<4xf32>) -> tensor<4xf32>
  %d1 = torch.exp %c1 : (tensor<4xf32>) -> tensor<4xf32>
  %e1 = torch.neg %d1 : (tensor<4xf32>) -> tensor<4xf32>
  %f1 = torch.abs %e1 : (tensor<4xf32>) -> tensor<4xf32>
  %g1 = torch.sqrt %f1 : (tensor<4xf32>) -> tensor<4xf32>
  func.return %g1 : tensor<4xf32>
}
