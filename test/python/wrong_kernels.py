"""Wrong programs of Kernel and CUDA IR, and of the host; `wrong_programs.py` says how they are written."""

from __future__ import annotations

from wrong_programs import Wrong


def kernel(body: str, *, threads: int = 128, blocks: int = 1) -> str:
    """A kernel of Kernel IR that reads x and stores to y, 128 elements each, and its launch."""
    wrong = " // WRONG" if (threads, blocks) != (128, 1) else ""
    return f"""
kernel.func @k(%x: memref<128xf32>, %y: memref<128xf32>) blocks(1) threads(128) {{
  %t = kernel.thread_id
  %s = kernel.shared : memref<128xf32, "shared">
  {body}
}}
func.func @main(%x: memref<128xf32>) -> memref<128xf32> {{
  %y = kernel.alloc : memref<128xf32>
  kernel.launch @k(%x, %y) blocks({blocks}) threads({threads}) : memref<128xf32>, memref<128xf32>{wrong}
  func.return %y : memref<128xf32>
}}"""


FILL = """%v = loop.load %x[%t] : memref<128xf32>
  loop.store %v, %s[%t] : memref<128xf32, "shared">
  """
COPY = """%v = loop.load %x[%t] : memref<128xf32>
  loop.store %v, %y[%t] : memref<128xf32>"""


def cuda(body: str, *, launched: int = 128) -> str:
    """The same in CUDA form."""
    wrong = " // WRONG" if launched != 128 else ""
    return f"""
cuda.func @k(%x: memref<128xf32>, %y: memref<128xf32>) blocks(1) threads(128) index(i32) {{
  %t = kernel.thread_id
  {body}
}}
func.func @main(%x: memref<128xf32>) -> memref<128xf32> {{
  %y = kernel.alloc : memref<128xf32>
  kernel.launch @k(%x, %y) blocks(1) threads({launched}) : memref<128xf32>, memref<128xf32>{wrong}
  func.return %y : memref<128xf32>
}}"""


CUDA_LOAD = "%v = loop.load %x[%t] : memref<128xf32>\n  "


def host(body: str) -> str:
    """A function that launches two kernels: @k copies x to y, @add adds it to y."""
    launches = body.replace(" LAUNCH", " blocks(1) threads(128) : memref<128xf32>, memref<128xf32>")
    return f"""
kernel.func @k(%x: memref<128xf32>, %y: memref<128xf32>) blocks(1) threads(128) {{
  %t = kernel.thread_id
  {COPY}
}}
kernel.func @add(%x: memref<128xf32>, %y: memref<128xf32>) blocks(1) threads(128) {{
  %t = kernel.thread_id
  %v = loop.load %x[%t] : memref<128xf32>
  kernel.atomic_add %v, %y[%t] : f32, memref<128xf32>
}}
func.func @main(%x: memref<128xf32>) -> memref<128xf32> {{
  {launches}
}}"""


Y = "%y = kernel.alloc : memref<128xf32>\n  "
Z = "%z = kernel.alloc : memref<128xf32>\n  "
RETURN = "func.return %y : memref<128xf32>"

