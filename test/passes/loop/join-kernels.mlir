// RUN: deplo-opt %s -p 'lift-to-loops,fuse-loops{target=cpu},join-kernels{target=cpu}' --split-input-file | FileCheck %s
// RUN: deplo-opt %s -p 'lift-to-loops,fuse-loops{target=cpu},join-kernels{target=cpu}' --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: deplo-opt %s -p 'lift-to-loops,fuse-loops{target=cpu},join-kernels{target=cpu}' --split-input-file --check-each-pass >/dev/null
// RUN: deplo-opt %s -p "lift-to-loops,fuse-loops{target=cpu},join-kernels{target=sm_90a}" --split-input-file --remarks 2>&1 >/dev/null | FileCheck %s --check-prefix=GPU

// What reads a result where it is stored takes the value, and loads nothing.
// CHECK-LABEL: func.func @main
// CHECK-NEXT:    %y, %z = loop.kernel @k_y(%x) : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK-NEXT:    ^bb0(%x: memref<4xf32>, %y: memref<4xf32>, %z: memref<4xf32>):
// CHECK-NEXT:      loop.for %i = 0 to 4 {
// CHECK-NEXT:        %x_1 = loop.load %x[%i] : memref<4xf32>
// CHECK-NEXT:        %[[y:.+]] = math.exp %x_1 : f32
// CHECK-NEXT:        loop.store %[[y]], %y[%i] : memref<4xf32>
// CHECK-NEXT:        %[[z:.+]] = arith.negf %[[y]] : f32
// CHECK-NEXT:        loop.store %[[z]], %z[%i] : memref<4xf32>
// CHECK:         func.return %y, %z
// REMARK: remark: join-kernels: k_y: joined with k_z
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y = tensor_ir.elementwise exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %z = tensor_ir.elementwise neg(%y) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y, %z : tensor<4xf32>, tensor<4xf32>
}

// -----

// A mean that is saved and what is computed with it: the row is a part of the same iteration. On a GPU a block
// has a row, and there is one for each multiprocessor, or the kernels stay apart.
// GPU: remark: join-kernels: k_y: declined: not joined with k_m: few iterations would have to do all
// CHECK-LABEL: func.func @main(%x: tensor<16x8xf32>)
// CHECK-NEXT:    %m, %y = loop.kernel @k_m(%x) : (tensor<16x8xf32>) -> (tensor<16x1xf32>, tensor<16x8xf32>) {
// CHECK:           loop.for %i = 0 to 16 {
// CHECK-NEXT:        %[[s:.+]] = loop.for %{{.+}} = 0 to 8 reduce(add) -> f32 {
// CHECK:             %[[m:.+]] = arith.divf %[[s]], %{{.+}} : f32
// CHECK:             loop.store %[[m]], %m[%i, 0]
// CHECK:             loop.for %{{.+}} = 0 to 8 {
// CHECK:               arith.subf %{{.+}}, %[[m]] : f32
// CHECK-NOT:     loop.kernel
func.func @main(%x: tensor<16x8xf32>) -> (tensor<16x1xf32>, tensor<16x8xf32>) {
  %s = tensor_ir.reduce add(%x) over [1] : tensor<16x8xf32> -> tensor<16x1xf32>
  %n = tensor_ir.constant 8.0 : tensor<16x1xf32>
  %m = tensor_ir.elementwise div(%s, %n) : (tensor<16x1xf32>, tensor<16x1xf32>) -> tensor<16x1xf32>
  %b = tensor_ir.index_map (i, j) -> %m[i, 0] : (tensor<16x1xf32>) -> tensor<16x8xf32>
  %y = tensor_ir.elementwise sub(%x, %b) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  func.return %m, %y : tensor<16x1xf32>, tensor<16x8xf32>
}

// -----

