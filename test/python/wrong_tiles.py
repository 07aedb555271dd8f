"""Wrong programs of Tile IR; `wrong_programs.py` says how they are written."""

from __future__ import annotations

from wrong_programs import Wrong, nest


def launch(body: str, out: str = "32xf32") -> str:
    """A launch of 4 blocks of 8 threads."""
    return nest(f"tile.launch (%b = 4 : block, %t = 8 : thread) {{\n{body}\n    }}", out)


def of_kernel(text: str) -> str:
    """A program whose kernel is named by the message, and not a line in it."""
    return text.replace("-> tensor<32xf32> {\n  ^", "-> tensor<32xf32> { // WRONG\n  ^")


WRONG_TILES = {
    "tile: all threads of a block store to one element": Wrong(
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      loop.store %v, %out[%b] : memref<4xf32> // WRONG""",
            "4xf32",
        ),
        "not stored exactly once",
    ),
    "tile: two blocks store to one element": Wrong(
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      loop.store %v, %out[(%b floordiv 2) * 16 + %t] : memref<32xf32> // WRONG"""
        ),
        "not stored exactly once",
    ),
    "tile: a thread too many": Wrong(
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t + 1] : memref<4x8xf32> // WRONG
      loop.store %v, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
        "index 8..8 of axis 1",
    ),
    "tile: a store beyond the last row": Wrong(
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      loop.store %v, %out[%b * 8 + %t + 1] : memref<32xf32> // WRONG"""
        ),
        "index 32..32 of axis 0",
    ),
    "tile: a slab that is read outside": Wrong(
        "tile",
        launch(
            """%s = tile.stage %xs[%b, 0] : memref<4x8xf32> -> memref<1x8xf32, "shared">
      %v = loop.load %s[0, %t + 1] : memref<1x8xf32, "shared"> // WRONG
      loop.store %v, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
        "index 8..8 of axis 1",
    ),
    "tile: an array of registers that is read outside": Wrong(
        "tile",
        launch(
            """%s = loop.registers : memref<2xf32, "registers">
      loop.for %e = 0 to 3 {
        %v = loop.load %xs[%b, %t] : memref<4x8xf32>
        loop.store %v, %s[%e] : memref<2xf32, "registers"> // WRONG
      }
      %w = loop.load %s[0] : memref<2xf32, "registers">
      loop.store %w, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
        "index 2..2 of axis 0",
    ),
    "tile: a combine over a block axis": Wrong(
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      %s = tile.combine add %v over(%b) : f32 // WRONG
      loop.store %s, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
        "thread axes",
    ),
    "tile: more threads than a block has": Wrong(
        "tile",
        nest(
            """tile.launch (%t = 2048 : thread) {
      %v = loop.load %xs[0, 0] : memref<4x8xf32>
      loop.store %v, %out[%t] : memref<2048xf32>
    }""",
            "2048xf32",
        )
        .replace("2048xf32> {", "2048xf32> { // WRONG")
        .replace("{ // WRONG\n  %r", "{\n  %r"),
        "2048",
    ),
    "tile: a combine that half of the threads reach": Wrong(
        "tile",
        launch(
            """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      %in = loop.test [%t < 4]
      scf.if %in {
        %s = tile.combine add %v over(%t) : f32 // WRONG
      }
      loop.store %v, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
        "reached by some threads of a block only",
    ),
    "tile: a prefix in a loop that ends at another place for each thread": Wrong(
        "tile",
        launch(
            """%s = loop.for %j = 0 to min(8, %t + 1) reduce(add) -> f32 {
        %v = loop.load %xs[%b, %j] : memref<4x8xf32>
        %p = tile.prefix add %v over(%t) : f32 // WRONG
        loop.yield %p : f32
      }
      loop.store %s, %out[%b * 8 + %t] : memref<32xf32>"""
        ),
        "reached by some threads of a block only",
    ),
    "tile: a slab that half of the threads copy": Wrong(
        "tile",
        launch(
            """%in = loop.test [%t < 4]
      scf.if %in {
        %s = tile.stage %xs[%b, 0] : memref<4x8xf32> -> memref<1x8xf32, "shared"> // WRONG
        %v = loop.load %s[0, %t] : memref<1x8xf32, "shared">
        loop.store %v, %out[%b * 8 + %t] : memref<32xf32>
        loop.store %v, %out[%b * 8 + %t + 4] : memref<32xf32>
      }"""
        ),
        "reached by some threads of a block only",
    ),
    "tile: a combine that data let threads reach": Wrong(
        "tile",
        of_kernel(
            launch(
                """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      %z = arith.constant 0.0 : f32
      %in = arith.cmpf olt, %v, %z : f32
      scf.if %in {
        %s = tile.combine add %v over(%t) : f32
      }
      loop.store %v, %out[%b * 8 + %t] : memref<32xf32>"""
            )
        ),
        "some threads of a block may not reach 'tile.combine'",
    ),
    "tile: a slab of an output": Wrong(
        "tile",
        of_kernel(
            launch(
                """%s = tile.stage %out[%b * 8] : memref<32xf32> -> memref<8xf32, "shared">
      %v = loop.load %s[%t] : memref<8xf32, "shared">
      loop.store %v, %out[%b * 8 + %t] : memref<32xf32>"""
            )
        ),
        "tile.stage loads from an output",
    ),
    "tile: a store to a slab": Wrong(
        "tile",
        of_kernel(
            launch(
                """%s = tile.stage %xs[%b, 0] : memref<4x8xf32> -> memref<1x8xf32, "shared">
      %v = loop.load %s[0, %t] : memref<1x8xf32, "shared">
      loop.store %v, %s[0, 7 - %t] : memref<1x8xf32, "shared">
      loop.store %v, %out[%b * 8 + %t] : memref<32xf32>"""
            )
        ),
        "stores to what is neither an output nor loop.registers",
    ),
    "tile: a slab that no block has room for": Wrong(
        "tile",
        of_kernel(
            launch(
                """%s = tile.stage %xs[%b, 0] : memref<4x8xf32> -> memref<1000x1000xf32, "shared">
      %v = loop.load %s[0, %t] : memref<1000x1000xf32, "shared">
      loop.store %v, %out[%b * 8 + %t] : memref<32xf32>"""
            )
        ),
        "4000000 bytes of shared memory",
    ),
    "tile: a barrier of Kernel IR": Wrong(
        "tile",
        of_kernel(
            launch(
                """%v = loop.load %xs[%b, %t] : memref<4x8xf32>
      kernel.barrier
      loop.store %v, %out[%b * 8 + %t] : memref<32xf32>"""
            )
        ),
        "'kernel.barrier' stands in a loop.kernel",
    ),
}
