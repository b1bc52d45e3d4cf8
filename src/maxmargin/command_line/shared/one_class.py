# SPDX-License-Identifier: BSD-3-Clause
"""``maxmargin train --task one-class``: from a data file to the region where its rows are found."""

from __future__ import annotations

from typing import Any

import maxmargin
from maxmargin.command_line.shared import data_options
from maxmargin.command_line.shared.fitting import Fitting, asked_for
from maxmargin.command_line.shared.progress import Bars


def train_one_class(work: Fitting, given: dict[str, Any]) -> int:
    """Train, write the model and say what it is worth; ``given`` are the parameters that were asked for."""
    import numpy as np

    changes = asked_for(given)
    kind: Any = maxmargin.OneClassSVM if "kernel" in changes else maxmargin.LinearOneClassSVM
    model = kind(**changes)
    model._check_parameters()
    with Bars(quiet=work.as_json) as bars:
        training_set = work.read(bars, labelled=False)
        data_options.check_columns(training_set, work.model_format)
        work.lap("read")
        warned = work.fit(model, training_set, bars, training_set.data.X)
    outside = int(np.count_nonzero(model.predict(training_set.data.X) < 0))
    training: dict[str, Any] = {"rows": training_set.data.X.shape[0], "outside": outside}
    sentences, test = [_in_words("Training data", training)], None
    if (found := work.tested()) is not None:
        accuracy = found.right / found.rows if found.known == found.rows > 0 else None
        test = {"rows": found.rows, "outside": found.outside, "accuracy": accuracy}
        sentences.append(_in_words("Test data", test))
    answer = {"nu": model.nu, "rho": model.offset_, "training": training, "test": test}
    return work.tell(model, training_set, warned, task="one-class", sentences=sentences, answer=answer)


def _in_words(where: str, found: dict[str, Any]) -> str:
    share = 100.0 * found["outside"] / max(found["rows"], 1)
    words = f"{where}: {found['outside']} of {found['rows']} rows are outside, {share:.3g} %."
    if found.get("accuracy") is not None:
        words += f" Labels 1 and -1 are right for {100.0 * found['accuracy']:.2f} %."
    return words