WRONG_KERNELS = {
    # ------------------------------------------------------------------ Kernel IR
    "kernel: a neighbour's element before the barrier": Wrong(
        "kernel",
        kernel(
            FILL
            + """%w = loop.load %s[127 - %t] : memref<128xf32, "shared"> // WRONG
  loop.store %w, %y[%t] : memref<128xf32>"""
        ),
        "races",
    ),
    "kernel: shared memory is read outside": Wrong(
        "kernel",
        kernel(
            FILL
            + """kernel.barrier
  %w = loop.load %s[128 - %t] : memref<128xf32, "shared"> // WRONG
  loop.store %w, %y[%t] : memref<128xf32>"""
        ),
        "index 128..128 of axis 0",
    ),
    "kernel: two threads store to one element": Wrong(
        "kernel",
        kernel(
            """%v = loop.load %x[%t] : memref<128xf32>
  loop.store %v, %y[%t floordiv 2] : memref<128xf32> // WRONG"""
        ),
        "races: two threads write",
    ),
    "kernel: a barrier that some threads do not reach": Wrong(
        "kernel",
        kernel(
            """%in = loop.test [%t < 64]
  scf.if %in {
    kernel.barrier // WRONG
  }
  """
            + COPY
        ),
        "divergent barrier",
    ),
    "kernel: shared memory that nobody has written": Wrong(
        "kernel",
        kernel(
            """%w = loop.load %s[%t] : memref<128xf32, "shared"> // WRONG
  loop.store %w, %y[%t] : memref<128xf32>"""
        ),
        "nobody has initialised",
    ),
    "kernel: a launch with fewer threads": Wrong(
        "kernel", kernel(COPY, threads=64), "threads(128)"
    ),
    "kernel: a launch of another grid": Wrong("kernel", kernel(COPY, blocks=2), "blocks(1)"),
    "kernel: a load beyond the array": Wrong(
        "kernel",
        kernel(
            """%v = loop.load %x[%t + 1] : memref<128xf32> // WRONG
  loop.store %v, %y[%t] : memref<128xf32>"""
        ),
        "index 128..128 of axis 0",
    ),
    # ------------------------------------------------------------------ CUDA IR
    "cuda: a launch with fewer threads": Wrong(
        "cuda",
        cuda(CUDA_LOAD + "loop.store %v, %y[%t] : memref<128xf32>", launched=64),
        "threads(128)",
    ),
    "cuda: two threads store to one element": Wrong(
        "cuda",
        cuda(CUDA_LOAD + "loop.store %v, %y[%t floordiv 2] : memref<128xf32> // WRONG"),
        "races: two threads write",
    ),
    "cuda: a store beyond the array": Wrong(
        "cuda",
        cuda(CUDA_LOAD + "loop.store %v, %y[%t + 1] : memref<128xf32> // WRONG"),
        "out of bounds",
    ),
    # ------------------------------------------------------------------ the host
    "host: a launch reads what nobody has written": Wrong(
        "kernel",
        host(Y + Z + "kernel.launch @k(%z, %y) LAUNCH // WRONG\n  " + RETURN),
        "%z, whose place holds nothing",
    ),
    "host: a launch reads what the next one writes": Wrong(
        "kernel",
        host(
            Y
            + Z
            + "kernel.launch @k(%z, %y) LAUNCH // WRONG\n  kernel.launch @k(%x, %z) LAUNCH\n  "
            + RETURN
        ),
        "%z, whose place holds nothing",
    ),
    "host: a sum that begins as nothing": Wrong(
        "kernel",
        host(Y + "kernel.launch @add(%x, %y) LAUNCH // WRONG\n  " + RETURN),
        "%y, whose place holds nothing",
    ),
    "host: a result that nobody has written": Wrong(
        "kernel",
        host(Y + Z + "kernel.launch @k(%x, %z) LAUNCH\n  " + RETURN + " // WRONG"),
        "%y, whose place holds nothing",
    ),
    "host: places in the arena that overlap": Wrong(
        "kernel",
        host(
            Y.replace("alloc", "alloc at 0")
            + Z.replace("alloc", "alloc at 256")
            + "kernel.launch @k(%x, %y) LAUNCH\n  kernel.launch @k(%x, %z) LAUNCH\n  "
            + RETURN
            + " // WRONG"
        ),
        "%y, whose place holds another buffer",
    ),
    "host: a kernel that reads what it writes as another argument": Wrong(
        "kernel",
        host(
            Y
            + "kernel.launch @k(%x, %y) LAUNCH\n  kernel.launch @k(%y, %y) LAUNCH // WRONG\n  "
            + RETURN
        ),
        "passes as another argument, too",
    ),
    "host: a kernel that is not there": Wrong(
        "kernel",
        host(Y + "kernel.launch @q(%x, %y) LAUNCH // WRONG\n  " + RETURN),
        "@q is not a kernel.func",
    ),
    "host: too few arguments": Wrong(
        "kernel",
        host(
            Y
            + "kernel.launch @k(%y) blocks(1) threads(128) : memref<128xf32> // WRONG\n  "
            + RETURN
        ),
        "passes 1 arguments to a kernel that takes 2",
    ),
    "kernel: a launch in a kernel": Wrong(
        "kernel",
        kernel(
            COPY
            + """
  kernel.launch @k(%x, %y) blocks(1) threads(128) : memref<128xf32>, memref<128xf32> // WRONG"""
        ),
        "only functions of the host launch kernels",
    ),
    "kernel: a loop without end": Wrong(
        "kernel",
        kernel(
            """%zero = arith.constant 0 : index
  scf.for %i = %zero to %t step %zero { // WRONG
  }
  """
            + COPY
        ),
        "it never ends",
    ),
    "cuda: too few arguments": Wrong(
        "cuda",
        cuda(CUDA_LOAD + "loop.store %v, %y[%t] : memref<128xf32>").replace(
            "@k(%x, %y) blocks(1) threads(128) : memref<128xf32>, memref<128xf32>",
            "@k(%y) blocks(1) threads(128) : memref<128xf32> // WRONG",
        ),
        "passes 1 arguments to a kernel that takes 2",
    ),
}
