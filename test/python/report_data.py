"""Small sets of data for the report's page, written by hand: a GPU's program, a CPU's, and an empty one."""

from collections.abc import Mapping
from typing import Any

HOSTILE = "k_</script><img src=x onerror=alert(1)>"
"""A kernel's name that would be markup if a page let it."""

LEVELS = {
    "torch": ("Torch IR", "mlir"),
    "tensor": ("Tensor IR", "mlir"),
    "loop": ("Loop IR", "mlir"),
    "tile": ("Tile IR", "mlir"),
    "kernel": ("Kernel IR", "mlir"),
    "cuda": ("CUDA", "cuda"),
    "sass": ("SASS", "sass"),
    "llvm": ("LLVM", "llvm"),
    "asm": ("Assembly", "asm"),
}

GPU_TEXTS = {
    "torch": """
        | builtin.module {
        |   func.func @main(%x: tensor<64x512xf32>, %w: tensor<512x256xf32>) -> tensor<64x256xf32> {
        norm|     %norm = torch.layer_norm %x, none, none {normalized_shape = [512]}
        mm|     %matmul = torch.matmul %norm, %w : (tensor<64x512xf32>, tensor<512x256xf32>)
        gelu|     %gelu = torch.gelu %matmul : (tensor<64x256xf32>) -> tensor<64x256xf32>
        |     func.return %gelu : tensor<64x256xf32>
        |   }
        | }""",
    "tensor": """
        | builtin.module {
        |   func.func @main(%x: tensor<64x512xf32>, %w: tensor<512x256xf32>) -> tensor<64x256xf32> {
        norm|     %norm_sum = tensor_ir.reduce add(%x) over [1] : tensor<64x512xf32> -> tensor<64x1xf32>
        norm|     %norm_sub = tensor_ir.elementwise sub(%x, %norm_mean) : tensor<64x512xf32>
        mm|     %mul = tensor_ir.elementwise mul(%lhs, %rhs) : tensor<64x256x512xf32>
        mm|     %sum = tensor_ir.reduce add(%mul) over [2] : tensor<64x256x512xf32> -> tensor<64x256x1xf32>
        gelu|     %erf = tensor_ir.elementwise erf(%sum) : tensor<64x256xf32>
        gelu|     %gelu = tensor_ir.elementwise mul(%half, %erf) : tensor<64x256xf32>
        |     func.return %gelu : tensor<64x256xf32>
        |   }
        | }""",
    "loop": """
        | builtin.module {
        @k_norm|   loop.kernel @k_norm(%x: memref<64x512xf32>, %norm: memref<64x512xf32>) {
        norm@k_norm|     %sum = loop.reduce %j over 512 { // the mean of a row
        norm@k_norm|     loop.store %y, %norm[%i, %j]
        @k_norm|   }
        @k_mm|   loop.kernel @k_mm(%norm: memref<64x512xf32>, %w: memref<512x256xf32>) {
        mm@k_mm|     %sum = loop.reduce %k over 512 {
        mm@k_mm|       %product = arith.mulf %a, %b : f32
        gelu@k_mm|     %erf = math.erf %sum : f32
        gelu@k_mm|     loop.store %gelu, %out[%i, %j] // "<b>bold</b>" & </script>
        @k_mm|   }
        @k_x|   loop.kernel @k_x(%a: memref<?xf32>) {
        x@k_x|     loop.store %a, %b[%i]
        @k_x|   }
        | }""",
    "tile": """
        | builtin.module {
        @k_norm|   tile.launch @k_norm blocks(64) threads(256) {
        norm@k_norm|     %sum = tile.reduce %x : vector<4xf32>
        norm@k_norm|     loop.store %y, %norm[%i, %lane * 4]
        @k_norm|   }
        @k_mm|   tile.launch @k_mm blocks(16) threads(128) {
        mm@k_mm|     %w_shared = loop.shared : memref<64x16xf32, "shared">
        mm@k_mm|     scf.for %k = %c0 to %c512 step %c16 {pipelined = 3} {
        mm@k_mm|       tile.copy %w[%k, %j] to %w_shared
        mm@k_mm|       %a = loop.load %w_shared[%lane, %k]
        mm@k_mm|       %acc = tile.contract %a, %b, %acc
        mm@k_mm|     }
        gelu@k_mm|     %erf = math.erf %acc : f32
        gelu@k_mm|     loop.store %gelu, %out[%i, %j]
        @k_mm|   }
        @k_x|   tile.launch @k_x blocks(%n) threads(256) {
        x@k_x|     loop.store %a, %b[%i]
        @k_x|   }
        | }""",
    "kernel": """
        | builtin.module {
        @k_norm|   kernel.func @k_norm(%x: memref<64x512xf32>) blocks(64) threads(256) {
        norm@k_norm|     %a, %b, %c, %d = kernel.vector_load %x[%i, %lane * 4]
        norm@k_norm|     %other = kernel.shuffle %sum xor 16 : f32
        @k_norm|   }
        @k_mm|   kernel.func @k_mm(%norm: memref<64x512xf32>) blocks(16) threads(128) {
        mm@k_mm|     scf.for %k = %c0 to %c32 step %c1 {
        mm@k_mm|       kernel.async_copy %w[%k, %j] to %w_shared : 16
        mm@k_mm|       kernel.async_wait 2
        mm@k_mm|       kernel.barrier
        mm@k_mm|       %acc = kernel.mma %a, %b, %acc
        mm@k_mm|     }
        gelu@k_mm|     %erf = math.erf %acc : f32
        gelu@k_mm|     loop.store %gelu, %out[%i, %j]
        @k_mm|   }
        @k_x|   kernel.func @k_x(%a: memref<?xf32>) threads(256) {
        x@k_x|     loop.store %a, %b[%i]
        @k_x|   }
        | }""",
    "cuda": """
        @k_norm| extern "C" __global__ void k_norm(const float* __restrict__ x) {
        norm@k_norm|     const float4 v = *reinterpret_cast<const float4*>(&x[i * 512 + lane * 4]);
        norm@k_norm|     const float other = __shfl_xor_sync(0xffffffffu, sum, 16);
        @k_norm| }
        @k_mm| extern "C" __global__ void k_mm(const float* __restrict__ w) {
        mm@k_mm|     for (int k = 0; k < 32; ++k) {
        mm@k_mm|         asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"(to), "l"(from));
        mm@k_mm|         asm volatile("cp.async.wait_group 2;" ::: "memory");
        mm@k_mm|         __syncthreads(); // all have seen it
        mm@k_mm|         acc[0] = a[0] * b[0] + acc[0];
        mm@k_mm|     }
        gelu@k_mm|     out[i * 256 + j] = 0.5f * acc[0] * (1.0f + erff(acc[0] * 0.707106769f));
        @k_mm| }
        @k_x| extern "C" __global__ void k_x(const float* a) {
        x@k_x|     b[i] = a[i];
        @k_x| }""",
    "sass": """
        norm@k_norm|     /*0000*/ LDG.E.128 R4, [R2.64] ;
        norm@k_norm|     /*0010*/ SHFL.BFLY PT, R9, R8, 0x10, 0x1f ;
        mm@k_mm|     /*0000*/ LDGSTS.E.BYPASS.128 [R5], [R2.64] ;
        mm@k_mm|     /*0010*/ BAR.SYNC.DEFER_BLOCKING 0x0 ;
        mm@k_mm|     /*0020*/ FFMA R8, R4, R6, R8 ;
        mm@k_mm|     /*0030*/ FFMA R9, R4, R7, R9 ;
        gelu@k_mm|     /*0040*/ STG.E [R2.64], R8 ;
        x@k_x|     /*0000*/ EXIT ;""",
}
"""Stage -> its lines: what they are of, `@` and the kernel, `|` and the text."""


