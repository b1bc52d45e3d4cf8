# SPDX-License-Identifier: BSD-3-Clause
"""``--option NAME=VALUE``: every option of every solver, and the words for wrong ones."""

from __future__ import annotations

import json

import numpy as np
import pytest

from maxmargin import LinearSVC
from maxmargin.command_line import main
from maxmargin.command_line.shared.answer import Failure
from maxmargin.command_line.shared.solver_options import configured, entrants
from maxmargin.files import load_model
from maxmargin.files.models.fitted import to_estimator
from maxmargin.solvers import SOLVERS, Pegasos, Subgradient
from maxmargin.tools.parameters import rules
from problems import clouds


@pytest.fixture
def data(tmp_path):
    X, y = clouds(n=40, d=3)
    rows = [" ".join(f"{j + 1}:{value:g}" for j, value in enumerate(row)) for row in X]
    text = "".join(f"{label:g} {row}\n" for label, row in zip(y, rows, strict=True))
    (tmp_path / "data.svm").write_text(text)
    return tmp_path / "data.svm"


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    return end.value.code, *capsys.readouterr()


@pytest.mark.parametrize("name", SOLVERS)
def test_every_option_of_every_solver_is_taken_as_it_is_shown(name):
    # The default of an option, as text, is the option's default again.
    for option in rules(SOLVERS[name]):
        if option != "seed":
            default = getattr(SOLVERS[name](), option)
            assert configured(name, [f"{option}={default}"]) == SOLVERS[name]()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("batch=16", Pegasos(batch=16)),
        ("eta=0.1", Pegasos(eta=0.1)),
        ("eta=1e-3", Pegasos(eta=1e-3)),
        ("project=false", Pegasos(project=False)),
        ("average=40", Pegasos(average=40)),
        ("average=last", Pegasos(average="last")),
        ("order=without_repetition", Pegasos(order="without_repetition")),
        ("step_size=1,0.5,0.1", Pegasos(step_size=(1.0, 0.5, 0.1))),
        ("step_size=0.5", Pegasos(step_size=(0.5,))),
        ("step_size=constant", Pegasos(step_size="constant")),
    ],
)
def test_values_are_read_as_the_option_takes_them(text, expected):
    found = configured("pegasos", [text])
    assert found == expected
    name = text.partition("=")[0]
    assert type(getattr(found, name)) is type(getattr(expected, name))


def test_none_and_infinity():
    assert configured("newton", ["sweeps=none"]).sweeps is None
    assert configured("dual_coordinate_ascent", ["bias_reach=inf"]).bias_reach == np.inf
    assert configured("pegasos", None) == "pegasos"
    assert configured("auto", []) == "auto"


@pytest.mark.parametrize(
    ("solver", "given", "message"),
    [
        (
            "pegasos",
            ["eta=-1"],
            r"--option eta of pegasos must be a float in the range \(0, inf\)\. Got '-1'",
        ),
        (
            "pegasos",
            ["order=bogus"],
            "must be one of 'uniform', 'epochs', 'without_repetition'. Got 'bogus'",
        ),
        ("pegasos", ["batch=2.5"], r"must be an int in the range \[1, inf\)\. Got '2\.5' instead"),
        ("pegasos", ["step_size=1,-1"], "or a sequence of numbers above 0. Got '1,-1'"),
        ("pegasos", ["batches=4"], "one of the names batch, .*polish.*order, project, .*Got 'batches=4'"),
        ("pegasos", ["batch"], "must be NAME=VALUE"),
        ("pegasos", ["batch=1", "batch=2"], "must be given once. Got '1' and '2'"),
        ("pegasos", ["seed=3"], "must be given as --seed"),
        ("auto", ["batch=1"], "needs the --solver that it is an option of: one of subgradient, .*'auto'"),
        (None, ["batch=1"], "Got none instead"),
    ],
)
def test_wrong_ones_are_refused_with_the_right_ones(solver, given, message):
    with pytest.raises(Failure, match=message):
        configured(solver, given)


def test_in_a_race_every_solver_gets_what_it_has():
    found = entrants(["pegasos", "subgradient", "newton"], ["polish=0", "seed=3"])
    assert found["pegasos"] == Pegasos(polish=0, seed=3)
    assert found["subgradient"] == Subgradient(polish=0, seed=3)
    assert found["newton"].seed == 3
    with pytest.raises(Failure, match="of perceptron must be one of 'shuffled', 'given'"):
        entrants(["pegasos", "perceptron"], ["order=uniform"])


def test_trained_with_the_options_that_the_model_then_names(data, tmp_path, capsys):
    model = tmp_path / "model.mm"
    arguments = ["train", data, "-o", model, "--solver", "pegasos", "--option", "batch=4", "--tol", 0.5]
    code, out, _ = run(capsys, *arguments, "--option", "eta=0.5", "--json")
    assert code == 0
    assert "pegasos" in json.loads(out)["solver"]
    assert to_estimator(load_model(model), LinearSVC).solver == Pegasos(batch=4, eta=0.5)
    code, _, err = run(capsys, *arguments, "--option", "eta=-1")
    assert code == 2
    assert "(0, inf)" in err
    with_kernel = ["--kernel", "rbf", "--solver", "working_set", "--option", "size=8"]
    code, out, _ = run(capsys, "train", data, "-o", model, *with_kernel, "--json")
    assert code == 0
    assert "working_set" in json.loads(out)["solver"]


def test_chosen_and_compared_with_options(data, tmp_path, capsys):
    options = ["--option", "polish=0.5", "--json"]
    choice = ["choose", data, "-o", tmp_path / "m.mm", "--values", 2, "--folds", 2, "--max-iter", 5]
    code, out, _ = run(capsys, *choice, "--solver", "pegasos", *options)
    assert code in (0, 3)
    assert "pegasos" in json.loads(out)["solver"]
    race = ["compare", data, "-o", tmp_path / "race.png", "--max-time", 0.1, "--solver", "subgradient"]
    code, out, _ = run(capsys, *race, "--solver", "pegasos", *options)
    assert code == 0
    answer = json.loads(out)
    assert [row["solver"] for row in answer["solvers"]] == ["subgradient", "pegasos"]
    assert answer["options"] == ["polish=0.5"]
    for wrong, right in (
        (["--solver", "magic"], "one of subgradient"),
        (["--option", "size=1"], "step_size"),
    ):
        code, _, err = run(capsys, *race, *wrong)
        assert code == 2
        assert right in err
