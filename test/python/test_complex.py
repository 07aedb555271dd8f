"""Complex numbers and Fourier transforms, against eager, through both entry points."""

import pytest
import torch
from stages import assert_stages_agree
from torch import nn

import deplo
from deplo.errors import UnsupportedOpError, UsageError
from deplo.frontend.sources import Program as Source
from deplo.runtime.nvrtc import compile_cuda

C64 = torch.complex64


def made(*shape, dtype=C64, seed=0):
    generator = torch.Generator().manual_seed(seed + sum(shape))
    return torch.randn(*shape, dtype=dtype, generator=generator)


OPERATORS = {
    "abs": lambda z, w, x: z.abs(),
    "add": lambda z, w, x: z + w,
    "add a number": lambda z, w, x: z + (2 - 1j),
    "add a real tensor": lambda z, w, x: x + z,
    "add with a factor": lambda z, w, x: torch.add(z, w, alpha=2j),
    "addcmul": lambda z, w, x: torch.addcmul(z, z, w, value=3),
    "addmm": lambda z, w, x: torch.addmm(z @ z.T, z, w.T, beta=2, alpha=1j),
    "angle": lambda z, w, x: z.angle(),
    "bmm": lambda z, w, x: torch.bmm(z[None], w.T[None]),
    "cat": lambda z, w, x: torch.cat([z, x, w], 1),
    "clone": lambda z, w, x: z.clone() * 1,
    "complex": lambda z, w, x: torch.complex(x, x * 2) * z,
    "complex, broadcast": lambda z, w, x: torch.complex(x, x[0]),
    "conj": lambda z, w, x: z.conj() * w,
    "conj_physical": lambda z, w, x: torch.conj_physical(z),
    "cumsum": lambda z, w, x: z.cumsum(1),
    "div": lambda z, w, x: z / w,
    "div by a complex number": lambda z, w, x: z / (1 + 2j),
    "div by a number": lambda z, w, x: z / 3,
    "div a real tensor": lambda z, w, x: x / z,
    "einsum": lambda z, w, x: torch.einsum("bi,oi->bo", z, w),
    "eq": lambda z, w, x: (z == z.conj().conj(), z == w, z == 1, z != w),
    "exp": lambda z, w, x: z.exp(),
    "expand": lambda z, w, x: z[:, None].expand(4, 3, 6) * 2,
    "flip": lambda z, w, x: z.flip(1) + z,
    "full": lambda z, w, x: torch.full((4, 6), 1 - 2j) * z,
    "imag": lambda z, w, x: (z * w).imag + x,
    "index": lambda z, w, x: z[torch.tensor([2, 0])] * 2,
    "index_add": lambda z, w, x: z.index_add(0, torch.tensor([1, 1]), w[:2]),
    "index_put": lambda z, w, x: z.index_put((torch.tensor([1, 3]),), w[:2]),
    "isnan": lambda z, w, x: (torch.isnan(z / 0), torch.isinf(z / 0)),
    "linear": lambda z, w, x: nn.functional.linear(z, w, z[:, 0]),
    "log": lambda z, w, x: z.log(),
    "masked_fill": lambda z, w, x: z.masked_fill(x > 0, 2.5),
    "matmul": lambda z, w, x: z @ w.mT,
    "mean": lambda z, w, x: (z.mean(), z.mean(0)),
    "mul": lambda z, w, x: z * w,
    "mul by a complex number": lambda z, w, x: z * (2 - 1j),
    "mul by a real tensor": lambda z, w, x: z * x,
    "mul of a real tensor": lambda z, w, x: x * 1j,
    "neg": lambda z, w, x: -z,
    "new": lambda z, w, x: torch.zeros_like(z) + torch.ones_like(w) + z.new_zeros(6),
    "norm": lambda z, w, x: (torch.linalg.vector_norm(z), torch.linalg.vector_norm(w, 1, 0)),
    "pad": lambda z, w, x: nn.functional.pad(z, (1, 2), value=3.0),
    "polar": lambda z, w, x: torch.polar(x.abs(), x) * z,
    "pow": lambda z, w, x: (z**2, z**3, z**-1, z**0.5, z**-2, z**1.7),
    "real": lambda z, w, x: (z * w).real + x,
    "reciprocal": lambda z, w, x: z.reciprocal(),
    "repeat": lambda z, w, x: z.repeat(2, 1) * 2,
    "reshape": lambda z, w, x: (z.reshape(3, 8) * 2).permute(1, 0),
    "roll": lambda z, w, x: z.roll(2, 1),
    "rsub": lambda z, w, x: 1 - z,
    "scatter": lambda z, w, x: z.scatter_add(0, torch.zeros(4, 6, dtype=torch.long), w),
    "select_scatter": lambda z, w, x: z.select_scatter(w[0], 0, 2),
    "sgn": lambda z, w, x: (z * (x > 0)).sgn(),
    "slice_scatter": lambda z, w, x: z.slice_scatter(w[:2], 0, 1, 3),
    "split": lambda z, w, x: [part * 2 for part in z.split([2, 4], 1)],
    "sqrt": lambda z, w, x: z.sqrt(),
    "square": lambda z, w, x: z.square(),
    "stack": lambda z, w, x: torch.stack([z, w], 1),
    "sub": lambda z, w, x: z - w,
    "sum": lambda z, w, x: (z.sum(), z.sum(1, keepdim=True)),
    "to complex": lambda z, w, x: x.to(torch.complex64) * z,
    "to complex128": lambda z, w, x: z.to(torch.complex128) * x.double(),
    "tril": lambda z, w, x: z.tril(),
    "unbind": lambda z, w, x: z.unbind(0)[1] * 2,
    "unfold": lambda z, w, x: z.unfold(1, 3, 2) * 2,
    "var": lambda z, w, x: (z.var(), w.var(1, correction=0)),
    "view_as_complex": lambda z, w, x: torch.view_as_complex(x.reshape(4, 3, 2)) * 2,
    "view_as_real": lambda z, w, x: torch.view_as_real(z * w),
    "where": lambda z, w, x: torch.where(x > 0, z, w),
    "where, a number": lambda z, w, x: torch.where(x > 0, z, 0),
}

