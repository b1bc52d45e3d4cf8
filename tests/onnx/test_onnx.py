# SPDX-License-Identifier: BSD-3-Clause
"""Models in ONNX answer what they answer in Python, run by onnxruntime."""

from __future__ import annotations

import builtins

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, OneHotEncoder, StandardScaler

import maxmargin
from maxmargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    LogisticRegression,
    NuSVC,
    NuSVR,
    OneClassSVM,
    RankSVM,
    Table,
    features,
    kernels,
)

onnxruntime = pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")

CANCER = load_breast_cancer(return_X_y=True)
IRIS = load_iris(return_X_y=True)
FEW = MinMaxScaler().fit_transform(IRIS[0])


def run(graph, inputs):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    session = onnxruntime.InferenceSession(
        graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    if not isinstance(inputs, dict):
        inputs = {"X": inputs}
    return dict(
        zip([output.name for output in session.get_outputs()], session.run(None, inputs), strict=True)
    )


def agrees(model, X, dtype="float64"):
    """The graph has the scores and the labels of the model."""
    given = X.astype(dtype)
    answer = run(maxmargin.onnx.to_onnx(model, dtype=dtype), given)
    assert list(answer) == ["label", "scores"]
    expected = model.decision_function(given)
    scores = answer["scores"].reshape(expected.shape)
    np.testing.assert_allclose(scores, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(answer["label"], model.predict(given))


MODELS = {
    "linear": LinearSVC(),
    "hard margin": LinearSVC(C=np.inf),
    "no intercept": LinearSVC(fit_intercept=False),
    "logistic": LogisticRegression(),
    "chosen": LinearSVCCV(Cs=2, cv=2),
    "chosen with a kernel": SVCCV(Cs=[1.0], gammas=[0.1], cv=2),
    "gaussian": SVC(),
    "polynomial": SVC(kernel="poly", coef0=1.0),
    "laplacian": SVC(kernel="laplacian"),
    "chi2": SVC(kernel="chi2"),
    "linear kernel": SVC(kernel="linear"),
    "a sum of products": SVC(kernel=kernels.Gaussian(0.5) * kernels.Polynomial(2) + 0.5 * kernels.Linear()),
    "one against the rest": SVC(multi_class="ovr"),
    "pairs shown": SVC(decision_function_shape="ovo"),
    "ties broken": SVC(break_ties=True),
    "nu": NuSVC(nu=0.2),
    "one class": OneClassSVM(nu=0.2),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("classes", [2, 3])
def test_models(name, classes):
    kept = IRIS[1] < classes
    model = MODELS[name]
    if name == "hard margin" and classes == 3:
        pytest.skip("the last two species of iris are not to be separated")
    model = type(model)(**model.get_params()).fit(FEW[kept], IRIS[1][kept])
    agrees(model, FEW)
    agrees(model, FEW, "float32")


@pytest.mark.filterwarnings("ignore::UserWarning")  # the sigmoid is not a kernel
def test_the_sigmoid():
    agrees(SVC(kernel="sigmoid", gamma=0.1).fit(FEW, IRIS[1]), FEW)


def test_labels_are_texts_or_whole_numbers():
    names = np.array(["setosa", "versicolor", "virginica"])[IRIS[1]]
    for labels in (names, names.astype(object), IRIS[1] * 2.0 - 1.0, IRIS[1] > 0):
        agrees(LinearSVC().fit(FEW, labels), FEW)
    model = LinearSVC().fit(FEW, IRIS[1])
    model.classes_ = np.array([0.5, 1.5, 2.5])
    with pytest.raises(ValueError, match=r"must be texts or whole numbers. Got 0.5, 1.5, 2.5"):
        maxmargin.onnx.to_onnx(model)


def test_a_precomputed_kernel_takes_its_values():
    values = kernels.Gaussian(1.0)(FEW)
    agrees(SVC(kernel="precomputed").fit(values, IRIS[1]), values)


@pytest.mark.parametrize("scaler", [StandardScaler(), MaxAbsScaler(), MinMaxScaler()], ids=repr)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_scaler_and_classifier(scaler, dtype):
    for last in (LinearSVC(), SVC()):
        agrees(make_pipeline(scaler, last).fit(*CANCER), CANCER[0], dtype)


@pytest.mark.parametrize(
    "model",
    [
        LinearSVR(),
        SVR(C=10.0),
        NuSVR(C=10.0),
        RankSVM(),
        SVR(kernel="linear"),
        SVRCV(Cs=[1.0], epsilons=[0.1], gammas=[0.1]),
    ],
    ids=repr,
)
def test_regressors(model):
    values = FEW[:, 0] + np.sin(3 * FEW[:, 1])
    for fitted in (clone(model).fit(FEW, values), make_pipeline(StandardScaler(), model).fit(FEW, values)):
        answer = run(maxmargin.onnx.to_onnx(fitted), FEW)
        np.testing.assert_allclose(answer["prediction"].ravel(), fitted.predict(FEW), rtol=1e-5, atol=1e-5)


MAPS = {
    "buckets": features.Buckets(),
    "buckets of one column": features.Buckets(edges=[0.2, 0.5], columns=[1]),
    "distances": features.Distances(count=20),
    "interactions": features.Interactions(),
    "interactions of one column": features.Interactions(columns=[1]),
    "log": features.Log(columns=[0, 2]),
    "monomials": features.Monomials(3, include_bias=True),
    "monomials of the kernel": features.Monomials(3, scaling="kernel", gamma=0.5),
    "monomials once": features.Monomials(2, interaction_only=True),
    "monomials formed on the way": features.Monomials(2, lazy=True),
    "nystroem": features.Nystroem(30),
    "nystroem of another kernel": features.Nystroem(30, "laplacian"),
    "paraboloid": features.Paraboloid(),
    "polar": features.Polar(columns=[1, 3]),
    "polynomial sketch": features.PolynomialSketch(3, columns=60),
    "random fourier": features.RandomFourier(60),
    "squares": features.Squares(columns=[1, 2], center=0.3),
}


@pytest.mark.parametrize("name", MAPS)
def test_maps(name):
    pipeline = make_pipeline(MaxAbsScaler(), MAPS[name], LinearSVC()).fit(*IRIS)
    agrees(pipeline, IRIS[0])


def test_every_map_is_written_or_is_a_graph_already():
    from maxmargin.onnx.maps import MAPS as written

    everyone = {getattr(features, name) for name in features.__all__}
    maps = {kind for kind in everyone if isinstance(kind, type) and hasattr(kind, "transform")}
    assert maps - set(written) == {features.Pretrained}


def test_angles_all_around():
    angles = np.linspace(-np.pi, np.pi, 17)
    X = np.column_stack([np.cos(angles), np.sin(angles)])
    X = np.vstack([X, [[0.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0], [-1.0, -1e-9], [-1.0, 1e-9]]])
    pipeline = make_pipeline(features.Polar(), LinearSVC()).fit(X, X[:, 1] > 0)
    agrees(pipeline, X)


def test_a_classifier_of_monomials_alone_takes_the_rows_that_they_are_of():
    lazy = features.Monomials(2, lazy=True).fit(FEW)
    model = LinearSVC().fit(lazy.transform(FEW), IRIS[1])
    written = features.Monomials(2).fit_transform(FEW)
    answer = run(maxmargin.onnx.to_onnx(model), written)
    np.testing.assert_allclose(answer["scores"], model.decision_function(FEW), rtol=1e-9)


def test_columns_of_different_types():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"length": IRIS[0][:, 0], "city": np.array(["Oslo", "Turin"])[IRIS[1] % 2]})
    columns = make_column_transformer((StandardScaler(), ["length"]), (OneHotEncoder(), ["city"]))
    model = make_pipeline(columns, LinearSVC()).fit(frame, IRIS[1])
    graph = maxmargin.onnx.to_onnx(model, frame)
    answer = run(graph, {name: frame[[name]].to_numpy() for name in frame})
    np.testing.assert_allclose(answer["scores"], model.decision_function(frame), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(answer["label"], model.predict(frame))


def test_who_calls_skl2onnx_by_himself_registers_first():
    skl2onnx = maxmargin.onnx.register()
    model = make_pipeline(StandardScaler(), SVC()).fit(*IRIS)
    graph = skl2onnx.to_onnx(model, IRIS[0].astype(np.float32))
    answer = run(graph, IRIS[0].astype(np.float32))
    np.testing.assert_array_equal(answer["label"], model.predict(IRIS[0]))


def test_what_cannot_be_written_is_refused(monkeypatch):
    with pytest.raises(NotFittedError):
        maxmargin.onnx.to_onnx(LinearSVC())
    model = SVC(kernel=lambda X, Z: X @ Z.T).fit(FEW, IRIS[1])
    model.n_features_in_ = 4
    with pytest.raises(ValueError, match=r"holds no code. Use one of maxmargin.kernels"):
        maxmargin.onnx.to_onnx(model)
    with pytest.raises(ValueError, match="dtype must be 'float64' or 'float32'"):
        maxmargin.onnx.to_onnx(LinearSVC().fit(FEW, IRIS[1]), dtype="int8")
    import_module = builtins.__import__

    def without(name, *arguments, **options):
        if name == "skl2onnx":
            raise ImportError(name)
        return import_module(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'maxmargin\[onnx\]'"):
        maxmargin.onnx.to_onnx(LinearSVC().fit(FEW, IRIS[1]))


def test_a_table_is_refused_with_the_cure():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": [1.0, 2.0] * 10, "b": ["x", "y"] * 10})
    model = make_pipeline(Table(), LinearSVC()).fit(frame, [0, 1] * 10)
    with pytest.raises(ValueError, match=r"to_onnx\(pipeline\[-1\]\)"):
        maxmargin.onnx.to_onnx(model)
    agrees(model[-1], model[0].transform(frame))
