# SPDX-License-Identifier: BSD-3-Clause
"""Changes to bytes that know a little of what text and binary files are made of."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from random import Random

LARGEST_INPUT = 1 << 17
NUMBERS = (
    b"0 -0 +0 1 -1 +1 00 0.0 .5 5. . - + e 1e 1e5 1E-5 1e+ 1e22 1e23 1e-22 1e308 "
    b"1.7976931348623157e308 1.7976931348623159e308 1e309 1e999 -1e999 1e-323 1e-324 1e-400 4.9e-324 "
    b"2.4703282292062327e-324 2.2250738585072011e-308 9007199254740993 9007199254740992 "
    b"18446744073709551616 0.1 1e99999999999999999999 1e-99999999999999999999 3.4028235677973366e38 "
    b"3.5e38 1e-46 nan NaN -nan inf -inf Infinity 1_000 0x10 0x1p3 1,5 1:2 127 128 255 256 32767 "
    b"32768 65535 65536 1048575 1048576 1048577 2147483646 2147483647 2147483648 -2147483648 "
    b"-2147483649 4294967295 4294967296 9007199254740991 9223372036854775806 9223372036854775807 "
    b"9223372036854775808 -9223372036854775808 18446744073709551615 99999999999999999999 "
    b"00000000000000000000000000000001"
).split()
NUMBERS += [
    b"9" * 400,
    b"0." + b"0" * 400 + b"1",
    b"1" + b"0" * 400 + b"e-400",
    b"1" * 40 + b"." + b"1" * 40,
]
MARKS = (
    b": :: \0 \0\0 # \r \r\n \n \n\n \t \v \f , ; \" ' \\ = { } [ ] ( ) null true false \xef\xbb\xbf "
    b"\xff\xfe \xc3\x28 \x1b[31m \x7f \xe2\x80\xae \xed\xa0\x80"
).split(b" ")
MARKS += [
    b" ",
    b"  ",
    b"\n#\n",
    b" # comment\n",
    b"\r\n\r\n",
    b"1 1:1\n",
    b"-1 2:0.5 7:-3\n",
    b" 1:",
    b" :1",
]
_CALM = b"0 1 2 3 4 -1 0.5 -2.5 1e5 1e-3 7 12 100".split()
_DIGITS = re.compile(rb"(?<![\w.])-?\d+(?:\.\d+)?(?![\w.])")
_TOKEN = re.compile(rb"[^\s:,={}\[\]\"'()]+")
_WHOLE = struct.Struct("<Q")

Mutation = Callable[[bytearray, Random], None]


def mutated(content: bytes, random: Random, words: list[bytes], other: bytes = b"") -> bytes:
    """The content after a few changes; ``words`` are those of the format, ``other`` one to splice with."""
    changed = bytearray(content)
    calm = random.random() < 0.3
    if calm:
        _put_other_numbers(changed, random)
    for _ in range(0 if calm else _few(random)):
        if other and random.random() < 0.08:
            _splice(changed, random, other)
        elif random.random() < 0.5:
            _exchange_token(changed, random, words)
        else:
            random.choice(_BLIND)(changed, random)
    del changed[LARGEST_INPUT:]
    return bytes(changed)


def word(random: Random, words: list[bytes]) -> bytes:
    """One of the format, a number on some edge, or a mark."""
    kind = random.random()
    if words and kind < 0.3:
        return random.choice(words)
    return random.choice(NUMBERS if kind < 0.8 else MARKS)


def _put_other_numbers(content: bytearray, random: Random) -> None:
    """Harmless numbers in the place of others: what is still read goes a longer way."""
    for _ in range(_few(random)):
        begin = max(0, _place(content, random) - 40)
        found = list(_DIGITS.finditer(content, begin, begin + 200))
        if found:
            content[slice(*random.choice(found).span())] = random.choice(_CALM)


def _few(random: Random) -> int:
    count = 1
    while count < 8 and random.random() < 0.45:
        count += 1
    return count


def _place(content: bytearray, random: Random) -> int:
    return random.randrange(len(content) + 1)


def _piece(content: bytearray, random: Random) -> tuple[int, int]:
    begin = _place(content, random)
    return begin, min(len(content), begin + random.choice((1, 1, 2, 4, 8, 30, 300)))


def _exchange_token(content: bytearray, random: Random, words: list[bytes]) -> None:
    """A token becomes another word, one that occurs elsewhere, or gets a word beside it."""
    begin = max(0, _place(content, random) - 40)
    found = list(_TOKEN.finditer(content, begin, begin + 400))
    if not found:
        content[begin:begin] = word(random, words)
        return
    token = random.choice(found)
    kind = random.random()
    if kind < 0.6:
        content[slice(*token.span())] = word(random, words)
    elif kind < 0.75:
        content[slice(*token.span())] = random.choice(found)[0]
    else:
        place = random.choice(token.span())
        content[place:place] = word(random, words)


def _splice(content: bytearray, random: Random, other: bytes) -> None:
    begin, end = sorted(random.randrange(len(other) + 1) for _ in range(2))
    place = _place(content, random)
    length = random.choice((0, 0, end - begin))
    content[place : place + length] = other[begin:end]


def _flip(content: bytearray, random: Random) -> None:
    if content:
        content[random.randrange(len(content))] ^= 1 << random.randrange(8)


def _set(content: bytearray, random: Random) -> None:
    if content:
        content[random.randrange(len(content))] = random.choice(
            (0, 1, 0x7F, 0x80, 0xFF, random.randrange(256))
        )


def _delete(content: bytearray, random: Random) -> None:
    begin, end = _piece(content, random)
    del content[begin:end]


def _double(content: bytearray, random: Random) -> None:
    begin, end = _piece(content, random)
    times = random.choice((1, 1, 1, 2, 10, 100))
    content[begin:begin] = bytes(content[begin:end]) * times


def _cut(content: bytearray, random: Random) -> None:
    del content[_place(content, random) :]


def _insert(content: bytearray, random: Random) -> None:
    place = _place(content, random)
    content[place:place] = random.choice((random.randbytes(random.randrange(1, 9)), random.choice(MARKS)))


def _move_line(content: bytearray, random: Random) -> None:
    lines = content.splitlines(keepends=True)
    if lines:
        line = lines.pop(random.randrange(len(lines)))
        lines.insert(random.randrange(len(lines) + 1), line)
        content[:] = b"".join(lines)


def _set_whole_number(content: bytearray, random: Random) -> None:
    """Four or eight bytes, as lengths and offsets of binary files are written."""
    width = random.choice((4, 8))
    if len(content) >= width:
        place = random.randrange(len(content) - width + 1)
        value = random.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1, len(content)))
        content[place : place + width] = _WHOLE.pack(value)[:width]


_BLIND: list[Mutation] = [
    _flip,
    _flip,
    _set,
    _set,
    _delete,
    _delete,
    _double,
    _cut,
    _insert,
    _move_line,
    _set_whole_number,
]