TRANSFORMS = {
    "fft": lambda z, x: torch.fft.fft(z),
    "fft, of real numbers": lambda z, x: torch.fft.fft(x),
    "fft, other axis": lambda z, x: torch.fft.fft(z, dim=0, norm="ortho"),
    "fft, padded": lambda z, x: torch.fft.fft(z, n=15),
    "fft2": lambda z, x: torch.fft.fft2(z, norm="forward"),
    "fftn, its real part": lambda z, x: torch.fft.fftn(x, dim=(0, 1)).real,
    "fftshift": lambda z, x: torch.fft.fftshift(torch.fft.fft(z)),
    "fft, long": lambda z, x: torch.fft.fft(z.repeat(1, 20)),
    "hfft": lambda z, x: torch.fft.hfft(z),
    "ifft": lambda z, x: torch.fft.ifft(z),
    "ifft2": lambda z, x: torch.fft.ifft2(z, norm="ortho"),
    "ihfft": lambda z, x: torch.fft.ihfft(x),
    "irfft": lambda z, x: torch.fft.irfft(z),
    "irfft, odd": lambda z, x: torch.fft.irfft(z, n=21, norm="forward"),
    "irfft2": lambda z, x: torch.fft.irfft2(z, norm="ortho"),
    "irfftn, other axes": lambda z, x: torch.fft.irfftn(z, dim=(1, 0)),
    "rfft": lambda z, x: torch.fft.rfft(x),
    "rfft, long": lambda z, x: torch.fft.rfft(x.repeat(1, 20)),
    "rfft2": lambda z, x: torch.fft.rfft2(x, norm="ortho"),
    "rfftn, other axes": lambda z, x: torch.fft.rfftn(x, dim=(1, 0)),
    "there and back": lambda z, x: torch.fft.irfft2(torch.fft.rfft2(x) * 2, s=x.shape),
}

