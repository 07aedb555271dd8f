"""The cache of compiled code: what is found is what was put, whatever happened to the files."""

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

import deplo
from deplo import program_cache
from deplo.errors import CacheWarning, UsageError
from deplo.runtime import jit, native_code
from deplo.runtime.cache import STALE_SECONDS, Cache, cache_key, open_cache

KEY = cache_key("a source", "a target")
OTHER = cache_key("a sourcea", " target")


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """A directory that the process caches in."""
    path = tmp_path / "cache"
    monkeypatch.setenv("DEPLO_CACHE", "1")
    monkeypatch.setenv("DEPLO_CACHE_DIR", str(path))
    return path


def only(directory: Path) -> Path:
    (path,) = directory.iterdir()
    return path


# --------------------------------------------------------------------------- entries


def test_what_was_put_is_found(cache):
    assert cache.get("object", KEY) is None
    for payload in (b"", b"\0" * 1000, os.urandom(5000)):
        cache.put("object", KEY, payload)
        assert cache.get("object", KEY) == payload
    assert cache.get("cubin", KEY) is None
    assert KEY != OTHER  # the parts of a key do not run into each other
    assert cache.get("object", OTHER) is None
    assert cache.verify() == []


def test_an_entry_cut_short_anywhere_is_made_again(cache, tmp_path):
    cache.put("object", KEY, b"0123456789")
    whole = only(tmp_path).read_bytes()
    for length in range(len(whole)):
        (tmp_path / f"object-{KEY}.entry").write_bytes(whole[:length])
        assert cache.get("object", KEY) is None
        assert list(tmp_path.iterdir()) == []


def test_an_entry_with_one_other_bit_is_made_again(cache, tmp_path):
    cache.put("object", KEY, b"0123456789")
    whole = only(tmp_path).read_bytes()
    for bit in range(8 * len(whole)):
        altered = bytearray(whole)
        altered[bit // 8] ^= 1 << bit % 8
        (tmp_path / f"object-{KEY}.entry").write_bytes(altered)
        assert cache.get("object", KEY) is None


def test_an_entry_in_the_place_of_another_is_not_taken_for_it(cache, tmp_path):
    cache.put("object", KEY, b"one program")
    only(tmp_path).rename(tmp_path / f"object-{OTHER}.entry")
    assert cache.verify() == [tmp_path / f"object-{OTHER}.entry"]
    assert cache.get("object", OTHER) is None


def test_the_entries_used_longest_ago_go_first(cache, tmp_path):
    for age, key in enumerate("abcd"):
        cache.put("object", key, bytes(1000))
        os.utime(tmp_path / f"object-{key}.entry", (time.time() - 100 + age,) * 2)
    assert cache.get("object", "a") is not None  # used now
    assert cache.collect(2200) == 2
    assert {key for key in "abcd" if cache.get("object", key)} == {"a", "d"}


def test_what_nobody_finished_writing_is_removed_in_time(cache, tmp_path):
    old, new = tmp_path / ".object-a.entry.0.tmp", tmp_path / ".object-a.entry.1.tmp"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 2 * STALE_SECONDS,) * 2)
    assert list(cache.entries()) == []
    cache.collect(0)
    assert list(tmp_path.iterdir()) == [new]


# --------------------------------------------------------------------------- the directory


def test_modes(directory, monkeypatch):
    open_cache().put("object", KEY, b"kept")
    assert directory.stat().st_mode & 0o777 == 0o700
    monkeypatch.setenv("DEPLO_CACHE", "ro")
    open_cache().put("object", OTHER, b"not kept")
    assert open_cache().get("object", OTHER) is None
    assert open_cache().get("object", KEY) == b"kept"
    monkeypatch.setenv("DEPLO_CACHE", "0")
    assert open_cache().get("object", KEY) is None
    monkeypatch.setenv("DEPLO_CACHE", "yes")
    with pytest.raises(UsageError, match=r"DEPLO_CACHE is 0 \(no cache\), ro \(read only\) or 1"):
        open_cache()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o702])
def test_a_directory_that_others_may_write_to_is_not_used(directory, mode):
    directory.mkdir()
    directory.chmod(mode)
    with pytest.warns(CacheWarning, match="others may write to it; run chmod 700"):
        assert open_cache() == Cache(None)


