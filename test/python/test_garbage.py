"""Collections are rarer while a program is compiled, and as before afterwards."""

import gc
import threading

import pytest

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
