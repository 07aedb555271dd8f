// The sums of rows of `run.mlir`, but for the last element of each.
func.func @main(%x: tensor<2x3xf32>) -> tensor<2xf32> {
  %sum = loop.kernel @sum(%x) : (tensor<2x3xf32>) -> tensor<2xf32> {
  ^bb0(%xs: memref<2x3xf32>, %out: memref<2xf32>):
    loop.for %i = 0 to 2 {
      %s = loop.for %j = 0 to 2 reduce(add) -> f32 {
        %v = loop.load %xs[%i, %j] : memref<2x3xf32>
        loop.yield %v : f32
      }
      loop.store %s, %out[%i] : memref<2xf32>
    }
  }
  func.return %sum : tensor<2xf32>
}