// A sum that only they read, as two places would round it, is no output any more.
// CHECK-LABEL: func.func @main(%x: tensor<16x9xf32>)
// CHECK-NEXT:    %m, %r = loop.kernel @k_s(%x) : (tensor<16x9xf32>) -> (tensor<16x1xf32>, tensor<16x1xf32>) {
// CHECK-NEXT:    ^bb0(%x: memref<16x9xf32>, %m: memref<16x1xf32>, %r: memref<16x1xf32>):
// CHECK:           %[[s:.+]] = loop.for %{{.+}} = 0 to 9 reduce(add)
// CHECK-NOT:       loop.store %[[s]]
// CHECK:           loop.store
// CHECK:           loop.store
// CHECK-NOT:       loop.store
// CHECK:         func.return %m, %r
func.func @main(%x: tensor<16x9xf32>) -> (tensor<16x1xf32>, tensor<16x1xf32>) {
  %s = tensor_ir.reduce add(%x) over [1] : tensor<16x9xf32> -> tensor<16x1xf32>
  %m = tensor_ir.elementwise neg(%s) : (tensor<16x1xf32>) -> tensor<16x1xf32>
  %r = tensor_ir.elementwise exp(%s) : (tensor<16x1xf32>) -> tensor<16x1xf32>
  func.return %m, %r : tensor<16x1xf32>, tensor<16x1xf32>
}

// -----

// A loop over channels is split where the other kernel has groups of them.
// CHECK-LABEL: func.func @main(%x: tensor<8x6x9xf32>)
// CHECK-NEXT:    %y, %z = loop.kernel @k_y
// CHECK:           loop.for %[[i:.+]] = 0 to 8 {
// CHECK-NEXT:        loop.for %[[g:.+]] = 0 to 2 {
// CHECK-NEXT:          loop.for %[[c:.+]] = 0 to 3 {
// CHECK-NEXT:            loop.for %[[k:.+]] = 0 to 9 {
// CHECK:                   loop.store %[[y:.+]], %out[%[[i]], %[[g]] * 3 + %[[c]], %[[k]]]
// CHECK-NEXT:              %[[z:.+]] = arith.negf %[[y]] : f32
// CHECK-NEXT:              loop.store %[[z]], %z[%[[i]], %[[g]] * 3 + %[[c]], %[[k]]]
func.func @main(%x: tensor<8x6x9xf32>) -> (tensor<8x6x9xf32>, tensor<8x6x9xf32>) {
  %y = loop.kernel @k_y(%x) : (tensor<8x6x9xf32>) -> tensor<8x6x9xf32> {
  ^bb0(%in: memref<8x6x9xf32>, %out: memref<8x6x9xf32>):
    loop.for %i = 0 to 8 {
      loop.for %g = 0 to 2 {
        loop.for %c = 0 to 3 {
          loop.for %k = 0 to 9 {
            %v = loop.load %in[%i, %g * 3 + %c, %k] : memref<8x6x9xf32>
            %e = math.exp %v : f32
            loop.store %e, %out[%i, %g * 3 + %c, %k] : memref<8x6x9xf32>
          }
        }
      }
    }
  }
  %z = tensor_ir.elementwise neg(%y) : (tensor<8x6x9xf32>) -> tensor<8x6x9xf32>
  func.return %y, %z : tensor<8x6x9xf32>, tensor<8x6x9xf32>
}

// -----

// Sums of columns of one array: they have the same loops, and read the same.
// CHECK-LABEL: func.func @main(%g: tensor<16x8xf32>, %x: tensor<16x8xf32>)
// CHECK-NEXT:    %s, %t = loop.kernel @k_s(%g, %x)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      loop.for %[[j:.+]] = 0 to 8 {
// CHECK:             loop.for %{{.+}} = 0 to 16 reduce(add)
// CHECK:             loop.store %{{.+}}, %s[0, %[[j]]]
// CHECK:             loop.for %{{.+}} = 0 to 16 reduce(add)
// CHECK:             loop.store %{{.+}}, %t[0, %[[j]]]
// CHECK-NOT:     loop.kernel
// REMARK: remark: join-kernels: k_s: joined with k_t
func.func @main(%g: tensor<16x8xf32>, %x: tensor<16x8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
  %s = tensor_ir.reduce add(%g) over [0] : tensor<16x8xf32> -> tensor<1x8xf32>
  %p = tensor_ir.elementwise mul(%g, %x) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %t = tensor_ir.reduce add(%p) over [0] : tensor<16x8xf32> -> tensor<1x8xf32>
  func.return %s, %t : tensor<1x8xf32>, tensor<1x8xf32>
}

// -----

