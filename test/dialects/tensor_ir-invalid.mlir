// What each check of the tensor_ir dialect says.
// RUN: deplo-opt %s --split-input-file --verify-diagnostics

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{add takes 2 operands, got 1}}
  %0 = tensor_ir.elementwise add(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{select chooses by an i1 operand, got f32}}
  %0 = tensor_ir.elementwise select(%x, %x, %x) : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error@+1 {{add needs operands of one element type, got f32, f64}}
  %0 = tensor_ir.elementwise add(%x, %y) : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf64>
  func.return
}

// -----

func.func @main(%x: tensor<4xf16>) {
  // expected-error@+1 {{add is not defined on f16; cast to f32 first}}
  %0 = tensor_ir.elementwise add(%x, %x) : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  func.return
}

// -----

func.func @main(%x: tensor<4xi32>) {
  // expected-error@+1 {{exp is not defined on i32}}
  %0 = tensor_ir.elementwise exp(%x) : (tensor<4xi32>) -> tensor<4xi32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{lt gives i1 elements, not f32}}
  %0 = tensor_ir.elementwise lt(%x, %x) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>, %y: tensor<1xf32>) {
  // expected-error@+1 {{operands and result must have one shape (broadcast with an index_map)}}
  %0 = tensor_ir.elementwise add(%x, %y) : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{Expected `add`, `sub`}}
  %0 = tensor_ir.elementwise sine(%x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xui8>) {
  // expected-error@+1 {{add is not defined on ui8; cast to i32 first}}
  %0 = tensor_ir.elementwise add(%x, %x) : (tensor<4xui8>, tensor<4xui8>) -> tensor<4xui8>
  func.return
}

// -----

func.func @main(%x: tensor<4xui8>) {
  // expected-error@+1 {{max does not fold values of ui8; cast to i32 first}}
  %0 = tensor_ir.reduce max(%x) over [0] : tensor<4xui8> -> tensor<1xui8>
  func.return
}

// -----

func.func @main(%x: tensor<4xui16>) {
  // expected-error@+1 {{add is not defined on ui16}}
  %0 = tensor_ir.elementwise add(%x, %x) : (tensor<4xui16>, tensor<4xui16>) -> tensor<4xui16>
  func.return
}

// -----

func.func @main(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{axes must be increasing and within rank 2, got [2]}}
  %0 = tensor_ir.reduce add(%x) over [2] : tensor<4x8xf32> -> tensor<4x8xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{axes must be increasing and within rank 2, got [1, 0]}}
  %0 = tensor_ir.reduce add(%x) over [1, 0] : tensor<4x8xf32> -> tensor<1x1xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4x8xf32>) {
  // expected-error@+1 {{expected result tensor<4x1xf32>, got tensor<4xf32>}}
  %0 = tensor_ir.reduce add(%x) over [1] : tensor<4x8xf32> -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xbf16>) {
  // expected-error@+1 {{add does not fold values of bf16; cast to f32 first}}
  %0 = tensor_ir.reduce add(%x) over [0] : tensor<4xbf16> -> tensor<1xbf16>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{any does not fold values of f32}}
  %0 = tensor_ir.reduce any(%x) over [0] : tensor<4xf32> -> tensor<1xf32>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{needs at least one source}}
  %0 = "tensor_ir.index_map"() <{maps = [], conditions = []}> : () -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{1 sources need as many maps and conditions, got 0 and 0}}
  %0 = "tensor_ir.index_map"(%x) <{maps = [], conditions = []}> : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{a source without a condition must be the last}}
  %0 = tensor_ir.index_map (i) -> %x[i] else %x[i] : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{needs a fill value exactly when its last source has a condition}}
  %0 = tensor_ir.index_map (i) -> %x[i] if i < 4 : (tensor<4xf32>) -> tensor<6xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{needs a fill value exactly when its last source has a condition}}
  %0 = tensor_ir.index_map (i) -> %x[i] else 0.0 : (tensor<4xf32>) -> tensor<6xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{fill is i32, result holds f32}}
  %0 = "tensor_ir.index_map"(%x) <{maps = [affine_map<(d0) -> (d0)>], conditions = [affine_set<(d0) : (d0 >= 0)>], fill = 0 : i32}> : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{source holds f32, result f64}}
  %0 = tensor_ir.index_map (i) -> %x[i] : (tensor<4xf32>) -> tensor<4xf64>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{index declares 2 symbols, its largest makes that 1}}
  %0 = "tensor_ir.index_map"(%x) <{maps = [affine_map<(d0)[s0, s1] -> (s0)>], conditions = [affine_set<(d0) : ()>]}> : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{maps and conditions must have 1 dims, one per result axis}}
  %0 = tensor_ir.index_map (i, j) -> %x[i] : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{2 indices into rank-1 tensor<4xf32>}}
  %0 = tensor_ir.index_map (i) -> %x[i, i] : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{an index multiplies by constants and sizes only}}
  %0 = tensor_ir.index_map (i) -> %x[i * i] : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{an index divides by positive constants and sizes only}}
  %0 = tensor_ir.index_map (i) -> %x[i floordiv 0] : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{expected an index expression}}
  %0 = tensor_ir.index_map (i) -> %x[k] : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{tensor<4xf32, #sym.extents<s0>> has 0 dynamic extents, #sym.extents names 1}}
  %0 = tensor_ir.index_map (i) -> %x[i] : (tensor<4xf32>) -> tensor<4xf32, #sym.extents<s0>>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{s0 names a size; name the axis otherwise}}
  %0 = tensor_ir.index_map (s0) -> %x[s0] : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4x4xf32>) {
  // expected-error@+1 {{i names two axes; name one of them otherwise}}
  %0 = tensor_ir.index_map (i, i) -> %x[i, i] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{value is i64, result holds f32}}
  %0 = "tensor_ir.constant"() <{value = 1 : i64}> : () -> tensor<4xf32>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{expected an integer for element type i64}}
  %0 = tensor_ir.constant 0.5 : tensor<4xi64>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{300 does not fit i8}}
  %0 = tensor_ir.constant 300 : tensor<4xi8>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{element type ui16 is not supported}}
  %0 = tensor_ir.constant 1 : tensor<4xui16>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{expected a tensor type, got f32}}
  %0 = tensor_ir.constant 1 : f32
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{counts in integers, not f32}}
  %0 = tensor_ir.iota 0 : tensor<4xf32>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{axis 1 is not an axis of tensor<4xi64>}}
  %0 = tensor_ir.iota 1 : tensor<4xi64>
  func.return
}

