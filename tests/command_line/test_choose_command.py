# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin choose``: what it chooses is what LinearSVCCV does, and what it writes holds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from maxmargin import LinearSVC, LinearSVCCV
from maxmargin.command_line import main
from maxmargin.command_line.shared.progress import Bars
from maxmargin.files import read
from maxmargin.solving.loop import Progress
from written_files import write_libsvm


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    with pytest.raises(SystemExit):
        main(["demo", "--save-data", str(folder / "cancer.svm"), "--json"])
    random = np.random.default_rng(0)
    X = random.normal(size=(150, 20))
    y = np.argmax(X[:, :3] + 0.3 * random.normal(size=(150, 3)), axis=1) + 1
    write_libsvm(folder / "three.svm", X, y)
    return folder


def test_it_chooses_what_the_estimator_does_and_its_model_holds(answer, folder, tmp_path):
    model = tmp_path / "model.mm"
    options = ["--values", "5", "--folds", "4", "--seed", "3", "--loss", "squared_hinge"]
    code, found = answer("choose", folder / "cancer.svm", "-o", model, *options)
    assert code == 0
    data = read(folder / "cancer.svm")
    cv = StratifiedKFold(4, shuffle=True, random_state=3)
    expected = LinearSVCCV(Cs=np.geomspace(1e-4, 1e4, 5), cv=cv, random_state=3, max_iter=100_000)
    expected.fit(data.X, data.y)
    choice = found["choice"]
    assert choice["C"] == found["C"] == expected.C_
    assert choice["score"] == pytest.approx(expected.best_score_)
    assert choice["folds"] == 4
    assert [at["C"] for at in choice["values"]] == pytest.approx(expected.Cs_)
    for k, at in enumerate(choice["values"]):
        assert at["mean_score"] == pytest.approx(expected.cv_results_["mean_test_score"][k])
        assert np.mean(at["scores"]) == pytest.approx(at["mean_score"])
        assert at["max_relative_gap"] <= 1e-4
    assert "certify" not in found["seconds"]
    code, checked = answer("certify", model, folder / "cancer.svm")
    assert (code, checked["holds"]) == (0, True)
    assert LinearSVC.load(model).C == expected.C_


def test_it_says_what_is_best_and_what_is_as_good(run, folder, tmp_path):
    options = ["--low", "100", "--high", "10000", "--values", "3", "--test", folder / "cancer.test.svm"]
    code, out, _ = run("choose", folder / "cancer.svm", "-o", tmp_path / "model.mm", *options)
    assert code == 0
    assert out.count("best\n") == 1
    assert "of the held-out rows are right." in out
    # On separable data the solution ceases to depend on C.
    assert "As good but for one row or none: C = 1000, 1e+04." in out
    assert "Test accuracy: " in out
    assert "of which certify" not in out


def test_a_best_C_at_the_end_of_the_grid_is_told_and_the_grid_widened(run, answer, tmp_path):
    """The smaller class is told apart by differences of 1e-3: only a large C will do."""
    random = np.random.default_rng(0)
    y = np.where(np.arange(120) % 3 == 0, 1.0, -1.0)
    np.savez(tmp_path / "small.npz", X=1e-3 * (random.normal(size=(120, 2)) + y[:, None]), y=y)
    arguments = ["choose", tmp_path / "small.npz", "-o", tmp_path / "m.mm", "--values", "3", "--folds", "3"]
    _, said = answer(*arguments)
    assert max(at["C"] for at in said["choice"]["values"]) > 2e4
    _, said = answer(*arguments, "--high", "1e4")
    assert max(at["C"] for at in said["choice"]["values"]) == pytest.approx(1e4)
    assert any(
        "at the end of the grid: more may be better still. Raise --high." in w for w in said["warnings"]
    )


def test_several_classes(run, answer, folder, tmp_path):
    arguments = ["choose", folder / "three.svm", "-o", tmp_path / "model.mm", "--values", "4"]
    code, found = answer(*arguments, "--class-weight", "1:2", "--intercept", "regularised")
    assert code == 0
    assert len(found["certificates"]) == 3
    assert all(len(at["scores"]) == 5 for at in found["choice"]["values"])
    _, out, _ = run(*arguments)
    assert "Each class against the rest" in out


@pytest.mark.parametrize("suffix", [".png", ".svg"])
def test_a_picture(run, folder, tmp_path, suffix):
    picture = tmp_path / f"choice{suffix}"
    _, out, _ = run(
        *("choose", folder / "cancer.svm", "-o", tmp_path / "m.mm", "--values", "3", "--picture", picture)
    )
    assert f"Score against C: {picture}" in out
    assert picture.read_bytes()[:5] in (b"\x89PNG\r", b"<?xml")


def test_fits_that_fall_short_are_told(run, folder, tmp_path):
    arguments = ["choose", folder / "cancer.svm", "-o", tmp_path / "model.mm", "--values", "3"]
    code, _, err = run(*arguments, "--solver", "dual_coordinate_ascent", "--max-iter", "1")
    assert code == 3
    assert "fits of folds are not within tol" in err
    assert (tmp_path / "model.mm").exists()


