# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin train``: from a data file to a model file with its proof."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import maxmargin
from maxmargin import files
from maxmargin.command_line.shared import data_options, options
from maxmargin.command_line.shared.answer import Failure, in_words
from maxmargin.command_line.shared.features import asked_features, expanded
from maxmargin.command_line.shared.in_chunks import TrainingChunks, is_several
from maxmargin.command_line.shared.progress import Bars
from maxmargin.command_line.shared.solver_options import Options, configured, usual_loss

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from maxmargin.solving.loop import Callback

# What an option left out stands for, unless a model to resume says otherwise.
_DEFAULTS: dict[str, Any] = {
    "C": 1.0,
    "solver": "auto",
    "tol": 1e-4,
    "max_time": 60.0,
    "max_iter": -1,
    "random_state": 0,
}
_KERNEL_DEFAULTS: dict[str, Any] = {"tol": 1e-3, "max_time": 60.0, "random_state": 0}
"""The others are those of the estimator."""
_MODEL_FORMATS = ("maxmargin", "liblinear", "libsvm")


@in_words
def train(
    data: options.DataFile,
    *,
    output: Annotated[Path | None, options.MODEL_OUTPUT] = None,
    task: Annotated[
        str,
        typer.Option(
            help="classification; regression: the labels are numbers; ranking: they are relevances of the "
            "rows of a query; or one-class: they do not matter, and a region is sought."
        ),
    ] = "classification",
    C: Annotated[
        float | None, typer.Option("-C", help="Weight of the losses; inf: hard margin.", show_default="1")
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="squared_hinge, hinge or logistic; epsilon_insensitive or its square in regression.",
            show_default="squared_hinge; hinge where kernel, solver or format has no other",
        ),
    ] = None,
    penalty: Annotated[
        str | None,
        typer.Option(
            help="l2, or l1, with which most columns get no weight: for the squared hinge and the logistic "
            "loss.",
            show_default="l2",
        ),
    ] = None,
    epsilon: Annotated[
        float | None,
        typer.Option(
            help="In regression, how far a prediction may be off at no cost.",
            show_default="0; with a kernel 0.1",
        ),
    ] = None,
    nu: Annotated[
        float | None,
        typer.Option(
            help="The share of the rows that may be outside, for one-class; with a kernel, of those on the "
            "wrong side in the place of C, or outside of the tube in the place of epsilon.",
            show_default="0.5 for one-class",
        ),
    ] = None,
    solver: Annotated[
        str | None, typer.Option(help="auto, or a solver's name.", show_default="auto")
    ] = None,
    option: Options = None,
    kernel: options.KernelChoice,
    features: options.Features = None,
    tol: Annotated[
        float | None, typer.Option(help="Relative gap to reach.", show_default="1e-4; with a kernel 1e-3")
    ] = None,
    max_time: Annotated[
        float | None,
        typer.Option(
            help="Seconds of training; inf: no limit.", show_default="60; no limit for data in chunks"
        ),
    ] = None,
    max_iter: Annotated[
        int | None,
        typer.Option(help="Steps of the solver, for each problem; -1: no limit.", show_default="no limit"),
    ] = None,
    intercept: Annotated[
        str | None,
        typer.Option(help="exact (free), regularised (as LIBLINEAR has it) or none.", show_default="exact"),
    ] = None,
    class_weight: options.ClassWeight = None,
    multi_class: Annotated[
        str | None,
        typer.Option(
            help="Of several classes: ovr, one against the rest, or crammer-singer, all in one problem.",
            show_default="ovr",
        ),
    ] = None,
    test: options.TestFile = None,
    hold_out: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Hold this share of the rows out of a first fit, and tell its accuracy on them; the model "
            "written is of all rows.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="MODEL",
            help="Go on from this model, with its parameters unless given anew, and write it again.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Of all random choices.", min=0, show_default="0")
    ] = None,
    no_proof: Annotated[
        bool, typer.Option("--no-proof", help="A small file: what is claimed, without the multipliers.")
    ] = False,
    device: options.Device = None,
    model_format: Annotated[str, typer.Option(help="maxmargin, liblinear or libsvm.")] = "maxmargin",
    chunking: TrainingChunks,
    reading: data_options.TrainingData,
    as_json: options.Json = False,
) -> int:
    """Train a model, prove how close to the best it is, and write it with the proof.

    Several classes are trained one against the rest, with a kernel in pairs. Ctrl-C writes the best
    certified model so far. Data that need more than --memory, folders and patterns are read in chunks.

    Exit code 0: the gap is certified; 3: it is not, the model is written all the same; 2: wrong input;
    130: interrupted.

    Example: maxmargin train churn.csv --label churn -o model.mm --hold-out 0.2

    Example: maxmargin train data.svm -o model.mm -C 0.5 --test test.svm

    Example: maxmargin train big.mmd -o model.mm --memory 2GB --checkpoint big.state

    Example: maxmargin train 'rows-*.parquet' -o model.mm --scale none --dask tcp://scheduler:8786

    Example: maxmargin train data.svm -o model.mm --kernel gaussian --gamma 0.5

    Example: maxmargin train data.svm -o model.mm --solver pegasos --loss hinge --option batch=16

    Example: maxmargin train data.svm -o model.mm --penalty l1 -C 0.1

    Example: maxmargin train prices.csv --label price --task regression --epsilon 0.5 -o model.mm

    Example: maxmargin train pages.svm --task ranking -C 0.01 -o model.mm

    Example: maxmargin train usual.csv --task one-class --nu 0.05 --kernel gaussian -o model.mm

    Example: maxmargin train data.svm -o model.mm --features monomials:2,scaling=kernel,gamma=0.5

    Example: maxmargin train big.mmd -o model.mm --features nystroem:1000,gamma=0.5 --memory 2GB
    """
    import numpy as np

    from maxmargin.chunks.source import mapped_rows
    from maxmargin.command_line.shared.fitting import Fitting, refuse
    from maxmargin.command_line.shared.kernel_features import asked_kernel_features
    from maxmargin.command_line.shared.report import Training, report

    target = output or resume
    if target is None:
        raise Failure("train needs the name of the model to write. Got none. Add -o MODEL.")
    several = chunking.dask is not None or is_several(data)
    options.check_files(target, None if several else data, test)
    reading.check(data)
    if model_format not in _MODEL_FORMATS:
        raise Failure(
            f"--model-format must be one of {', '.join(_MODEL_FORMATS)}. Got {model_format!r} instead."
        )
    if hold_out is not None and not 0 < hold_out < 1:
        raise Failure(
            f"--hold-out must be above 0 and below 1. Got {hold_out:g} instead. It is a share: 0.2 holds "
            "every fifth row out."
        )
    chosen = configured(solver, option, cache_size=kernel.cache_size)
    given = {"C": C, "loss": loss, "solver": chosen, "tol": tol, "max_time": max_time}
    given |= {"max_iter": max_iter, "random_state": seed, "n_jobs": reading.threads, "device": device}
    card = options.asked_card(device)
    tasks = ("classification", "regression", "ranking", "one-class")
    if task not in tasks:
        raise Failure(f"--task must be {', '.join(tasks[:-1])} or {tasks[-1]}. Got {task!r} instead.")
    if chunking.dask is not None and task != "classification":
        raise Failure(f"--dask is for --task classification. Got {task!r} instead. Leave --dask out.")
    if task != "ranking" and reading.query is not None:
        raise Failure("--query is for --task ranking. Add that, or leave --query out.")
    work = Fitting(data, target, test, reading, as_json, not no_proof, model_format, hold_out)
    no_classes = {"class_weight": class_weight, "resume": resume, "features": features}
    no_tube = {"multi_class": multi_class, "hold_out": hold_out, "epsilon": epsilon}
    no_tube |= {"intercept": intercept, "device": device}
    if task == "ranking":
        from maxmargin.command_line.shared.ranking import train_ranking

        refused: dict[str, Any] = {"solver": solver, "option": option, "nu": nu}
        refused["model_format"] = None if model_format == "maxmargin" else model_format
        refused["kernel"] = kernel.given(needs_kernel=True)
        refuse("is not for --task ranking. Leave it out.", **no_classes, **no_tube, **refused)
        return train_ranking(work, given | {"solver": None})
    if task == "one-class":
        from maxmargin.command_line.shared.one_class import train_one_class

        refused = {"penalty": penalty, "C": C, "loss": loss}
        refuse("is not for --task one-class. Leave it out.", **no_classes, **no_tube, **refused)
        return train_one_class(work, given | {"nu": nu} | kernel.given(needs_kernel=True))
    if task == "regression":
        from maxmargin.command_line.shared.regression import train_regressor

        refuse("is for --task classification. Leave it out.", **no_classes, penalty=penalty)
        given |= {} if intercept is None else options.intercept_options(intercept)
        given |= kernel.given(needs_kernel=True) | {"epsilon": epsilon, "nu": nu}
        return train_regressor(work, given)
    given |= _multi_class(multi_class, loss, intercept, kernel.kernel)
    if epsilon is not None:
        raise Failure("--epsilon is for --task regression. Add that, or leave --epsilon out.")
    seen_through = asked_kernel_features(features, kernel.given(needs_kernel=False), seed or 0)
    in_memory_alone = None if seen_through is not None and chunking.dask is None else features
    # Without a map, a GPU has nothing to do with chunks.
    device_in_memory = device if in_memory_alone is not None or seen_through is None else None
    in_chunks = chunking.reason(data, reading, 0 if seen_through is None else seen_through.count)
    if chunking.checkpoint is not None and in_chunks is None:
        raise Failure("--checkpoint is for data that are read in chunks, and these fit. Leave it out.")
    # Without being asked to, only what can be read in chunks is.
    asked_for_memory = [kernel.kernel, in_memory_alone, resume, hold_out, penalty, solver, multi_class]
    in_memory = any(asked is not None for asked in (*asked_for_memory, device_in_memory))
    if in_chunks is not None and (several or chunking.memory is not None or not in_memory):
        from maxmargin.command_line.shared import trained_in_chunks

        trained_in_chunks.refuse_in_chunks(
            in_chunks,
            reading,
            data,
            dask=chunking.dask is not None,
            kernel=kernel.kernel,
            features=in_memory_alone,
            resume=resume,
            hold_out=hold_out,
            penalty=None if penalty == "l2" else penalty,
            solver=None if solver == "auto" else solver,
            multi_class=None if multi_class == "ovr" else multi_class,
            device=None if device == "cpu" else device_in_memory,
        )
        given |= {} if intercept is None else options.intercept_options(intercept)
        given |= {"solver": None, "C": 1.0 if C is None else C, "tol": 1e-4 if tol is None else tol}
        given["loss"] = loss or usual_loss(solver, model_format)
        if seen_through is not None:
            _refuse_features(None, True, model_format)
        return trained_in_chunks.train_in_chunks(
            work, given, class_weight, chunking, in_chunks, seen_through
        )
    earlier = None if resume is None else files.load_model(resume)
    _refuse_nu(nu, C, earlier, kernel.kernel, class_weight=class_weight, device=device)
    own = kernel.given(needs_kernel=not _has_kernel(earlier) and features is None)
    asked = None if seen_through is not None else asked_features(features, own)
    _refuse_features(earlier, features is not None, model_format)
    if seen_through is not None and earlier is not None:
        raise Failure(
            f"--features must not be given with --resume. Got {features!r}. Leave it out to go on with the "
            "features of the model, or train anew without --resume."
        )
    if kernel.kernel is not None or _has_kernel(earlier):
        _refuse_without_kernel(loss, intercept, model_format, earlier)
        if penalty not in (None, "l2"):
            raise Failure(
                f"With a kernel --penalty must be l2. Got {penalty!r} instead. Leave --penalty or --kernel "
                "out."
            )
        given = given | own | {"loss": None, "nu": nu}
    else:
        given |= {} if intercept is None else options.intercept_options(intercept)
        given["penalty"] = penalty
        if loss is None and earlier is None and "multi_class" not in given:
            given["loss"] = "squared_hinge" if penalty == "l1" else usual_loss(solver, model_format)
    estimator = _estimator(given, earlier)
    with Bars(quiet=as_json) as bars:
        weighted = hold_out is None and kernel.kernel is None
        training_set = work.read(bars, earlier=earlier, weighted=weighted)
        data_set = training_set.data
        bars.waiting("looking at the data")
        data_options.check_columns(training_set, model_format)
        classes = np.unique(data_set.y)
        _check_classes(classes, model_format, pairs=hasattr(estimator, "kernel"))
        if class_weight is not None:
            estimator.set_params(class_weight=options.class_weight_of(class_weight, classes))
        _check_fingerprint(training_set, data, earlier)
        X = expanded(data_set.X, asked, earlier, problems=len(classes) if len(classes) > 2 else 1)
        as_given = training_set
        if seen_through is not None:
            _refuse_rows_in_memory(training_set, seen_through.count, chunking.limit)
            training_set = training_set.through(seen_through.learnt_from(X), card)
            data_set, X = training_set.data, training_set.data.X
        work.lap("read")
        held_out = None
        if hold_out is not None:
            kept, out = _split(data_set.y, hold_out, seed or 0)
            parts = [expanded(part, asked, earlier) for part in as_given.split(kept, out, reading)]
            if seen_through is not None:
                map_ = seen_through.learnt_from(parts[0])
                parts = [mapped_rows(map_, part, card) for part in parts]
            held_out = _held_out(estimator, parts[0], parts[1], data_set.y[kept], data_set.y[out])
            work.lap("hold out")
        bars.waiting("preparing")
        with work.written(bars, lambda: work.save_fitted(estimator, training_set)):
            warned, blocks = _fit(estimator, X, data_set, bars)
    return report(Training(estimator, work, training_set, warned, blocks, held_out=held_out))


