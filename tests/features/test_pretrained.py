# SPDX-License-Identifier: BSD-3-Clause
"""Networks as feature maps, on small ones made here."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from maxmargin import LinearSVC
from maxmargin.features import Pretrained
from scikit_learn import assert_passes

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

FLOAT = onnx.TensorProto.FLOAT
helper = onnx.helper
RANDOM = np.random.default_rng(0)
W1 = RANDOM.normal(size=(6, 5)).astype(np.float32)
W2 = RANDOM.normal(size=(5, 2)).astype(np.float32)


def tensor(name, array):
    return onnx.numpy_helper.from_array(array, name)


def network(path, batch=None, shape=(2, 3)):
    """Flatten, multiply by W1, cut off at 0 ("hidden"), multiply by W2 ("output")."""
    nodes = [
        helper.make_node("Flatten", ["input"], ["flat"]),
        helper.make_node("MatMul", ["flat", "W1"], ["before"]),
        helper.make_node("Relu", ["before"], ["hidden"]),
        helper.make_node("MatMul", ["hidden", "W2"], ["output"]),
    ]
    graph = helper.make_graph(
        nodes,
        "network",
        [helper.make_tensor_value_info("input", FLOAT, [batch, *shape])],
        [helper.make_tensor_value_info("output", FLOAT, [batch, 2])],
        [tensor("W1", W1), tensor("W2", W2)],
    )
    return save(graph, path)


def save(graph, path):
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


@pytest.fixture
def X():
    return np.random.default_rng(1).normal(size=(25, 2, 3))


def hidden(X):
    return np.maximum(X.reshape(len(X), 6) @ W1, 0.0)


@pytest.mark.parametrize("batch", [None, 1, 4])
def test_a_layer_is_what_the_network_computes(tmp_path, X, batch):
    path = network(tmp_path / "network.onnx", batch)
    for rows in (X, X.reshape(25, 6)):
        found = Pretrained(path, "hidden", batch_size=10).fit(rows)
        np.testing.assert_allclose(found.transform(rows), hidden(X), atol=1e-5)
    np.testing.assert_allclose(Pretrained(path).fit(X).transform(X), hidden(X) @ W2, atol=1e-5)
    assert list(found.get_feature_names_out()) == [f"pretrained{j}" for j in range(5)]


def test_what_lies_behind_the_layer_is_cut_off(tmp_path, X):
    path = network(tmp_path / "network.onnx")
    part = onnx.load_from_string(Pretrained(path, "hidden").fit(X).network_)
    assert [node.op_type for node in part.graph.node] == ["Flatten", "MatMul", "Relu"]
    assert [weights.name for weights in part.graph.initializer] == ["W1"]


def test_a_branch_keeps_what_it_reads_from_outside(tmp_path):
    yes = helper.make_graph(
        [helper.make_node("Identity", ["doubled"], ["yes"])],
        "yes",
        [],
        [helper.make_tensor_value_info("yes", FLOAT, None)],
    )
    no = helper.make_graph(
        [helper.make_node("Neg", ["input"], ["no"])],
        "no",
        [],
        [helper.make_tensor_value_info("no", FLOAT, None)],
    )
    nodes = [
        helper.make_node("Add", ["input", "input"], ["doubled"]),
        helper.make_node("If", ["condition"], ["chosen"], then_branch=yes, else_branch=no),
        helper.make_node("Neg", ["chosen"], ["last"]),
    ]
    graph = helper.make_graph(
        nodes,
        "branch",
        [helper.make_tensor_value_info("input", FLOAT, [None, 3])],
        [helper.make_tensor_value_info("last", FLOAT, [None, 3])],
        [tensor("condition", np.array(True))],
    )
    path = save(graph, tmp_path / "branch.onnx")
    np.testing.assert_allclose(Pretrained(path, "chosen").fit_transform(np.ones((2, 3))), 2.0)


def test_progress_is_told(tmp_path, X):
    told = []
    path = network(tmp_path / "network.onnx")
    found = Pretrained(path, "hidden", batch_size=10, callback=lambda *done: told.append(done)).fit(X)
    assert told == []
    found.transform(X)
    assert told == [(10, 25), (20, 25), (25, 25)]


def test_the_fitted_map_needs_no_file(tmp_path, X):
    path = network(tmp_path / "network.onnx")
    found = Pretrained(path, "hidden").fit(X)
    path.unlink()
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.transform(X), found.transform(X))
    pickle.loads(pickle.dumps(Pretrained(path)))
    with pytest.raises(FileNotFoundError):
        clone(found).fit(X)


def test_in_a_pipeline(tmp_path, X):
    path = network(tmp_path / "network.onnx")
    flat, y = X.reshape(25, 6), np.arange(25) % 2
    pipeline = make_pipeline(Pretrained(path, "hidden"), LinearSVC(random_state=0))
    predicted = pipeline.fit(flat, y).predict(flat)
    assert (clone(pipeline).fit(flat, y).predict(flat) == predicted).all()
    search = GridSearchCV(pipeline, {"pretrained__layer": ["before", "hidden"]}, cv=2).fit(flat, y)
    assert search.best_params_["pretrained__layer"] in ("before", "hidden")


def test_rows_of_another_shape_are_refused(tmp_path, X):
    found = Pretrained(network(tmp_path / "network.onnx"))
    with pytest.raises(ValueError, match=r"rows of shape \(2, 3\). Got X of shape \(1, 5\)"):
        found.fit(np.ones((4, 5)))
    with pytest.raises(ValueError, match=r"Got X of shape \(1, 3, 2\)"):
        found.fit(np.ones((4, 3, 2)))


def test_unknown_layers_are_refused(tmp_path, X):
    with pytest.raises(ValueError, match=r"no layer 'last'. It has 'flat', 'before', 'hidden', 'output'"):
        Pretrained(network(tmp_path / "network.onnx"), "last").fit(X)


def test_layers_without_a_row_per_example_are_refused(tmp_path):
    graph = helper.make_graph(
        [helper.make_node("Transpose", ["input"], ["turned"])],
        "turned",
        [helper.make_tensor_value_info("input", FLOAT, [None, 3])],
        [helper.make_tensor_value_info("turned", FLOAT, [3, None])],
    )
    with pytest.raises(ValueError, match="gives 3 rows for a batch of 1"):
        Pretrained(save(graph, tmp_path / "turned.onnx")).fit(np.ones((2, 3)))


def external(array_holder):
    array_holder.ClearField("raw_data")
    array_holder.data_location = onnx.TensorProto.EXTERNAL
    array_holder.external_data.add(key="location", value="../secret")


def test_weights_in_other_files_are_refused(tmp_path, X):
    path = network(tmp_path / "network.onnx")
    model = onnx.load_from_string(path.read_bytes())
    external(model.graph.initializer[1])
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match="keeps weights in other files, which is refused"):
        Pretrained(path, "hidden").fit(X)  # though the layer does not need this tensor
    model = onnx.load_from_string(network(path).read_bytes())
    constant = helper.make_node("Constant", [], ["value"], value=tensor("hidden_tensor", W1))
    external(constant.attribute[0].t)
    model.graph.node.append(constant)
    path.write_bytes(model.SerializeToString())
    with pytest.raises(ValueError, match="keeps weights in other files, which is refused"):
        Pretrained(path, "hidden").fit(X)


def test_large_files_are_refused(tmp_path, X):
    path = network(tmp_path / "network.onnx")
    size = path.stat().st_size
    Pretrained(path, max_bytes=size).fit(X)
    with pytest.raises(ValueError, match=f"larger than {size - 1} bytes"):
        Pretrained(path, max_bytes=size - 1).fit(X)


@pytest.mark.parametrize("content", [b"", b"not a network", b"\x00" * 100, b"\xff" * 1000])
def test_what_is_no_network_is_refused(tmp_path, X, content):
    path = tmp_path / "network.onnx"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is no ONNX network"):
        Pretrained(path).fit(X)


def test_damaged_networks_give_errors_and_nothing_worse(tmp_path, X):
    content = network(tmp_path / "network.onnx").read_bytes()
    random = np.random.default_rng(0)
    path = tmp_path / "damaged.onnx"
    refused = 0
    for _ in range(200):
        damaged = bytearray(content)
        for place in random.integers(len(content), size=3):
            damaged[place] = random.integers(256)
        path.write_bytes(bytes(damaged))
        try:
            Pretrained(path, "hidden").fit(X)
        except ValueError:
            refused += 1
    assert refused > 20


def test_two_inputs_are_refused(tmp_path):
    values = [helper.make_tensor_value_info(name, FLOAT, [None, 3]) for name in ("a", "b")]
    output = [helper.make_tensor_value_info("sum", FLOAT, [None, 3])]
    graph = helper.make_graph([helper.make_node("Add", ["a", "b"], ["sum"])], "two", values, output)
    with pytest.raises(ValueError, match=r"must have one input. It has 2: 'a', 'b'"):
        Pretrained(save(graph, tmp_path / "two.onnx")).fit(np.ones((2, 3)))


@pytest.fixture(scope="module")
def any_width(tmp_path_factory):
    graph = helper.make_graph(
        [helper.make_node("Relu", ["input"], ["output"])],
        "any_width",
        [helper.make_tensor_value_info("input", FLOAT, [None, None])],
        [helper.make_tensor_value_info("output", FLOAT, [None, None])],
    )
    return save(graph, tmp_path_factory.mktemp("networks") / "any_width.onnx")


@parametrize_with_checks([Pretrained("any_width.onnx")])
def test_scikit_learn_checks(estimator, check, any_width, monkeypatch):
    monkeypatch.chdir(any_width.parent)
    assert_passes(check, estimator)
