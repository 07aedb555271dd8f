"""Programs given as code on the command line.

The last expression is the program. Names in it that hold tensors become its inputs, and so do calls in
it that make tensors; modules in it keep their parameters:

    x = torch.randn(8); x * torch.exp(x)            one input, x
    F.softmax(torch.randn(4, 8), dim=-1)            one input, x
    nn.RMSNorm(2048)(torch.randn(1, 32, 2048))      one input, x; parameter weight
"""

from __future__ import annotations

import ast
import linecache
import math
import types
from collections.abc import Callable
from typing import Any

import torch

from ..errors import UsageError

FILE = "<command line>"

CONSTRUCTORS = frozenset(
    "arange empty eye full linspace ones rand randint randn randperm tensor zeros".split()
)
"""Functions of `torch` whose results in the last expression are inputs of the program."""

Loaded = tuple[torch.nn.Module | Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def program_of_code(code: str) -> Loaded:
    """The program that `code` ends with, and its inputs. Runs the code. Raises UsageError."""
    linecache.cache[FILE] = (len(code), None, code.splitlines(keepends=True), FILE)
    namespace: dict[str, Any] = {
        "__name__": "__main__",
        "torch": torch,
        "nn": torch.nn,
        "F": torch.nn.functional,
        "math": math,
    }
    try:
        tree = ast.parse(code.strip(), FILE)
    except SyntaxError as error:
        raise UsageError(
            f"{FILE}:{error.lineno}: {error.msg}: {(error.text or '').strip()}"
        ) from error
    if not tree.body or not isinstance(tree.body[-1], ast.Expr):
        raise UsageError("-c needs code that ends with an expression, which is the program")
    *statements, last = tree.body
    assert isinstance(last, ast.Expr)
    _run(ast.Module(statements, []), namespace)
    lifter = _Lifter(namespace)
    expression = lifter.visit(last.value)
    if not lifter.inputs:
        _evaluate(expression, namespace)  # a mistake in it is the better message
        raise UsageError(
            "-c needs an expression that reads a tensor, such as torch.exp(torch.randn(8))"
        )
    direct = _direct_call(expression, namespace)
    if direct is not None:
        return direct
    return _expression_program(expression, namespace, lifter.inputs)


def _run(tree: ast.Module, namespace: dict[str, Any]) -> None:
    try:
        exec(compile(tree, FILE, "exec"), namespace)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the code given with -c fails: {type(error).__name__}: {error}"
        ) from error


def _evaluate(node: ast.expr, namespace: dict[str, Any]) -> Any:
    try:
        return eval(compile(ast.Expression(node), FILE, "eval"), namespace)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the code given with -c fails: {type(error).__name__}: {error}\n  {ast.unparse(node)}"
        ) from error


class _Lifter(ast.NodeTransformer):
    """Gives a name to every tensor and module that an expression makes, and lists its inputs."""

    def __init__(self, namespace: dict[str, Any]):
        self.namespace = namespace
        self.inputs: dict[str, torch.Tensor] = {}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        value = self.namespace.get(node.id)
        if isinstance(value, torch.Tensor):
            self.inputs[node.id] = value
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if _makes_tensor(node.func) and not self._reads_tensors(node):
            return self._named(node, "x", _evaluate(node, self.namespace))
        if isinstance(node.func, ast.Call) and not self._reads_tensors(node.func):
            made = _evaluate(node.func, self.namespace)
            if isinstance(made, torch.nn.Module):
                node.func = self._named(node.func, "module", made)
        self.generic_visit(node)
        return node

    def _reads_tensors(self, node: ast.expr) -> bool:
        return any(
            isinstance(name, ast.Name) and isinstance(self.namespace.get(name.id), torch.Tensor)
            for name in ast.walk(node)
        )

    def _named(self, node: ast.expr, prefix: str, value: Any) -> ast.Name:
        name, count = prefix, 0
        while name in self.namespace:
            count += 1
            name = f"{prefix}_{count}"
        self.namespace[name] = value
        if isinstance(value, torch.Tensor):
            self.inputs[name] = value
        return ast.copy_location(ast.Name(name, ast.Load()), node)


def _makes_tensor(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "torch"
        and function.attr in CONSTRUCTORS
    )


def _direct_call(expression: ast.expr, namespace: dict[str, Any]) -> Loaded | None:
    """If the expression only calls a module or a function of the code on names, that is the program.

    Its inputs keep their own names, and its lines are known to be the program's.
    """
    if not isinstance(expression, ast.Call) or not isinstance(expression.func, ast.Name):
        return None
    callee: Any = namespace.get(expression.func.id)
    own = isinstance(callee, types.FunctionType) and callee.__code__.co_filename == FILE
    values = [*expression.args, *(keyword.value for keyword in expression.keywords)]
    if not (own or isinstance(callee, torch.nn.Module)):
        return None
    if not all(isinstance(value, ast.Name) for value in values):
        return None
    args = tuple(_evaluate(argument, namespace) for argument in expression.args)
    kwargs = {k.arg: _evaluate(k.value, namespace) for k in expression.keywords if k.arg}
    return (callee, args, kwargs) if len(kwargs) == len(expression.keywords) else None


def _expression_program(
    expression: ast.expr, namespace: dict[str, Any], inputs: dict[str, torch.Tensor]
) -> Loaded:
    """A module whose `forward` takes the inputs by name and owns the modules that the code uses."""
    source = ast.parse(f"def forward({', '.join(inputs)}): pass", FILE)
    function = source.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = [ast.copy_location(ast.Return(expression), expression)]
    _run(ast.fix_missing_locations(source), namespace)
    forward: Callable[..., Any] = namespace["forward"]
    owned = {
        name.id: namespace[name.id]
        for name in ast.walk(expression)
        if isinstance(name, ast.Name) and isinstance(namespace.get(name.id), torch.nn.Module)
    }
    if not owned:
        return forward, tuple(inputs.values()), {}
    program = torch.nn.Module()
    for name, module in owned.items():
        program.add_module(name, module)
    program.forward = forward
    program.train(all(module.training for module in owned.values()))
    return program, tuple(inputs.values()), {}
