// RUN: deplo-opt %s -p 'lift-to-loops,fuse-loops{target=cpu}' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'lift-to-loops,fuse-loops{target=cpu}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'lift-to-loops,fuse-loops{target=cpu}' --split-input-file --check-each-pass >/dev/null

// Softmax is one kernel: three sweeps of a row, the maximum computed once per row.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %z = loop.kernel @k_z(%x) : (tensor<4x8xf32>) -> tensor<4x8xf32> {
// CHECK-NEXT:    ^bb0(%x: memref<4x8xf32>, %z: memref<4x8xf32>):
// CHECK-NEXT:      loop.for %i = 0 to 4 {
// CHECK-NEXT:        %[[m:.+]] = loop.for %{{.+}} = 0 to 8 reduce(max) -> f32 {
// CHECK:             %[[s:.+]] = loop.for %{{.+}} = 0 to 8 reduce(add) -> f32 {
// CHECK:               %[[d:.+]] = arith.subf %{{.+}}, %[[m]] : f32
// CHECK-NEXT:          math.exp %[[d]] : f32
// CHECK:             loop.for %{{.+}} = 0 to 8 {
// CHECK:               arith.divf %{{.+}}, %[[s]] : f32
// CHECK-NOT:     loop.kernel
// REMARK: remark: fuse-loops: k_sb: merged into k_z
// REMARK: remark: fuse-loops: k_m: merged into k_z
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %m = tensor_ir.reduce max(%x) over [1] : tensor<4x8xf32> -> tensor<4x1xf32>
  %mb = tensor_ir.index_map (i, j) -> %m[i, 0] : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %d = tensor_ir.elementwise sub(%x, %mb) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %e = tensor_ir.elementwise exp(%d) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %s = tensor_ir.reduce add(%e) over [1] : tensor<4x8xf32> -> tensor<4x1xf32>
  %sb = tensor_ir.index_map (i, j) -> %s[i, 0] : (tensor<4x1xf32>) -> tensor<4x8xf32>
  %z = tensor_ir.elementwise div(%e, %sb) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %z : tensor<4x8xf32>
}

// -----

// A slice reads its window of the producer: only those elements are computed.
// CHECK-LABEL: func.func @main
// CHECK:         loop.for %i = 0 to 3 {
// CHECK-NEXT:      %[[x:.+]] = loop.load %x[%i + 5] : memref<16xf32>
// CHECK-NEXT:      %[[n:.+]] = arith.negf %[[x]] : f32
// CHECK-NEXT:      math.exp %[[n]] : f32
// CHECK-NOT:     loop.kernel
func.func @main(%x: tensor<16xf32>) -> tensor<3xf32> {
  %n = tensor_ir.elementwise neg(%x) : (tensor<16xf32>) -> tensor<16xf32>
  %s = tensor_ir.index_map (i) -> %n[i + 5] : (tensor<16xf32>) -> tensor<3xf32>
  %e = tensor_ir.elementwise exp(%s) : (tensor<3xf32>) -> tensor<3xf32>
  func.return %e : tensor<3xf32>
}

// -----

// A load that a condition guards keeps its producer inside the condition.
// CHECK-LABEL: func.func @main
// CHECK:         scf.if %{{.+}} -> (f32) {
// CHECK-NEXT:      loop.load %x[%i - 1]
// CHECK-NEXT:      arith.negf
// CHECK-NOT:     loop.kernel
func.func @main(%x: tensor<4xf32>) -> tensor<6xf32> {
  %n = tensor_ir.elementwise neg(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %p = tensor_ir.index_map (i) -> %n[i - 1] if i >= 1 and i < 5 else 0.0 : (tensor<4xf32>) -> tensor<6xf32>
  func.return %p : tensor<6xf32>
}

// -----

// Declined: the second product of an MLP would recompute the first one for each of its columns.
// CHECK-LABEL: func.func @main
// CHECK:         loop.kernel @k_h
// CHECK:         loop.kernel @k_y
// REMARK: remark: fuse-loops: k_h: declined: not merged into {{.+}}: would recompute {{.+}}FLOP, each element 64 times, to save {{.+}}B of traffic ({{.+}} per byte, 4 pays)
func.func @main(%x: tensor<8x64xf32>, %up: tensor<256x64xf32>, %down: tensor<64x256xf32>) -> tensor<8x64x1xf32> {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<8x64xf32>) -> tensor<8x256x64xf32>
  %b = tensor_ir.index_map (i, j, k) -> %up[j, k] : (tensor<256x64xf32>) -> tensor<8x256x64xf32>
  %p = tensor_ir.elementwise mul(%a, %b) : (tensor<8x256x64xf32>, tensor<8x256x64xf32>) -> tensor<8x256x64xf32>
  %h = tensor_ir.reduce add(%p) over [2] : tensor<8x256x64xf32> -> tensor<8x256x1xf32>
  %c = tensor_ir.index_map (i, j, k) -> %h[i, k, 0] : (tensor<8x256x1xf32>) -> tensor<8x64x256xf32>
  %d = tensor_ir.index_map (i, j, k) -> %down[j, k] : (tensor<64x256xf32>) -> tensor<8x64x256xf32>
  %q = tensor_ir.elementwise mul(%c, %d) : (tensor<8x64x256xf32>, tensor<8x64x256xf32>) -> tensor<8x64x256xf32>
  %y = tensor_ir.reduce add(%q) over [2] : tensor<8x64x256xf32> -> tensor<8x64x1xf32>
  func.return %y : tensor<8x64x1xf32>
}

// -----

// Declined: a result of the program has to be stored anyway; a sum over everything is not
// recomputed by every row; a check of indices from data stays where some would not be read.
// REMARK-DAG: remark: fuse-loops: k_e: declined: not merged into k_s: its value is a result of the program, or what PyTorch is called with
// REMARK-DAG: remark: fuse-loops: k_s: declined: not merged into {{.+}}: a reduction that all rows share is computed once, in a kernel of its own
// REMARK-DAG: remark: fuse-loops: k_g: declined: not merged into k_o: checks indices from data, and not all of them would be read
func.func @main(%x: tensor<4xf32>, %ids: tensor<4xi64>) -> (tensor<4xf32>, tensor<2xf32>) {
  %e = tensor_ir.elementwise exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %s = tensor_ir.reduce add(%e) over [0] : tensor<4xf32> -> tensor<1xf32>
  %b = tensor_ir.index_map (i) -> %s[0] : (tensor<1xf32>) -> tensor<4xf32>
  %g = tensor_ir.gather %x[%ids] along 0 : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  %t = tensor_ir.index_map (i) -> %g[i * 2] : (tensor<4xf32>) -> tensor<2xf32>
  %u = tensor_ir.index_map (i) -> %b[i] : (tensor<4xf32>) -> tensor<2xf32>
  %o = tensor_ir.elementwise add(%t, %u) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return %e, %o : tensor<4xf32>, tensor<2xf32>
}

