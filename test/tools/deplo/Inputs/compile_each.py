"""Runs `deplo compile` for each line `COMPILE: arguments` of a file, in one process.

Prints the arguments, what the command printed to either stream, and the names of the kernels.
"""

import re
import shlex
import sys
from contextlib import redirect_stderr
from pathlib import Path

from deplo.tools.deplo import run

for line in Path(sys.argv[1]).read_text().splitlines():
    if not line.startswith("COMPILE: "):
        continue
    arguments = shlex.split(line.removeprefix("COMPILE: "))
    print("deplo compile", line.removeprefix("COMPILE: "))
    output = Path(sys.argv[2])
    with redirect_stderr(sys.stdout):
        assert run(["compile", *arguments, "-o", str(output)]) == 0
    text = output.read_text()
    print(text, end="")
    print("kernels:", *re.findall(r"loop\.kernel @(\S+)\(", text))
