"""Runs `deplo` as processes and prints how each ended."""

import subprocess
import sysconfig
from pathlib import Path

HERE = Path(__file__).parent
DEPLO = str(Path(sysconfig.get_path("scripts")) / "deplo")
EXP = "torch.exp(torch.randn(3))"
CASES = {
    "help": ["--help"],
    "agrees": ["run", "-c", EXP],
    "unsupported": ["compile", "-c", "torch.linalg.svd(torch.ones(3, 3))[1]"],
    "syntax": ["compile", "-c", "torch.exp("],
    "usage": ["compile", "-c", EXP, "--ir", "ptx"],
    "differs": ["run", f"{HERE / 'differs.py'}:differs"],
}


def said(text: bytes) -> str:
    """Whether there is any output."""
    assert b"Traceback" not in text, text
    return "yes" if text else "no"


for name, arguments in CASES.items():
    done = subprocess.run([DEPLO, *arguments], capture_output=True, check=False)
    print(f"{name}: exit {done.returncode}, stdout {said(done.stdout)}, stderr {said(done.stderr)}")

# A reader that is gone before anything is written, as in `deplo compile ... | true`.
with subprocess.Popen(
    [DEPLO, "compile", "-c", EXP], stdout=subprocess.PIPE, stderr=subprocess.PIPE
) as process:
    process.stdout.close()
    error = process.stderr.read()
ended = "quiet" if process.returncode in (-13, 1) else process.returncode
print(f"closed pipe: exit {ended}, stderr {said(error)}")

# Standard output closed, or full: an error if there is something to write to it.
for name, arguments in {
    "stdout gone": f"compile -c '{EXP}' --ir tensor >&-",
    "stdout not needed": f"compile -c '{EXP}' --ir tensor -o /dev/null >&-",
    "disk full": f"compile -c '{EXP}' --ir tensor >/dev/full",
}.items():
    done = subprocess.run(
        f"{DEPLO} {arguments}", shell=True, stderr=subprocess.PIPE, check=False, text=True
    )
    print(f"{name}: exit {done.returncode}, stderr {done.stderr.strip() or 'empty'}")