// -----

// The statistics of a column run once per column: the loop over columns moves outwards.
// CHECK-LABEL: func.func @main(%x: tensor<8x64xf32>)
// CHECK:         loop.for %j = 0 to 64 {
// CHECK-NEXT:      %[[m:.+]] = loop.for %i = 0 to 8 reduce(max) -> f32 {
// CHECK:           loop.for %{{.+}} = 0 to 8 {
// CHECK:             arith.subf %{{.+}}, %[[m]] : f32
// CHECK-NOT:     loop.kernel
func.func @main(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %m = tensor_ir.reduce max(%x) over [0] : tensor<8x64xf32> -> tensor<1x64xf32>
  %b = tensor_ir.index_map (i, j) -> %m[0, j] : (tensor<1x64xf32>) -> tensor<8x64xf32>
  %y = tensor_ir.elementwise sub(%x, %b) : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
  func.return %y : tensor<8x64xf32>
}

// -----

// The statistics of a group of channels run once per group: the loop over channels is split, and what that
// leaves moves: pixels stay inside, as they lie in memory.
// CHECK-LABEL: func.func @main(%x: tensor<2x18x9xf32>)
// CHECK:         loop.for %[[i:.+]] = 0 to 2 {
// CHECK-NEXT:      loop.for %[[g:.+]] = 0 to 3 {
// CHECK-NEXT:        %[[m:.+]] = loop.for %{{.+}} = 0 to 6 reduce(max) -> f32 {
// CHECK:             loop.for %[[c:.+]] = 0 to 6 {
// CHECK-NEXT:          loop.for %[[k:.+]] = 0 to 9 {
// CHECK-NEXT:            %[[v:.+]] = loop.load %x[%[[i]], %[[g]] * 6 + %[[c]], %[[k]]]
// CHECK-NEXT:            %[[r:.+]] = arith.subf %[[v]], %[[m]] : f32
// CHECK-NEXT:            loop.store %[[r]], %y[%[[i]], %[[g]] * 6 + %[[c]], %[[k]]]
// CHECK-NOT:     loop.kernel
func.func @main(%x: tensor<2x18x9xf32>) -> tensor<2x18x9xf32> {
  %g = tensor_ir.index_map (i, j, k, l) -> %x[i, j * 6 + k, l] : (tensor<2x18x9xf32>) -> tensor<2x3x6x9xf32>
  %m = tensor_ir.reduce max(%g) over [2, 3] : tensor<2x3x6x9xf32> -> tensor<2x3x1x1xf32>
  %b = tensor_ir.index_map (i, j, k) -> %m[i, j floordiv 6, 0, 0] : (tensor<2x3x1x1xf32>) -> tensor<2x18x9xf32>
  %y = tensor_ir.elementwise sub(%x, %b) : (tensor<2x18x9xf32>, tensor<2x18x9xf32>) -> tensor<2x18x9xf32>
  func.return %y : tensor<2x18x9xf32>
}

// -----

// The groups of the last axis are too short for a loop of their own: it stays as it is.
// CHECK-LABEL: func.func @main(%x: tensor<9x64xf32>)
// CHECK:       loop.kernel @k_m
// CHECK:       loop.kernel @k_y
// CHECK:         loop.for %[[i:.+]] = 0 to 9 {
// CHECK-NEXT:      loop.for %[[j:.+]] = 0 to 64 {
// CHECK:             loop.load %m[%[[j]] floordiv 8, 0, 0]
// REMARK: remark: fuse-loops: k_m: declined: not merged into k_y: would recompute
func.func @main(%x: tensor<9x64xf32>) -> tensor<9x64xf32> {
  %g = tensor_ir.index_map (i, j, k) -> %x[k, i * 8 + j] : (tensor<9x64xf32>) -> tensor<8x8x9xf32>
  %m = tensor_ir.reduce max(%g) over [1, 2] : tensor<8x8x9xf32> -> tensor<8x1x1xf32>
  %b = tensor_ir.index_map (i, j) -> %m[j floordiv 8, 0, 0] : (tensor<8x1x1xf32>) -> tensor<9x64xf32>
  %y = tensor_ir.elementwise sub(%x, %b) : (tensor<9x64xf32>, tensor<9x64xf32>) -> tensor<9x64xf32>
  func.return %y : tensor<9x64xf32>
}

// -----

// What does not pay after a split either undoes it: the loop over heads is one again.
// CHECK-LABEL: func.func @main(%x: tensor<4x16x16xf32>, %w: tensor<8x16x16xf32>)
// CHECK:       loop.kernel @k_y
// CHECK:         loop.for %[[i:.+]] = 0 to 8 {
// CHECK:             loop.load %p[%[[i]] floordiv 2, %{{.+}}, %{{.+}}]
// CHECK:             loop.load %w[%[[i]], %{{.+}}, %{{.+}}]
// REMARK: remark: fuse-loops: k_p: declined: not merged into k_y: would recompute
func.func @main(%x: tensor<4x16x16xf32>, %w: tensor<8x16x16xf32>) -> tensor<8x16x16xf32> {
  %p = tensor_ir.elementwise exp(%x) : (tensor<4x16x16xf32>) -> tensor<4x16x16xf32>
  %b = tensor_ir.index_map (i, j, k, l) -> %p[i floordiv 2, j, l] : (tensor<4x16x16xf32>) -> tensor<8x16x16x16xf32>
  %c = tensor_ir.index_map (i, j, k, l) -> %w[i, l, k] : (tensor<8x16x16xf32>) -> tensor<8x16x16x16xf32>
  %q = tensor_ir.elementwise mul(%b, %c) : (tensor<8x16x16x16xf32>, tensor<8x16x16x16xf32>) -> tensor<8x16x16x16xf32>
  %s = tensor_ir.reduce add(%q) over [3] : tensor<8x16x16x16xf32> -> tensor<8x16x16x1xf32>
  %y = tensor_ir.index_map (i, j, k) -> %s[i, j, k, 0] : (tensor<8x16x16x1xf32>) -> tensor<8x16x16xf32>
  func.return %y : tensor<8x16x16xf32>
}

// -----