def stages(texts: Mapping[str, str]) -> list[dict[str, Any]]:
    """The stages of texts; a line came from those of the stage before that are of the same thing."""
    above = [["norm"], ["mm"], ["gelu"]]
    made = []
    for name, text in texts.items():
        rows = [line.strip().partition("|")[::2] for line in text.strip().splitlines()]
        keys = [head.partition("@")[0] for head, _ in rows]
        origins = [[j for j, other in enumerate(above) if key and key in other] for key in keys]
        if not made:
            kept: list[Any] = [[[0, 3 + j] for j in lines] or None for lines in origins]
        else:
            kept = [lines or None for lines in origins]
        kernels: dict[str, list[list[int]]] = {}
        for line, (head, _) in enumerate(rows):
            if kernel := head.partition("@")[2]:
                kernels.setdefault(HOSTILE if kernel == "k_x" else kernel, []).append(
                    [line, line + 1]
                )
        title, language = LEVELS[name]
        lines = [line[1:] for _, line in rows]
        made.append(
            {
                **{"name": name, "title": title, "language": language},
                **{"lines": lines, "from": kept, "kernels": kernels},
            }
        )
        above = [[key] for key in keys]
    return made


def access(
    operation: str, memory: str, space: str, line: int | None, **others: Any
) -> dict[str, Any]:
    known = {
        "element_bytes": 4,
        "width": 1,
        "count": 1,
        "cost": None,
        "least": None,
        "lanes": None,
        "stride": None,
    }
    return {
        "operation": operation,
        "memory": memory,
        "space": space,
        "line": line,
        **known,
        **others,
    }


