// Each check of the sym dialect has an example that fails it.
// RUN: deplo-opt --split-input-file --verify-diagnostics %s

// expected-error@+1 {{the extent 4 belongs into the shape}}
func.func private @f(tensor<?xf32, #sym.extents<4>>)

// -----

// expected-error@+1 {{the extent 0 belongs into the shape}}
func.func private @f(tensor<?xf32, #sym.extents<s0 - s0>>)

// -----

// expected-error@+1 {{expected an index expression: a name, a size, an integer or `(`}}
func.func private @f(tensor<?xf32, #sym.extents<n>>)

// -----

// expected-error@+1 {{an index divides by positive constants and sizes only}}
func.func private @f(tensor<?xf32, #sym.extents<s0 floordiv (s1 - s1)>>)

// -----

func.func @main(%x: tensor<?xf32>) {
  // expected-error@+1 {{tensor<?xf32> has 1 dynamic extents, #sym.extents names 0}}
  %0 = tensor_ir.elementwise neg(%x) : (tensor<?xf32>) -> tensor<?xf32>
  func.return
}

// -----

func.func @main(%x: tensor<?xf32, #sym.extents<s0, s1>>) {
  // expected-error@+1 {{has 1 dynamic extents, #sym.extents names 2}}
  %0 = tensor_ir.cast %x : tensor<?xf32, #sym.extents<s0, s1>> to tensor<?xf16, #sym.extents<s0, s1>>
  func.return
}

// -----

func.func @main(%x: tensor<?xf32, #sym.extents<s0>>, %y: tensor<?xf32, #sym.extents<s1>>) {
  // expected-error@+1 {{operands and result must have one shape}}
  %0 = tensor_ir.elementwise add(%x, %y) : (tensor<?xf32, #sym.extents<s0>>, tensor<?xf32, #sym.extents<s1>>) -> tensor<?xf32, #sym.extents<s0>>
  func.return
}

// -----

func.func @main(%x: tensor<?x4xf32, #sym.extents<s0>>) {
  // expected-error@+1 {{expected result tensor<1x4xf32>}}
  %0 = tensor_ir.reduce add(%x) over [0] : tensor<?x4xf32, #sym.extents<s0>> -> tensor<?x4xf32, #sym.extents<s0>>
  func.return
}

// -----

// expected-error@+1 {{size "n" must allow sizes from 0 to 2147483647, got 0 to 0}}
func.func private @f() attributes {sym.sizes = [#sym.size<"n", 0, 0>]}

// -----

// expected-error@+1 {{size "n" must allow sizes from 0 to 2147483647, got 8 to 4}}
func.func private @f() attributes {sym.sizes = [#sym.size<"n", 8, 4>]}

// -----

// expected-error@+1 {{the hint of "n" must be positive}}
func.func private @f() attributes {sym.sizes = [#sym.size<"n", 1, none, hint = 0>]}

// -----

func.func @main(%x: tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>> {
  %y = loop.kernel @k(%x) : (tensor<?xf32, #sym.extents<s0>>) -> tensor<?xf32, #sym.extents<s0>> {
  ^bb0(%x: memref<?xf32, #sym.extents<s0>>, %y: memref<?xf32, #sym.extents<s0>>):
    // expected-error@+1 {{the number of threads must be constant, got s0}}
    tile.launch (%t = s0 : thread) schedule(#tile.schedule<>) {
      %v = loop.load %x[%t] : memref<?xf32, #sym.extents<s0>>
      loop.store %v, %y[%t] : memref<?xf32, #sym.extents<s0>>
    }
  }
  func.return %y : tensor<?xf32, #sym.extents<s0>>
}