// A condition that is known after the merge, but read as a value, stays an operation.
// CHECK-LABEL: func.func @main(%x: tensor<8xf32>)
// CHECK:         %[[t:.+]] = loop.test
// CHECK:         arith.select %[[t]]
// CHECK-NOT:     loop.kernel
func.func @main(%x: tensor<8xf32>) -> tensor<3xf32> {
  %y = loop.kernel @producer(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%in: memref<8xf32>, %out: memref<8xf32>):
    loop.for %i = 0 to 8 {
      %v = loop.load %in[%i] : memref<8xf32>
      %n = arith.negf %v : f32
      %t = loop.test [%i >= 4]
      %w = arith.select %t, %n, %v : f32
      loop.store %w, %out[%i] : memref<8xf32>
    }
  }
  %z = loop.kernel @consumer(%y) : (tensor<8xf32>) -> tensor<3xf32> {
  ^bb0(%in: memref<8xf32>, %out: memref<3xf32>):
    loop.for %i = 0 to 3 {
      %v = loop.load %in[%i + 5] : memref<8xf32>
      loop.store %v, %out[%i] : memref<3xf32>
    }
  }
  func.return %z : tensor<3xf32>
}

// -----

// Declined: no one store stands for the whole output.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: loop.kernel
// REMARK-DAG: remark: fuse-loops: by_hand: declined: not merged into copy: stores in several places
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %y = loop.kernel @by_hand(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%in: memref<2xf32>, %out: memref<2xf32>):
    %b = loop.load %in[1] : memref<2xf32>
    loop.store %b, %out[1] : memref<2xf32>
    %a = loop.load %in[0] : memref<2xf32>
    loop.store %a, %out[0] : memref<2xf32>
  }
  %z = loop.kernel @copy(%y) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%in: memref<2xf32>, %out: memref<2xf32>):
    loop.for %i = 0 to 2 {
      %v = loop.load %in[%i] : memref<2xf32>
      loop.store %v, %out[%i] : memref<2xf32>
    }
  }
  func.return %z : tensor<2xf32>
}

// -----

// A check of indices goes along where every element is read.
// CHECK-LABEL: func.func @main(%table: tensor<9x4xf32>
// CHECK-NEXT:    loop.kernel @k_o
// CHECK:           loop.for %i = 0 to 3 {
// CHECK-NEXT:        loop.for %j = 0 to 4 {
// CHECK:               loop.checked_index %{{.+}} below 9
// CHECK-NOT:     loop.kernel
// REMARK: remark: fuse-loops: k_g: merged into k_o
func.func @main(%table: tensor<9x4xf32>, %ids: tensor<3xi64>) -> tensor<3x4xf32> {
  %g = tensor_ir.gather %table[%ids] along 0 : (tensor<9x4xf32>, tensor<3xi64>) -> tensor<3x4xf32>
  %o = tensor_ir.elementwise exp(%g) : (tensor<3x4xf32>) -> tensor<3x4xf32>
  func.return %o : tensor<3x4xf32>
}

// -----

// Rows that can be folded at the same time are not left to one thread.
// CHECK-LABEL: func.func @main(%x: tensor<512x512xf32>)
// REMARK: remark: fuse-loops: k_s: declined: not merged into k_t: one thread would do what {{.+}}FLOP of independent rows do at once
func.func @main(%x: tensor<512x512xf32>) -> tensor<1x1xf32> {
  %s = tensor_ir.reduce add(%x) over [1] : tensor<512x512xf32> -> tensor<512x1xf32>
  %q = tensor_ir.elementwise mul(%s, %s) : (tensor<512x1xf32>, tensor<512x1xf32>) -> tensor<512x1xf32>
  %t = tensor_ir.reduce max(%q) over [0] : tensor<512x1xf32> -> tensor<1x1xf32>
  func.return %t : tensor<1x1xf32>
}

// -----

// Declined: the sum would be computed for the maximum and again for the difference, in two orders of rounding.
// CHECK-LABEL: func.func @main(%x: tensor<8x4xf32>)
// CHECK:         loop.kernel @k_s
// CHECK:           reduce(add)
// CHECK:         loop.kernel @k_d
// CHECK-NOT:       reduce(add)
// REMARK: remark: fuse-loops: k_s: declined: not merged into k_d: 2 places would compute its sum, each rounding it in an order of its own
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x1xf32> {
  %s = tensor_ir.reduce add(%x) over [1] : tensor<8x4xf32> -> tensor<8x1xf32>
  %m = tensor_ir.reduce max(%s) over [0] : tensor<8x1xf32> -> tensor<1x1xf32>
  %b = tensor_ir.index_map (i, j) -> %m[0, j] : (tensor<1x1xf32>) -> tensor<8x1xf32>
  %d = tensor_ir.elementwise sub(%s, %b) : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  func.return %d : tensor<8x1xf32>
}

// -----

// Merged: a sum of integers does not round.
// CHECK-LABEL: func.func @main(%x: tensor<8x4xi64>)
// CHECK:         loop.kernel @k_m
// CHECK:         loop.kernel @k_d
// CHECK:           reduce(add)
func.func @main(%x: tensor<8x4xi64>) -> tensor<8x1xi64> {
  %s = tensor_ir.reduce add(%x) over [1] : tensor<8x4xi64> -> tensor<8x1xi64>
  %m = tensor_ir.reduce max(%s) over [0] : tensor<8x1xi64> -> tensor<1x1xi64>
  %b = tensor_ir.index_map (i, j) -> %m[0, j] : (tensor<1x1xi64>) -> tensor<8x1xi64>
  %d = tensor_ir.elementwise sub(%s, %b) : (tensor<8x1xi64>, tensor<8x1xi64>) -> tensor<8x1xi64>
  func.return %d : tensor<8x1xi64>
}

// -----

// Declined: a producer has one output, one chain of loops, and stores each iteration at its own place.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-6: loop.kernel
// REMARK-DAG: remark: fuse-loops: two: declined: not merged into of_two: has several outputs
// REMARK-DAG: remark: fuse-loops: backwards: declined: not merged into of_backwards: does not store at its identity index
// REMARK-DAG: remark: fuse-loops: beside: declined: not merged into of_beside: its loops are not one chain
func.func @main(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>, tensor<1xf32>) {
  %a, %b = loop.kernel @two(%x) : (tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  ^bb0(%in: memref<2xf32>, %first: memref<2xf32>, %second: memref<2xf32>):
    loop.for %i = 0 to 2 {
      %v = loop.load %in[%i] : memref<2xf32>
      loop.store %v, %first[%i] : memref<2xf32>
      loop.store %v, %second[%i] : memref<2xf32>
    }
  }
  %c = loop.kernel @of_two(%a, %b) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%first: memref<2xf32>, %second: memref<2xf32>, %out: memref<2xf32>):
    loop.for %i = 0 to 2 {
      %v = loop.load %first[%i] : memref<2xf32>
      %w = loop.load %second[%i] : memref<2xf32>
      %s = arith.addf %v, %w : f32
      loop.store %s, %out[%i] : memref<2xf32>
    }
  }
  %d = loop.kernel @backwards(%x) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%in: memref<2xf32>, %out: memref<2xf32>):
    loop.for %i = 0 to 2 {
      %v = loop.load %in[%i] : memref<2xf32>
      loop.store %v, %out[1 - %i] : memref<2xf32>
    }
  }
  %e = loop.kernel @of_backwards(%d) : (tensor<2xf32>) -> tensor<2xf32> {
  ^bb0(%in: memref<2xf32>, %out: memref<2xf32>):
    loop.for %i = 0 to 2 {
      %v = loop.load %in[%i] : memref<2xf32>
      loop.store %v, %out[%i] : memref<2xf32>
    }
  }
  %f = loop.kernel @beside(%x) : (tensor<2xf32>) -> tensor<1xf32> {
  ^bb0(%in: memref<2xf32>, %out: memref<1xf32>):
    loop.for %i = 0 to 2 {
      %t = loop.test [%i >= 0]
    }
    %v = loop.load %in[0] : memref<2xf32>
    loop.store %v, %out[0] : memref<1xf32>
  }
  %g = loop.kernel @of_beside(%f) : (tensor<1xf32>) -> tensor<1xf32> {
  ^bb0(%in: memref<1xf32>, %out: memref<1xf32>):
    %v = loop.load %in[0] : memref<1xf32>
    loop.store %v, %out[0] : memref<1xf32>
  }
  func.return %c, %e, %g : tensor<2xf32>, tensor<2xf32>, tensor<1xf32>
}

