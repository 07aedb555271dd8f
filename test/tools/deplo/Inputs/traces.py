"""Prints which rules of Tile IR fire on programs, and why the others do not, as `-vv` says it."""

import contextlib
import io

from deplo.tools.deplo import run

PROGRAMS = {
    "gelu": ["x=torch.randn(32,18944);0.5*x*(1+torch.tanh(0.797*(x+0.044*x*x*x)))"],
    "rms_norm": ["torch.nn.RMSNorm(2048)(torch.randn(1,32,2048))"],
    "rms_norm staged": [
        "torch.nn.RMSNorm(2048)(torch.randn(1,32,2048))",
        "--schedule",
        "lanes=256,vector=1,keep=shared",
    ],
    "linear": [
        "nn.Linear(3584,3584,bias=False)(torch.randn(512,3584))",
        "--schedule",
        "BM=16,BN=16,FM=2,FN=2",
    ],
    "linear by threads": [
        "nn.Linear(3584,3584,bias=False)(torch.randn(512,3584))",
        "--schedule",
        "BM=16,BN=16,FM=2,FN=2,transport=cp_async",
    ],
    "linear for sm_80": [
        "nn.Linear(3584,3584,bias=False)(torch.randn(512,3584))",
        "--schedule",
        "BM=16,BN=16,FM=2,FN=2,transport=tma",
        "--target",
        "sm_80",
    ],
    "few rows": ["nn.Linear(3584,512,bias=False)(torch.randn(32,3584))"],
    "swiglu": [
        "g=torch.randn(32,64); F.linear(torch.randn(32,128), torch.randn(64,128)) * F.silu(g)",
        "--schedule",
        "SK=4",
    ],
    "residual": [
        "F.linear(torch.randn(32,128), torch.randn(64,128)) + torch.randn(32,64)",
        "--schedule",
        "SK=4",
    ],
    "relu": ["F.relu(F.linear(torch.randn(32,128), torch.randn(64,128)))", "--schedule", "SK=4"],
}

for name, (code, *options) in PROGRAMS.items():
    print(f"{name}:", flush=True)
    told = io.StringIO()
    with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
        code = run(["compile", "-c", code, "--target", "sm_120", "--ir", "tile", "-vv", *options])
    for line in told.getvalue().splitlines():
        if line.startswith((">>> t:", "--- t:", "schedule:", "split-matmul-k:")):
            print(" ", line)
    print(f"  exit {code}")