// The sums of a product are saved, and gone on with: so does a contraction. What sums its results stays apart.
// CHECK-LABEL: func.func @main(%x: tensor<16x4xf32>, %w: tensor<8x4xf32>)
// CHECK-NEXT:    %c, %r = loop.kernel @k_c(%w, %x)
// CHECK:           %[[c:.+]] = loop.for %{{.+}} = 0 to 4 reduce(add)
// CHECK:           loop.store %[[c]], %c[%i, %j, 0]
// CHECK:           %[[r:.+]] = math.exp %[[c]]
// CHECK:           loop.store %[[r]], %r[%i, %j, 0]
// CHECK:         loop.kernel @k_t(%c)
// REMARK: remark: join-kernels: k_c: joined with k_r
// REMARK: remark: join-kernels: k_t: declined: not joined with k_c: a contraction has registers and packed operands of its own
func.func @main(%x: tensor<16x4xf32>, %w: tensor<8x4xf32>) -> (tensor<16x8x1xf32>, tensor<16x8x1xf32>, tensor<16x1x1xf32>) {
  %a = tensor_ir.index_map (i, j, k) -> %x[i, k] : (tensor<16x4xf32>) -> tensor<16x8x4xf32>
  %b = tensor_ir.index_map (i, j, k) -> %w[j, k] : (tensor<8x4xf32>) -> tensor<16x8x4xf32>
  %p = tensor_ir.elementwise mul(%a, %b) : (tensor<16x8x4xf32>, tensor<16x8x4xf32>) -> tensor<16x8x4xf32>
  %c = tensor_ir.reduce add(%p) over [2] : tensor<16x8x4xf32> -> tensor<16x8x1xf32>
  %r = tensor_ir.elementwise exp(%c) : (tensor<16x8x1xf32>) -> tensor<16x8x1xf32>
  %t = tensor_ir.reduce max(%c) over [1] : tensor<16x8x1xf32> -> tensor<16x1x1xf32>
  func.return %c, %r, %t : tensor<16x8x1xf32>, tensor<16x8x1xf32>, tensor<16x1x1xf32>
}

// -----

// Declined: other elements, other loops, and few iterations that would have to do all.
// CHECK-LABEL: func.func @main(%x: tensor<2x64xf32>)
// CHECK-COUNT-4: loop.kernel
// CHECK-NOT:     loop.kernel
// REMARK-DAG: remark: join-kernels: k_f: declined: not joined with k_y: reads other elements than those that its iteration stores
// REMARK-DAG: remark: join-kernels: k_t: declined: not joined with k_y: has loops of its own
// REMARK-DAG: remark: join-kernels: k_o: declined: not joined with k_t: few iterations would have to do all
func.func @main(%x: tensor<2x64xf32>) -> (tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x1xf32>, tensor<2x64xf32>) {
  %y = tensor_ir.elementwise exp(%x) : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %f = tensor_ir.index_map (i, j) -> %y[i, 63 - j] : (tensor<2x64xf32>) -> tensor<2x64xf32>
  %t = tensor_ir.reduce add(%y) over [1] : tensor<2x64xf32> -> tensor<2x1xf32>
  %b = tensor_ir.index_map (i, j) -> %t[i, 0] : (tensor<2x1xf32>) -> tensor<2x64xf32>
  %o = tensor_ir.elementwise sub(%x, %b) : (tensor<2x64xf32>, tensor<2x64xf32>) -> tensor<2x64xf32>
  func.return %y, %f, %t, %o : tensor<2x64xf32>, tensor<2x64xf32>, tensor<2x1xf32>, tensor<2x64xf32>
}

// -----