// -----

// A mask that selects one term of each sum is computed where it is read, 50 times each element: no sum is left
// then. That of another is stored.
// CHECK-LABEL: loop.kernel @rows
// CHECK:           arith.cmpi eq
// CHECK-LABEL: loop.kernel @less
// REMARK: remark: fuse-loops: less: declined: not merged into sums: would recompute
// REMARK: remark: fuse-loops: hit: merged into rows
func.func @main(%t: tensor<8x50xf32>, %ids: tensor<6xi64>) -> (tensor<6x50xf32>, tensor<6x50xf32>) {
  %hit = loop.kernel @hit(%ids) : (tensor<6xi64>) -> tensor<6x8xi1> {
  ^bb0(%ids: memref<6xi64>, %out: memref<6x8xi1>):
    loop.for %i = 0 to 6 {
      loop.for %k = 0 to 8 {
        %id = loop.load %ids[%i] : memref<6xi64>
        %o = loop.index [%k]
        %c = arith.index_cast %o : index to i64
        %h = arith.cmpi eq, %c, %id : i64
        loop.store %h, %out[%i, %k] : memref<6x8xi1>
      }
    }
  }
  %rows = loop.kernel @rows(%hit, %t) : (tensor<6x8xi1>, tensor<8x50xf32>) -> tensor<6x50xf32> {
  ^bb0(%hit: memref<6x8xi1>, %t: memref<8x50xf32>, %out: memref<6x50xf32>):
    loop.for %i = 0 to 6 {
      loop.for %j = 0 to 50 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %h = loop.load %hit[%i, %k] : memref<6x8xi1>
          %v = loop.load %t[%k, %j] : memref<8x50xf32>
          %zero = arith.constant 0.0 : f32
          %w = arith.select %h, %v, %zero : f32
          loop.yield %w : f32
        }
        loop.store %s, %out[%i, %j] : memref<6x50xf32>
      }
    }
  }
  %less = loop.kernel @less(%ids) : (tensor<6xi64>) -> tensor<6x8xi1> {
  ^bb0(%ids: memref<6xi64>, %out: memref<6x8xi1>):
    loop.for %i = 0 to 6 {
      loop.for %k = 0 to 8 {
        %id = loop.load %ids[%i] : memref<6xi64>
        %o = loop.index [%k]
        %c = arith.index_cast %o : index to i64
        %h = arith.cmpi slt, %c, %id : i64
        loop.store %h, %out[%i, %k] : memref<6x8xi1>
      }
    }
  }
  %sums = loop.kernel @sums(%less, %t) : (tensor<6x8xi1>, tensor<8x50xf32>) -> tensor<6x50xf32> {
  ^bb0(%less: memref<6x8xi1>, %t: memref<8x50xf32>, %out: memref<6x50xf32>):
    loop.for %i = 0 to 6 {
      loop.for %j = 0 to 50 {
        %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %h = loop.load %less[%i, %k] : memref<6x8xi1>
          %v = loop.load %t[%k, %j] : memref<8x50xf32>
          %zero = arith.constant 0.0 : f32
          %w = arith.select %h, %v, %zero : f32
          loop.yield %w : f32
        }
        loop.store %s, %out[%i, %j] : memref<6x50xf32>
      }
    }
  }
  func.return %rows, %sums : tensor<6x50xf32>, tensor<6x50xf32>
}

// -----

// Declined: a product of matrices that a reduction folds would have no blocks of results any more, whatever
// is done with its results before; also where its own elementwise producers are still kernels.
// CHECK-LABEL: func.func @main(%x: tensor<64x64xf32>
// CHECK:         loop.kernel @k_h
// CHECK:         loop.kernel @k_y
// REMARK-DAG: remark: fuse-loops: k_h: declined: not merged into k_y: its 262.1 kFLOP would run inside of a reduction, where no block of results shares what they read, to save 32.8 kB of traffic
func.func @main(%x: tensor<64x64xf32>, %w: tensor<64x64xf32>) -> tensor<64x1xf32> {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<64x64xf32>) -> tensor<64x64x64xf32>
  %b = tensor_ir.index_map (i, j, k) -> %w[j, k] : (tensor<64x64xf32>) -> tensor<64x64x64xf32>
  %p = tensor_ir.elementwise mul(%a, %b) : (tensor<64x64x64xf32>, tensor<64x64x64xf32>) -> tensor<64x64x64xf32>
  %h = tensor_ir.reduce add(%p) over [2] : tensor<64x64x64xf32> -> tensor<64x64x1xf32>
  %s = tensor_ir.index_map (i, j) -> %h[i, j, 0] : (tensor<64x64x1xf32>) -> tensor<64x64xf32>
  %e = tensor_ir.elementwise exp(%s) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = tensor_ir.reduce max(%e) over [1] : tensor<64x64xf32> -> tensor<64x1xf32>
  func.return %y : tensor<64x1xf32>
}

// -----

