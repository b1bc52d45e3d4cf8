# SPDX-License-Identifier: BSD-3-Clause
"""What ``verbose`` shows: a bar in a terminal, a line in a notebook, lines elsewhere; else nothing."""

from __future__ import annotations

import io
import logging
import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import make_classification

from maxmargin import SVC, SVR, InseparableError, LinearSVC, LinearSVCCV, LinearSVR
from maxmargin.telling.progress import one_problem
from maxmargin.telling.verbose import Shown

X, y = make_classification(300, 20, n_informative=10, random_state=0)
THREE = make_classification(300, 20, n_informative=10, n_classes=3, random_state=0)
KINDS = [LinearSVC(), SVC(), LinearSVCCV(Cs=2)]
NAMES = [type(kind).__name__ for kind in KINDS]


def fitted(kind, verbose, data=(X, y)):
    return type(kind)(**kind.get_params() | {"verbose": verbose}).fit(*data)


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_nothing_is_shown_unless_it_is_asked_for(kind, capsys):
    fitted(kind, 0)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_one_shows_how_it_ended_and_leaves_stdout_alone(kind, capsys):
    model = fitted(kind, 1)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"{type(kind).__name__}, ")
    assert err.count("\n") == 1
    said = f"C = {model.C_:g} has" if hasattr(model, "C_") else "Certified: the relative gap of"
    assert said in err
    assert "_shown" not in vars(model)
    assert model.get_params()["verbose"] == 1


@pytest.mark.parametrize("data", [(X, y), THREE], ids=["two classes", "three classes"])
@pytest.mark.parametrize("kind", KINDS[:2], ids=NAMES[:2])
def test_two_shows_the_trace(kind, data, capsys):
    model = fitted(kind, 2, data)
    lines = capsys.readouterr().err.splitlines()
    traces = model.trace_ if isinstance(model.trace_, list) else [model.trace_]
    proofs = model.certificate_ if isinstance(model.trace_, list) else [model.certificate_]
    assert len(lines) - 1 >= len(traces)
    for proof in proofs:
        assert any(f"primal {proof.primal:.8g}, dual {proof.dual:.8g}" in line for line in lines)


@pytest.mark.parametrize("kind", [LinearSVR, SVR])
def test_regressors_show_the_same(kind, capsys):
    for verbose, lines in ((0, 0), (1, 1)):
        kind(verbose=verbose).fit(X, X[:, 0])
        assert capsys.readouterr().err.count("Certified") == lines
    model = kind(verbose=2).fit(X, X[:, 0])
    proof = model.certificate_
    assert f"primal {proof.primal:.8g}, dual {proof.dual:.8g}" in capsys.readouterr().err


def test_two_shows_the_scores_of_every_cost(capsys):
    model = fitted(LinearSVCCV(Cs=3), 2)
    err = capsys.readouterr().err
    for C, mean in zip(model.Cs_, model.cv_results_["mean_test_score"], strict=True):
        assert f"C = {C:g}: mean score {mean:.6g}" in err
    assert model.best_estimator_.verbose == 2


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_a_log_that_takes_it_has_it_instead(kind, caplog, capsys):
    with caplog.at_level(logging.INFO, logger="maxmargin"):
        fitted(kind, 1)
    assert any("relative gap" in record.getMessage() for record in caplog.records)
    assert capsys.readouterr() == ("", "")


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("kind", KINDS, ids=NAMES)
def test_a_terminal_has_a_bar_that_is_gone_at_the_end(kind, monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    fitted(kind, 1)
    bar, _, rest = screen.getvalue().rpartition("\x1b[2K")  # the line of the bar is cleared
    assert "\u2501" in bar
    assert rest.startswith(f"{type(kind).__name__}, ")
    assert screen.getvalue().count("\x1b[?25l") == screen.getvalue().count("\x1b[?25h") == 1


def test_a_notebook_has_a_line_that_is_written_over(monkeypatch, capsys):
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    fitted(SVC(), 1, THREE)
    out, err = capsys.readouterr()
    assert err == ""
    first, *_, last = out.split("\r")
    assert first == ""
    assert "pairs" in out
    assert last.startswith("SVC, ")
    assert last.endswith("\n")


def test_a_fit_that_breaks_off_leaves_no_bar(monkeypatch):
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    rows = np.array([[0.0], [1.0], [2.0], [3.0]])
    with pytest.raises(InseparableError):
        LinearSVC(C=np.inf, verbose=1).fit(rows, [0, 1, 0, 1])

    def break_off(progress):
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"):
        LinearSVC(verbose=1, callback=break_off).fit(X, y)
    assert screen.getvalue().count("\x1b[?25l") == screen.getvalue().count("\x1b[?25h")
    assert "Certified" not in screen.getvalue()


def test_long_fits_tell_now_and_then_where_nothing_is_written_over(monkeypatch, capsys):
    from maxmargin.telling import verbose

    monkeypatch.setattr(verbose, "_BETWEEN_LINES", 0.0)
    fitted(LinearSVC(loss="hinge"), 1)
    first = capsys.readouterr().err.splitlines()[0]
    assert first.startswith("LinearSVC: gap ")


def test_a_copy_in_another_process_shows_nothing(capsys):
    shown = Shown("LinearSVC", 2, one_problem(1e-4, np.inf))
    again = pickle.loads(pickle.dumps(shown))
    LinearSVC(callback=again).fit(X, y)
    assert capsys.readouterr() == ("", "")
