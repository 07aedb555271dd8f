"""Every kernel of the corpus as it is for each architecture: machine code without spills and warnings."""

import pytest
from layers import ARCHITECTURES, assert_kernels_fit
from programs import CORPUS, compiled


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", CORPUS)
def test_the_kernels_of_a_program_do_not_spill(name: str, architecture: str) -> None:
    program = compiled(name, architecture)
    if program.kernels:
        assert_kernels_fit(program)