// So it is where the products are few: the traffic that is saved does not pay for blocks that are lost.
// CHECK-LABEL: func.func @main(%x: tensor<64x20xf32>
// CHECK:         loop.kernel @k_h
// CHECK:         loop.kernel @k_y
// REMARK-DAG: remark: fuse-loops: k_h: declined: not merged into k_y: its 81.9 kFLOP would run inside of a reduction, where no block of results shares what they read, to save 32.8 kB of traffic
func.func @main(%x: tensor<64x20xf32>, %w: tensor<64x20xf32>) -> tensor<64x1xf32> {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<64x20xf32>) -> tensor<64x64x20xf32>
  %b = tensor_ir.index_map (i, j, k) -> %w[j, k] : (tensor<64x20xf32>) -> tensor<64x64x20xf32>
  %p = tensor_ir.elementwise mul(%a, %b) : (tensor<64x64x20xf32>, tensor<64x64x20xf32>) -> tensor<64x64x20xf32>
  %h = tensor_ir.reduce add(%p) over [2] : tensor<64x64x20xf32> -> tensor<64x64x1xf32>
  %s = tensor_ir.index_map (i, j) -> %h[i, j, 0] : (tensor<64x64x1xf32>) -> tensor<64x64xf32>
  %e = tensor_ir.elementwise exp(%s) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %y = tensor_ir.reduce max(%e) over [1] : tensor<64x64xf32> -> tensor<64x1xf32>
  func.return %y : tensor<64x1xf32>
}

// -----

// A sum of products of matrices is one product of matrices: the reduction goes on with its sum.
// CHECK-LABEL: func.func @main(%x: tensor<8x64x64xf32>
// CHECK:         loop.kernel @k_y
// CHECK-NOT:     loop.kernel
// REMARK-DAG: remark: fuse-loops: k_h: merged into k_y
func.func @main(%x: tensor<8x64x64xf32>, %w: tensor<8x64x64xf32>) -> tensor<1x64x64xf32> {
  %a = tensor_ir.index_map (l, i, j, k) -> %x[l, i, k] : (tensor<8x64x64xf32>) -> tensor<8x64x64x64xf32>
  %b = tensor_ir.index_map (l, i, j, k) -> %w[l, j, k] : (tensor<8x64x64xf32>) -> tensor<8x64x64x64xf32>
  %p = tensor_ir.elementwise mul(%a, %b) : (tensor<8x64x64x64xf32>, tensor<8x64x64x64xf32>) -> tensor<8x64x64x64xf32>
  %h = tensor_ir.reduce add(%p) over [3] : tensor<8x64x64x64xf32> -> tensor<8x64x64x1xf32>
  %s = tensor_ir.index_map (l, i, j) -> %h[l, i, j, 0] : (tensor<8x64x64x1xf32>) -> tensor<8x64x64xf32>
  %y = tensor_ir.reduce add(%s) over [0] : tensor<8x64x64xf32> -> tensor<1x64x64xf32>
  func.return %y : tensor<1x64x64xf32>
}

// -----

// Results share nothing where all operands depend on the same counters: that is no product of matrices.
// CHECK-LABEL: func.func @main(%x: tensor<64x64x64xf32>
// CHECK:         loop.kernel @k_y
// CHECK-NOT:     loop.kernel
func.func @main(%x: tensor<64x64x64xf32>, %w: tensor<64x64x64xf32>) -> tensor<64x1xf32> {
  %p = tensor_ir.elementwise mul(%x, %w) : (tensor<64x64x64xf32>, tensor<64x64x64xf32>) -> tensor<64x64x64xf32>
  %h = tensor_ir.reduce add(%p) over [2] : tensor<64x64x64xf32> -> tensor<64x64x1xf32>
  %s = tensor_ir.index_map (i, j) -> %h[i, j, 0] : (tensor<64x64x1xf32>) -> tensor<64x64xf32>
  %y = tensor_ir.reduce max(%s) over [1] : tensor<64x64xf32> -> tensor<64x1xf32>
  func.return %y : tensor<64x1xf32>
}

// -----

// What one reader declines is stored. Another one that merged it would read its two inputs in its place.
// CHECK-LABEL: func.func @main
// CHECK:         loop.kernel @k_mask(%a, %b)
// CHECK:         loop.kernel @k_most(%x, %mask)
// CHECK:         loop.kernel @k_some(%y, %mask)
// REMARK: remark: fuse-loops: k_mask: declined: not merged into k_some: would recompute {{.+}}FLOP, each element 65 times, to save {{.+}}B of traffic
// REMARK: remark: fuse-loops: k_mask: declined: not merged into k_most: another kernel has it from memory, where it is 64 B less to read
func.func @main(%a: tensor<8x8xi1>, %b: tensor<8x8xi1>, %x: tensor<4x8x8xi1>, %y: tensor<64x8x8xi1>) -> (tensor<4x8x1xi1>, tensor<64x8x1xi1>) {
  %mask = tensor_ir.elementwise and(%a, %b) : (tensor<8x8xi1>, tensor<8x8xi1>) -> tensor<8x8xi1>
  %m = tensor_ir.index_map (h, i, j) -> %mask[i, j] : (tensor<8x8xi1>) -> tensor<4x8x8xi1>
  %p = tensor_ir.elementwise and(%x, %m) : (tensor<4x8x8xi1>, tensor<4x8x8xi1>) -> tensor<4x8x8xi1>
  %most = tensor_ir.reduce any(%p) over [2] : tensor<4x8x8xi1> -> tensor<4x8x1xi1>
  %n = tensor_ir.index_map (h, i, j) -> %mask[i, j] : (tensor<8x8xi1>) -> tensor<64x8x8xi1>
  %q = tensor_ir.elementwise and(%y, %n) : (tensor<64x8x8xi1>, tensor<64x8x8xi1>) -> tensor<64x8x8xi1>
  %some = tensor_ir.reduce any(%q) over [2] : tensor<64x8x8xi1> -> tensor<64x8x1xi1>
  func.return %most, %some : tensor<4x8x1xi1>, tensor<64x8x1xi1>
}

// -----

// Windows overlap in what is put together from two pieces, and in elements that are there twice; a reduction without
// windows computes both in place.
// CHECK-LABEL: func.func @main(%x: tensor<4xf32>, %y: tensor<5xf32>)
// CHECK-COUNT-5: loop.kernel
// CHECK-NOT:     loop.kernel
// REMARK-DAG: remark: fuse-loops: k_c: declined: not merged into k_s: windows overlap in what is put together from pieces
// REMARK-DAG: remark: fuse-loops: k_twice: declined: not merged into k_t: windows overlap in what is put together from pieces
func.func @main(%x: tensor<4xf32>, %y: tensor<5xf32>) -> (tensor<7x1xf32>, tensor<3x1xf32>, tensor<1xf32>) {
  %c = tensor_ir.index_map (i) -> %x[i] if i < 4 else %y[i - 4] : (tensor<4xf32>, tensor<5xf32>) -> tensor<9xf32>
  %twice = tensor_ir.index_map (i) -> %x[i floordiv 2] : (tensor<4xf32>) -> tensor<8xf32>
  %a = tensor_ir.index_map (i, j) -> %c[i + j] : (tensor<9xf32>) -> tensor<7x3xf32>
  %s = tensor_ir.reduce add(%a) over [1] : tensor<7x3xf32> -> tensor<7x1xf32>
  %b = tensor_ir.index_map (i, j) -> %twice[i * 2 + j] : (tensor<8xf32>) -> tensor<3x3xf32>
  %t = tensor_ir.reduce add(%b) over [1] : tensor<3x3xf32> -> tensor<3x1xf32>
  %u = tensor_ir.reduce max(%c) over [0] : tensor<9xf32> -> tensor<1xf32>
  func.return %s, %t, %u : tensor<7x1xf32>, tensor<3x1xf32>, tensor<1xf32>
}

