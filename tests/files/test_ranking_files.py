# SPDX-License-Identifier: BSD-3-Clause
"""Files of rankings: queries in data files, model files, and what both checkers make of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse

from maxmargin import LinearSVC, LinearSVR, RankSVM
from maxmargin.files import ModelError, load_model, read, save_model, stream, write_libsvm
from maxmargin.files.data.reading import DataError
from maxmargin.files.models.fitted import from_estimator
from maxmargin.independent.checker import check
from maxmargin.proof.of_files import judge_alone, judge_proof, ranking_part
from ranked_rows import ranked_rows

X, Y, QUERY, _ = ranked_rows(n=60, levels=4, queries=5)


@pytest.fixture(params=["squared_hinge", "hinge"])
def fitted(request):
    return RankSVM(C=0.1, loss=request.param).fit(X, Y, QUERY)


def test_queries_of_text_are_read_and_written(tmp_path):
    path = tmp_path / "data.svm"
    rows = sparse.random_array((50, 9), density=0.3, rng=1, format="csr")
    labels, query = np.arange(50) / 7, np.arange(50) // 6 + (1 << 40)
    write_libsvm(path, rows, labels, query)
    data = read(path, columns=9)
    np.testing.assert_array_equal(data.X.toarray(), rows.toarray())
    np.testing.assert_array_equal(data.y, labels)
    np.testing.assert_array_equal(data.query, query)
    pieces = np.concatenate([chunk.query for chunk in stream(path)])
    np.testing.assert_array_equal(pieces, query)
    write_libsvm(path, rows, labels)
    assert read(path).query is None
    path.write_text("1 qid:3 1:1\n0 1:2\n2 qid:0 1:3 # end\n")
    assert read(path).query.tolist() == [3, -1, 0]
    path.write_text("1 1:1\n" * 3 + "0 qid:9223372036854775807 1:2\n")
    assert read(path).query.tolist() == [-1, -1, -1, 2**63 - 1]
    path.write_text("1 qid:9223372036854775808 1:1\n")
    with pytest.raises(DataError, match=r"line 1, column 3: the number of a query must be below 2\^63"):
        read(path)


@pytest.mark.parametrize(
    ("query", "words"),
    [([0, 1], "one query for each"), ([0, -1, 2], "whole numbers"), (["a", "b", "c"], "whole numbers")],
)
def test_queries_that_text_cannot_hold_are_refused(tmp_path, query, words):
    with pytest.raises(ValueError, match=words):
        write_libsvm(tmp_path / "data.svm", np.eye(3), np.zeros(3), query)
    with pytest.raises(ValueError, match="finite"):
        write_libsvm(tmp_path / "data.svm", np.eye(3), [0.0, np.inf, 1.0])
    assert not (tmp_path / "data.svm").exists()


def test_queries_of_tables_and_npz_are_no_features(tmp_path):
    np.savez(tmp_path / "data.npz", X=X, y=Y, query=QUERY)
    np.testing.assert_array_equal(read(tmp_path / "data.npz").query, QUERY)
    np.savez(tmp_path / "bad.npz", X=X, y=Y, query=QUERY[:-1])
    with pytest.raises(DataError, match="must name the query of each of the 60 rows"):
        read(tmp_path / "bad.npz")
    table = tmp_path / "data.csv"
    table.write_text("session,a,b,label\ns1,1,2,0\ns2,3,4,1\ns1,5,6,2\n")
    data = read(table, query="session")
    assert data.feature_names == ["a", "b"]
    assert data.query.tolist() == ["s1", "s2", "s1"]
    with pytest.raises(DataError, match="no column is called 'sessions'"):
        read(table, query="sessions")
    table.write_text("session,a,b,label\n1,1,2,0\n,3,4,1\n1,5,,2\n3,7,8,1\n")
    kept = read(table, query="session", skip_bad_lines=True)
    assert (kept.query.tolist(), kept.y.tolist(), kept.skipped) == ([1, 3], [0, 1], 2)
    with pytest.raises(DataError, match="has no value in column"):
        read(table, query="session")


def test_a_file_keeps_the_model_and_its_proof(fitted, tmp_path):
    path = tmp_path / "model.mm"
    fitted.save(path, data=(X, Y))
    loaded, saved = RankSVM.load(path), load_model(path)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))
    np.testing.assert_allclose(saved.predict(X), fitted.predict(X), rtol=1e-13)
    assert saved.is_ranking
    assert not saved.has_classes
    assert saved.rows == len(Y)
    assert str(loaded.certificate_) == str(fitted.certificate_)
    assert loaded.certificate_.width == fitted.certificate_.width
    assert loaded.get_params() == fitted.get_params()
    assert loaded.status_ is fitted.status_
    assert [*loaded.trace_] == [*fitted.trace_]
    for ours, theirs in zip(loaded.prediction_bounds(X), fitted.prediction_bounds(X), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    again = tmp_path / "again.mm"
    loaded.save(again, data=(X, Y))
    assert again.read_bytes() == path.read_bytes()
    warm = loaded.set_params(warm_start=True).fit(X, Y, QUERY)
    assert warm.certificate_.relative_gap <= fitted.certificate_.relative_gap


def test_the_referee_finds_what_the_file_claims(fitted):
    saved = from_estimator(fitted)
    part = ranking_part(saved, X, Y, QUERY, C=saved.problem["C"])
    finding = judge_proof(part, saved.tol)
    assert finding.reasons == []
    assert finding.relative_gap <= saved.tol
    assert judge_proof(ranking_part(saved, X, Y, None, C=saved.problem["C"]), saved.tol).reasons
    lying = replace(saved, claims=[replace(saved.claims[0], primal=0.9 * saved.claims[0].primal)])
    lied = ranking_part(lying, X, Y, QUERY, C=saved.problem["C"])
    assert any("above the claimed" in reason for reason in judge_proof(lied, None).reasons)
    near = replace(saved, optimum=[saved.optimum[0]._replace(radius=1e-12)])
    if fitted.loss == "hinge":
        wrong = ranking_part(near, X, Y, QUERY, C=saved.problem["C"])
        assert any("as near as" in reason for reason in judge_proof(wrong, None).reasons)
    bare = ranking_part(replace(saved, certificates=None), X, Y, QUERY, C=saved.problem["C"])
    assert judge_alone(bare, 1e-3, 10.0, None).reasons == []


def test_the_exact_checker_finds_the_same(fitted, tmp_path):
    model, data = tmp_path / "model.mm", tmp_path / "data.svm"
    fitted.save(model, data=(X, Y))
    write_libsvm(data, X, Y, QUERY)
    verdict = check(model, data)
    assert verdict.holds, verdict.lines
    proof, (found,) = fitted.certificate_, verdict.findings
    assert proof.dual <= found.dual <= found.primal <= proof.primal
    write_libsvm(data, X, Y)
    assert not check(model, data).holds
    data.write_text("1 1:1\n")
    assert "rows" in check(model, data).reasons[0]
    lie = replace(
        from_estimator(fitted), claims=[replace(from_estimator(fitted).claims[0], dual=1e9, primal=2e9)]
    )
    save_model(lie, model)
    write_libsvm(data, X, Y, QUERY)
    assert any("below the claimed" in reason for reason in check(model, data).reasons)
    table = tmp_path / "data.csv"
    lines = [f"q{q},{','.join(map(repr, row))},{y}" for q, row, y in zip(QUERY, X.tolist(), Y, strict=True)]
    table.write_text("\n".join(["q,a,b,c,d,y", *lines]) + "\n")
    fitted.save(model)
    assert check(model, table, query="q").holds
    with pytest.raises(ValueError, match="no column is called 'z'"):
        check(model, table, query="z")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"intercept": np.ones(1)}, "no intercept"),
        ({"classes": np.array([0, 1])}, "no classes"),
        ({"width": -1.0}, "width must be a finite number"),
        ({"width": "wide"}, "width must be a finite number"),
        ({"C": np.inf}, "finite C"),
        ({"loss": "logistic"}, "loss must be one of"),
        ({"epsilon": 0.1}, "the problem must state"),
    ],
)
def test_unsound_rankings_are_refused(fitted, change, words):
    saved = from_estimator(fitted)
    name, value = next(iter(change.items()))
    changes = (
        change
        if hasattr(saved, name) and name not in ("width",)
        else {"problem": saved.problem | {name: value}}
    )
    with pytest.raises(ModelError, match=words):
        replace(saved, **changes)


def test_tasks_are_not_taken_for_each_other(fitted, tmp_path):
    path = tmp_path / "model.mm"
    fitted.save(path)
    for kind in (LinearSVC, LinearSVR):
        with pytest.raises(ModelError, match=r"RankSVM\.load"):
            kind.load(path)
    LinearSVR().fit(X, Y).save(path)
    with pytest.raises(ModelError, match=r"model of regression\. Load it with LinearSVR\.load"):
        RankSVM.load(path)
    with pytest.raises(ModelError, match="Ranking is not written as text of libsvm"):
        save_model(fitted, path, format="libsvm")
