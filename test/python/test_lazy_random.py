"""Random numbers of lazy tensors: Threefry's words, and what is made of them."""

import numpy as np
import pytest
from lazy_oracle import quiet

import deplo
import deplo.array_api as xp
from deplo.lazy import random

SIZE = 1 << 16


def rotated(x, count):
    return x << np.uint32(count) | x >> np.uint32(32 - count)


@quiet
def threefry(counter, key):
    """Threefry-2x32 of 20 rounds, written down from the paper's pseudocode."""
    x0, x1 = (np.asarray(word, np.uint32) for word in counter)
    k0, k1 = map(np.uint32, key)
    schedule = (k0, k1, k0 ^ k1 ^ np.uint32(0x1BD11BDA))
    x0, x1 = x0 + k0, x1 + k1
    for round in range(20):
        x0 = x0 + x1
        x1 = rotated(x1, (13, 15, 26, 6, 17, 29, 16, 24)[round % 8]) ^ x0
        if round % 4 == 3:
            x0 = x0 + schedule[(round // 4 + 1) % 3]
            x1 = x1 + schedule[(round // 4 + 2) % 3] + np.uint32(round // 4 + 1)
    return x0, x1


def test_the_reference_gives_the_words_that_are_known():
    """The known answers of the Random123 library for threefry2x32, 20 rounds."""
    ones = 0xFFFFFFFF
    for counter, key, words in (
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((ones, ones), (ones, ones), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ):
        assert tuple(map(int, threefry(counter, key))) == words


@pytest.mark.parametrize("seed", [0, 1, -1, 0x0370734413198A2E])
def test_the_words_are_threefry_s(seed):
    count = 1000
    words = [w.astype("int64") & 0xFFFFFFFF for w in random._words((count,), seed)]
    deplo.lazy.realize(*words)
    key = seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF
    expected = threefry((np.arange(count), np.zeros(count)), key)
    for got, word in zip(words, expected, strict=True):
        np.testing.assert_array_equal(got.numpy(), word)


def test_numbers_are_made_of_the_uppermost_bits():
    one, other = (w.astype(np.uint64) for w in threefry((np.arange(50), np.zeros(50)), (9, 0)))
    drawn = {name: xp.rand(50, seed=9, dtype=name) for name in ("float16", "float32", "float64")}
    half, integer = xp.rand(50, seed=9, dtype="bfloat16"), xp.randint(-5, 7, 50, seed=9)
    deplo.lazy.realize(*drawn.values(), half, integer)
    np.testing.assert_array_equal(drawn["float32"].numpy(), (one >> 8) * np.float32(2**-24))
    np.testing.assert_array_equal(drawn["float16"].numpy(), (one >> 21) * np.float16(2**-11))
    np.testing.assert_array_equal(half.astype("float32").numpy(), (one >> 24) / 256)
    exact = ((one >> 5) * 2**26 + (other >> 6)) / 2**53
    np.testing.assert_array_equal(drawn["float64"].numpy(), exact)
    np.testing.assert_array_equal(integer.numpy(), (one * 12 >> 32).astype(np.int64) - 5)


def test_the_shape_is_a_reading_and_the_seed_is_data():
    first, second = xp.rand((2, 3), seed=1), xp.rand((2, 3), seed=2)
    assert first.program().code is second.program().code
    assert first.node is xp.rand((2, 3), seed=1).node
    np.testing.assert_array_equal(first.numpy().ravel(), xp.rand(6, seed=1).numpy())
    assert (first != second).all()
    assert xp.rand((0, 3), seed=1).tolist() == []
    n = deplo.Variable("n", 1, 9)
    x = deplo.Tensor(np.ones(9, np.float32))[:n]
    (noisy,) = deplo.prepare(x * xp.rand(n, seed=3)).execute_with(n=4)
    np.testing.assert_array_equal(noisy.numpy(), xp.rand(4, seed=3).numpy())


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_normal_numbers_have_the_moments_of_the_normal_distribution(dtype):
    x = xp.randn(SIZE, seed=4, dtype=dtype).numpy().astype(float)
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((x**power).mean() - moment) < 4 * (variance / SIZE) ** 0.5
    assert abs((x[1:] * x[:-1]).mean()) < 4 / SIZE**0.5


def test_uniform_numbers_are_uniform():
    uniform, integers = xp.rand(SIZE, seed=5), xp.randint(0, 10, SIZE, seed=6, dtype="int8")
    deplo.lazy.realize(uniform, integers)
    counts, _ = np.histogram(uniform.numpy(), 64, (0, 1))
    assert ((counts - SIZE / 64) ** 2 / (SIZE / 64)).sum() < 63 + 4 * (2 * 63) ** 0.5
    drawn = np.bincount(integers.numpy(), minlength=10)
    assert ((drawn - SIZE / 10) ** 2 / (SIZE / 10)).sum() < 9 + 4 * (2 * 9) ** 0.5


def test_what_is_not_random_is_refused():
    for act, error, said in (
        (lambda: xp.rand(3, seed=2**64), ValueError, "a seed has 64 bits"),
        (lambda: xp.rand(3, seed=0, dtype="int32"), TypeError, "rand gives floats"),
        (lambda: xp.randn(3, seed=0, dtype="bool"), TypeError, "randn gives floats"),
        (lambda: xp.randint(0, 3, 3, seed=0, dtype="float32"), TypeError, "gives integers"),
        (lambda: xp.randint(3, 3, 3, seed=0), ValueError, "not 1 to 2"),
        (lambda: xp.randint(0, 200, 3, seed=0, dtype="int8"), ValueError, "values of int8"),
        (lambda: xp.rand((2**16, 2**15), seed=0), ValueError, "less than 2"),
    ):
        with pytest.raises(error, match=said):
            act()