def test_a_directory_of_another_user_is_not_used(directory, monkeypatch):
    directory.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: directory.stat().st_uid + 1)
    with pytest.warns(CacheWarning, match="it belongs to another user"):
        assert open_cache() == Cache(None)


def test_a_directory_that_cannot_be_made_is_told(directory):
    directory.write_text("a file")
    with pytest.warns(CacheWarning, match="is not used"):
        assert open_cache() == Cache(None)


# --------------------------------------------------------------------------- programs


def compiled(scale: float = 2.0, **options):
    def program(x):
        return torch.softmax(x, -1) * scale

    return deplo.compile(program, (torch.randn(3, 5),), target="cpu", **options)


def steps(program) -> list[str]:
    return [name for name, _ in program.compilation.seconds]


def test_a_program_is_compiled_once(directory, monkeypatch):
    first, second = compiled(), compiled()
    assert "fuse-loops" in steps(first)
    assert steps(second) == ["cache"]
    assert second.plan == first.plan
    assert [str(d) for d in second.compilation.decisions] == [
        str(d) for d in first.compilation.decisions
    ]
    x = torch.randn(3, 5)
    assert torch.equal(first(x), second(x))
    assert "fuse-loops" in steps(compiled(3.0))  # another program
    with monkeypatch.context() as other:
        other.setattr(program_cache, "compiler_digest", lambda: "another compiler")
        assert "fuse-loops" in steps(compiled())
    with monkeypatch.context() as other:
        other.setenv("DEPLO_CPU_MODEL", "avx2" if os.environ.get("DEPLO_CPU_MODEL") == "sse2" else "sse2")
        assert "fuse-loops" in steps(compiled())


def test_machine_code_is_compiled_once(directory, monkeypatch):
    monkeypatch.setattr(native_code, "_kernels", {})
    first = compiled()(torch.ones(3, 5))
    monkeypatch.setattr(native_code, "_kernels", {})
    monkeypatch.setattr(jit, "_optimize", None)  # would fail if it were called
    assert torch.equal(compiled()(torch.ones(3, 5)), first)
    monkeypatch.setattr(native_code, "_kernels", {})
    monkeypatch.setattr(jit, "_own_source", lambda: b"makes other machine code of the same text")
    with pytest.raises(TypeError, match="NoneType"):
        compiled()(torch.ones(3, 5))


def test_a_program_that_calls_pytorch_is_not_kept(directory):
    def program(x):
        return torch.linalg.inv(x) + 1

    for _ in range(2):
        with pytest.warns(deplo.FallbackWarning, match="test_cache.py"):
            made = deplo.compile(program, (torch.eye(3),), target="cpu", fallback="eager")
        assert "fuse-loops" in steps(made)


# --------------------------------------------------------------------------- processes

WORKER = """
import ctypes, random, sys
from deplo.runtime import jit
shared = random.Random(int(sys.argv[1]))
while True:
    n = shared.randrange(40)
    source = f"define i64 @f() {{ ret i64 {n} }}"
    name = "f"
    address, alive = jit.load(name, jit.compile_object(source))
    assert ctypes.CFUNCTYPE(ctypes.c_int64)(address)() == n, n
    print(n, flush=True)
"""


def test_processes_that_share_a_cache_and_are_killed_leave_only_sound_entries(directory):
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, str(seed % 8)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for seed in range(32)
    ]
    chosen = random.Random(0)
    for worker in workers:
        assert worker.stdout.readline()  # it has begun
    for worker in chosen.sample(workers, 20):
        time.sleep(chosen.random() / 50)
        worker.kill()
    for worker in workers:
        assert worker.poll() in (None, -9), worker.stderr.read().decode()
        worker.kill()
        assert worker.communicate()[1] == b""
    cache = open_cache()
    assert len(list(cache.entries())) > 8
    assert cache.verify() == []
    for n in range(40):
        source = f"define i64 @f() {{ ret i64 {n} }}"
        code = cache.get("object", cache_key(source, *jit.host_cpu()))
        assert code is None or code == jit._optimize(source)
