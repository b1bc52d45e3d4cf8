# SPDX-License-Identifier: BSD-3-Clause
"""The commands with C = inf: train, certify, info, and what they say where no hyperplane separates."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from hard_margins import SQUARE, XOR, separable
from maxmargin.files import load_model, save_model
from problems import INTERCEPTS
from written_files import write_libsvm


@pytest.fixture
def data(tmp_path):
    X, y = separable(100, 5, margin=0.05)
    write_libsvm(tmp_path / "data.svm", X, y)
    return tmp_path / "data.svm"


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_train_and_certify(run, data, intercept):
    model = data.with_name("model.mm")
    code, out, _ = run("train", data, "-o", model, "-C", "inf", "--intercept", intercept)
    assert code == 0
    assert "The margin is" in out
    code, out, _ = run("certify", model, data)
    assert (code, "hard margin" in out, "Holds" in out) == (0, True, True)
    code, out, _ = run("certify", model, data, "--json")
    said = json.loads(out)
    assert said["hard_margin"]
    assert said["holds"]
    code, out, _ = run("info", model)
    assert (code, "C = inf" in out) == (0, True)
    code, out, _ = run("train", data, "--resume", model, "--json")
    assert code == 0
    said = json.loads(out)
    assert said["hard_margin"]
    assert said["certificates"][0]["margin"] <= said["certificates"][0]["margin_bound"] * (1 + 1e-12)


def test_certify_without_proof_and_for_the_text_of_others(run, data):
    for options in (["--no-proof"], ["--model-format", "liblinear", "--intercept", "none"]):
        model = data.with_name("model.mm")
        assert run("train", data, "-o", model, "-C", "inf", *options)[0] == 0
        own = [] if options == ["--no-proof"] else ["-C", "inf"]
        code, out, _ = run("certify", model, data, *own)
        assert code == 0
        assert "solving the problem here" in out


def test_a_false_claim_does_not_hold(run, data):
    model = data.with_name("model.mm")
    assert run("train", data, "-o", model, "-C", "inf")[0] == 0
    saved = load_model(model)
    proof = saved.certificates[0]
    worse = saved.coef + np.eye(1, saved.features)
    lie = replace(proof, w=worse[0])
    for name in ("kkt_violation", "row_classes"):
        lie.__dict__[name] = getattr(proof, name)
    save_model(replace(saved, coef=worse, certificates=[lie]), model)
    code, out, _ = run("certify", model, data)
    assert (code, "Does not hold" in out) == (1, True)
    # w = -w has no margin at all, so its objective is infinite.
    lie = replace(proof, w=-saved.coef[0], b=-proof.b)
    for name in ("kkt_violation", "row_classes"):
        lie.__dict__[name] = getattr(proof, name)
    save_model(replace(saved, coef=-saved.coef, intercept=-saved.intercept, certificates=[lie]), model)
    code, out, _ = run("certify", model, data)
    assert (code, "Does not hold" in out) == (1, True)


def test_inseparable_data_on_the_command_line(run, tmp_path):
    write_libsvm(tmp_path / "xor.svm", SQUARE, XOR)
    code, out, err = run("train", tmp_path / "xor.svm", "-o", tmp_path / "model.mm", "-C", "inf")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "cannot be separated" in err
    assert "finite value" in err
    assert not (tmp_path / "model.mm").exists()


def test_a_cost_that_float64_has_no_room_for_names_the_option(run, data):
    code, out, err = run("train", data, "-o", data.with_name("model.mm"), "-C", "1e300")
    assert (code, out) == (2, "")
    assert "the hard margin, -C inf." in err