LAYOUTS = {
    "row-major": lambda z: z,
    "transposed": lambda z: z.T.contiguous().T,
    "a part": lambda z: torch.cat([z, z], 1)[:, : z.shape[1]],
    "conjugated": lambda z: z.conj().resolve_conj().conj(),
    "without elements": lambda z: z[:0],
}


def through(entry, function, args, **options):
    if entry == "deplo.compile":
        return deplo.compile(function, args, **options)(*args)
    torch._dynamo.reset()
    return torch.compile(function, backend="deplo", options={"fallback": "error"})(*args)


def close(result, expected, tolerance=3e-5):
    torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


ENTRIES = pytest.mark.parametrize("entry", ["deplo.compile", "torch.compile"])


@ENTRIES
@pytest.mark.parametrize("name", OPERATORS)
def test_an_operator_of_complex_numbers_is_eagers(entry, name):
    args = made(4, 6), made(4, 6, seed=1), made(4, 6, dtype=torch.float32)
    close(through(entry, OPERATORS[name], args), OPERATORS[name](*args))


@ENTRIES
@pytest.mark.parametrize("name", TRANSFORMS)
def test_a_transform_is_eagers(entry, name):
    args = made(8, 12), made(8, 12, dtype=torch.float32)
    close(through(entry, TRANSFORMS[name], args), TRANSFORMS[name](*args))


NOT_TRACED = ("select_scatter", "slice_scatter")
"""Operators of which PyTorch does not trace gradients of complex numbers: their fake tensors fail."""


@pytest.mark.sample(40)
@pytest.mark.parametrize("name", sorted({*OPERATORS, *TRANSFORMS}.difference(NOT_TRACED)))
def test_gradients_are_eagers(name):
    shape = (8, 12) if name in TRANSFORMS else (4, 6)
    leaves = [made(*shape), made(*shape, seed=1), made(*shape, dtype=torch.float32)]
    if name in TRANSFORMS:
        del leaves[1]
    function = {**OPERATORS, **TRANSFORMS}[name]

    def gradients(run):
        own = [leaf.clone().requires_grad_() for leaf in leaves]
        results = run(*own)
        results = results if isinstance(results, (tuple, list)) else [results]
        loss = sum(
            (torch.view_as_real(r.resolve_conj()) if r.is_complex() else r).sin().sum()
            for r in results
            if r.is_complex() or r.is_floating_point()
        )
        if not torch.is_tensor(loss) or not loss.requires_grad:
            pytest.skip("its results have no gradients")
        loss.backward()
        return [leaf.grad for leaf in own]

    torch._dynamo.reset()
    compiled = torch.compile(function, backend="deplo", options={"fallback": "error"})
    close(gradients(compiled), gradients(function), 1e-3)


@ENTRIES
@pytest.mark.parametrize("layout", LAYOUTS)
def test_inputs_may_lie_in_memory_as_they_like(entry, layout):
    z = LAYOUTS[layout](made(4, 6))

    def function(z):
        return z * 2j, z.sum(0).real

    close(through(entry, function, (z,)), function(z))


@pytest.mark.parametrize("length", [1, 2, 3, 5, 8, 49, 97, 127, 128, 360, 500, 768, 4096])
def test_a_transform_of_any_length_with_small_factors_is_as_precise_as_eagers(length):
    z, x = made(3, length), made(3, length, dtype=torch.float32)

    def function(z, x):
        return torch.fft.fft(z), torch.fft.rfft(x), torch.fft.irfft(z, n=length)

    exact = function(z.to(torch.complex128), x.double())
    for got, eager, right in zip(
        deplo.compile(function, (z, x))(z, x), function(z, x), exact, strict=True
    ):
        scale = right.abs().square().mean().sqrt()
        error = (got - right).abs().square().mean().sqrt() / scale
        eagers = (eager - right).abs().square().mean().sqrt() / scale
        assert error <= 8 * max(float(eagers), 2.0**-24)


def test_a_transform_in_float64_is_one():
    z = made(3, 96, dtype=torch.complex128)
    result = deplo.compile(torch.fft.fft, (z,))(z)
    close(result, torch.fft.fft(z), 1e-12)


