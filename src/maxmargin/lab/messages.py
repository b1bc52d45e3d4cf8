# SPDX-License-Identifier: BSD-3-Clause
"""From a message to its answer: text in, text out, whatever carries it.

``{"id": 7, "bench": "margin", "want": "show", "ask": {"C": 1.0, ...}}`` is answered by
``{"id": 7, "answer": {...}}``, or by ``{"id": 7, "error": "'C' must be ..."}``.
"""

from __future__ import annotations

import json
import logging
from typing import Any, NoReturn

from maxmargin.lab.asked import Asked, Refused
from maxmargin.lab.benches import benches
from maxmargin.tools.one_blas_thread import one_blas_thread
from maxmargin.tools.plain_values import plain

logger = logging.getLogger("maxmargin.lab")

LONGEST = 100_000
"""Characters of a message: 500 points need a third of it."""
_FORM = "A message must be an object with exactly id, bench, want and ask."


def reply(text: str) -> str:
    """The answer to a message, or the sentence that refuses it."""
    number = None
    try:
        message = _read(text)
        number = message["id"]
        return json.dumps({"id": number, "answer": plain(_answer(message))}, allow_nan=False)
    except ValueError as error:  # Refused, or what the library says of values it cannot take
        return json.dumps({"id": number, "error": str(error)})
    except Exception:
        logger.exception("A bench failed.")
        return json.dumps({"id": number, "error": "The bench failed at this; the terminal says where."})


def _read(text: str) -> dict[str, Any]:
    """The parts of a message."""
    if len(text) > LONGEST:
        raise Refused(f"A message must have at most {LONGEST} characters. Got {len(text)} instead.")
    try:
        message = json.loads(text, parse_constant=_refuse_constant)
    except (json.JSONDecodeError, RecursionError) as error:
        raise Refused(f"A message must be JSON. {error}.") from error
    if not isinstance(message, dict) or set(message) != {"id", "bench", "want", "ask"}:
        raise Refused(_FORM)
    if isinstance(message["id"], bool) or not isinstance(message["id"], int):
        raise Refused("The 'id' of a message must be a whole number.")
    return message


def _refuse_constant(name: str) -> NoReturn:
    raise Refused(f'A message must not hold {name}. Say what is infinite by the word "inf".')


def _answer(message: dict[str, Any]) -> Any:
    name, wanted = message["bench"], message["want"]
    known = benches()
    if not isinstance(name, str) or name not in known:
        raise Refused(f"'bench' must be one of {', '.join(known)}.")
    answers = known[name].answers
    if not isinstance(wanted, str) or wanted not in answers:
        raise Refused(f"'want' must be one of {', '.join(answers)}.")
    asked = Asked(message["ask"])
    with one_blas_thread():
        answer = answers[wanted](asked)
    asked.refuse_the_rest()
    return answer