def _multi_class(
    asked: str | None, loss: str | None, intercept: str | None, kernel: str | None
) -> dict[str, Any]:
    """The parameters for several classes; with all of them in one problem, intercepts are regularised."""
    if asked is None or asked == "ovr":
        return {}
    if asked not in ("crammer-singer", "crammer_singer"):
        raise Failure(f"--multi-class must be ovr or crammer-singer. Got {asked!r} instead.")
    if kernel is not None or loss not in (None, "hinge") or intercept == "exact":
        raise Failure(
            "--multi-class crammer-singer is for linear models with the hinge loss, whose intercepts are "
            "regularised or none. Leave --kernel, --loss and --intercept exact out."
        )
    return {"multi_class": "crammer_singer", "regularize_intercept": intercept != "none"}


def _estimator(
    given: dict[str, Any], earlier: files.StoredModel | None
) -> maxmargin.LinearSVC | maxmargin.SVC:
    """The estimator that the options ask for, its parameters checked."""
    from maxmargin.files.models.fitted import to_estimator

    changes = {name: value for name, value in given.items() if value is not None}
    if "max_time" in changes:
        changes["max_time"] = options.seconds_or_none(changes["max_time"])
    with_kernel = "kernel" in changes or _has_kernel(earlier)
    kind: type[maxmargin.LinearSVC | maxmargin.SVC] = maxmargin.SVC if with_kernel else maxmargin.LinearSVC
    if "nu" in changes or (earlier is not None and earlier.has_nu):
        kind = maxmargin.NuSVC
    if earlier is None:
        estimator = kind(**((_KERNEL_DEFAULTS if with_kernel else _DEFAULTS) | changes))
    else:
        alone = replace(earlier, encoding=None, preparation=None, feature_names=None)
        estimator = to_estimator(alone, kind).set_params(**changes, warm_start=True)
    estimator._check_parameters()  # now, and not after an hour of reading
    return estimator


