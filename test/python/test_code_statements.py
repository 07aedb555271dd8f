"""Of the code given with -c, the program has what computes the last expression from its inputs."""

from __future__ import annotations

import ast
from typing import Any

import pytest
import torch

from deplo.errors import UsageError
from deplo.frontend.capture import capture
from deplo.frontend.sources import load_source

PROGRAMS = {
    "a computed tensor": ("x=torch.randn(4); y=torch.relu(x); y+1", "relu add_scalar"),
    "a computed tensor is the result": ("x=torch.randn(4); y=torch.relu(x); y", "relu"),
    "an input": ("x=torch.randn(4); y=torch.randn(4); x*y", "mul"),
    "an input like another": ("x=torch.randn(4); y=torch.ones_like(x); x*y", "mul"),
    "an input of the size of another": ("x=torch.randn(4); y=torch.ones(x.shape[0]); x*y", "mul"),
    "an input in a statement": ("x=torch.randn(4); y=x*torch.ones(4); y.exp()", "mul exp"),
    "a name set again": ("x=torch.randn(4); x=torch.relu(x); x=x.exp(); x+x", "relu exp add"),
    "two names": ("x=torch.randn(4); a,b=x.chunk(2); a*b", "split_with_sizes mul"),
    "a loop": (
        "x=torch.randn(4); s=0\nfor i in (2, 3): s = s + x*i\ns",
        "mul_scalar add_scalar mul_scalar add",
    ),
    "a comprehension": (
        "t=torch.ones(2); x=torch.randn(2); y=sum([t*2 for t in (x,)]); y*t",
        "mul_scalar add_scalar mul",
    ),
    "a module": ("m=nn.Linear(4,4); x=torch.randn(2,4); y=m(x); y.exp()", "linear exp"),
    "a module made in place": ("x=torch.randn(2,4); y=nn.Linear(4,4)(x); y.exp()", "linear exp"),
    "a function": ("x=torch.randn(4)\ndef f(a): return a.exp()\ny=f(x); y*x", "exp mul"),
    "a change of what is computed": ("x=torch.randn(4); y=x*2; y.exp_(); y", "mul_scalar exp"),
    "a view that is changed": ("x=torch.randn(4); y=x*2; v=y.view(4); v.exp_(); y", "mul_scalar exp"),
}
"""What the code does -> the code, and the operations of the program in order; no others of arithmetic."""

LAYOUT = {"view", "select", "slice", "alias"}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_has_what_computes_the_last_expression(name: str) -> None:
    code, wanted = PROGRAMS[name]
    source = load_source(code=code)
    module = capture(source.program, source.args, source.kwargs).module
    ops = [op.name.partition(".")[2] for op in module.walk() if op.name.startswith("torch.")]
    assert [op for op in ops if op not in LAYOUT] == wanted.split()
    torch.manual_seed(0)
    assert torch.equal(source.program(*source.args), last_value(code))


def last_value(code: str) -> torch.Tensor:
    """What the last expression of code is when Python runs all of it."""
    *statements, last = ast.parse(code).body
    assert isinstance(last, ast.Expr)
    namespace: dict[str, Any] = {"torch": torch, "nn": torch.nn}
    exec(compile(ast.Module(statements, []), "code", "exec"), namespace)
    return eval(compile(ast.Expression(last.value), "code", "eval"), namespace)


LEFT_OUT = {
    "x=torch.randn(4)*2; x.exp()": "it prepares x: x = torch.randn(4) * 2",
    "x=torch.randn(4); x[0]=1; x.exp()": "it prepares x: x[0] = 1",
    "x=torch.randn(4); x+=1; x.exp()": "it prepares x: x += 1",
    "x=torch.randn(4); n=x.shape[0]; x*n": "it makes no tensor: n = x.shape[0]",
    "x=torch.randn(4); s=x.sum().item(); x*s": "it makes no tensor: s = x.sum().item()",
    "x=torch.randn(4); y=x.relu(); x.exp()": "nothing reads it: y = x.relu()",
}


@pytest.mark.parametrize("code", LEFT_OUT)
def test_what_is_left_out_is_told(code: str) -> None:
    assert load_source(code=code).notes == (f"left out, {LEFT_OUT[code]}",)


@pytest.mark.parametrize("code", [code for code, _ in PROGRAMS.values()])
def test_nothing_is_told_of_a_program_that_has_all(code: str) -> None:
    assert load_source(code=code).notes == ()


REFUSED = {
    "x=torch.randn(4); y=x*2; x+=1; x+y": "changes x in place after the program has read it",
    "x=torch.randn(4); y=x[:2]; y+=1; y": "changes x in place",
    "x=torch.randn(4); y=x*2; x=torch.randn(4); x+y": "sets x again",
    "x=torch.randn(4); n=2; y=x*n; n=3; y*n": "sets n again",
    "x=torch.randn(4); l=[]; l.append(x*2); torch.cat(l)": "puts tensors into l",
    "x=torch.randn(4); d={}; d['y']=x*2; d['y']+x": "puts tensors into d",
    "x=torch.randn(4); y=x*2\ndef f(a): return a+y\nf(x)": "f reads y, which the program computes",
}


@pytest.mark.parametrize("code", REFUSED)
def test_what_would_be_another_program_is_refused(code: str) -> None:
    with pytest.raises(UsageError, match=REFUSED[code]):
        load_source(code=code)
