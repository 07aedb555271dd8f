"""What the tests of tuning share: a kernel, and searches with a clock of their own."""

from functools import cache
from math import inf

import torch

from deplo.frontend.capture import capture
from deplo.machine.host_cpu import find_target
from deplo.tune.book import machine_text, versions_text
from deplo.tune.database import Key, Trial, choices_text
from deplo.tune.kernels import tunable_kernels
from deplo.tune.search import Search
from deplo.tune.settings import Settings

CPU = find_target("cpu")
KEY = Key("kernel", "machine", "versions", Settings().text)
CHOICES = {"block_m": 64, "block_n": 64, "block_k": 64, "thread_m": 4, "thread_n": 32}
SMALL = Settings(generations=3, candidates=4)
OTHERS = {"beam": 2, "generations": 2, "candidates": 3, "rounds": 5, "timeout": 9.0, "gain": 0.1}


def captured(m=48, k=64, n=96):
    args = (torch.randn(m, k), torch.randn(k, n))
    return capture(lambda a, b: a @ b, args, None), args


@cache
def kernel_of(m=48, k=64, n=96):
    (kernel,), _ = tunable_kernels(captured(m, k, n)[0].module, CPU)
    return kernel


class Seeded:
    """A space with other seeds."""

    def __init__(self, space, seeds):
        self.space = space
        self.seeds = seeds

    def __getattr__(self, name):
        return getattr(self.space, name)


class Clock:
    """A measurement that knows how long each tiling takes, and counts what it is asked."""

    def __init__(self, ratio, stop_after=None):
        self.ratio = ratio
        self.asked = []
        self.stop_after = stop_after

    def expect(self, choices):
        pass

    def __call__(self, kernel, choices, rounds, *, fresh):
        if len(self.asked) == self.stop_after:
            raise KeyboardInterrupt
        self.asked.append((choices_text(choices), rounds))
        found = self.ratio(choices, rounds)
        return found if isinstance(found, Trial) else Trial("timed", found)


def run(kernel, database, clock, settings=None, deadline=inf):
    settings = settings or SMALL
    key = Key(kernel.digest, machine_text(CPU), versions_text(CPU), settings.text)
    return Search(kernel, key, database, settings, clock, deadline, lambda _: None).run()


def taller_is_better(tiling, rounds):
    return 1 - tiling["block_m"] / 1000


def shorter_is_better(tiling, rounds):
    return tiling["block_m"] / 1000