def _refuse_nu(
    nu: float | None, C: float | None, earlier: files.StoredModel | None, kernel: Any, **given: Any
) -> None:
    """Refuse a nu where there is no kernel, and where there is a C."""
    from maxmargin.command_line.shared.fitting import refuse

    if nu is not None and kernel is None and not _has_kernel(earlier):
        raise Failure("--nu needs a kernel for classification. Add --kernel, or give -C instead.")
    with_nu = nu is not None or (earlier is not None and earlier.has_nu)
    if with_nu and C is not None:
        raise Failure("--nu stands in the place of C. Leave -C or --nu out.")
    if with_nu:
        refuse("is not for --nu. Leave it out, or give -C in the place of --nu.", **given)
    if earlier is not None and nu is not None and not earlier.has_nu:
        raise Failure("--resume goes on from a model with a C. Train anew without --resume.")


def _has_kernel(model: files.StoredModel | None) -> bool:
    return hasattr(model, "kernel")


def _refuse_without_kernel(
    loss: str | None, intercept: str | None, model_format: str, earlier: files.StoredModel | None
) -> None:
    """Refuse what only linear models have."""
    if loss not in (None, "hinge"):
        raise Failure(
            f"With a kernel --loss must be hinge. Got {loss!r} instead. Leave --loss or --kernel out."
        )
    if intercept not in (None, "exact"):
        raise Failure(
            f"With a kernel --intercept must be exact. Got {intercept!r} instead. Leave --intercept or "
            "--kernel out."
        )
    if model_format == "liblinear":
        raise Failure("LIBLINEAR has no kernels. Use --model-format libsvm or maxmargin.")
    if earlier is not None and not _has_kernel(earlier):
        raise Failure(
            "--kernel must not be given with --resume of a linear model. Train anew without --resume."
        )