// -----

func.func @main() {
  // expected-error@+1 {{tensor<?xi64> has 1 dynamic extents, #sym.extents names 0}}
  %0 = tensor_ir.iota 0 : tensor<?xi64>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{must keep the shape}}
  %0 = tensor_ir.cast %x : tensor<4xf32> to tensor<5xf16>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{is not supported}}
  %0 = tensor_ir.cast %x : tensor<4xf32> to tensor<4xcomplex<f32>>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>, %i: tensor<2xf32>) {
  // expected-error@+1 {{indices must be integers, got f32}}
  %0 = tensor_ir.gather %x[%i] along 0 : (tensor<4xf32>, tensor<2xf32>) -> tensor<2xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{axis 1 is not an axis of tensor<4xf32>}}
  %0 = tensor_ir.gather %x[%i] along 1 : (tensor<4xf32>, tensor<2xi64>) -> tensor<2xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>, %i: tensor<2xi64>) {
  // expected-error@+1 {{expected result tensor<2xf32>, got tensor<3xf32>}}
  %0 = tensor_ir.gather %x[%i] along 0 : (tensor<4xf32>, tensor<2xi64>) -> tensor<3xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{callee must read namespace.operator.overload, got 'aten.exp'}}
  %0 = tensor_ir.call "aten.exp"(input = %x) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf64>) {
  // expected-error@+1 {{fmod is not defined on f64}}
  %0 = tensor_ir.elementwise fmod(%x, %x) : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  func.return
}

// -----

func.func @main(%x: tensor<5xf16>, %i: tensor<4xi64>, %u: tensor<4xf16>) {
  // expected-error@+1 {{add does not fold values of f16; cast to f32 first}}
  %0 = tensor_ir.scatter add %x[%i] along 0 from %u : (tensor<5xf16>, tensor<4xi64>, tensor<4xf16>) -> tensor<5xf16>
  func.return
}

// -----

