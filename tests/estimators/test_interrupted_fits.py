# SPDX-License-Identifier: BSD-3-Clause
"""Ctrl-C at any statement of a fit whose data are checked: the model is fitted, and its proofs hold."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning

import maxmargin
from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    LinearOneClassSVM,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Problem,
    RankSVM,
    Status,
    path,
    solve,
    whole_path,
)
from maxmargin.proof.model import each_of
from maxmargin.tools import interrupts

pytestmark = [
    pytest.mark.usefixtures("ctrl_c"),
    pytest.mark.skipif(
        threading.current_thread() is not threading.main_thread(), reason="only the main thread has signals"
    ),
]

OURS = os.path.dirname(maxmargin.__file__)
MOMENTS = 12


def drawn(rows, columns, classes, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, columns))
    return X, np.argmax(X[:, :classes] + generator.normal(size=(rows, classes)), axis=1)


def measured(rows, columns, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(rows, columns))
    return X, X.sum(axis=1) + generator.normal(size=rows)


FITS = {
    "classes against the rest, in one call": (LinearSVC(), drawn(60, 5, 4)),
    "classes against the rest, in the loop": (
        LinearSVC(loss="hinge", max_iter=99, n_jobs=1),
        drawn(60, 5, 4),
    ),
    "side by side": (LinearSVC(loss="logistic", n_jobs=2), drawn(6000, 10, 3)),
    "a hard margin": (LinearSVC(C=np.inf), drawn(6, 9, 2)),
    "pairs in one call": (SVC(C=10.0), drawn(80, 4, 4)),
    "pairs in the loop": (SVC(C=10.0, max_iter=50, n_jobs=1), drawn(80, 4, 4)),
    "pairs alone, of many rows": (SVC(gamma=0.1), drawn(2100, 4, 4)),
    "a linear kernel": (SVC(kernel="linear", C=100.0), drawn(1100, 5, 2)),
    "probabilities of pairs": (SVC(probability=True, n_jobs=1), drawn(80, 4, 4)),
    "probabilities, in threads": (
        SVC(probability="isotonic", multi_class="ovr", n_jobs=2),
        drawn(90, 4, 3),
    ),
    "regression": (LinearSVR(), measured(60, 5)),
    "regression, in the loop": (LinearSVR(loss="squared_epsilon_insensitive", n_jobs=1), measured(600, 30)),
    "regression with a kernel": (SVR(), measured(80, 4)),
    "regression with a kernel, of many rows": (SVR(gamma=0.1, C=10.0), measured(2100, 4)),
    "regression with a linear kernel": (SVR(kernel="linear", C=100.0), measured(1100, 5)),
    "regression with a kernel, on a factor": (SVR(C=1e4, gamma=0.1, epsilon=0.01), measured(300, 3)),
    "pairs with a nu": (NuSVC(nu=0.2, n_jobs=1), drawn(80, 4, 3)),
    "a tube with a nu": (NuSVR(nu=0.3), measured(80, 4)),
    "one class": (OneClassSVM(nu=0.3), measured(80, 4)),
    "one class, without a kernel": (LinearOneClassSVM(nu=0.05), (1.0 + drawn(80, 4, 2)[0], None)),
    "all classes in one problem": (LinearSVC(multi_class="crammer_singer"), drawn(60, 5, 4)),
    "few columns": (LinearSVC(penalty="l1", C=0.1), drawn(60, 20, 2)),
    "a ranking": (RankSVM(), measured(60, 5)),
}


class Statements:
    """Counts the statements of maxmargin while Ctrl-C is held back, and interrupts before one of them."""

    def __init__(self, last=-1):
        self.last, self.count = last, 0

    def __enter__(self):
        self._before = sys.gettrace()
        sys.settrace(self)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)

    def __call__(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(OURS):
            return None
        if event == "line" and interrupts._holding is not None:
            self.count += 1
            if self.count == self.last:
                signal.raise_signal(signal.SIGINT)
        return self


class Instructions:
    """Interrupts before one instruction of the interpreter, in any file, once fits hold Ctrl-C back."""

    def __init__(self, last=-1):
        self.last, self.count, self.entered, self.held = last, 0, False, False
        self.came_when_held = False

    def __enter__(self):
        self._before, self._enter = sys.gettrace(), interrupts.held_back.__enter__

        def entering(block):
            self.entered = True
            held = self._enter(block)
            self.held = True
            return held

        interrupts.held_back.__enter__ = entering
        sys.settrace(self)
        return self

    def __exit__(self, *_):
        sys.settrace(self._before)
        interrupts.held_back.__enter__ = self._enter

    def __call__(self, frame, event, argument):
        if frame.f_code.co_filename == __file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and self.entered:
            self.count += 1
            if self.count == self.last:
                self.came_when_held = self.held
                signal.raise_signal(signal.SIGINT)
        return self


def fitted(estimator, X, y):
    """The estimator after a fit. One that is certified all the same may pass Ctrl-C on."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return estimator.fit(X, y)
    except KeyboardInterrupt:
        assert estimator.status_ is Status.CERTIFIED
        return estimator