// What is stored in pieces, in loops that the other kernel has not, or needed in between.
// CHECK-LABEL: func.func @main(%x: tensor<16xf32>, %u: tensor<16xf32>)
// CHECK-COUNT-7: loop.kernel
// CHECK-NOT:     loop.kernel
// REMARK-DAG: remark: join-kernels: k_q: declined: not joined with k_p: what it reads is stored in several places, or under a condition
// REMARK-DAG: remark: join-kernels: k_b: declined: not joined with k_a: has loops of its own
// REMARK-DAG: remark: join-kernels: k_d: declined: not joined with k_c: what stands between them needs the one and gives something to the other
func.func @main(%x: tensor<16xf32>, %u: tensor<16xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<1xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
  %p = loop.kernel @k_p(%x) : (tensor<16xf32>) -> tensor<16xf32> {
  ^bb0(%in: memref<16xf32>, %out: memref<16xf32>):
    loop.for %i = 0 to 8 {
      %v = loop.load %in[%i] : memref<16xf32>
      loop.store %v, %out[%i] : memref<16xf32>
      loop.store %v, %out[%i + 8] : memref<16xf32>
    }
  }
  %q = loop.kernel @k_q(%p) : (tensor<16xf32>) -> tensor<16xf32> {
  ^bb0(%in: memref<16xf32>, %out: memref<16xf32>):
    loop.for %i = 0 to 16 {
      %v = loop.load %in[%i] : memref<16xf32>
      %n = arith.negf %v : f32
      loop.store %n, %out[%i] : memref<16xf32>
    }
  }
  %a = loop.kernel @k_a(%u) : (tensor<16xf32>) -> tensor<16xf32> {
  ^bb0(%in: memref<16xf32>, %out: memref<16xf32>):
    loop.for %i = 0 to 16 {
      %v = loop.load %in[%i] : memref<16xf32>
      loop.store %v, %out[%i] : memref<16xf32>
    }
  }
  %b = loop.kernel @k_b(%a) : (tensor<16xf32>) -> tensor<1xf32> {
  ^bb0(%in: memref<16xf32>, %out: memref<1xf32>):
    %s = loop.for %i = 0 to 16 reduce(add) -> f32 {
      %v = loop.load %in[%i] : memref<16xf32>
      loop.yield %v : f32
    }
    loop.store %s, %out[0] : memref<1xf32>
  }
  %c = loop.kernel @k_c(%a, %q) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> {
  ^bb0(%in: memref<16xf32>, %by: memref<16xf32>, %out: memref<16xf32>):
    loop.for %i = 0 to 16 {
      %v = loop.load %in[15 - %i] : memref<16xf32>
      %w = loop.load %by[15 - %i] : memref<16xf32>
      %m = arith.mulf %v, %w : f32
      loop.store %m, %out[%i] : memref<16xf32>
    }
  }
  %k = loop.kernel @k_k(%c) : (tensor<16xf32>) -> tensor<16xf32> {
  ^bb0(%in: memref<16xf32>, %out: memref<16xf32>):
    loop.for %i = 0 to 16 {
      %v = loop.load %in[15 - %i] : memref<16xf32>
      loop.store %v, %out[%i] : memref<16xf32>
    }
  }
  %d = loop.kernel @k_d(%c, %k) : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32> {
  ^bb0(%in: memref<16xf32>, %by: memref<16xf32>, %out: memref<16xf32>):
    loop.for %i = 0 to 16 {
      %v = loop.load %in[%i] : memref<16xf32>
      %w = loop.load %by[15 - %i] : memref<16xf32>
      %m = arith.addf %v, %w : f32
      loop.store %m, %out[%i] : memref<16xf32>
    }
  }
  func.return %p, %q, %a, %b, %c, %k, %d : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<1xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}

// -----

