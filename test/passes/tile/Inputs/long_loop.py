"""A loop with one condition and 300 additions."""

LINES = [f"        %s{n + 1} = arith.addf %s{n}, %s{n} : f32" for n in range(300)]
print(
    """func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %z = loop.kernel @long(%x) : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: memref<8xf32>, %out: memref<8xf32>):
    tile.launch () schedule(#tile.schedule<serial = 8>) {
      loop.for %j = 0 to 8 {
        %zero = arith.constant 0.0 : f32
        %first = loop.test [%j < 5]
        %s0 = scf.if %first -> (f32) {
          %l = loop.load %a[%j] : memref<8xf32>
          scf.yield %l : f32
        } else {
          scf.yield %zero : f32
        }""",
    *LINES,
    """        loop.store %s300, %out[%j] : memref<8xf32>
      }
    }
  }
  func.return %z : tensor<8xf32>
}""",
    sep="\n",
)