func.func @main(%x: tensor<5xf32>, %u: tensor<4xf32>) {
  // expected-error@+1 {{indices must be integers, got f32}}
  %0 = tensor_ir.scatter add %x[%u] along 0 from %u : (tensor<5xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<5xf32>
  func.return
}

// -----

func.func @main(%x: tensor<5x3xf32>, %i: tensor<4x1xi64>, %u: tensor<4x3xf32>) {
  // expected-error@+1 {{axis 2 is not an axis of tensor<5x3xf32>}}
  %0 = tensor_ir.scatter add %x[%i] along 2 from %u : (tensor<5x3xf32>, tensor<4x1xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
  func.return
}

// -----

func.func @main(%x: tensor<5x3xf32>, %i: tensor<4xi64>, %u: tensor<4x3xf32>) {
  // expected-error@+1 {{indices and updates must have 2 axes, as tensor<5x3xf32> has}}
  %0 = tensor_ir.scatter add %x[%i] along 0 from %u : (tensor<5x3xf32>, tensor<4xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
  func.return
}

// -----

func.func @main(%x: tensor<5x3xf32>, %i: tensor<4x1xi64>, %u: tensor<4x2xf32>) {
  // expected-error@+1 {{expected updates tensor<4x3xf32>, got tensor<4x2xf32>}}
  %0 = tensor_ir.scatter add %x[%i] along 0 from %u : (tensor<5x3xf32>, tensor<4x1xi64>, tensor<4x2xf32>) -> tensor<5x3xf32>
  func.return
}

// -----

func.func @main(%x: tensor<5x3xf32>, %i: tensor<1x1xi64>, %u: tensor<4x3xf32>) {
  // expected-error@+1 {{indices tensor<1x1xi64> do not fit updates tensor<4x3xf32>}}
  %0 = tensor_ir.scatter add %x[%i] along 0 from %u : (tensor<5x3xf32>, tensor<1x1xi64>, tensor<4x3xf32>) -> tensor<5x3xf32>
  func.return
}

// -----

func.func @main(%x: tensor<5x3xf32>, %i: tensor<4x1xi64>, %u: tensor<4x3xf32>) {
  // expected-error@+1 {{expected result tensor<5x3xf32>, got tensor<5x4xf32>}}
  %0 = tensor_ir.scatter add %x[%i] along 0 from %u : (tensor<5x3xf32>, tensor<4x1xi64>, tensor<4x3xf32>) -> tensor<5x4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf16>) {
  // expected-error@+1 {{lt is not defined on f16; cast to f32 first}}
  %0, %1 = tensor_ir.sort %x along 0 : tensor<4xf16> -> (tensor<4xf16>, tensor<4xi64>)
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{axis 1 is not an axis of tensor<4xf32>}}
  %0, %1 = tensor_ir.sort %x along 1 : tensor<4xf32> -> (tensor<4xf32>, tensor<4xi64>)
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{gives 5 of 4 values}}
  %0, %1 = tensor_ir.sort %x along 0 : tensor<4xf32> -> (tensor<5xf32>, tensor<5xi64>)
  func.return
}

// -----

func.func @main(%x: tensor<4x3xf32>) {
  // expected-error@+1 {{expected tensor<2x3xf32> and tensor<2x3xi64>, got tensor<2x3xf32> and tensor<2x3xi32>}}
  %0, %1 = tensor_ir.sort %x along 0 : tensor<4x3xf32> -> (tensor<2x3xf32>, tensor<2x3xi32>)
  func.return
}

// -----

func.func @main(%n: tensor<1xi64>, %x: tensor<4xbf16>) {
  // expected-error@+1 {{lt is not defined on bf16; cast to f32 first}}
  %0 = tensor_ir.nth_element %n of %x along 0 : (tensor<1xi64>, tensor<4xbf16>) -> tensor<1xi64>
  func.return
}

// -----

func.func @main(%n: tensor<1xi64>, %x: tensor<4xf32>) {
  // expected-error@+1 {{axis 1 is not an axis of tensor<4xf32>}}
  %0 = tensor_ir.nth_element %n of %x along 1 : (tensor<1xi64>, tensor<4xf32>) -> tensor<1xi64>
  func.return
}

// -----

func.func @main(%n: tensor<3x1xi64>, %x: tensor<3x0xf32>) {
  // expected-error@+1 {{axis 1 of tensor<3x0xf32> has no elements}}
  %0 = tensor_ir.nth_element %n of %x along 1 : (tensor<3x1xi64>, tensor<3x0xf32>) -> tensor<3x1xi64>
  func.return
}

// -----

func.func @main(%n: tensor<3x2xi64>, %x: tensor<4x8xf32>) {
  // expected-error@+1 {{expected places tensor<4x2xi64>, got tensor<3x2xi64>}}
  %0 = tensor_ir.nth_element %n of %x along 1 : (tensor<3x2xi64>, tensor<4x8xf32>) -> tensor<3x2xi64>
  func.return
}

// -----

func.func @main(%n: tensor<4x2xi64>, %x: tensor<4x8xf32>) {
  // expected-error@+1 {{expected result tensor<4x2xi64>, got tensor<4x2xi32>}}
  %0 = tensor_ir.nth_element %n of %x along 1 : (tensor<4x2xi64>, tensor<4x8xf32>) -> tensor<4x2xi32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{weight does not fold by itself; it needs a max beside it}}
  %0 = tensor_ir.reduce weight(%x) over [0] : tensor<4xf32> -> tensor<1xf32>
  func.return
}