@pytest.mark.parametrize("name", FITS)
def test_an_interrupt_at_any_statement_leaves_a_fitted_estimator(name):
    estimator, (X, y) = FITS[name]
    with Statements() as whole:
        fitted(estimator, X, y)
    answers = set(estimator.classes_) if is_classifier(estimator) else None
    assert estimator.status_ is Status.CERTIFIED or name == "pairs in the loop"
    proofs = len(list(each_of(estimator.certificate_)))
    assert whole.count > 100
    draw = random.Random(0)
    statuses = set()
    for moment in [1, *draw.sample(range(2, whole.count), MOMENTS - 2), whole.count - 1]:
        model = clone(estimator)
        with Statements(moment):
            fitted(model, X, y)
        statuses.add(model.status_)
        assert np.isfinite(model.predict(X)).all()
        if answers is not None:
            assert set(model.classes_) == answers
            assert set(model.predict(X)) <= answers
        assert len(list(each_of(model.certificate_))) == proofs
        for proof in each_of(model.certificate_):
            assert proof.dual >= 0.0 or estimator.get_params().get("nu") is not None
            excess = proof.dual - proof.primal
            assert excess <= 1e-9 * abs(proof.primal) or not np.isfinite(proof.primal)
        assert interrupts._holding is None
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert statuses <= {Status.CERTIFIED, Status.INTERRUPTED, Status.STEPS_SPENT}
    assert Status.INTERRUPTED in statuses


@pytest.mark.parametrize("name", ["classes against the rest, in one call", "pairs in one call"])
def test_no_instruction_loses_a_model_that_has_begun(name):
    """Every third one of the first and of the last, and some between, those of Python's library as well."""
    estimator, (X, y) = FITS[name]

    def interrupted(moment):
        model, raised = clone(estimator), False
        with warnings.catch_warnings(), Instructions(moment) as injected:
            warnings.simplefilter("ignore", ConvergenceWarning)
            try:
                model.fit(X, y)
            except KeyboardInterrupt:
                raised = True
            injected.entered = False
        return model, raised, injected

    count = [interrupted(-1)[2].count for _ in range(2)][-1]  # the first one imports what it needs
    between = random.Random(0).sample(range(500, count - 500), 60)
    kept = 0
    for moment in [*range(1, 500, 3), *between, *range(count - 500, count, 3)]:
        model, raised, injected = interrupted(moment)
        if injected.came_when_held:
            kept += 1
            assert model.status_ in (Status.CERTIFIED, Status.INTERRUPTED)
            assert len(model.predict(X)) == len(y)
        else:  # where the handler was not in its place yet, nothing has begun
            assert raised or hasattr(model, "status_")
        assert interrupts._holding is None
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert kept > 200