// -----

// Pieces that take turns are copied in front of reductions that read them more than once; what computes an element
// of each reads them in place.
// CHECK-LABEL: func.func @turns
// CHECK-COUNT-3: loop.kernel
// CHECK-NOT:     loop.kernel
// REMARK: remark: fuse-loops: k_turn: declined: not merged into k_s: pieces that take turns would be looked for in each of the reductions that read them
func.func @turns(%x: tensor<64xf32>, %y: tensor<64xf32>, %w: tensor<3x128xf32>) -> (tensor<3x1xf32>, tensor<128xf32>) {
  %turn = tensor_ir.index_map (i) -> %x[i floordiv 2] if i mod 2 < 1 else %y[i floordiv 2] : (tensor<64xf32>, tensor<64xf32>) -> tensor<128xf32>
  %rows = tensor_ir.index_map (i, j) -> %turn[j] : (tensor<128xf32>) -> tensor<3x128xf32>
  %p = tensor_ir.elementwise mul(%rows, %w) : (tensor<3x128xf32>, tensor<3x128xf32>) -> tensor<3x128xf32>
  %s = tensor_ir.reduce add(%p) over [1] : tensor<3x128xf32> -> tensor<3x1xf32>
  %e = tensor_ir.elementwise exp(%turn) : (tensor<128xf32>) -> tensor<128xf32>
  func.return %s, %e : tensor<3x1xf32>, tensor<128xf32>
}

// -----

// A reduction that reads them once reads them in place, as one of weights of which two share a byte.
// CHECK-LABEL: func.func @turns_once
// CHECK:         loop.kernel @k_s(%x, %y)
// CHECK-NOT:     loop.kernel
func.func @turns_once(%x: tensor<64xf32>, %y: tensor<64xf32>) -> tensor<1xf32> {
  %turn = tensor_ir.index_map (i) -> %x[i floordiv 2] if i mod 2 < 1 else %y[i floordiv 2] : (tensor<64xf32>, tensor<64xf32>) -> tensor<128xf32>
  %s = tensor_ir.reduce add(%turn) over [0] : tensor<128xf32> -> tensor<1xf32>
  func.return %s : tensor<1xf32>
}

// -----

// A reduction beside the axis along which pieces take turns reads one piece: that of the place it is for.
// CHECK-LABEL: func.func @beside
// CHECK:         loop.kernel @k_s(%x)
// CHECK-NOT:     loop.kernel
func.func @beside(%x: tensor<64xf32>) -> tensor<64x1xf32> {
  %until = tensor_ir.index_map (i, k) -> %x[i floordiv 16 * 16 + k] if i mod 16 >= k else 0.0 : (tensor<64xf32>) -> tensor<64x16xf32>
  %s = tensor_ir.reduce add(%until) over [1] : tensor<64x16xf32> -> tensor<64x1xf32>
  func.return %s : tensor<64x1xf32>
}

// -----

