# SPDX-License-Identifier: BSD-3-Clause
"""Fits in chunks: what they prove is true, and is what fits in memory prove."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from combinations import every_pair
from maxmargin import Chunks, LinearSVC, Problem
from maxmargin.chunks.fit import Wanted, fit_in_passes
from maxmargin.chunks.newton import Newton
from maxmargin.chunks.passes import LocalPasses, Rounds
from maxmargin.chunks.sums import DualSums
from maxmargin.estimators.in_chunks import fit_passes
from maxmargin.files import load_model
from maxmargin.proof.model import each_of
from maxmargin.solvers.sizes import CHUNK_COLUMNS

pytestmark = pytest.mark.usefixtures("in_passes")

ROWS, COLUMNS = 3000, 8


def data(classes=2, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(ROWS, COLUMNS)) * np.linspace(0.5, 3.0, COLUMNS)
    scores = X @ generator.normal(size=(COLUMNS, classes)) + generator.normal(size=(ROWS, classes))
    return X, scores.argmax(axis=1), generator.choice([0.0, 0.5, 1.0, 2.0], ROWS)


@every_pair(
    loss=["hinge", "squared_hinge", "logistic"],
    intercept=["exact", "regularised", "none"],
    layout=["dense", "csr", "float32"],
    weighted=[False, True],
    class_weight=[None, "balanced", {1: 3.0}],
    C=[0.01, 1.0, 30.0],
)
def test_what_is_proven_in_chunks_is_true_of_the_problem_in_memory(
    loss, intercept, layout, weighted, class_weight, C
):
    X, y, weights = data()
    stored = {"dense": X, "csr": sparse.csr_matrix(X), "float32": X.astype(np.float32)}[layout]
    parts = [
        (stored[i : i + 700], y[i : i + 700], weights[i : i + 700])[: 2 + weighted]
        for i in range(0, ROWS, 700)
    ]
    form = {"fit_intercept": intercept != "none", "regularize_intercept": intercept == "regularised"}
    model = LinearSVC(loss=loss, C=C, tol=1e-3, class_weight=class_weight, **form)
    chunked = model.fit(Chunks(parts, rows=500, memory=1_500_000))
    proof = chunked.certificate_
    assert chunked.status_.certified
    assert proof.relative_gap <= 1e-3
    close = LinearSVC(loss=loss, C=C, tol=1e-9, class_weight=class_weight, **form)
    close.fit(stored, y, weights if weighted else None)
    exact = close.certificate_
    assert proof.dual <= exact.primal * (1 + 1e-12)
    assert exact.dual <= proof.primal * (1 + 1e-12)
    # The primal value is that of the point, by the problem of all rows in memory.
    factors = np.ones(2) if class_weight is None else np.array([1.0, 3.0])
    own = weights if weighted else np.ones(ROWS)
    if class_weight == "balanced":
        sums = np.bincount(y, own)
        factors = sums.sum() / (2 * sums)
    problem = Problem.of(
        stored, np.where(y == 1, 1.0, -1.0), C, loss=loss, intercept=intercept, weights=own * factors[y]
    )
    value = problem.primal(chunked.coef_[0], chunked.intercept_[0])
    assert proof.primal == pytest.approx(value, rel=1e-10)
    assert proof.primal >= value * (1 - 1e-15)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
def test_several_classes_are_fitted_in_the_same_passes(loss):
    X, y, _ = data(4)
    names = np.array(["a", "b", "c", "d"])[y]
    reads = []

    def parts():
        reads.append(1)
        yield from ((X[i : i + 900], names[i : i + 900]) for i in range(0, ROWS, 900))

    model = LinearSVC(loss=loss, tol=1e-3).fit(Chunks(parts))
    assert len(reads) == model.n_iter_ <= 8
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert len(model.certificate_) == len(model.trace_) == 4
    exact = LinearSVC(loss=loss, tol=1e-8).fit(X, names)
    for mine, theirs in zip(model.certificate_, exact.certificate_, strict=True):
        assert mine.relative_gap <= 1e-3
        assert mine.dual <= theirs.primal * (1 + 1e-12)
        assert mine.primal >= theirs.dual * (1 - 1e-12)
    assert np.mean(model.predict(X) == exact.predict(X)) > 0.97


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_number_of_workers_changes_no_bit(loss):
    X, y, _ = data()
    answers = []
    for workers in (1, 2, 4):
        passes = LocalPasses(Chunks((X, y), rows=300), workers)
        fitted = fit_in_passes(passes, Wanted(loss=loss, memory=2_000_000, threads=1))
        proof = fitted.models[0].certificate
        answers.append((proof.w.tobytes(), proof.b, proof.primal, proof.dual, fitted.passes))
    assert answers[0] == answers[1] == answers[2]


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_smooth_losses_take_few_passes(loss, C):
    X, y, _ = data()
    model = LinearSVC(loss=loss, C=C, tol=1e-3).fit(Chunks((X, y), rows=200, memory=400_000))
    assert model.status_.certified
    assert model.n_iter_ <= 10


def test_a_class_that_is_missing_from_chunks_and_empty_parts():
    X, y, _ = data()
    order = np.argsort(y, kind="stable")
    parts = [(X[:0], y[:0]), (X[order], y[order]), (X[:0], y[:0])]
    model = LinearSVC(loss="hinge", tol=1e-3).fit(Chunks(parts, rows=250))
    assert model.status_.certified


def test_limits_end_a_fit_with_what_is_proven():
    X, y, _ = data()
    with pytest.warns(ConvergenceWarning, match="2 passes"):
        model = LinearSVC(max_iter=1, tol=1e-12).fit(Chunks((X, y), memory=300_000))
    assert model.certificate_.relative_gap > 1e-12
    calls = []
    watched = LinearSVC(tol=1e-15, callback=lambda progress: calls.append(progress) or len(calls) == 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        watched.fit(Chunks((X, y)))
    assert [progress.step for progress in calls] == [2, 3]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ([(np.array([[1.0], [np.nan]]), [0, 1])], "row 1 "),
        ([(np.ones((2, 1)), [0, 1]), (np.ones((2, 2)), [0, 1])], "the same columns. From row 2"),
        ([(np.ones((2, 1)), [0, 1], [1.0, -1.0])], "in row 1 "),
        ([(np.ones((2, 1)), [0, 0])], "only one class"),
        ([(np.ones((2, 1)), [0.5, 1])], "Unknown label type: continuous. Row 0"),
        ([(np.ones((2, 1)), [0])], "one label for each of 2 rows"),
        (iter([]), "wrap what makes it into a function"),
        (lambda: iter([]), "no row"),
    ],
)
def test_what_is_wrong_is_named(parts, words):
    with pytest.raises(ValueError, match=words):
        LinearSVC().fit(Chunks(parts))


def test_arguments_that_chunks_do_not_take():
    chunks = Chunks((np.eye(2), [0, 1]))
    with pytest.raises(ValueError, match="without y"):
        LinearSVC().fit(chunks, [0, 1])
    with pytest.raises(ValueError, match="finite C"):
        LinearSVC(C=np.inf).fit(chunks)
    with pytest.raises(ValueError, match="solver must be 'auto'"):
        LinearSVC(solver="newton").fit(chunks)


def test_what_a_model_of_chunks_can_do_besides(tmp_path):
    X, y, _ = data()
    for labels in (y, data(3)[1]):
        model = LinearSVC(loss="hinge", tol=1e-2).fit(Chunks((X, labels), rows=500))
        assert "Proven by sums over 3000 rows" in model._repr_html_inner() or len(model.classes_) > 2
        model.save(tmp_path / "model.mm")
        loaded = LinearSVC.load(tmp_path / "model.mm")
        assert np.array_equal(loaded.predict(X), model.predict(X))
        assert load_model(tmp_path / "model.mm").claims[0].primal == each_of(model.certificate_)[0].primal


def test_what_needs_the_rows_says_that_chunks_keep_none(tmp_path):
    X, y, _ = data()
    model = LinearSVC().fit(Chunks((X, y), rows=500))
    model.save(tmp_path / "model.mm")
    loaded = LinearSVC.load(tmp_path / "model.mm")
    for call in ("is_sure", "decision_bounds", "leave_one_out"):
        given = (X, y) if call == "leave_one_out" else (X,)
        with pytest.raises(ValueError, match=r"fitted in passes over Chunks.*Use fit\(X, y\) in memory"):
            getattr(model, call)(*given)
        with pytest.raises(ValueError, match=r"loaded from a file.*Use fit\(X, y\) again"):
            getattr(loaded, call)(*given)
    model.fit(X, y)
    assert model.is_sure(X).any()
    model.leave_one_out(X, y)


def test_what_chunks_do_not_know_is_refused():
    X, y, _ = data()
    with pytest.raises(ValueError, match="Chunks know the penalty 'l2' alone"):
        LinearSVC(penalty="l1").fit(Chunks((X, y)))
    with pytest.raises(ValueError, match="leave warm_start out"):
        LinearSVC(warm_start=True).fit(Chunks((X, y)))


@every_pair(
    loss=["hinge", "squared_hinge", "logistic"],
    intercept=["exact", "regularised", "none"],
    weighted=[False, True],
    C=[0.05, 2.0],
    classes=[2, 3],
)
def test_more_columns_than_a_hessian_has_are_fitted_by_added_ascent(loss, intercept, weighted, C, classes):
    _, y, weights = data(classes)
    y, weights = y[:800], weights[:800]
    X = sparse.random(800, CHUNK_COLUMNS + 1, 0.003, format="csr", random_state=1)
    X = (X + sparse.csr_matrix((np.ones(800), (np.arange(800), y)), X.shape)).tocsr()
    form = {"fit_intercept": intercept != "none", "regularize_intercept": intercept == "regularised"}
    kept = weights if weighted else None
    passes = LocalPasses(Chunks((X, y, weights) if weighted else (X, y), rows=220), 2)
    model = LinearSVC(loss=loss, C=C, tol=1e-3, **form)
    fit_passes(model, passes, 500_000)
    assert model.status_.certified
    assert loss == "hinge" or model.n_iter_ <= 60
    assert "added ascent" in model.solver_
    exact = LinearSVC(loss=loss, C=C, tol=1e-9, **form).fit(X, y, kept)
    for mine, theirs in zip(each_of(model.certificate_), each_of(exact.certificate_), strict=True):
        assert mine.relative_gap <= 1e-3
        assert mine.dual <= theirs.primal * (1 + 1e-12)
        assert mine.primal >= theirs.dual * (1 - 1e-12)
    again = LinearSVC(loss=loss, C=C, tol=1e-3, **form)
    fit_passes(again, LocalPasses(passes.chunks, 1), 500_000)
    assert again.coef_.tobytes() == model.coef_.tobytes()
    # P is that of the point.
    own = weights if weighted else np.ones(800)
    for k, mine in enumerate(each_of(model.certificate_)):
        labels = np.where(y == (k if classes > 2 else 1), 1.0, -1.0)
        problem = Problem.of(X, labels, C, loss=loss, intercept=intercept, weights=own)
        assert mine.primal == pytest.approx(problem.primal(mine.w, mine.b), rel=1e-10)


def test_sums_that_travel_without_their_zeros_are_the_same():
    X = sparse.random(50, 400, 0.01, format="csr", random_state=0)
    labels = np.where(np.arange(50) % 3 == 0, 1.0, -1.0)
    problem = Problem.of(X, labels, 1.0, loss="hinge")
    sums = [DualSums.of(problem, np.full(50, share)) for share in (0.25, 0.5)]
    packed = [one.packed() for one in sums]
    assert packed[0].vectors.shape[1] < 400
    assert np.array_equal(packed[0].unpacked().vectors, sums[0].vectors)
    together, plain = packed[0].plus(packed[1]), sums[0].plus(sums[1])
    assert np.array_equal(together.vectors, plain.vectors)
    assert together.off == plain.off


def test_chunks_without_a_row_near_the_margin_are_folded_whole():
    # Sorted by the score, so that only the chunks in the middle have a band.
    generator = np.random.default_rng(5)
    X = generator.normal(size=(4000, 3))
    X = X[np.argsort(X[:, 0])]
    y = X[:, 0] + 0.1 * generator.normal(size=4000) > 0
    model = LinearSVC(loss="hinge", tol=1e-3).fit(Chunks((X, y), rows=100, memory=1 << 16))
    assert model.status_.certified
    value = LinearSVC(loss="hinge", tol=1e-5).fit(X, y).certificate_.primal
    assert model.certificate_.dual <= value <= model.certificate_.primal * (1 + 1e-4)


def hessians_asked_for(monkeypatch, X, y, loss, **options):
    """Whether each pass of a fit asked for the Hessian of all rows; the fit itself."""
    asked, ask = [], Newton.ask

    def seen(self):
        asked.append(ask(self).with_hessian)
        return ask(self)

    monkeypatch.setattr(Newton, "ask", seen)
    model = LinearSVC(loss=loss, tol=1e-4).fit(Chunks((X, y), rows=4000, **options))
    assert model.status_.certified
    return asked, model


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
def test_the_hessian_of_all_rows_is_summed_up_where_that_of_the_sample_will_not_do(monkeypatch, loss):
    generator = np.random.default_rng(5)
    X = generator.normal(size=(40_000, 6)) * np.exp(generator.normal(size=6))
    y = X @ generator.normal(size=6) + generator.standard_t(3, size=40_000) > 0.4
    asked, model = hessians_asked_for(monkeypatch, X, y, loss, memory=3 * 10**7)
    assert not any(asked)
    few, other = hessians_asked_for(monkeypatch, X, y, loss, memory=10**5)
    assert all(few)
    assert len(few) <= len(asked)
    assert other.certificate_.dual <= model.certificate_.primal * (1 + 1e-12)
    # A sample that is wrong about the curvature costs a pass, not the proof.
    for wrong in (20.0, 0.05):
        sampled = Newton._sample_hessian
        with monkeypatch.context() as patched:
            patched.setattr(Newton, "_sample_hessian", lambda self, at, f=wrong, g=sampled: f * g(self, at))
            found, _ = hessians_asked_for(patched, X, y, loss, memory=3 * 10**7)
        assert not found[0]
        assert any(found)
        assert len(found) <= len(asked) + 4


@pytest.mark.parametrize("C", [1 / 16, 1.0, 32.0])
def test_the_hinge_on_truth_values_of_which_some_are_rare_takes_few_passes(C):
    # In a quarter of their memory: means say little of rows whose columns are spread in so many ways.
    generator = np.random.default_rng(2)
    chances = np.concatenate([np.full(20, 0.4), np.geomspace(0.2, 5e-4, 60)])
    X = sparse.csr_matrix((generator.random((20_000, 80)) < chances).astype(np.float32))
    y = X @ generator.normal(size=80) + generator.logistic(size=20_000) > 0.5
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    model = LinearSVC(loss="hinge", C=C, tol=1e-3).fit(Chunks((X, y), memory=size // 4))
    assert model.status_.certified
    assert model.n_iter_ <= 8
    exact = LinearSVC(loss="hinge", C=C, tol=1e-5).fit(X, y)
    assert model.certificate_.dual <= exact.certificate_.primal
    assert model.certificate_.primal >= exact.certificate_.dual


@pytest.mark.parametrize(("loss", "C"), [("hinge", 1.0), ("hinge", 32.0), ("squared_hinge", 32.0)])
def test_wide_rows_whose_multipliers_are_free_are_settled_together(loss, C):
    generator = np.random.default_rng(3)
    X = sparse.random(3000, 2 * CHUNK_COLUMNS, 0.01, format="csr", random_state=3)
    X = (sparse.diags(1.0 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X).tocsr()
    y = X @ generator.normal(size=X.shape[1]) + 0.5 * generator.normal(size=3000) > 0.0
    model = LinearSVC(loss=loss, C=C, tol=1e-3, max_iter=60).fit(Chunks((X, y), rows=750, memory=1 << 26))
    assert model.status_.certified
    assert model.n_iter_ <= 30
    exact = LinearSVC(loss=loss, C=C, tol=1e-5).fit(X, y)
    assert model.certificate_.dual <= exact.certificate_.primal
    assert model.certificate_.primal >= exact.certificate_.dual


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_first_unsound_row_is_named_whoever_finds_it(workers):
    X, y, _ = data()
    X[[350, 420, 999, 2500]] = np.nan
    passes = LocalPasses(Chunks((X, y), rows=100), workers)
    with pytest.raises(ValueError, match=r"row 350 "):
        fit_in_passes(passes, Wanted(threads=1))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_wide_rows_in_many_chunks_take_few_passes(loss):
    """Chunks see what earlier rounds have added; with all in one round these took 38 and 72 passes."""
    generator = np.random.default_rng(0)
    n, d = 3000, CHUNK_COLUMNS + 1000
    shares = 1.0 / np.arange(1.0, d + 1.0)
    columns = generator.choice(d, size=40 * n, p=shares / shares.sum())
    values = generator.uniform(0.5, 1.5, 40 * n)
    X = sparse.csr_matrix((values, (np.repeat(np.arange(n), 40), columns)), shape=(n, d))
    X = sparse.csr_matrix(sparse.diags(1.0 / np.sqrt(X.multiply(X).sum(axis=1).A1)) @ X)
    scores = X @ generator.normal(size=d)
    y = scores + 0.3 * scores.std() * generator.normal(size=n) > 0.0
    model = LinearSVC(loss=loss, tol=1e-3).fit(Chunks((X, y), rows=50, memory=1_000_000))
    assert model.status_.certified
    assert model.n_iter_ <= 34
    best = LinearSVC(loss=loss, tol=1e-6).fit(X, y).certificate_
    assert model.certificate_.dual <= best.primal
    assert model.certificate_.primal >= best.dual


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_what_a_round_is_given_follows_from_all_earlier_answers(workers):
    class Given(Rounds):
        size, total, given = 3, 0.0, 0.0

        def __len__(self):
            return 8

        def __getitem__(self, chunk):
            if chunk % self.size == 0:
                self.given = self.total
            return self.given

    X, y, _ = data(2)
    chunks, told = Chunks((X[:800], y[:800]), rows=100), []

    def noting(chunk, given):
        time.sleep(0.002 * (chunk.first % 300 == 0))  # the first of a round ends last
        return chunk.first, given

    own = Given()
    for first, given in LocalPasses(chunks, workers).over(noting, each=own):
        told.append((first, given))
        own.total += first
    expected, total, given = [], 0.0, 0.0
    for number in range(8):
        given = total if number % 3 == 0 else given
        expected.append((100 * number, given))
        total += 100 * number
    assert told == expected
