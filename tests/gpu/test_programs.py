# SPDX-License-Identifier: BSD-3-Clause
"""Every CUDA program is compiled, for cards from Turing to Blackwell: that needs a compiler and no card."""

from __future__ import annotations

import ctypes
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from maxmargin.gpu.programs import FUNCTIONS, OPTIONS, numbers_of, program_for, sums_of
from maxmargin.kernels import ChiSquared, Gaussian, Laplacian, Linear, Polynomial, Sigmoid

ALL = Linear() + 2.0 * Gaussian(0.5) * Laplacian(0.1) + ChiSquared(0.2) + Polynomial(3) + Sigmoid(0.1, 0.2)
"""A kernel that has every sum and every shape."""


def _compiler():
    """NVRTC as its wheel installs it; None where that is not installed."""
    nvidia = find_spec("nvidia")
    folders = [] if nvidia is None else list(nvidia.submodule_search_locations or [])
    found = [file for folder in folders for file in sorted(Path(folder).rglob("libnvrtc.so.*"))]
    if not found:
        return None
    for builtins in found[0].parent.glob("libnvrtc-builtins.so*"):
        ctypes.CDLL(str(builtins), mode=ctypes.RTLD_GLOBAL)
    return ctypes.CDLL(str(found[0]))


COMPILER = _compiler()


@pytest.mark.skipif(COMPILER is None, reason="nvidia-cuda-nvrtc is not installed")
@pytest.mark.parametrize("architecture", ["sm_75", "sm_80", "sm_90", "sm_120"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_program_compiles(name, architecture):
    for kernel, stored in ((ALL, "float"), (Gaussian(1.0), "double" if name == "expansions" else "float")):
        source = program_for(name, kernel, stored).source
        log, status = _compiled(source, [*OPTIONS, f"-arch={architecture}"])
        assert status == 0, log
        assert not log, log  # no warning either


def _compiled(source: str, options: list[str]) -> tuple[str, int]:
    program = ctypes.c_void_p()
    assert (
        COMPILER.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"program.cu", 0, None, None)
        == 0
    )
    words = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    status = COMPILER.nvrtcCompileProgram(program, len(options), words)
    size = ctypes.c_size_t()
    COMPILER.nvrtcGetProgramLogSize(program, ctypes.byref(size))
    log = ctypes.create_string_buffer(size.value)
    COMPILER.nvrtcGetProgramLog(program, log)
    COMPILER.nvrtcDestroyProgram(ctypes.byref(program))
    return log.value.decode(), status


def test_programs_depend_on_the_form_of_a_kernel_alone():
    one, other, third = (program_for("expansions", k, "float") for k in (Gaussian(1.0), Gaussian(2.0), ALL))
    assert one == other != third
    kernel = 2.0 * Gaussian(0.5) + Polynomial(2, 3.0, 4.0)
    np.testing.assert_array_equal(numbers_of(kernel), [2.0, 0.5, 1.0, 3.0, 4.0])
    assert sums_of(ALL) == {"product", "square", "absolute", "harmonic"}
