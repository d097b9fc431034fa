r"""Patterns of `matches`: in RE2's language, while the library that searches speaks Rust's. Pure.

They differ in what a policy may rest upon. RE2 knows only ASCII in `\w`, `\d`, `\s` and `\b`; and
in brackets, `[` and `&&` are characters like others. A pattern that is not understood stays as it
is: the library says what is wrong with it.
"""

import re
from functools import lru_cache
from typing import NamedTuple

_ASCII = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t\n\f\r "}
# Names of properties and numbers are short: what is longer is looked through only once.
_LETTERS = re.compile(r"\\[pP](?:\{[^}]{0,100}\}|.)", re.DOTALL)  # by their Unicode property
_CODE = re.compile(r"\\x\{[^}]{0,100}\}")
_TIMES = re.compile(r"\{(\d{1,4})(?:,(\d{0,4}))?\}", re.ASCII)
_NAMED = re.compile(r"\[:\^?[a-z]+:\]")
_LONGEST_KEPT = 1000
# What a part of a pattern costs, in microseconds to compile it, rounded up.
_CALL, _ONE, _MANY, _PROPERTY = 50, 1, 10, 600


class Pattern(NamedTuple):
    text: str  # in Rust's language
    cost: int  # to compile it, which the library does at each call


def translated(pattern: str) -> Pattern:
    # A pattern may be part of an object: long ones are not kept.
    return _kept(pattern) if len(pattern) <= _LONGEST_KEPT else _Translation(pattern).whole()


@lru_cache(maxsize=256)
def _kept(pattern: str) -> Pattern:
    return _Translation(pattern).whole()


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._made: list[str] = []
        self._costs = [0]  # of each group that is open, the whole pattern first
        self._last = 0  # of what a repetition would repeat

    def whole(self) -> Pattern:
        while self._at < len(self._pattern):
            char = self._pattern[self._at]
            if char == "\\":
                self._escaped()
            elif char == "[":
                self._brackets()
            elif char == "{":
                self._repeated()
            elif char == "(":
                self._costs.append(0)
                self._take(char, 1, 0)
            elif char == ")" and len(self._costs) > 1:
                self._take(char, 1, self._costs.pop())
            else:
                self._take(char, 1, _MANY if char == "." else _ONE)
        return Pattern("".join(self._made), _CALL + sum(self._costs))

    def _take(self, made: str, length: int, cost: int) -> None:
        """Goes on behind so many characters, which have become `made`."""
        self._made.append(made)
        self._at += length
        self._costs[-1] += cost
        self._last = cost

    def _escaped(self) -> None:
        pattern, at = self._pattern, self._at
        kind = pattern[at + 1 : at + 2]
        if whole := _LETTERS.match(pattern, at) or _CODE.match(pattern, at):
            self._take(whole.group(), len(whole.group()), _PROPERTY if kind in "pP" else _ONE)
        elif kind == "Q":
            text, end, _ = pattern[at + 2 :].partition(r"\E")
            self._take(re.escape(text), 2 + len(text) + len(end), len(text))
        elif kind in ("b", "B"):
            self._take(rf"(?-u:\{kind})", 2, _ONE)
        elif kind in ("<", ">"):  # ends of words, for Rust
            self._take(kind, 2, _ONE)
        elif kind.lower() in _ASCII:
            self._take(_set(kind), 2, _ONE if kind.islower() else _MANY)
        else:
            self._take(pattern[at : at + 2], 2, _ONE)

    def _repeated(self) -> None:
        times = _TIMES.match(self._pattern, self._at)
        if times is None:
            self._take("{", 1, _ONE)
            return
        most = max(int(number or 0) for number in times.groups())
        last = self._last * most
        self._take(times.group(), len(times.group()), max(last - self._last, 0))
        self._last = last

    def _brackets(self) -> None:
        pattern, at = self._pattern, self._at + 1
        made, cost = ["["], _ONE
        if pattern.startswith("^", at):
            made, cost, at = ["[^"], _MANY, at + 1
        is_first = True
        while at < len(pattern) and (is_first or pattern[at] != "]"):
            char, kind = pattern[at], pattern[at + 1 : at + 2]
            part = char
            if whole := _NAMED.match(pattern, at) or _LETTERS.match(pattern, at):
                part = whole.group()
                cost += _PROPERTY if char == "\\" else _MANY
            elif char == "\\":
                part = char + kind
            made.append(_in_brackets(part))
            at, is_first = at + len(part), False
        self._take("".join(made) + pattern[at : at + 1], at + 1 - self._at, cost)


def _set(kind: str) -> str:
    return f"[{'^' if kind.isupper() else ''}{_ASCII[kind.lower()]}]"


def _in_brackets(part: str) -> str:
    if part in ("[", "]", "&", "~"):
        return f"\\{part}"
    if part in (r"\<", r"\>"):
        return part[1]
    if len(part) == 2 and part[0] == "\\" and part[1].lower() in _ASCII:
        return _ASCII[part[1]] if part[1].islower() else _set(part[1])
    return part
