"""Tuning: how two programs are compared on a machine that has other things to do."""

import random

import pytest

from deplo.tune import pairs
from deplo.tune.pairs import compare, quotients


class Machine:
    """Turns of two programs, of a second and of `ratio`, on a machine that is busier by the pair."""

    def __init__(self, ratio, busier=lambda pair: 1.0, noise=0.0):
        self.ratio, self.busier, self.noise = ratio, busier, noise
        self.random = random.Random(0)
        self.order = []

    def turns(self):
        return [lambda number=number: self._turn(number) for number in (0, 1)]

    def _turn(self, number):
        busier = self.busier(len(self.order) // 2) * (1 + self.noise * self.random.random())
        self.order.append(number)
        ratio = self.ratio(busier) if callable(self.ratio) else self.ratio
        return busier * (ratio if number else 1.0)


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(pairs, "PAUSES", (0.0, 0.0))
    monkeypatch.setattr(pairs, "PAIR_SECONDS", 1e6)


def test_each_program_is_first_in_half_of_the_pairs():
    machine = Machine(0.9)
    found = compare(machine.turns(), 10, 1.0)
    assert found.ratio == pytest.approx(0.9)
    assert (found.seconds, found.fastest) == (pytest.approx(0.9), 1.0)
    firsts = machine.order[::2]
    assert sorted(firsts) == [0] * 5 + [1] * 5
    assert len(machine.order) == 20


def test_what_a_machine_does_besides_is_the_same_for_both():
    """It drifts by a quarter: medians of the times would not tell 3 percent."""
    machine = Machine(0.97, lambda pair: 1.0 + 0.01 * pair, noise=0.01)
    assert compare(machine.turns(), 25, 1.0).ratio == pytest.approx(0.97, abs=0.006)


def test_the_quicker_half_of_the_pairs_counts():
    """On a busy machine the second program is slower, else faster."""
    machine = Machine(
        lambda busier: 0.9 if busier == 1.0 else 1.5, lambda pair: 1 + 0.2 * (pair % 2)
    )
    assert compare(machine.turns(), 24, 1.0).ratio == pytest.approx(0.9)


def test_no_program_is_chosen_for_its_luck():
    """Equal programs, whose times differ by up to a third: the lucky turns of one are no measure."""
    assert compare(Machine(1.0, noise=0.3).turns(), 101, 1.0).ratio == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize(
    ("ratio", "says"),
    [(0.9, 0.9), (1.2, 1.2), (1.01, None), (0.999, 0.999)],
)
def test_on_a_busy_machine_pairs_must_agree(ratio, says):
    found = compare(Machine(ratio).turns(), 12, 0.5)  # the first one took half as long once
    assert found.ratio == (None if says is None else pytest.approx(says))
    assert found.fastest == 0.5


def test_on_a_busy_machine_the_worse_quarter_counts():
    machine = Machine(lambda busier: 0.8 if busier < 1.5 else 0.9, lambda pair: 1.0 + pair % 2)
    assert compare(machine.turns(), 12, 0.1).ratio == pytest.approx(0.9)
    machine = Machine(lambda busier: 0.8 if busier < 1.5 else 1.01, lambda pair: 1.0 + pair % 2)
    assert compare(machine.turns(), 12, 0.1).ratio is None


def test_a_machine_may_have_less_to_do_after_a_pause():
    machine = Machine(
        lambda busier: 0.9 if busier < 1.5 else 1.2, lambda pair: 2.0 if pair < 3 else 1.0
    )
    found = compare(machine.turns(), 12, 1.0)
    assert found.ratio == pytest.approx(0.9)


def test_what_is_hopeless_or_no_faster_is_given_up_early():
    machine = Machine(1.3)
    assert compare(machine.turns(), 100, 1.0).ratio == pytest.approx(1.3)
    assert len(machine.order) == 2 * pairs.EARLY
    machine = Machine(1.02)
    assert compare(machine.turns(), 100, 1.0).ratio == pytest.approx(1.02)
    assert len(machine.order) == 2 * pairs.FEW


def test_of_long_calls_a_few_pairs_are_enough(monkeypatch):
    monkeypatch.setattr(pairs, "PAIR_SECONDS", 0.0)
    machine = Machine(0.9)
    assert compare(machine.turns(), 100, 1.0).ratio == pytest.approx(0.9)
    assert len(machine.order) == 2 * pairs.FEW


def test_quotients_come_in_order():
    assert quotients([(2.0, 3.0), (1.0, 0.5)]) == [0.5, 1.5]
