# SPDX-License-Identifier: BSD-3-Clause
"""scikit-learn's own tests of ``sklearn.svm``, those of the installed version, with our classes in place.

What fails is listed with the reason: a listed test that passes fails here, and so does one that fails and
is not listed. Tests of classes that are not offered yet run on scikit-learn's own, and are counted apart.
"""

from __future__ import annotations

import inspect
import re
from importlib.metadata import version
from importlib.util import find_spec, module_from_spec, spec_from_file_location

import pytest
from sklearn import svm

import maxmargin

pytestmark = [
    pytest.mark.skipif(not version("scikit-learn").startswith("1.9."), reason="the list is that of 1.9"),
    pytest.mark.filterwarnings("ignore"),
]
CLASSES = {name for name in svm.__all__ if name != "l1_min_c"}
OURS = {name for name in CLASSES if name in maxmargin.__all__}

MISSING: dict[str, str] = {}
"""Tests, or patterns of several, that fail for something that is not offered."""

SOLVED = "it is solved, and proven, within the few steps that are allowed"
NOT_DEPRECATED = "probabilities are not deprecated here"
DIFFERENT = {
    r"TestSparse.test_timeout\[.*\]": SOLVED,
    r"TestSvm.test_libsvm_convergence_warnings": SOLVED,
    r"TestSvm.test_linear_svm_convergence_warnings": SOLVED,
    r"TestSvm.test_probability_raises_futurewarning\[.*-(Nu)?SVC-(Nu)?SVC\]": NOT_DEPRECATED,
    r"TestSvm.test_bad_input\[.*\]": "a model of dense rows scores sparse ones as well",
    r"TestSvm.test_linearsvc_parameters\[False-l2-hinge\]": "every loss is solved whatever dual says",
    r"TestSvm.test_svr_errors": "a function that is not a kernel is refused in fit, and not in predict",
}
"""Those that fail because we do otherwise, and why that is right."""


def peer_tests(title, name):
    """A class with the tests of a file of scikit-learn."""
    path = find_spec(f"sklearn.svm.tests.{name}").origin
    spec = spec_from_file_location(f"peer_{name}", path)
    module = module_from_spec(spec)
    maxmargin.patch()
    try:
        spec.loader.exec_module(module)
    finally:
        maxmargin.unpatch()
    found = {
        key: value for key, value in vars(module).items() if key.startswith("test_") and callable(value)
    }
    for function in found.values():
        function.pytestmark = [as_list(mark) for mark in getattr(function, "pytestmark", [])]
    return type(title, (), {key: staticmethod(value) for key, value in found.items()})


def as_list(mark):
    """The mark with its values in a list: pytest warns of generators."""
    if mark.name != "parametrize":
        return mark
    names, values, *rest = mark.args
    return pytest.mark.parametrize(names, list(values), *rest, **mark.kwargs).mark


TestBounds = peer_tests("TestBounds", "test_bounds")
TestSparse = peer_tests("TestSparse", "test_sparse")
TestSvm = peer_tests("TestSvm", "test_svm")


def name_of(item):
    return f"{item.cls.__name__}.{item.name}" if item.cls else ""


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture(autouse=True)
def our_classes(request):
    for pattern, reason in (MISSING | DIFFERENT).items():
        if re.fullmatch(pattern, name_of(request.node)):
            request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    maxmargin.patch()
    yield
    maxmargin.unpatch()


def test_the_lists_are_about_tests_that_exist_and_few_differ(request):
    items = [item for item in request.session.items if item.path == request.path and item.cls]
    if len(items) < 200:
        pytest.skip("only some tests are run")
    names = [name_of(item) for item in items]
    for pattern in MISSING | DIFFERENT:
        assert any(re.fullmatch(pattern, name) for name in names), pattern
    differ = [name for name in names if any(re.fullmatch(pattern, name) for pattern in DIFFERENT)]
    assert len(differ) <= 12
    of_ours, of_theirs = set(), set()
    for item in items:
        text = inspect.getsource(item.function) + item.name
        used = {name for name in CLASSES if re.search(rf"\b{name}\b", text)}
        (of_ours if used & OURS else of_theirs).add(name_of(item))
    assert len(of_ours) > len(of_theirs)


def test_patching_is_told_and_taken_back(caplog):
    maxmargin.unpatch()
    theirs = svm.SVC, svm.LinearSVC
    with caplog.at_level("INFO", "maxmargin"):
        maxmargin.patch()
        maxmargin.patch()
        assert svm.SVC is maxmargin.SVC
        assert issubclass(svm.LinearSVC, maxmargin.LinearSVC)
        assert svm.LinearSVC().regularize_intercept
        assert svm.LinearSVR().regularize_intercept
        maxmargin.unpatch()
        maxmargin.unpatch()
    assert (svm.SVC, svm.LinearSVC) == theirs
    assert len(caplog.messages) == 2
    assert "maxmargin" in caplog.messages[0]
    assert "again" in caplog.messages[1]
    assert all(name in message for name in OURS for message in caplog.messages)