def _refuse_rows_in_memory(training_set: Any, columns: int, limit: int) -> None:
    """Refuse features whose values for all rows would take more memory than there is."""
    from maxmargin.chunks.memory import TIMES_IN_MEMORY
    from maxmargin.tools.words import bytes_in_words

    X = training_set.data.X
    needed = TIMES_IN_MEMORY * X.shape[0] * columns * X.dtype.itemsize
    if needed > limit:
        raise Failure(
            f"--features makes {columns} columns of {X.shape[0]} rows, and a fit in memory would take "
            f"about {bytes_in_words(needed)}, more than the {bytes_in_words(limit)} allowed. Pack the data "
            "(maxmargin pack DATA rows.mmd) and say --memory, as in --memory 2GB: rows then go through "
            "the features chunk by chunk."
        )


def _refuse_features(earlier: files.StoredModel | None, asked: bool, model_format: str) -> None:
    """Refuse features where a model cannot have them, or its text cannot say them."""
    if asked and _has_kernel(earlier):
        raise Failure(
            "--features must not be given with --resume of a kernel model. Leave --features out, or train "
            "anew without --resume."
        )
    if model_format != "maxmargin" and (asked or getattr(earlier, "expansion", None) is not None):
        raise Failure(
            f"--model-format must be maxmargin for a model with --features. Got {model_format!r} instead, "
            "whose text weighs the columns of the data and has no room for features."
        )