def kernel(name: str, **others: Any) -> dict[str, Any]:
    return {
        **{"name": name, "location": "model.py:14", "launches": 1, "blocks": "64", "threads": 256},
        **{"fused": [], "not_fused": [], "schedule": None, "cost": None, "measured_seconds": None},
        **{"resources": None, "occupancy": None, "steps": [], "accesses": [], "timeline": None},
        "no_timeline": "it has no loop that copies to shared memory",
        **others,
    }


def timeline() -> dict[str, Any]:
    """Three stages of a pipeline: copies that overlap with products."""
    rows = ["copies to shared memory", "products", "waits", "barriers", "loads", "stores"]
    events: list[dict[str, Any]] = []

    def event(
        row: int, name: str, begin: int, end: int, line: int | None, turn: int | None
    ) -> None:
        events.append(
            {"row": row, "name": name, "begin": begin, "end": end, "line": line, "turn": turn}
        )

    for turn in range(8):
        now = 40 * turn
        event(0, "kernel.async_copy w_shared", now + 3, now + 88, 7, turn)
        event(2, "kernel.async_wait", now + 80, now + 88, 8, turn)
        event(3, "kernel.barrier", now + 88, now + 91, 9, turn)
        event(1, "kernel.mma", now + 91, now + 119, 10, turn)
    event(5, "loop.store out", 400, 409, 13, None)
    return {
        "loop": "k",
        "line": 6,
        "unit": "operations",
        "end": 413,
        "rows": rows,
        "events": events,
    }


def step(
    name: str, reason: str, line: str | None = None, diff: list[str] | None = None
) -> dict[str, Any]:
    return {"pass": name, "fired": line is not None, "reason": reason, "line": line, "diff": diff}


