"""`--precision`: how precise products of f32 are."""

from typing import Any

PRECISION_OPTION: dict[str, Any] = {
    "choices": ("highest", "high", "medium"),
    "help": "of products of f32, as torch.set_float32_matmul_precision has it: 'high' lets tensor cores "
    "multiply tf32, 'medium' also lets a CPU multiply bf16",
}
"""The option's declaration."""