def _check_classes(classes: NDArray[Any], model_format: str, *, pairs: bool) -> None:
    """Refuse now what the text of others has no room for, and not when the model is trained."""
    if model_format == "maxmargin":
        return
    from maxmargin.files.models.text import integer_labels

    integer_labels(classes, {"liblinear": "LIBLINEAR", "libsvm": "LIBSVM"}[model_format])
    if model_format == "libsvm" and len(classes) > 2 and not pairs:
        raise Failure(
            "--model-format libsvm is for two classes: LIBSVM tells every pair of classes apart, and train "
            f"each class from the rest. Got {len(classes)} classes. Use --model-format liblinear, or "
            "--kernel linear."
        )


def _check_fingerprint(
    training_set: data_options.TrainingSet, path: Path, earlier: files.StoredModel | None
) -> None:
    """Refuse data that a model to resume was not trained on."""
    if earlier is not None and earlier.fingerprint not in (None, training_set.fingerprint):
        size = f"{earlier.rows} rows and {earlier.features} columns"
        own = "{} rows and {} columns".format(*training_set.as_read.X.shape)
        raise Failure(
            f"--resume must be given the data that the model was trained on ({size}). Got {path} instead "
            f"({own}), whose fingerprint differs. Give the same file with the same options, or train anew "
            "without --resume."
        )