GPU_KERNELS = [
    kernel(
        "k_norm",
        fused=["layer_norm", "mean"],
        schedule="tileify,bind{axis=i to=block}",
        cost={
            **{"operations": 262144, "bytes": 262272, "memory_seconds": 7.83e-8},
            **{"compute_seconds": 3.91e-9, "peak": 6.7e13, "bound": "memory"},
        },
        resources={
            **{"registers": 40, "spill_loads": 0, "spill_stores": 0},
            **{"stack_bytes": 0, "shared_bytes": 1024},
        },
        occupancy={"blocks": 8, "limit": "threads", "threads": 2048, "share": 1.0},
        steps=[step("cooperative-reduce", "rows of 512", "cooperative-reduce{lanes=32}")],
        accesses=[
            access(
                "kernel.vector_load",
                "x",
                "global",
                2,
                width=4,
                cost=16,
                least=16,
                lanes=[16 * lane for lane in range(32)],
            ),
            access("loop.load", "index", "global", None),
        ],
    ),
    kernel(
        "k_mm",
        blocks="16",
        threads=128,
        launches=2,
        fused=["matmul", "gelu"],
        not_fused=["k_norm: its rows are read 4 times"],
        schedule="tileify,pipeline{stages=3}",
        cost={
            **{"operations": 16777216, "bytes": 720896, "memory_seconds": 2.15e-7},
            **{"compute_seconds": 2.5e-7, "peak": 6.7e13, "bound": "compute"},
        },
        measured_seconds=2.31e-6,
        resources={
            **{"registers": 128, "spill_loads": 4, "spill_stores": 8},
            **{"stack_bytes": 16, "shared_bytes": 49152},
        },
        occupancy={"blocks": 4, "limit": "registers", "threads": 512, "share": 0.25},
        steps=[
            step(
                "stage-inputs",
                "w is read by 64 threads",
                "stage{memory=w to=shared}",
                [
                    "@ 4",
                    "  scf.for %k = %c0 to %c512 {",
                    "-   %b = loop.load %w[%k, %j]",
                    "+   tile.copy %w[%k, %j] to %w_shared",
                    "+   %b = loop.load %w_shared[%k, %j]",
                    "  }",
                ],
            ),
            step("tensor-cores", "the elements are f32, and precision is not lowered"),
            step(
                "pipeline-k-outer",
                "copies take as long as products",
                "pipeline{stages=3}",
                ["@ 9", "- scf.for %k", "+ scf.for %k {pipelined = 3}"],
            ),
            step("form-clusters", "<i>no</i> block shares its inputs"),
        ],
        accesses=[
            access(
                "tile.copy",
                "w",
                "global",
                8,
                width=4,
                cost=16,
                least=16,
                lanes=[1024 * (lane // 4) + 16 * (lane % 4) for lane in range(32)],
            ),
            access(
                "loop.load",
                "w_shared",
                "shared",
                9,
                cost=8,
                least=1,
                lanes=[64 * lane + 4 * (lane // 16) for lane in range(32)],
            ),
            access(
                "loop.store",
                "out",
                "global",
                13,
                cost=32,
                least=4,
                lanes=[None if lane == 31 else 256 * lane for lane in range(32)],
            ),
        ],
        timeline=timeline(),
    ),
    kernel(HOSTILE, blocks="ceil(n / 256)", location=None, launches=1, accesses=[]),
]


def gpu_graph() -> dict[str, Any]:
    x, norm, out = "64x512xf32", "64x512xf32", "64x256xf32"
    nodes = [
        ("input", "x", x, 131072),
        ("parameter", "w", "512x256xf32", 524288),
        ("kernel", "k_norm", None, None),
        ("kernel", "k_mm", None, None),
        ("kernel", "k_mm", None, None),
        ("call", "aten.sort", None, None),
        ("kernel", HOSTILE, None, None),
        ("buffer", "two", "f32", 4),
        ("result", "gelu", out, 65536),
        ("result", "order", out, None),
    ]
    edges = [
        (0, 2, "x", x, 131072),
        (2, 3, "norm", norm, 131072),
        (1, 3, "w", "512x256xf32", 524288),
        (3, 4, "gelu", out, 65536),
        (1, 4, "w", "512x256xf32", 524288),
        (4, 5, "gelu_1", out, 65536),
        (7, 6, "two", "f32", 4),
        (5, 6, "sorted", out, 65536),
        (2, 6, "norm", norm, 131072),
        (4, 8, "gelu_1", out, 65536),
        (6, 9, "order", out, None),
    ]
    return {
        "nodes": [
            {"id": 10 * i, "kind": kind, "name": name, "type": type, "bytes": size}
            for i, (kind, name, type, size) in enumerate(nodes)
        ],
        "edges": [
            {"from": 10 * a, "to": 10 * b, "name": name, "type": type, "bytes": size}
            for a, b, name, type, size in edges
        ],
    }


def timing(name: str, seconds: float, *children: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "seconds": seconds, "children": list(children)}


COMPILE = timing(
    "deplo.compile",
    1.9,
    timing("torch.export", 0.8),
    timing("torch-to-tensor", 0.2, timing("decompose-torch", 0.12), timing("cse", 0.05)),
    timing(
        "loop-to-tile",
        0.7,
        timing("stage-inputs", 0.31, timing("prove", 0.2)),
        timing("tileify", 0.00005),
    ),
)


def buffer(
    name: str, type: str, size: int | None, offset: int | None, first: int, last: int
) -> dict[str, Any]:
    return {
        "name": name,
        "type": type,
        "bytes": size,
        "offset": offset,
        "first": first,
        "last": last,
    }


def gpu() -> dict[str, Any]:
    """A GPU's program: a pipelined product, conflicts, hostile texts, a call, a run."""
    source = [
        "class MLP(nn.Module):",
        "    def forward(self, x):",
        "        # <img src=x onerror=alert(2)>",
        "        h = F.layer_norm(x, (512,))",
        "        h = h @ self.w",
        "        return F.gelu(h)",
    ]
    return {
        "version": 1,
        "program": "model.py:MLP <b>&amp;</b>",
        "deplo": "0.1.0",
        "notes": ["assembly of sm_90a: no disassembler (<u>pip install</u> 2 packages)"],
        "target": {
            **{
                "name": "sm_90a",
                "gpu": True,
                "description": "H100 SXM",
                "bytes_per_second": 3.35e12,
            },
            "peaks": [
                {"name": "f32", "per_second": 6.7e13},
                {"name": "wgmma bf16", "per_second": 9.9e14},
            ],
            "source": "data sheet",
        },
        "sources": [{"file": "model.py", "first": 12, "lines": source}],
        "stages": stages(GPU_TEXTS),
        "graph": gpu_graph(),
        "kernels": GPU_KERNELS,
        "memory": {
            "arena_bytes": 327680,
            "steps": ["k_norm", "k_mm", "k_mm", "aten.sort", HOSTILE],
            "buffers": [
                buffer("norm", "64x512xf32", 131072, 0, 0, 4),
                buffer("gelu", "64x256xf32", 65536, 131072, 1, 2),
                buffer("sorted", "64x256xf32", 65536, 196608, 3, 4),
                buffer("gelu_1", "64x256xf32", 65536, None, 2, 3),
                buffer("order", "nx256xf32", None, None, 4, 4),
            ],
        },
        "compile": COMPILE,
        "decisions": [
            {
                "pass": "fuse-loops",
                "kernel": "k_norm",
                "fired": False,
                "reason": "k_mm reads it 4 times",
            },
            {
                "pass": "fuse-loops",
                "kernel": "k_mm",
                "fired": True,
                "reason": "gelu is elementwise",
            },
            {
                "pass": "tensor-cores",
                "kernel": "k_mm",
                "fired": False,
                "reason": "<script>alert(3)</script>",
            },
            {"pass": "cse", "kernel": None, "fired": True, "reason": "two constants are one"},
        ],
        "calls": [{"operator": "aten.sort", "count": 1, "reason": "stable=True with 3 axes"}],
        "run": {
            "seconds": 1.2e-3,
            "eager_seconds": 2.4e-3,
            "largest_difference": 1e-7,
            "agrees": True,
        },
    }


def cpu() -> dict[str, Any]:
    """A CPU's program: strides, no resources, no roofs, no timeline, nothing measured."""
    texts = {
        **{name: GPU_TEXTS[name] for name in ("torch", "tensor", "loop", "tile")},
        "llvm": """
            norm@k_norm|   %5 = fadd <8 x float> %3, %4 ; a part of the sum
            mm@k_mm|   %9 = call <8 x float> @llvm.fmuladd.v8f32(<8 x float> %6, <8 x float> %7)""",
        "asm": """
            norm@k_norm|     vaddps %ymm1, %ymm0, %ymm0 # 32 bytes
            mm@k_mm|     vfmadd231ps (%rax), %ymm2, %ymm1""",
    }
    cost = {
        **{"operations": 262144, "bytes": 262272, "memory_seconds": None},
        **{"compute_seconds": None, "peak": None, "bound": "memory"},
    }
    accesses = [
        access("loop.load", "x", "memory", 2, width=8, stride=1),
        access("loop.load", "w", "memory", 9, stride=256),
        access("loop.load", "table", "memory", None),
    ]
    return {
        **gpu(),
        "program": "model.py:MLP",
        "target": {
            **{
                "name": "cpu",
                "gpu": False,
                "description": "",
                "bytes_per_second": None,
                "peaks": [],
            },
            "source": "measured on this machine",
        },
        "stages": stages(texts),
        "kernels": [
            kernel("k_norm", cost=cost, threads=1, accesses=accesses),
            kernel("k_mm", threads=1),
            kernel(HOSTILE, blocks="n", threads=1),
        ],
        "run": None,
    }


def empty() -> dict[str, Any]:
    """A program that returns its input: no kernel, no buffer, no decision."""
    nodes = [
        {"id": 0, "kind": "input", "name": "x", "type": "4xf32", "bytes": 16},
        {"id": 1, "kind": "result", "name": "x", "type": "4xf32", "bytes": 16},
    ]
    edges = [{"from": 0, "to": 1, "name": "x", "type": "4xf32", "bytes": 16}]
    torch = {"torch": GPU_TEXTS["torch"]}
    return {
        **gpu(),
        **{"program": "x", "sources": [], "kernels": [], "decisions": [], "calls": [], "run": None},
        "stages": [{**stage, "from": [None] * len(stage["lines"])} for stage in stages(torch)],
        "graph": {"nodes": nodes, "edges": edges},
        "memory": {"arena_bytes": 0, "steps": [], "buffers": []},
        "compile": timing("deplo.compile", 0.1),
    }