def test_a_length_with_a_large_prime_factor_is_refused_or_pytorchs():
    z = made(2, 131)
    with pytest.raises(UnsupportedOpError, match="length 131, whose prime factor 131 is above"):
        deplo.compile(torch.fft.fft, (z,))
    with pytest.warns(deplo.errors.FallbackWarning):
        program = deplo.compile(lambda z: torch.fft.fft(z * 2), (z,), fallback="eager")
    close(program(z), torch.fft.fft(z * 2), 1e-4)


def test_everything_unsupported_is_named_at_once():
    z = made(3, 3)

    def function(z):
        return z.tan() + torch.linalg.inv(z).sinh()

    with pytest.raises(UnsupportedOpError) as told:
        deplo.compile(function, (z,))
    for name in ("aten.tan.default: complex numbers", "aten.sinh.default", "inv"):
        assert name in str(told.value)
    with pytest.warns(deplo.errors.FallbackWarning):
        program = deplo.compile(function, (z,), fallback="eager")
    close(program(z), function(z), 1e-4)


def test_complex32_is_refused():
    z = made(4).to(torch.complex32)
    with pytest.raises(UnsupportedOpError, match="complex32"):
        deplo.compile(lambda z: z.real + 1, (z,))


def test_an_argument_of_another_dtype_is_refused():
    z = made(4)
    program = deplo.compile(lambda z: z * 2, (z,))
    with pytest.raises(UsageError, match=r"expected dtype torch\.complex64, got torch\.float32"):
        program(torch.randn(4))


def test_batch_sizes_may_change():
    def function(z, x):
        return torch.fft.irfft(torch.fft.rfft(x) * z[:1, :7]), torch.fft.fft(z), z @ z.mT

    args = made(3, 12), made(3, 12, dtype=torch.float32)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = deplo.compile(function, args, dynamic_shapes=({0: batch}, {0: batch}))
    compiled = torch.compile(function, backend="deplo", dynamic=True)
    for size in (3, 1, 9):
        args = made(size, 12), made(size, 12, dtype=torch.float32)
        close(program(*args), function(*args))
        close(compiled(*args), function(*args))


class Changes(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", made(4))

    def forward(self, z):
        self.state.mul_(z)
        z.add_(1j)
        return self.state.sum(), z.conj(), z.imag


@ENTRIES
def test_changes_in_place_and_views_are_eagers(entry):
    ours, theirs = Changes(), Changes()
    z, w = made(4, seed=2), made(4, seed=2)
    if entry == "deplo.compile":
        run = deplo.compile(ours, (z,))
    else:
        torch._dynamo.reset()
        run = torch.compile(ours, backend="deplo", options={"fallback": "error"})
    for _ in range(2):
        got, expected = run(z), theirs(w)
        close(got, expected)
        assert [r.is_conj() for r in got] == [r.is_conj() for r in expected]
        close((z, ours.state), (w, theirs.state))
    got[2].zero_()
    assert not z.imag.any()


def test_parts_of_a_conjugated_input_are_views_of_it():
    z = made(4)
    imaginary, real = deplo.compile(lambda z: (z.conj().imag, z.conj().real), (z,))(z)
    close((imaginary, real), (z.conj().imag, z.conj().real))
    imaginary.fill_(2)
    close(z.imag, torch.full((4,), -2.0))


def test_a_result_may_be_changed_in_place_by_its_caller():
    z = made(4).requires_grad_()
    torch._dynamo.reset()
    result = torch.compile(lambda z: z * 2, backend="deplo", options={"fallback": "error"})(z)
    result.mul_(1j)
    result.abs().sum().backward()
    close(z.grad, 2 * z.detach().sgn())


SPECIAL = [
    0j,
    complex(0.0, -0.0),
    complex(float("inf"), 1),
    complex(float("nan"), 1),
    1e30 + 1e30j,
    1e-30 + 1e-30j,
]


@pytest.mark.parametrize("value", SPECIAL)
def test_special_values_are_eagers(value):
    z = torch.full((3,), value, dtype=C64)

    def function(z):
        return z.abs(), z * 2, z + 1, z.sgn(), z.conj() * z.real

    for got, expected in zip(deplo.compile(function, (z,))(z), function(z), strict=True):
        close(torch.view_as_real(got.to(C64)), torch.view_as_real(expected.to(C64)))


def rotary(x, frequencies):
    """Rotary embeddings as in Llama 4 and DeepSeek-V2."""
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * frequencies[:, None]).flatten(3).type_as(x)


