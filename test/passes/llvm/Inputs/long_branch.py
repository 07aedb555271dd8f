"""Prints a loop with a branch that is decided in front of it, and with many operations."""

ARGUMENTS = "%x: memref<4xf32>, %begin: index, %end: index, %status: memref<1xi64>"
print(
    f"""func.func @long({ARGUMENTS}) attributes {{deplo.kernel}} {{
  %c1 = arith.constant 1 : index
  %s0 = arith.constant 1.0 : f32
  %first = loop.test[%begin < 1]
  scf.for %i = %begin to %end step %c1 {{
    scf.if %first {{
      loop.store %s0, %x[%i] : memref<4xf32>
    }}""",
    *(f"    %s{n + 1} = arith.addf %s{n}, %s0 : f32" for n in range(210)),
    """    loop.store %s210, %x[%i] : memref<4xf32>
  }
  func.return
}""",
    sep="\n",
)
