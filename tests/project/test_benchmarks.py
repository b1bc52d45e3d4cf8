# SPDX-License-Identifier: BSD-3-Clause
"""The commands of ``python -m benchmarks`` on small data: what they measure, and the pages they write."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale

from benchmarks import along_costs, datasets, family, family_members, machine, noisy, proofs, small, wide
from benchmarks.__main__ import PAGES, main
from maxmargin import Problem, solve


@pytest.fixture(autouse=True)
def tumours(monkeypatch):
    """In the place of every data set."""
    X, y = load_breast_cancer(return_X_y=True)
    data = datasets.DataSet("tumours", scale(X)[::5], y[::5].astype(np.int64))
    monkeypatch.setattr(datasets, "load", lambda name, **options: data)
    return data


def test_the_path_page_has_a_line_for_each_loss(tmp_path):
    options = ["path", "--data", "a9a", "--loss", "hinge,squared_hinge", "--repeat", "1"]
    assert main([*options, "--no-search", "--output", str(tmp_path)]) == 0
    page = (tmp_path / "path.md").read_text()
    assert [line.split("|")[1].strip() for line in page.splitlines() if line.startswith("| a9a")] == [
        "a9a, hinge",
        "a9a, squared hinge",
    ] * 2  # of the path, and of every C
    assert "python -m benchmarks path --data a9a" in page
    assert str(tmp_path) not in page
    assert "GridSearchCV" not in page


def test_a_run_of_the_family_goes_on_from_its_file(tmp_path, monkeypatch, tumours):
    fits = []

    class Fitted:
        """Its value is how far its tolerance leaves it from 1."""

        def __init__(self, tol):
            self.tol = tol

        def fit(self, X, y):
            fits.append(self.tol)

    peers = [family.Peer("peer", Fitted, 1e9), family.Peer("loose", Fitted, 2.0, (0.1,))]

    def cases(data):
        yield family.Case(
            "member", "tumours", "C = 1", tumours.X, tumours.y, Fitted, peers, lambda fit: 1.0 + fit.tol
        )

    monkeypatch.setitem(family_members.MEMBERS, "l1", cases)
    options = ["family", "--member", "l1", "--repeat", "2", "--output", str(tmp_path)]
    options += ["--batches", str(tmp_path / "fits.json")]
    assert main([*options, "--minutes", "0"]) == 0
    assert fits == []
    assert main(options) == main(options) == 0
    # The best once, ours twice, the peer until it is good enough, and that one twice; nothing again.
    assert fits == [1e-5, 1e-3, 1e-3, 0.1, 1e-2, 1e-3, 1e-3, 0.1]
    peer, loose = [line for line in (tmp_path / "family.md").read_text().splitlines() if "tumours" in line]
    assert "peer at 0.001" in peer
    assert "**" in peer  # the goal is missed
    assert "not reached" in loose


def test_steps_along_the_costs_are_those_of_single_fits(tumours):
    told = []
    (walk,) = along_costs.measure(["a9a"], ["hinge"], 2, told.append)
    assert told == ["a9a, hinge: path, round 1", "a9a, hinge: path, round 2"]
    problem = Problem.of(tumours.X, np.where(tumours.y == 1, 1.0, -1.0), loss="hinge")
    tol = along_costs.TOLERANCE
    single = [solve(problem.with_costs_times(C), tol=tol, threads=1).steps for C in along_costs.COSTS]
    assert walk.cold_steps == sum(single)
    assert np.isfinite([*walk.cold, *walk.seconds.values(), walk.certificates]).all()
    assert all(of.fits > 1 and 0.0 < of.gap <= tol for tol, of in walk.whole.items())


def test_the_page_of_small_fits_has_a_line_for_each_data_set(tmp_path):
    options = ["small", "--loss", "hinge", "--kernel", "rbf", "--repeat", "1"]
    assert main([*options, "--output", str(tmp_path)]) == 0
    page = (tmp_path / "small.md").read_text()
    linear, kernel = page.split("## Hinge")[1].split("## Kernel rbf")
    for part, data in ((linear, small.data_sets()), (kernel, small.kernel_data_sets())):
        lines = [line.strip("|* ") for line in part.splitlines() if line.startswith("| ")][2:]
        names = [name for name, _, _ in data]
        assert [line.split("|")[0].strip("* ") for line in lines] == names


def test_missing_data_are_told_and_end_the_command(tmp_path, monkeypatch, capsys):
    def load(name, **options):
        raise datasets.MissingData(f"{name} is not there")

    monkeypatch.setattr(datasets, "load", load)
    assert main(["sweep", "--data", "a9a", "--output", str(tmp_path)]) == 1
    assert "a9a is not there" in capsys.readouterr().out
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("command", "option"),
    [
        ("linear", "--loss"),
        ("kernel", "--parts"),
        ("choice", "--data"),
        ("reading", "--data"),
        ("small", "--kernel"),
        ("sweep", "--loss"),
        ("wide", "--data"),
        ("degree2", "--data"),
        ("path", "--data"),
        ("proofs", "--loss"),
    ],
)
def test_unknown_names_are_refused(command, option, capsys):
    with pytest.raises(SystemExit):
        main([command, option, "nobody"])
    assert "nobody is not offered; choose from" in capsys.readouterr().err


def test_every_page_is_written_from_the_options_and_what_was_found():
    for name, page in PAGES.items():
        assert len(inspect.signature(page.markdown).parameters) == 2, name
    page = machine.with_note("# Title\n\nText.\n", "python -m benchmarks x", "The load average is 9.")
    assert page.startswith("# Title\n\n<!-- Written by `python -m benchmarks x`; do not edit it.\n")
    assert page.endswith("The load average is 9. -->\n\nText.\n")


def test_proofs_compares_the_same_values(monkeypatch):
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 3))
    data = datasets.DataSet("a9a", X, np.where(X[:, 0] + 0.5 * random.normal(size=60) > 0, 1, -1))
    monkeypatch.setattr(datasets, "load", lambda name: data)
    monkeypatch.setattr(proofs, "_SECONDS", 0.001)
    found = proofs.measure(["a9a"], ["hinge", "squared_hinge"], 1, lambda text: None)
    assert [each.loss for each in found[0]] == ["hinge", "squared_hinge"]
    for each in found[1]:
        assert each.whole.low == each.whole.high
        assert each.limited.low <= each.whole.low <= each.limited.high
    page = proofs.markdown(found, 1)
    assert page.count("| a9a, hinge |") == 2
    assert "of 60 |" in page


def test_wide_goes_on_from_its_file(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    X = sparse.random_array((60, 80), density=0.1, format="csr", rng=random)
    y = np.arange(60) % 3
    monkeypatch.setattr(wide, "load", lambda name: (X, y))
    monkeypatch.setattr(wide, "EXPONENTS", (0, 4))
    file, told = tmp_path / "fits", []
    fits = wide.measure(["counts"], ["hinge", "squared_hinge"], 5.0, told.append, file)
    assert len(told) == len(fits) == len(file.read_text().splitlines()) == 4
    assert all(
        fit.relative_gap <= 1e-4 and (fit.kernel_ratio is None) == (fit.loss != "hinge") for fit in fits
    )
    assert wide.measure(["counts"], ["hinge", "squared_hinge"], 5.0, told.append, file) == fits
    assert len(told) == 4
    page = wide.markdown(fits, 5.0)
    assert "Certified here: 4 of 4 fits" in page
    assert page.count("x |") == 2


def test_noisy_problems_are_drawn_again_alike_and_each_has_a_line(monkeypatch):
    monkeypatch.setattr(noisy, "HARD", (noisy.Case(120, 3, "whole", 1.0, 1e3, 0.2),))
    monkeypatch.setattr(noisy, "drawn", lambda seed: noisy.Case(100 + seed, 2, "normal", 0.3, 1e2, 0.5))
    found = noisy.measure(2, 4, 10.0, lambda text: None)
    assert [fit.case.rows for fit in found] == [120, 104, 105]
    assert all(fit.status == "CERTIFIED" and fit.relative_gap <= 1e-3 for fit in found)
    page = noisy.markdown([*found[:2], replace(found[2], status="TIME_LIMIT")], 10.0)
    assert "| 104 x 2, normal |" in page
    assert "| **105 x 2, normal** |" in page
    assert "2 of 3 are certified, 3 end within 10 s." in page
    monkeypatch.undo()
    assert noisy.drawn(7) == noisy.drawn(7) != noisy.drawn(8)
    case = noisy.drawn(3)
    X, y = noisy.data_of(case, 3)
    assert X.shape == (case.rows, case.columns)
    assert abs(y.mean()) < 0.1
    np.testing.assert_array_equal(X, noisy.data_of(case, 3)[0])


def test_rows_drawn_for_chunks_are_the_same_again_and_their_page_has_a_line_for_each_fit(tmp_path):
    from benchmarks import chunks, chunks_process
    from maxmargin.files import pack

    parts = [np.concatenate(part) for part in zip(*chunks.drawn(3000), strict=True)]
    again = [np.concatenate(part) for part in zip(*chunks.drawn(3000), strict=True)]
    assert np.array_equal(parts[0], again[0])
    assert parts[0].shape == (3000, 20)
    path = str(tmp_path / "rows.mmd")
    done = pack(lambda: chunks.drawn(3000), path)
    found = chunks_process.ours(path, "hinge", 10**7)
    assert found["gap"] <= 1e-3
    assert -1e-9 <= found["above"] <= found["gap"] * 1.01 + 1e-9
    facts = ("drawn", done.rows, done.columns, done.nbytes, "hinge", "maxmargin")
    fit = chunks.Fit(*facts, 1.0, found["passes"], found["above"], found["gap"], 10**6, 0.2, 0.1, 1.0)
    page = chunks.markdown([fit])
    assert "| drawn | 3,000 x 20 |" in page
    assert ("| in cache |" in page) == (machine.last_cache() > 0)  # the processor's, which says nothing