def _fit(
    estimator: maxmargin.LinearSVC | maxmargin.SVC, X: Any, data_set: files.DataSet, bars: Bars
) -> tuple[list[str], int | None]:
    """Fit with a progress bar; how it ended is said in words later.

    Returns other warnings, and the most blocks that rows of a problem with a kernel were split into.
    """
    import numpy as np
    from sklearn.exceptions import ConvergenceWarning

    from maxmargin.proof.inseparable import InseparableError
    from maxmargin.telling.doubts import DoubtfulModelWarning

    count = len(np.unique(data_set.y))
    limit = float("inf") if estimator.max_time is None else estimator.max_time
    if count > 2 and getattr(estimator, "multi_class", "ovr") != "crammer_singer":
        pairs = getattr(estimator, "multi_class", "ovr") == "ovo"
        problems = count * (count - 1) // 2 if pairs else count
        estimator.callback = bars.solving_classes("training", count=problems, pairs=pairs, max_time=limit)
    else:
        estimator.callback = bars.solving("training", tol=estimator.tol, max_time=limit)
    blocks: list[int] = []
    if hasattr(estimator, "kernel"):
        estimator.callback = _noting_blocks(estimator.callback, blocks)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit(X, data_set.y, data_set.weight)
        except InseparableError as error:
            raise Failure(
                f"{error.certificate.statement} No model was written. Give -C a finite value, which allows "
                "slack, or correct these rows."
            ) from error
    estimator.set_params(callback=None, warm_start=False)
    if data_set.feature_names is not None:
        estimator.feature_names_in_ = np.array(data_set.feature_names, dtype=object)
    told_later = (ConvergenceWarning, DoubtfulModelWarning)
    warned = [str(one.message) for one in caught if not issubclass(one.category, told_later)]
    return warned, max(blocks, default=None)


def _split(y: Any, share: float, seed: int) -> tuple[Any, Any]:
    """The rows kept and those held out, each with the same share of every class."""
    import numpy as np
    from sklearn.model_selection import train_test_split

    try:
        kept, out = train_test_split(np.arange(len(y)), test_size=share, stratify=y, random_state=seed)
    except ValueError:
        raise Failure(
            f"--hold-out {share:g} must leave rows of every class on both sides. Got a class of too few "
            f"rows: {min(np.unique(y, return_counts=True)[1])}. Choose another share, or leave it out."
        ) from None
    return kept, out


def _held_out(estimator: Any, X: Any, X_out: Any, y: Any, y_out: Any) -> tuple[int, int]:
    """How many rows held out a model of the others gets right, and how many these are."""
    import numpy as np
    from sklearn.base import clone

    model = clone(estimator).set_params(callback=None, warm_start=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is to be said, the fit of all rows says
        return int(np.count_nonzero(model.fit(X, y).predict(X_out) == y_out)), len(y_out)


def _noting_blocks(show: Callback | None, blocks: list[int]) -> Callback:
    """The callback, which also notes into how many blocks the rows of its problem were split."""

    def note(progress: maxmargin.Progress) -> bool | None:
        problem = None if progress.certificate is None else progress.certificate.problem
        split: Any = None if problem is None else getattr(problem.rows, "blocks", None)
        if split is not None:
            blocks.append(len(split))
        return None if show is None else show(progress)

    return note
