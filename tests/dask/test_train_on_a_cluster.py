# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin train --dask`` on a real cluster of two processes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

pytest.importorskip("distributed")

from maxmargin import Chunks, LinearSVC
from maxmargin.command_line import main
from maxmargin.command_line.shared import trained_by_dask
from maxmargin.files import load_model, write_libsvm

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.xdist_group("cluster"),
]

ROWS, COLUMNS = 3000, 5
Run = Callable[..., str]


@pytest.fixture(scope="module")
def drawn() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    X = np.round(generator.normal(size=(ROWS, COLUMNS)), 3)
    return X, (X[:, 0] + 0.5 * generator.normal(size=ROWS) > 0).astype(int)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, drawn: tuple[Any, Any]) -> Path:
    folder = tmp_path_factory.mktemp("cluster")
    X, y = drawn
    for k in range(3):
        some = slice(1000 * k, 1000 * k + 1000)
        frame = pd.DataFrame(X[some], columns=[f"x{j}" for j in range(COLUMNS)])
        frame["class"] = np.array(["no", "yes"])[y[some]]
        frame["town"] = "somewhere"
        frame.to_parquet(folder / f"rows-{k}.parquet")
        frame.drop(columns="town").to_csv(folder / f"rows-{k}.csv", index=False, sep=";")
        write_libsvm(folder / f"rows-{k}.svm", X[some], y[some])
        np.savez(folder / f"rows-{k}.npz", X=X[some], y=y[some])
    return folder


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    def called(*arguments: Any, code: int = 0) -> str:
        with pytest.raises(SystemExit) as ended:
            main([str(each) for each in arguments])
        out, err = capsys.readouterr()
        assert ended.value.code == code, out + err
        return out if code == 0 else out + err

    return called


@pytest.mark.parametrize(
    ("pattern", "more"),
    [
        ("rows-*.parquet", ["--scale", "none", "--drop", "town"]),
        ("rows-*.csv", ["--scale", "none", "--delimiter", ";"]),
        ("rows-*.svm", []),
        ("rows-*.npz", []),
    ],
)
def test_workers_read_the_files(
    run: Run, address: str, folder: Path, drawn: tuple[Any, Any], pattern: str, more: list[str]
) -> None:
    X, y = drawn
    target = folder / "model.mm"
    common = ["-o", target, "--dask", address, "--loss", "hinge", "--memory", "1GB", "--json"]
    told = json.loads(run("train", folder / pattern, *common, *more))
    assert told["certified"]
    assert told["rows"] == ROWS
    assert told["columns"] == COLUMNS
    assert told["chunks"] == 3
    model, table = load_model(target), "parquet" in pattern or "csv" in pattern
    stored = sparse.csr_matrix(X) if "svm" in pattern else X
    local = LinearSVC(loss="hinge", random_state=0)
    local.fit(Chunks((stored, y), rows=1000, memory=750_000_000))
    assert model.classes.tolist() == (["no", "yes"] if table else [0, 1])
    # The same bits as those of chunks of the same rows that one process reads.
    np.testing.assert_array_equal(np.ravel(model.coef), np.ravel(local.coef_))
    assert told["primal"] == local.certificate_.primal
    assert told["dual"] == local.certificate_.dual


def test_an_address_of_a_table_and_words(run: Run, address: str, folder: Path) -> None:
    target = folder / "other.mm"
    options = ["-o", target, "--dask", address, "--scale", "none", "--drop", "town"]
    test = folder / "test.parquet"
    pd.read_parquet(folder / "rows-0.parquet").drop(columns="town").to_parquet(test)
    text = run("train", f"file://{folder}/rows-*.parquet", *options, "--test", test)
    assert "3000 rows, 5 columns" in text
    assert "Test accuracy" in text


def test_what_is_not_offered_is_refused(
    run: Run, address: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trained_by_dask, "_PATIENCE", 1)

    def refused(pattern: str, *more: Any) -> str:
        options = ["-o", folder / "none.mm", "--dask", address, *more]
        return " ".join(run("train", folder / pattern, *options, code=2).split())

    assert "Say --scale none" in refused("rows-*.parquet")
    assert "Column 'town'" in refused("rows-*.parquet", "--scale", "none")
    assert "no column is called 'klass'" in refused("rows-*.csv", "--scale", "none", "--label", "klass")
    assert "--kernel needs the rows in memory" in refused("rows-*.svm", "--kernel", "gaussian")
    assert "--checkpoint is for data" in refused("rows-*.svm", "--checkpoint", folder / "a.state")
    assert "--dask is for --task classification" in refused("rows-*.svm", "--task", "regression")
    assert "no file has such a name" in refused("nothing-*.svm")
    assert "Dask finds no table" in refused("nothing-*.parquet", "--scale", "none")
    assert "Dask cannot read" in refused("nothing-*.csv", "--scale", "none")
    (folder / "bad.svm").write_text("1 1:2\n-1 1:x\n")
    assert "bad.svm" in refused("bad.svm")
    nobody = ["-o", folder / "none.mm", "--dask", "tcp://127.0.0.1:9"]
    assert "No scheduler of Dask answers" in run("train", folder / "rows-0.svm", *nobody, code=2)
    elsewhere = ["-o", folder / "none.mm", "--dask", address]
    assert "Only tables are read from other places" in run("train", "s3://a/b.svm", *elsewhere, code=2)
    assert not (folder / "none.mm").exists()
