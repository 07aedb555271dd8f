"""Collections are rarer while a program is compiled, and as before afterwards."""

import gc
import threading
import weakref

import pytest

from deplo import garbage
from deplo.garbage import OBJECTS, fewer_collections


@pytest.fixture(autouse=True)
def usual():
    before = gc.get_threshold()
    gc.set_threshold(700, 10, 10)
    yield
    gc.set_threshold(*before)


def test_nested_and_after_a_failure():
    def fail():
        with fewer_collections():
            with fewer_collections():
                assert gc.get_threshold() == (OBJECTS, 10, 10)
            assert gc.get_threshold() == (OBJECTS, 10, 10)
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        fail()
    assert gc.get_threshold() == (700, 10, 10)


def test_threads_that_overlap():
    inside, go = threading.Event(), threading.Event()

    def compile_something():
        with fewer_collections():
            inside.set()
            go.wait(10)

    thread = threading.Thread(target=compile_something)
    with fewer_collections():
        thread.start()
        inside.wait(10)
    assert gc.get_threshold() == (OBJECTS, 10, 10)
    go.set()
    thread.join()
    assert gc.get_threshold() == (700, 10, 10)


@pytest.mark.parametrize("chosen", [(0, 10, 10), (10 * OBJECTS, 5, 5)])
def test_what_the_user_chose_stays(chosen):
    gc.set_threshold(*chosen)
    with fewer_collections():
        assert gc.get_threshold() == chosen
    assert gc.get_threshold() == chosen


@pytest.fixture
def thawed():
    """Nothing is frozen, as in most processes: the tests' own has frozen what it imported."""
    gc.unfreeze()
    yield
    gc.freeze()


class Cycle:
    def __init__(self):
        self.itself = self


def test_what_is_left_behind_is_looked_for_later(monkeypatch, thawed):
    monkeypatch.setattr(garbage, "_left", 0)
    gone = weakref.ref(made := Cycle())
    del made
    with fewer_collections():
        pass
    assert gc.get_count()[0] < OBJECTS
    assert gone() is not None
    assert not gc.get_freeze_count()
    gc.collect()
    assert gone() is None


def test_too_much_that_is_left_behind_is_looked_for_at_once(monkeypatch, thawed):
    monkeypatch.setattr(garbage, "_left", garbage.MOST_LEFT)
    gone = weakref.ref(made := Cycle())
    with fewer_collections():
        del made
        kept = [[] for _ in range(100)]
    assert gone() is None
    assert len(kept) == 100
    assert garbage._left == 0


def test_frozen_objects_stay_frozen():
    gc.freeze()
    count = gc.get_freeze_count()
    with fewer_collections():
        pass
    assert gc.get_freeze_count() == count