def test_an_interrupt_writes_nothing(run, folder, tmp_path, monkeypatch):
    def interrupted(self, X, y):
        raise KeyboardInterrupt

    monkeypatch.setattr(LinearSVCCV, "fit", interrupted)
    code, out, err = run("choose", folder / "cancer.svm", "-o", tmp_path / "model.mm")
    assert (code, out) == (130, "")
    assert "no file was written" in err
    assert not (tmp_path / "model.mm").exists()


def test_wrong_input_is_named_with_the_cure(run, folder, tmp_path):
    data, out = folder / "cancer.svm", tmp_path / "out"
    for arguments, complaint in (
        (["choose", data], "-o"),
        (["choose", data, "-o", data], "must not name a file that is read"),
        (["choose", data, "-o", out, "--low", "0"], "--low and --high"),
        (["choose", data, "-o", out, "--low", "2", "--high", "1"], "Got 2 and 1"),
        (["choose", data, "-o", out, "--high", "inf"], "finite"),
        (["choose", data, "-o", out, "--values", "0"], "--values"),
        (["choose", data, "-o", out, "--folds", "1"], "--folds"),
        (["choose", data, "-o", out, "--folds", "200"], "class -1 has 136. Got 200"),
        (
            ["choose", data, "-o", out, "--picture", tmp_path / "p.bmp"],
            "--picture must end in .png",
        ),
        (["choose", data, "-o", out, "--picture", out], "must end in"),
        (["choose", data, "-o", out, "--loss", "epsilon"], "'epsilon'"),
        (["choose", data, "-o", out, "--solver", "magic"], "'magic'"),
        (["choose", data, "-o", out, "--intercept", "some"], "'some'"),
        (["choose", data, "-o", out, "--max-time", "-1"], "inf sets no limit"),
        (["choose", data, "-o", out, "--class-weight", "7:2"], "'7:2'"),
        (["choose", tmp_path / "no.svm", "-o", out], "no.svm"),
    ):
        code, printed, err = run(*arguments)
        assert (code, printed) == (2, ""), arguments
        assert complaint in err, arguments
        code, printed, err = run(*arguments, "--json")
        assert (code, err) == (2, ""), arguments
        assert complaint in json.loads(printed)["error"], arguments
        assert not out.exists()


def test_fits_are_counted_when_they_are_within_tol(monkeypatch):
    bars = Bars(quiet=True)
    assert bars.counting("choosing C", 3) is None
    bars.shown, shown = True, []
    monkeypatch.setattr(bars, "_show", lambda bar, share, words: shown.append((share, words)))
    show = bars.counting("choosing C", 2)

    class Proof:
        relative_gap = 1.0

    for gap in (1.0, 1e-5, 1e-5, 1e-5):
        proof = Proof()
        proof.relative_gap = gap
        show(Progress(1, 0.1, proof, 1e-4))
    assert [share for share, _ in shown] == [0.0, 0.5, 1.0, 1.0]
    assert shown[0][1] == "0 of 2 fits"
    assert shown[1][1].startswith("1 of 2 fits, ")
    assert shown[-1][1] == "2 of 2 fits"


def test_with_a_kernel_C_and_gamma_are_chosen_together(run, answer, folder, tmp_path):
    """The classes are a disc and what is around it."""
    random = np.random.default_rng(0)
    X = random.normal(size=(120, 2))
    write_libsvm(tmp_path / "disc.svm", X, np.where((X**2).sum(axis=1) < 1.2, 1, -1))
    arguments = [
        "choose",
        tmp_path / "disc.svm",
        "-o",
        tmp_path / "m.mm",
        "--kernel",
        "rbf",
        "--folds",
        "3",
    ]
    code, said = answer(*arguments, "--values", "2", "--gammas", "3")
    assert code == 0
    assert len(said["choice"]["values"]) >= 6
    assert said["choice"]["score"] == max(at["mean_score"] for at in said["choice"]["values"]) > 0.85
    assert answer("certify", tmp_path / "m.mm", tmp_path / "disc.svm")[1]["holds"]
    _, out, _ = run(
        *arguments, "--values", "2", "--gammas", "3", "--gamma", "1", "--class-weight", "balanced"
    )
    assert "gamma 0.01" in out
    assert "of the held-out rows are right." in out
    assert "--gammas is for kernels" in run("choose", folder / "cancer.svm", "-o", "m", "--gammas", "3")[2]
    assert "takes no --picture" in run(*arguments, "--picture", tmp_path / "p.png")[2]


def test_with_a_kernel_the_grid_is_widened_unless_its_end_was_asked_for(answer, tmp_path):
    """The classes differ by 1e-3 of the scale of the other column: only a large C, or gamma, will do."""
    random = np.random.default_rng(0)
    y = np.where(np.arange(90) % 3 == 0, 1.0, -1.0)
    X = np.column_stack([1e-3 * (random.normal(size=90) + y), random.normal(size=90)])
    np.savez(tmp_path / "small.npz", X=X, y=y)
    arguments = ["choose", tmp_path / "small.npz", "-o", tmp_path / "m.mm", "--kernel", "gaussian"]
    arguments += ["--values", "3", "--gammas", "3", "--folds", "3"]
    _, widened = answer(*arguments)
    assert max(at["C"] for at in widened["choice"]["values"]) > 1e3
    _, asked = answer(*arguments, "--high", "0.5")
    assert max(at["C"] for at in asked["choice"]["values"]) == pytest.approx(0.5)