@ENTRIES
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_rotary_embeddings(entry, dtype):
    angles = torch.outer(torch.arange(5.0), 1 / 100 ** (torch.arange(4) / 4))

    def function(x, angles):
        return rotary(x, torch.polar(torch.ones_like(angles), angles))

    args = torch.randn(2, 5, 3, 8, dtype=dtype), angles
    close(
        through(entry, function, args), function(*args), 1e-2 if dtype == torch.bfloat16 else 1e-5
    )


class SpectralConvolution(nn.Module):
    """A layer of a Fourier neural operator (Li et al., 2021)."""

    def __init__(self, width=4, modes=3):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(made(width, width, modes, modes) / width)
        self.skip = nn.Conv2d(width, width, 1)

    def forward(self, x):
        m = self.modes
        spectrum = torch.fft.rfft2(x)
        out = torch.zeros_like(spectrum)
        out[..., :m, :m] = torch.einsum("bixy,ioxy->boxy", spectrum[..., :m, :m], self.weight)
        return nn.functional.gelu(torch.fft.irfft2(out, s=x.shape[-2:]) + self.skip(x))


@ENTRIES
def test_a_spectral_convolution(entry):
    layer, x = SpectralConvolution(), torch.randn(2, 4, 16, 12)
    if entry == "deplo.compile":
        close(deplo.compile(layer, (x,))(x), layer(x))
        return
    torch._dynamo.reset()
    layer(x).sin().sum().backward()
    expected = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    compiled = torch.compile(layer, backend="deplo", options={"fallback": "error"})
    compiled(x).sin().sum().backward()
    close([p.grad for p in layer.parameters()], expected, 1e-3)


@ENTRIES
def test_a_spectrogram_and_its_inverse(entry):
    window = torch.hann_window(64)

    def function(signal):
        spectrum = torch.stft(signal, 64, 16, window=window, return_complex=True)
        return spectrum, torch.istft(spectrum, 64, 16, window=window), spectrum.abs().square()

    args = (torch.randn(2, 500),)
    close(through(entry, function, args), function(*args), 1e-3)


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("name", ["mul", "div", "matmul", "sqrt", "rfft2", "irfft", "fft, long"])
def test_every_pass_keeps_the_meaning(name, target, capsys):
    if name in OPERATORS:
        args = made(4, 6), made(4, 6, seed=1), made(4, 6, dtype=torch.float32)
    else:
        args = made(8, 12), made(8, 12, dtype=torch.float32)
    function = {**OPERATORS, **TRANSFORMS}[name]
    program = deplo.compile(function, args, target=target)
    assert_stages_agree(program, Source(function, args), capsys)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120"])
def test_nvrtc_takes_it_without_spills(target):
    args = made(64, 256), made(64, 256, dtype=torch.float32)

    def function(z, x):
        return torch.fft.irfft2(torch.fft.rfft2(x) * 2), torch.fft.fft(z / (z + 3)), z @ z.mT

    program = deplo.compile(function, args, target=target)
    for kernel in program.kernels:
        for usage in compile_cuda(kernel.source, target).usage.values():
            assert usage.spill_stores + usage.spill_loads == 0, kernel.name


def test_a_transform_is_a_call_where_pytorch_may_be_called() -> None:
    z = torch.randn(3, 8)
    with pytest.warns(deplo.FallbackWarning, match="_fft_r2c"):
        program = deplo.compile(lambda z: torch.fft.rfft(z * 2).abs(), (z,), fallback="eager")
    assert "aten._fft_r2c.default" in [call.operator for call in program.plan.calls]
    torch.testing.assert_close(program(z), torch.fft.rfft(z * 2).abs())
