"""Programs given as code on the command line.

The last expression is the program, with the statements before it that compute what it reads from tensors.
Names in it that hold other tensors become its inputs, and so do calls in it that make tensors; modules in it
keep their parameters:

    x = torch.randn(8); x * torch.exp(x)            one input, x
    x = torch.randn(8); y = torch.exp(x); x * y     the same program
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
from .code_statements import Body, is_constructor, names_stored

FILE = "<command line>"

Loaded = tuple[torch.nn.Module | Callable[..., Any], tuple[Any, ...], dict[str, Any]]


def program_of_code(code: str) -> tuple[Loaded, list[str]]:
    """The program that `code` ends with, its inputs, and for people what of the code is no part of it.

    Runs the code. Raises UsageError.
    """
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
    lifter = _Lifter(namespace)
    body = Body(namespace, lifter.visit, lambda each: _run(ast.Module([each], []), namespace))
    for statement in statements:
        body.add(statement)
    expression = lifter.visit(last.value)
    body.note_reads(expression, namespace)
    needed = body.needed(expression)
    read = body.reads_of([*needed, expression])
    if not any(isinstance(value, torch.Tensor) for value in read.values()):
        _evaluate(expression, namespace)  # a mistake in it is the better message
        raise UsageError(
            "-c needs an expression that reads a tensor, such as torch.exp(torch.randn(8))"
        )
    direct = None if needed else _direct_call(expression, namespace)
    return direct or _expression_program(needed, expression, namespace, read), body.told


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
    """Gives a name to every tensor and module that an expression makes."""

    def __init__(self, namespace: dict[str, Any]):
        self.namespace = namespace

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if is_constructor(node) and not self._reads_tensors(node):
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
        return ast.copy_location(ast.Name(name, ast.Load()), node)


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
    statements: list[ast.stmt], expression: ast.expr, namespace: dict[str, Any], read: dict[str, Any]
) -> Loaded:
    """A module whose `forward` takes the inputs by name and owns the modules that the code uses.

    `read` has what the statements and the expression read and do not compute.
    """
    inputs = {name: value for name, value in read.items() if isinstance(value, torch.Tensor)}
    stored = {name for statement in statements for name in names_stored(statement)}
    begin: list[ast.stmt] = []
    for name in stored & (read.keys() - inputs.keys()):  # a number that the program sets again
        namespace[f"first_{name}_"] = read[name]
        first = ast.Name(f"first_{name}_", ast.Load())
        begin.append(ast.Assign([ast.Name(name, ast.Store())], first))
    source = ast.parse(f"def forward({', '.join(inputs)}): pass", FILE)
    function = source.body[0]
    assert isinstance(function, ast.FunctionDef)
    function.body = [
        *begin,
        *statements,
        ast.copy_location(ast.Return(expression), expression),
    ]
    _run(ast.fix_missing_locations(source), namespace)
    forward: Callable[..., Any] = namespace["forward"]
    owned = {
        name: value for name, value in read.items() if isinstance(value, torch.nn.Module)
    }
    if not owned:
        return forward, tuple(inputs.values()), {}
    program = torch.nn.Module()
    for name, module in owned.items():
        program.add_module(name, module)
    program.forward = forward
    program.train(all(module.training for module in owned.values()))
    return program, tuple(inputs.values()), {}