@pytest.mark.parametrize(
    "search",
    [
        SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0], cv=3, n_jobs=1),
        LinearSVCCV(Cs=[0.1, 1.0], cv=3, n_jobs=1),
    ],
    ids=["SVCCV", "LinearSVCCV"],
)
def test_a_search_that_was_interrupted_has_nothing_to_choose_from(search):
    X, y = drawn(90, 4, 3)
    with Statements() as whole:
        search.fit(X, y)
    for moment in random.Random(0).sample(range(2, whole.count), MOMENTS // 2):
        model = clone(search)
        try:
            with Statements(moment), warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                model.fit(X, y)
        except KeyboardInterrupt:
            pass
        # The last fit, on all rows with the C that was chosen, may end early, and is a model.
        assert not hasattr(model, "coef_") or model.status_ in (Status.INTERRUPTED, Status.CERTIFIED)
        assert interrupts._holding is None
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_first_statement_leaves_zero_with_its_proof():
    X, y = drawn(80, 4, 4)
    model = SVC()
    with Statements(1), pytest.warns(ConvergenceWarning, match="interrupted after 0 steps"):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert not model.dual_coef_.size
    assert {proof.dual for proof in model.certificate_} == {0.0}
    assert {proof.relative_gap for proof in model.certificate_} == {1.0}


@pytest.mark.parametrize("what", ["solve", "path", "whole path"])
def test_functions_return_what_is_proven(what):
    X, y = drawn(100, 6, 2)
    problem = Problem.of(X, np.where(y > 0, 1.0, -1.0))
    run = {
        "solve": lambda: [solve(problem, "dual_coordinate_ascent", tol=1e-9)],
        "path": lambda: list(path(problem, np.logspace(-2, 2, 9), tol=1e-9)),
        "whole path": lambda: list(whole_path(problem, 0.1, 10.0, tol=1e-4)),
    }[what]
    with Statements() as whole:
        count = len(run())
    draw = random.Random(0)
    for moment in draw.sample(range(1, whole.count), MOMENTS):
        with Statements(moment):
            models = run()
        assert len(models) == count or what == "whole path"
        assert any(model.interrupted for model in models) or models[-1].status is Status.CERTIFIED
        for model in models:
            assert 0.0 <= model.certificate.dual <= model.certificate.primal * (1.0 + 1e-9)


@pytest.mark.parametrize(
    "estimator", [LinearSVC(n_jobs=1), LinearSVC(n_jobs=2), LinearSVC(C=np.inf), SVC()]
)
def test_a_callback_that_always_raises_it_ends_the_fit_once(estimator):
    X, y = drawn(60, 5, 3) if np.inf > estimator.C else drawn(6, 9, 2)
    told = []

    def interrupt(progress):
        told.append(progress)
        raise KeyboardInterrupt

    model = fitted(type(estimator)(**estimator.get_params() | {"callback": interrupt, "tol": 1e-9}), X, y)
    assert told
    assert model.status_ in (Status.INTERRUPTED, Status.CERTIFIED)


def test_other_handlers_run_as_ever():
    X, y = drawn(60, 5, 4)
    seen = []

    def note(number, frame):
        seen.append(number)

    before = signal.signal(signal.SIGINT, note)
    try:
        with Statements(50):
            assert LinearSVC().fit(X, y).status_ is Status.CERTIFIED
        assert seen == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is note
        signal.signal(signal.SIGINT, lambda number, frame: [][number])
        with Statements(50), pytest.raises(IndexError):
            LinearSVC().fit(X, y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert interrupts._holding is None


def test_ctrl_c_is_raised_inside_a_callback():
    X, y = drawn(60, 5, 2)
    after = []

    def slow(progress):
        signal.raise_signal(signal.SIGINT)
        time.sleep(0.0)
        after.append(progress)

    model = fitted(LinearSVC(callback=slow, tol=1e-12), X, y)
    assert not after
    assert model.status_ in (Status.INTERRUPTED, Status.CERTIFIED)


def test_a_kernel_that_is_a_function_can_be_interrupted():
    X, y = drawn(20, 2, 2)

    def slow(A, B):
        signal.raise_signal(signal.SIGINT)
        return A @ B.T

    with pytest.raises(KeyboardInterrupt):
        SVC(kernel=slow).fit(X, y)
    assert interrupts._holding is None


def test_work_of_no_time_passes_it_on():
    with interrupts.held_back() as held:
        signal.raise_signal(signal.SIGINT)
        held.pass_on()  # not while it is held back
    assert held.came
    with pytest.raises(KeyboardInterrupt):
        held.pass_on()


def test_another_one_much_later_is_raised_at_once(monkeypatch):
    stops = []
    with interrupts.held_back(lambda: stops.append(1)):
        signal.raise_signal(signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        assert len(stops) == 2
        monkeypatch.setattr(interrupts, "_PATIENCE", -1.0)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert interrupts._holding is None


def test_other_threads_hold_nothing_back():
    found = []

    def work():
        with interrupts.held_back(lambda: None) as held, interrupts.let_through():
            found.append((held.came, interrupts._holding))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [(False, None)]