// The fifth product of a sum stays a kernel: each sum needs registers of its own.
// CHECK-LABEL: func.func @main
// CHECK:         loop.kernel @k_y
// CHECK:         loop.kernel @k_z
// REMARK: remark: fuse-loops: k_ya: declined: not merged into k_z: the registers would be shared by more than 4 sums
func.func @main(%x: tensor<64x32xf32>, %wa: tensor<64x32xf32>, %wb: tensor<64x32xf32>, %wc: tensor<64x32xf32>, %wd: tensor<64x32xf32>, %we: tensor<64x32xf32>) -> tensor<64x64x1xf32> {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %ba = tensor_ir.index_map (i, j, k) -> %wa[j, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %pa = tensor_ir.elementwise mul(%a, %ba) : (tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32>
  %ya = tensor_ir.reduce add(%pa) over [2] : tensor<64x64x32xf32> -> tensor<64x64x1xf32>
  %bb = tensor_ir.index_map (i, j, k) -> %wb[j, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %pb = tensor_ir.elementwise mul(%a, %bb) : (tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32>
  %yb = tensor_ir.reduce add(%pb) over [2] : tensor<64x64x32xf32> -> tensor<64x64x1xf32>
  %bc = tensor_ir.index_map (i, j, k) -> %wc[j, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %pc = tensor_ir.elementwise mul(%a, %bc) : (tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32>
  %yc = tensor_ir.reduce add(%pc) over [2] : tensor<64x64x32xf32> -> tensor<64x64x1xf32>
  %bd = tensor_ir.index_map (i, j, k) -> %wd[j, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %pd = tensor_ir.elementwise mul(%a, %bd) : (tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32>
  %yd = tensor_ir.reduce add(%pd) over [2] : tensor<64x64x32xf32> -> tensor<64x64x1xf32>
  %be = tensor_ir.index_map (i, j, k) -> %we[j, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %pe = tensor_ir.elementwise mul(%a, %be) : (tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32>
  %ye = tensor_ir.reduce add(%pe) over [2] : tensor<64x64x32xf32> -> tensor<64x64x1xf32>
  %sb = tensor_ir.elementwise add(%ya, %yb) : (tensor<64x64x1xf32>, tensor<64x64x1xf32>) -> tensor<64x64x1xf32>
  %sc = tensor_ir.elementwise add(%sb, %yc) : (tensor<64x64x1xf32>, tensor<64x64x1xf32>) -> tensor<64x64x1xf32>
  %sd = tensor_ir.elementwise add(%sc, %yd) : (tensor<64x64x1xf32>, tensor<64x64x1xf32>) -> tensor<64x64x1xf32>
  %z = tensor_ir.elementwise add(%sd, %ye) : (tensor<64x64x1xf32>, tensor<64x64x1xf32>) -> tensor<64x64x1xf32>
  func.return %z : tensor<64x64x1xf32>
}

// -----

// A block has one sweep: a product over 32 does not come beside one over 16, nor beside the maximum of three
// neighbours. What is summed over alike, does.
// REMARK: remark: fuse-loops: k_top: declined: not merged into k_v: a contraction would stand beside a reduction with other sweeps; a block has one sweep
// REMARK: remark: fuse-loops: k_ya: declined: not merged into k_z: a contraction would stand beside a reduction with other sweeps; a block has one sweep
func.func @main(%x: tensor<64x32xf32>, %wa: tensor<64x32xf32>, %wb: tensor<64x16xf32>, %p: tensor<64x66xf32>) -> (tensor<64x64x1xf32>, tensor<64x64x1xf32>) {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %ba = tensor_ir.index_map (i, j, k) -> %wa[j, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %pa = tensor_ir.elementwise mul(%a, %ba) : (tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32>
  %ya = tensor_ir.reduce add(%pa) over [2] : tensor<64x64x32xf32> -> tensor<64x64x1xf32>
  %b = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<64x32xf32>) -> tensor<64x64x16xf32>
  %bb = tensor_ir.index_map (i, j, k) -> %wb[j, k] : (tensor<64x16xf32>) -> tensor<64x64x16xf32>
  %pb = tensor_ir.elementwise mul(%b, %bb) : (tensor<64x64x16xf32>, tensor<64x64x16xf32>) -> tensor<64x64x16xf32>
  %yb = tensor_ir.reduce add(%pb) over [2] : tensor<64x64x16xf32> -> tensor<64x64x1xf32>
  %z = tensor_ir.elementwise add(%ya, %yb) : (tensor<64x64x1xf32>, tensor<64x64x1xf32>) -> tensor<64x64x1xf32>
  %window = tensor_ir.index_map (i, j, k) -> %p[i, j + k] : (tensor<64x66xf32>) -> tensor<64x64x3xf32>
  %top = tensor_ir.reduce max(%window) over [2] : tensor<64x64x3xf32> -> tensor<64x64x1xf32>
  %c = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %cc = tensor_ir.index_map (i, j, k) -> %wa[63 - j, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %pc = tensor_ir.elementwise mul(%c, %cc) : (tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32>
  %yc = tensor_ir.reduce add(%pc) over [2] : tensor<64x64x32xf32> -> tensor<64x64x1xf32>
  %v = tensor_ir.elementwise add(%top, %yc) : (tensor<64x64x1xf32>, tensor<64x64x1xf32>) -> tensor<64x64x1xf32>
  func.return %z, %v : tensor<64x64x1xf32>, tensor<64x64x1xf32>
}

// -----

// A check stops the program before all is computed, so a contraction beside it has no blocks.
// REMARK: remark: fuse-loops: k_y: declined: not merged into k_z: a contraction would stand beside indices from data, and have no blocks
func.func @main(%x: tensor<64x32xf32>, %w: tensor<64x32xf32>, %table: tensor<9x64xf32>, %at: tensor<64xi64>) -> tensor<64x64xf32> {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %b = tensor_ir.index_map (i, j, k) -> %w[j, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %p = tensor_ir.elementwise mul(%a, %b) : (tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32>
  %y = tensor_ir.reduce add(%p) over [2] : tensor<64x64x32xf32> -> tensor<64x64x1xf32>
  %c = tensor_ir.index_map (i, j) -> %y[i, j, 0] : (tensor<64x64x1xf32>) -> tensor<64x64xf32>
  %row = tensor_ir.gather %table[%at] along 0 : (tensor<9x64xf32>, tensor<64xi64>) -> tensor<64x64xf32>
  %z = tensor_ir.elementwise add(%c, %row) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %z : tensor<64x64xf32>
}

// -----

// Nor has one in a branch: a product that is put below another tensor stays a kernel.
// REMARK: remark: fuse-loops: k_y: declined: not merged into k_z: its contraction would stand under a condition, and have no blocks
func.func @main(%x: tensor<64x32xf32>, %w: tensor<64x32xf32>, %first: tensor<1x64xf32>, %bias: tensor<65x64xf32>) -> tensor<65x64xf32> {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %b = tensor_ir.index_map (i, j, k) -> %w[j, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %p = tensor_ir.elementwise mul(%a, %b) : (tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32>
  %y = tensor_ir.reduce add(%p) over [2] : tensor<64x64x32xf32> -> tensor<64x64x1xf32>
  %c = tensor_ir.index_map (i, j) -> %y[i, j, 0] : (tensor<64x64x1xf32>) -> tensor<64x64xf32>
  %both = tensor_ir.index_map (i, j) -> %first[i, j] if i < 1 else %c[i - 1, j] : (tensor<1x64xf32>, tensor<64x64xf32>) -> tensor<65x64xf32>
  %z = tensor_ir.elementwise add(%both, %bias) : (tensor<65x64xf32>, tensor<65x64xf32>) -> tensor<65x64xf32>
  func.return %z : tensor<65x64xf32>
}

// -----

// What is only widened is read where it is used: the loops stay a nest with nothing between them.
// CHECK-LABEL: loop.kernel @k_biased(
// CHECK:         loop.for %i = 0 to 4 {
// CHECK-NEXT:      loop.for %j = 0 to 8 {
// CHECK:             %[[b:.+]] = loop.load %bias[%i] : memref<4xbf16>
// CHECK-NEXT:        arith.extf %[[b]]
func.func @main(%x: tensor<4x8xf32>, %bias: tensor<4xbf16>) -> tensor<4x8xf32> {
  %wide = tensor_ir.cast %bias : tensor<4xbf16> to tensor<4xf32>
  %b = tensor_ir.index_map (i, j) -> %wide[i] : (tensor<4xf32>) -> tensor<4x8xf32>
  %biased = tensor_ir.elementwise add(%x, %b) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  func.return %biased : tensor<4x8xf32>
}

// -----

// A product that is rounded for a softmax is rounded where it is computed, not again in each of three sweeps.
// REMARK: remark: fuse-loops: k_rounded: declined: not merged into k_soft: it is the end of a contraction, which stays, and would be computed again in each sweep
// CHECK-LABEL: loop.kernel @k_rounded(
// CHECK:         reduce(add)
// CHECK:         arith.truncf
// CHECK:       loop.kernel @k_soft(
func.func @main(%x: tensor<64x32xf32>, %w: tensor<64x32xf32>) -> tensor<64x64xf32> {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %b = tensor_ir.index_map (i, j, k) -> %w[j, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %p = tensor_ir.elementwise mul(%a, %b) : (tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32>
  %y = tensor_ir.reduce add(%p) over [2] : tensor<64x64x32xf32> -> tensor<64x64x1xf32>
  %c = tensor_ir.index_map (i, j) -> %y[i, j, 0] : (tensor<64x64x1xf32>) -> tensor<64x64xf32>
  %rounded = tensor_ir.cast %c : tensor<64x64xf32> to tensor<64x64xbf16>
  %v = tensor_ir.cast %rounded : tensor<64x64xbf16> to tensor<64x64xf32>
  %m = tensor_ir.reduce max(%v) over [1] : tensor<64x64xf32> -> tensor<64x1xf32>
  %mb = tensor_ir.index_map (i, j) -> %m[i, 0] : (tensor<64x1xf32>) -> tensor<64x64xf32>
  %d = tensor_ir.elementwise sub(%v, %mb) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = tensor_ir.elementwise exp(%d) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = tensor_ir.reduce add(%e) over [1] : tensor<64x64xf32> -> tensor<64x1xf32>
  %sb = tensor_ir.index_map (i, j) -> %s[i, 0] : (tensor<64x1xf32>) -> tensor<64x64xf32>
  %soft = tensor_ir.elementwise div(%e, %sb) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %soft : tensor<64x64xf32>
}

// -----

// What another kernel has from memory anyway is read there, too, where it is smaller than what it is made of.
// REMARK: remark: fuse-loops: k_rounded: declined: not merged into k_other: another kernel has it from memory, where it is 8.2 kB less to read
// CHECK-LABEL: loop.kernel @k_rounded(
// CHECK:         reduce(add)
// CHECK:         arith.truncf
// CHECK:       loop.kernel @k_other(%rounded)
// CHECK:       loop.kernel @k_soft(%rounded)
func.func @main(%x: tensor<64x32xf32>, %w: tensor<64x32xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %b = tensor_ir.index_map (i, j, k) -> %w[j, k] : (tensor<64x32xf32>) -> tensor<64x64x32xf32>
  %p = tensor_ir.elementwise mul(%a, %b) : (tensor<64x64x32xf32>, tensor<64x64x32xf32>) -> tensor<64x64x32xf32>
  %y = tensor_ir.reduce add(%p) over [2] : tensor<64x64x32xf32> -> tensor<64x64x1xf32>
  %c = tensor_ir.index_map (i, j) -> %y[i, j, 0] : (tensor<64x64x1xf32>) -> tensor<64x64xf32>
  %rounded = tensor_ir.cast %c : tensor<64x64xf32> to tensor<64x64xbf16>
  %v = tensor_ir.cast %rounded : tensor<64x64xbf16> to tensor<64x64xf32>
  %other = tensor_ir.elementwise neg(%v) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %m = tensor_ir.reduce max(%v) over [1] : tensor<64x64xf32> -> tensor<64x1xf32>
  %mb = tensor_ir.index_map (i, j) -> %m[i, 0] : (tensor<64x1xf32>) -> tensor<64x64xf32>
  %d = tensor_ir.elementwise sub(%v, %mb) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  %e = tensor_ir.elementwise exp(%d) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %s = tensor_ir.reduce add(%e) over [1] : tensor<64x64xf32> -> tensor<64x1xf32>
  %sb = tensor_ir.index_map (i, j) -> %s[i, 0] : (tensor<64x1xf32>) -> tensor<64x64xf32>
  %soft = tensor_ir.elementwise div(%e, %sb) : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
  func.return %other, %soft : tensor<64x64xf32>, tensor<64x64xf32>
}

// -----

// The matrix of a batch that data picks without a check is read in its place: rows and columns are still boxes.
// A row that data picks is copied before.
// CHECK-LABEL: func.func @main(%x: tensor<9x32xf32>
// CHECK:         loop.kernel @rows
// CHECK-NOT:     loop.kernel @matrices
// CHECK:         loop.kernel @product
// CHECK:           %[[row:.+]] = loop.checked_index %{{.+}} below 3 proven : i64
// CHECK:           loop.load %{{.+}}[%[[row]], %{{.+}}, %{{.+}}] : memref<3x32x64xf32>
// REMARK: remark: fuse-loops: matrices: merged into product
// REMARK: remark: fuse-loops: rows: declined: not merged into product: a contraction would stand beside indices from data, and have no blocks
func.func @main(%x: tensor<9x32xf32>, %w: tensor<3x32x64xf32>, %at: tensor<4xi64>, %from: tensor<64xi64>) -> tensor<4x16x64xf32> {
  %last_matrix = tensor_ir.constant 2 : tensor<4xi64>
  %no_matrix = tensor_ir.constant 0 : tensor<4xi64>
  %from_first = tensor_ir.elementwise max(%at, %no_matrix) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %matrix = tensor_ir.elementwise min(%from_first, %last_matrix) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %last_row = tensor_ir.constant 8 : tensor<64xi64>
  %no_row = tensor_ir.constant 0 : tensor<64xi64>
  %from_top = tensor_ir.elementwise max(%from, %no_row) : (tensor<64xi64>, tensor<64xi64>) -> tensor<64xi64>
  %row = tensor_ir.elementwise min(%from_top, %last_row) : (tensor<64xi64>, tensor<64xi64>) -> tensor<64xi64>
  %rows = loop.kernel @rows(%x, %row) : (tensor<9x32xf32>, tensor<64xi64>) -> tensor<64x32xf32> {
  ^bb0(%in: memref<9x32xf32>, %id: memref<64xi64>, %out: memref<64x32xf32>):
    loop.for %i = 0 to 64 {
      %a = loop.load %id[%i] : memref<64xi64>
      %r = loop.checked_index %a below 9 proven : i64
      loop.for %k = 0 to 32 {
        %v = loop.load %in[%r, %k] : memref<9x32xf32>
        loop.store %v, %out[%i, %k] : memref<64x32xf32>
      }
    }
  }
  %matrices = loop.kernel @matrices(%w, %matrix) : (tensor<3x32x64xf32>, tensor<4xi64>) -> tensor<4x32x64xf32> {
  ^bb0(%in: memref<3x32x64xf32>, %id: memref<4xi64>, %out: memref<4x32x64xf32>):
    loop.for %t = 0 to 4 {
      %a = loop.load %id[%t] : memref<4xi64>
      %r = loop.checked_index %a below 3 proven : i64
      loop.for %k = 0 to 32 {
        loop.for %j = 0 to 64 {
          %v = loop.load %in[%r, %k, %j] : memref<3x32x64xf32>
          loop.store %v, %out[%t, %k, %j] : memref<4x32x64xf32>
        }
      }
    }
  }
  %y = loop.kernel @product(%rows, %matrices) : (tensor<64x32xf32>, tensor<4x32x64xf32>) -> tensor<4x16x64xf32> {
  ^bb0(%left: memref<64x32xf32>, %right: memref<4x32x64xf32>, %out: memref<4x16x64xf32>):
    loop.for %t = 0 to 4 {
      loop.for %i = 0 to 16 {
        loop.for %j = 0 to 64 {
          %s = loop.for %k = 0 to 32 reduce(add) -> f32 {
            %a = loop.load %left[%t * 16 + %i, %k] : memref<64x32xf32>
            %b = loop.load %right[%t, %k, %j] : memref<4x32x64xf32>
            %p = arith.mulf %a, %b : f32
            loop.yield %p : f32
          }
          loop.store %s, %out[%t, %i, %j] : memref<4x16x64xf32>
        }
      }
    }
  }
  func.return %y : tensor<4x16x64xf32>
}