// A check of indices comes first or last, as it does; and a kernel has few outputs, and few reductions.
// CHECK-LABEL: func.func @main(%x: tensor<4xf32>, %i: tensor<4xi64>)
// REMARK-DAG: remark: join-kernels: k_n: declined: not joined with k_g: one checks indices, or changes an input
// REMARK-DAG: remark: join-kernels: k_v: declined: not joined with k_n: a kernel has at most 6 outputs
func.func @main(%x: tensor<4xf32>, %i: tensor<4xi64>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %g = tensor_ir.gather %x[%i] along 0 : (tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  %n = tensor_ir.elementwise neg(%g) : (tensor<4xf32>) -> tensor<4xf32>
  %o = tensor_ir.elementwise exp(%n) : (tensor<4xf32>) -> tensor<4xf32>
  %p = tensor_ir.elementwise exp(%o) : (tensor<4xf32>) -> tensor<4xf32>
  %q = tensor_ir.elementwise exp(%p) : (tensor<4xf32>) -> tensor<4xf32>
  %r = tensor_ir.elementwise exp(%q) : (tensor<4xf32>) -> tensor<4xf32>
  %s = tensor_ir.elementwise exp(%r) : (tensor<4xf32>) -> tensor<4xf32>
  %v = tensor_ir.elementwise exp(%s) : (tensor<4xf32>) -> tensor<4xf32>
  %t = tensor_ir.elementwise exp(%v) : (tensor<4xf32>) -> tensor<4xf32>
  func.return %g, %n, %o, %p, %q, %r, %s, %v, %t : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

// Searches for extrema stay apart, and so does a sum beside too many.
// CHECK-LABEL: func.func @main(%x: tensor<16x8xf32>, %only: tensor<1xf32>)
// CHECK-COUNT-4: loop.kernel
// CHECK-NOT:     loop.kernel
// REMARK: remark: join-kernels: k_e: declined: not joined with k_a: a kernel has at most 4 reductions
func.func @main(%x: tensor<16x8xf32>, %only: tensor<1xf32>) -> (tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>) {
  %a = tensor_ir.reduce add(%x) over [1] : tensor<16x8xf32> -> tensor<16x1xf32>
  %p = tensor_ir.elementwise mul(%x, %x) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %b = tensor_ir.reduce add(%p) over [1] : tensor<16x8xf32> -> tensor<16x1xf32>
  %q = tensor_ir.elementwise mul(%x, %p) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %c = tensor_ir.reduce add(%q) over [1] : tensor<16x8xf32> -> tensor<16x1xf32>
  %r = tensor_ir.elementwise mul(%p, %p) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %d = tensor_ir.reduce add(%r) over [1] : tensor<16x8xf32> -> tensor<16x1xf32>
  %s = tensor_ir.elementwise mul(%p, %q) : (tensor<16x8xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
  %e = tensor_ir.reduce add(%s) over [1] : tensor<16x8xf32> -> tensor<16x1xf32>
  %m = tensor_ir.reduce max(%x) over [1] : tensor<16x8xf32> -> tensor<16x1xf32>
  %n = tensor_ir.reduce min(%x) over [1] : tensor<16x8xf32> -> tensor<16x1xf32>
  func.return %a, %b, %c, %d, %e, %m, %n : tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x1xf32>
}

// -----

// A size that is found in data is not known before the call that finds it.
// REMARK: remark: join-kernels: k_z: declined: not joined with k_y: what stands between them needs the one and gives something to the other
// CHECK-LABEL: func.func @main
// CHECK:         %y = loop.kernel @k_y(%x)
// CHECK:         tensor_ir.call "deplo.size.default"
// CHECK:         %z = loop.kernel @k_z(%x)
func.func @main(%x: tensor<4xi64>, %n: tensor<1xi64>) -> (tensor<4xi64>, tensor<4xi64>, tensor<?xi8, #sym.extents<s0>>) attributes {sym.sizes = [#sym.size<"rows", 0, 12, hint = 6>]} {
  %y = tensor_ir.elementwise neg(%x) : (tensor<4xi64>) -> tensor<4xi64>
  %c = tensor_ir.call "deplo.view.default"(x = %y) : (tensor<4xi64>) -> tensor<4xi64>
  %rows = tensor_ir.call "deplo.size.default"(count = %n) : (tensor<1xi64>) -> tensor<?xi8, #sym.extents<s0>>
  %s = tensor_ir.size s0 : tensor<4xi64>
  %z = tensor_ir.elementwise add(%x, %s) : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  func.return %c, %z, %rows : tensor<4xi64>, tensor<4xi64>, tensor<?xi8, #sym.extents<s0>>
}

// -----

// A loop that never runs has no part of four places.
// REMARK: remark: join-kernels: k_z: declined: not joined with k_y: reads other elements than those that its iteration stores
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: loop.kernel
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<0xf32>) {
  %y = tensor_ir.elementwise exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %p = tensor_ir.index_map (i) -> %y[i] : (tensor<4xf32>) -> tensor<0xf32>
  %z = tensor_ir.elementwise neg(%p) : (tensor<0xf32>) -> tensor<0xf32>
  func.return %y, %z : tensor<4xf32>, tensor<0xf32>
}

// -----

// A kernel that reads nothing of what it is given runs as often as it says.
// REMARK: remark: join-kernels: k_z: declined: not joined with k_y: has loops of its own
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: loop.kernel
func.func @main(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<6xf32>) {
  %y = tensor_ir.elementwise exp(%x) : (tensor<4xf32>) -> tensor<4xf32>
  %z = loop.kernel @k_z(%y) : (tensor<4xf32>) -> tensor<6xf32> {
  ^bb0(%y_1: memref<4xf32>, %z_1: memref<6xf32>):
    loop.for %i = 0 to 6 {
      %c = arith.constant 1.0 : f32
      loop.store %c, %z_1[%i] : memref<6xf32>
    }
  }
  func.return %y, %z : tensor<4xf32>, tensor<6xf32>
}
