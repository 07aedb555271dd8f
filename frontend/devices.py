"""The device that a program runs on, beside which some of its tensors may be on the CPU, as in PyTorch.

    def program(x: "f32[4] on cuda:0", scale: "f32[] on cpu"):
        return x * scale, torch.ones(3)

All of it is computed on the GPU that some value is on in PyTorch. What it takes from the CPU goes there:
tensors without axes, which PyTorch lets mix with others, and constants, once. A result that is on the CPU in
PyTorch, such as the second here, is brought back. A call of PyTorch gives no tensor of the CPU, as random
numbers come from the generator of their device, and reads none with axes, as it may need it there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Protocol, cast

import torch

from ..errors import UsageError

CPU = torch.device("cpu")


class SeveralDevices(UsageError):
    """A program whose tensors are on devices that it cannot have together."""


class Placed(Protocol):
    """An argument of `@main`, as far as where it is goes."""

    @property
    def name(self) -> str: ...
    @property
    def source(self) -> str: ...
    @property
    def target(self) -> str: ...
    @property
    def shape(self) -> Sequence[object]: ...
    @property
    def device(self) -> torch.device: ...


def device_of(nodes: Iterable[torch.fx.Node]) -> torch.device:
    """The GPU that a program's values are on in PyTorch, else the CPU. Raises SeveralDevices for two GPUs."""
    devices = {value.device for node in nodes for value in _tensors_of(node)}
    found = sorted((device for device in devices if device.type == "cuda"), key=str)
    if len(found) > 1:
        listed = ", ".join(map(str, found))
        raise SeveralDevices(
            f"the program computes on several GPUs, {listed}: compile a part on each"
        )
    return found[0] if found else CPU


def is_away(value: torch.Tensor, device: torch.device) -> bool:
    """Whether a value is on the CPU in PyTorch, and computed on the GPU that the program runs on."""
    return device.type == "cuda" and value.device.type == "cpu"


def check_arguments(arguments: Sequence[Placed], device: torch.device) -> None:
    """Raise SeveralDevices for tensors with axes on the CPU, in a program that computes on a GPU."""
    if device.type != "cuda":
        return
    away = [
        f"{argument.source} '{argument.target}'"
        for argument in arguments
        if argument.device.type == "cpu" and argument.shape and argument.source != "constant"
    ]
    if away:
        raise SeveralDevices(
            f"tensors are on several devices: the program computes on {device}, and has on the CPU "
            f"{', '.join(away)}; only tensors without axes may be there: bring others to the GPU first, "
            f"by .to('{device}')"
        )


def away_results(results: Sequence[torch.fx.Node], device: torch.device) -> frozenset[int]:
    """Which results of a program on `device` are on the CPU in PyTorch."""
    values = ((i, value) for i, node in enumerate(results) for value in _tensors_of(node))
    return frozenset(i for i, value in values if is_away(value, device))


def refusal_of_call(node: torch.fx.Node, device: torch.device) -> str | None:
    """Why PyTorch cannot be called to run `node` on `device`, for where its tensors are; None if it can."""
    if any(is_away(value, device) for value in _tensors_of(node)):
        return f"gives a tensor on the CPU, in a program on {device}"
    read = (value for each in node.all_input_nodes for value in _tensors_of(each))
    if any(is_away(value, device) and value.ndim for value in read):
        return f"reads a tensor on the CPU, in a program on {device}"
    return None


def _tensors_of(node: torch.fx.Node) -> Iterator[torch.Tensor]:
    """The tensors that a node gives."""
    value: Any = node.meta.get("val")
    for each in cast(Sequence[Any], value) if isinstance(value, (list, tuple)) else [value]:
        if isinstance(each, torch.Tensor):
            yield each
