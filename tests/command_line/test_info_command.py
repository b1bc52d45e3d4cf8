# SPDX-License-Identifier: BSD-3-Clause
"""``info`` on data files: what it counts, and what it warns of."""

from __future__ import annotations

import pytest

from maxmargin.command_line import main


@pytest.fixture
def told(tmp_path, capsys):
    def called(content, name="a.svm", *options):
        (tmp_path / name).write_text(content)
        with pytest.raises(SystemExit) as ended:
            main(["info", str(tmp_path / name), *options])
        out, err = capsys.readouterr()
        assert ended.value.code == 0, out + err
        return out

    return called


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1 1:1\n1 2:1\n", "All rows have the same label: there is nothing to tell apart."),
        ("1 1:1\n" * 40 + "2 1:2\n", "The largest class has 40 times as many rows as the smallest."),
        ("".join(f"{k} 1:{k + 1}\n" for k in range(201)), "these look like numbers to predict"),
        ("1 1:1\n2 1:1\n", "2 rows have the values of another row and a different label"),
        ("1\n2 2:3\n", "rows 2, 1 empty"),
        ("1\n2\n", "values all zero"),
    ],
    ids=["one label", "rare label", "many labels", "contradictions", "empty row", "no values"],
)
def test_warnings_and_counts(told, content, words):
    assert words in " ".join(told(content).split())


def test_lines_that_are_left_out_are_counted(told):
    assert "1 malformed lines" in told("1 1:1\n2 1:x\n1 2:1\n", "a.svm", "--skip-bad-lines")


def test_many_columns_of_a_table_are_cut_short(told):
    names = [f"n{k}" for k in range(300)]
    said = told(
        ",".join([*names, "label"])
        + "\n"
        + "\n".join(",".join([str(k)] * 300 + ["ab"[k]]) for k in (0, 1)),
        "a.csv",
    )
    assert "n0" in said
    assert " more\n" in said
    assert "n299" not in said.split("Warning")[0]