// -----

func.func private @step(%h: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @main(%h: tensor<4xf32>, %x: tensor<9x4xf32>) {
  // expected-error@+1 {{slices and results need one number of steps, not 0, as their first axis, got tensor<9x4xf32>, tensor<8x4xf32>}}
  %0 = tensor_ir.scan @step carried(%h) slices(%x) shared() : (tensor<4xf32>, tensor<9x4xf32>) -> tensor<8x4xf32>
  func.return
}

// -----

func.func private @step(%h: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @main(%h: tensor<4xf32>, %x: tensor<0x4xf32>) {
  // expected-error@+1 {{not 0, as their first axis, got tensor<0x4xf32>, tensor<0x4xf32>}}
  %0 = tensor_ir.scan @step carried(%h) slices(%x) shared() : (tensor<4xf32>, tensor<0x4xf32>) -> tensor<0x4xf32>
  func.return
}

// -----

func.func private @step(%h: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @main(%h: tensor<4xf32>, %x: tensor<9x3xf32>) {
  // expected-error@+1 {{slices of tensor<9x3xf32> are no multiple of 16 bytes}}
  %0 = tensor_ir.scan @step carried(%h) slices(%x) shared() : (tensor<4xf32>, tensor<9x3xf32>) -> tensor<9x4xf32>
  func.return
}

// -----

func.func private @step(%h: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @main(%h: tensor<8xf32>, %x: tensor<9x4xf32>) {
  // expected-error@+1 {{carries tensor<8xf32>, but its first results have slices tensor<4xf32>}}
  %0 = tensor_ir.scan @step carried(%h) slices(%x) shared() : (tensor<8xf32>, tensor<9x4xf32>) -> tensor<9x4xf32>
  func.return
}

// -----

func.func private @step(%h: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @main(%h: tensor<4xf32>, %x: tensor<9x4xf32>) {
  // expected-error@+1 {{there is no function @lost}}
  %0 = tensor_ir.scan @lost carried(%h) slices(%x) shared() : (tensor<4xf32>, tensor<9x4xf32>) -> tensor<9x4xf32>
  func.return
}

// -----

func.func private @step(%h: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @main(%h: tensor<4xf32>, %x: tensor<9x8xf32>) {
  // expected-error@+1 {{needs a function (tensor<4xf32>, tensor<8xf32>) -> (tensor<4xf32>), but @step is (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>}}
  %0 = tensor_ir.scan @step carried(%h) slices(%x) shared() : (tensor<4xf32>, tensor<9x8xf32>) -> tensor<9x4xf32>
  func.return
}

// -----

func.func private @step(%h: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @main(%h: tensor<4xf32>) {
  // expected-error@+1 {{must have a result}}
  tensor_ir.scan @step carried() slices() shared(%h) : (tensor<4xf32>) -> ()
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{deplo.while_loop.default must name test and body}}
  %0 = tensor_ir.call "deplo.while_loop.default"(carried = [%x], shared = []) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{there is no function @lost}}
  %0 = tensor_ir.call "deplo.while_loop.default"(test = "lost", body = "lost", carried = [%x], shared = []) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func private @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{@same is (tensor<4xf32>) -> tensor<4xf32>, which does not fit what deplo.while_loop.default gets or gives}}
  %0 = tensor_ir.call "deplo.while_loop.default"(test = "same", body = "same", carried = [%x], shared = []) : (tensor<4xf32>) -> tensor<4xf32>
  func.return
}

// -----

func.func private @same(%x: tensor<4xf32>) -> tensor<4xf32> {
  func.return %x : tensor<4xf32>
}
func.func @main(%x: tensor<4xf32>) {
  // expected-error@+1 {{deplo.cond.default needs a predicate of one bool}}
  %0 = tensor_ir.call "deplo.cond.default"(predicate = %x, if_true = "same", if_false = "same", shared = [%x]) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  func.return
}
