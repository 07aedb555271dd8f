"""What a program changes besides tensors is refused with its line, and is as before."""

import copy

import pytest
import torch

import deplo

pytestmark = pytest.mark.filterwarnings("ignore")

X = torch.ones(3)
STATE = torch.Generator().manual_seed(3).get_state()


def assign_data(x):
    y = x + 1
    y.data = x * 7
    return y * 2


def forked(x):
    with torch.random.fork_rng():
        return torch.rand(3) + x


FUNCTIONS = {
    "manual_seed": lambda x: (torch.manual_seed(5), torch.rand(3) + x)[1],
    "seed at the end": lambda x: (x + 1, torch.seed())[0],
    "set_rng_state": lambda x: (torch.set_rng_state(STATE), x + 1)[1],
    "default_generator": lambda x: (torch.default_generator.manual_seed(3), x + 1)[1],
    "fork_rng": forked,
    "generator": lambda x: torch.rand(3, generator=torch.Generator().manual_seed(3)) + x,
    "uniform_": lambda x: x.clone().uniform_(generator=torch.Generator()),
    "default dtype": lambda x: (torch.set_default_dtype(torch.float64), torch.ones(3) + x)[1],
    "default device": lambda x: (torch.set_default_device("meta"), x + 1)[1],
    "threads": lambda x: (torch.set_num_threads(3), x + 1)[1],
    "deterministic": lambda x: (torch.use_deterministic_algorithms(True), x + 1)[1],
    "precision": lambda x: (torch.set_float32_matmul_precision("medium"), x + 1)[1],
    "data": assign_data,
}


class Stateful(torch.nn.Module):
    """A module with attributes that `change` changes."""

    def __init__(self, change):
        super().__init__()
        self.change, self.inner = change, torch.nn.Identity()
        self.inner.state = torch.zeros(3)
        self.count, self.items, self.table = 0, [torch.zeros(3)], {}
        self.register_buffer("buffer", torch.zeros(3))

    def forward(self, x):
        y = x + self.count + self.items[0] + self.inner.state + len(self.table) + self.buffer
        self.change(self, x)
        return y


def count(module, x):
    module.count += 1


def assign(module, x):
    module.inner.state = module.inner.state + x


def assign_item(module, x):
    module.items[0] = module.items[0] + x


def append(module, x):
    module.items.append(x)


def enter(module, x):
    module.table["x"] = x


def assign_buffer_data(module, x):
    module.buffer.data = x


def train(module, x):
    module.train(not module.training)


def register(module, x):
    module.register_buffer("other", x)


CHANGES = [count, assign, assign_item, append, enter, assign_buffer_data, train, register]


def settings():
    return (
        torch.get_rng_state().tolist(),
        *(torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads()),
        *(torch.are_deterministic_algorithms_enabled(), torch.get_float32_matmul_precision()),
    )


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_pytorch_with_effects(name):
    before = settings()
    program = FUNCTIONS[name]
    for called in (program, lambda x: program(x) + 1):
        with pytest.raises(deplo.UnsupportedOpError, match=r"test_effects\.py:\d+"):
            deplo.compile(called, (X,), fallback="eager")
    assert settings() == before
    assert not torch.overrides._get_current_function_mode_stack()


@pytest.mark.parametrize("change", CHANGES)
def test_attributes_that_a_module_changes(change):
    module = Stateful(change)
    before = copy.deepcopy({**vars(module), **vars(module.inner)})
    for program in (module, lambda x: module(x) * 2):
        with pytest.raises(deplo.UnsupportedOpError) as raised:
            deplo.compile(program, (X,), fallback="eager")
        line = change.__code__.co_firstlineno + 1
        assert f"test_effects.py:{line}" in str(raised.value)
    assert repr({**vars(module), **vars(module.inner)}) == repr(before)


LATEST: list[torch.Tensor] = [torch.zeros(3)]


def remember(x):
    LATEST[0] = LATEST[0] + x
    return LATEST[0] * 2


def rebind(x):
    global KEPT
    KEPT = x * 2
    return x + 1


def closing_over(kept):
    def append(x):
        kept.append(x)
        return x * len(kept)

    return append


@pytest.mark.parametrize(
    ("program", "what"),
    [(remember, "LATEST"), (rebind, "KEPT"), (closing_over([]), "kept")],
)
def test_variables_that_a_function_changes(program, what):
    with pytest.raises(deplo.UnsupportedOpError, match=f"variable '{what}'"):
        deplo.compile(program, (X,))
    assert not LATEST[0].any()
    assert "KEPT" not in globals()


@pytest.mark.parametrize("change", [*CHANGES, "manual_seed", "data"])
def test_torch_compile_does_what_they_mean(change):
    program = FUNCTIONS[change] if isinstance(change, str) else Stateful(change)
    theirs = copy.deepcopy(program)
    ours = torch.compile(program, backend="deplo")
    for _ in range(2):
        torch.testing.assert_close(ours(X), theirs(X))


def cached(module, x):
    module.count = 1000 * len(x)
    module.table["x"] = module.items[0]
    module.pair = (module.items[0], x.shape)


def test_what_is_as_before_is_compiled():
    module = Stateful(cached)
    module(X)
    torch.testing.assert_close(deplo.compile(module, (X,))(X), module(X))
    assert module.table["x"] is module.items[0]


def data_of(x):
    y = x + 1
    y.data.add_(1)
    return y * 2


def test_data_that_is_read_is_the_tensor_itself():
    torch.testing.assert_close(deplo.compile(data_of, (X,))(X), data_of(X))
