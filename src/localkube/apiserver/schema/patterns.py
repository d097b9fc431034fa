"""Patterns of CRDs: in RE2's language, as Go reads it, while the engine that searches reads that of
ECMAScript. Pure.

The two differ in what real CRDs use: `^(?i)(abort|warn)?$`, `\\PC`, `[[:alpha:]]`, `\\A`. So a
pattern is read here by Go's rules, with Go's words for its mistakes, and said again in the parts
that both languages have. Only whether a text matches is asked, so being greedy or not, and the
names of groups, are left out.
"""

import re
from functools import cache
from typing import NamedTuple

_LAST = 0x10FFFF
_MOST_TIMES = 1000
_TIMES = re.compile(r"\{(0|[1-9][0-9]*+)(,(0|[1-9][0-9]*+)?)?\}")
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])")
_NAME = re.compile(r"\(\?P?<([0-9A-Za-z_]+)>")
_PROPERTY = re.compile(r"\\([pP])(?:\{(\^?)([A-Za-z_]{1,60})\}|([A-Za-z]))")
_OCTAL = re.compile(r"\\(?:0[0-7]{0,2}|[1-7][0-7]{1,2})")
_HEX = re.compile(r"\\x(?:\{([0-9A-Fa-f]{1,8})\}|([0-9A-Fa-f]{2}))")
_HALF_HEX = re.compile(r"\\x(?:\{[0-9A-Fa-f]{0,6}+.?|.{0,2})|\\.", re.DOTALL)  # as far as Go reads
_POSIX = re.compile(r"\[:(\^?)(.*?):\]", re.DOTALL)
_CONTROLS = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_ALSO = {ord("k"): 0x212A, ord("s"): 0x17F}
_Ranges = tuple[tuple[int, int], ...]


def _spans(*pairs: str) -> _Ranges:
    return tuple((ord(pair[0]), ord(pair[-1])) for pair in pairs)


_DIGITS, _LOWER, _UPPER = "09", "az", "AZ"
_CLASSES = {
    "d": _spans(_DIGITS),
    "s": _spans("\t\n", "\f\r", " "),
    "w": _spans(_DIGITS, _UPPER, "_", _LOWER),
    "alnum": _spans(_DIGITS, _UPPER, _LOWER),
    "alpha": _spans(_UPPER, _LOWER),
    "ascii": _spans("\0\x7f"),
    "blank": _spans("\t", " "),
    "cntrl": _spans("\0\x1f", "\x7f"),
    "digit": _spans(_DIGITS),
    "graph": _spans("!~"),
    "lower": _spans(_LOWER),
    "print": _spans(" ~"),
    "punct": _spans("!/", ":@", "[`", "{~"),
    "space": _spans("\t\r", " "),
    "upper": _spans(_UPPER),
    "word": _spans(_DIGITS, _UPPER, "_", _LOWER),
    "xdigit": _spans(_DIGITS, "AF", "af"),
}


class BadPattern(Exception):
    """In Go's words."""


class _Group(NamedTuple):
    flags: frozenset[str]  # in force before it
    times: int  # how often what came before it may be repeated
    begin: int


def translated(pattern: str) -> str:
    """Raises BadPattern."""
    return _Reading(pattern).whole()


class _Reading:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._made: list[str] = []
        self._flags: frozenset[str] = frozenset()
        self._open: list[_Group] = []
        self._times = 1  # the largest product of repetitions in this group
        self._last = 0  # that of what a repetition would repeat; 0: nothing is there
        self._begin = 0  # where it begins in what is made
        self._repeated_at = -1  # where the repetition began that has just been read
        self._last_end = pattern.rfind(":]")  # of a class with a name

    def whole(self) -> str:
        while self._at < len(self._pattern):
            char, before = self._pattern[self._at], self._repeated_at
            if char in "*+?":
                self._repeat(char, self._at + 1, 0)
            elif char == "{" and (times := _TIMES.match(self._pattern, self._at)):
                self._counted(times)
            elif char in _STEPS:
                _STEPS[char](self)
            else:
                self._character(ord(char), 1)
            if self._repeated_at == before:
                self._repeated_at = -1
        if self._open:
            raise BadPattern(f"missing closing ): `{self._pattern}`")
        return "".join(self._made)

    def _atom(self, made: str, length: int, times: int = 1) -> None:
        self._begin = len(self._made)
        self._made.append(made)
        self._at += length
        self._last = times
        self._times = max(self._times, times)

    def _folded(self, made: str, length: int) -> None:
        self._atom(f"(?i:{made})" if "i" in self._flags else made, length)

    def _character(self, code: int, length: int) -> None:
        self._folded(_written(code), length)

    def _any(self) -> None:
        self._atom(_any_of(((0, _LAST),)) if "s" in self._flags else r"[^\n]", 1)

    def _anchor(self) -> None:
        sign = self._pattern[self._at]
        self._atom(f"(?m:{sign})" if "m" in self._flags else f"(?:{sign})", 1)

    def _alternative(self) -> None:
        self._made.append("|")
        self._at += 1
        self._last = 0

    def _opened(self) -> None:
        flags, length = self._flags, 1
        if self._pattern.startswith("(?", self._at):
            if found := _FLAGS.match(self._pattern, self._at):
                flags = (flags | set(found[1])) - set(found[2] or "")
                length = len(found.group())
                if found[3] == ")":  # until the group ends that it stands in
                    self._flags, self._at = flags, self._at + length
                    return
            else:
                length = self._name()
        self._open.append(_Group(self._flags, self._times, len(self._made)))
        self._flags, self._times, self._last = flags, 1, 0
        self._made.append("(?:")
        self._at += length

    def _name(self) -> int:
        if found := _NAME.match(self._pattern, self._at):
            return len(found.group())
        rest = self._pattern[self._at :]
        if rest.startswith(("(?P<", "(?<")) and len(rest) > 3:
            name, end, _ = rest.partition(">")
            raise BadPattern(f"invalid named capture: `{name}{end}`")
        known = len(rest) - len(rest[2:].lstrip("imsU-"))
        raise BadPattern(f"invalid or unsupported Perl syntax: `{rest[: known + 1]}`")

    def _closed(self) -> None:
        if not self._open:
            raise BadPattern(f"unexpected ): `{self._pattern}`")
        times = self._times
        self._flags, self._times, begin = self._open.pop()
        self._atom(")", 1, times)
        self._begin = begin

    def _counted(self, found: re.Match[str]) -> None:
        least, most = (int(each[:9]) if each else -1 for each in (found[1], found[3]))
        most = most if found[2] else least
        if max(least, most) > _MOST_TIMES or 0 <= most < least:
            raise BadPattern(f"invalid repeat count: `{found.group()}`")
        self._repeat(found.group(), found.end(), least if most < 0 else most)

    def _repeat(self, sign: str, end: int, times: int) -> None:
        """`times`: of a count, which multiply where they are nested; 0: it is none."""
        begin = self._at
        end += self._pattern.startswith("?", end)
        if self._repeated_at >= 0:
            whole = self._pattern[self._repeated_at : end]
            raise BadPattern(f"invalid nested repetition operator: `{whole}`")
        if not self._last:
            what = self._pattern[begin:end]
            raise BadPattern(f"missing argument to repetition operator: `{what}`")
        product = self._last * max(times, 1)
        if product > _MOST_TIMES and times > 1:
            raise BadPattern(f"invalid repeat count: `{self._pattern[begin:end]}`")
        made_at = self._begin
        self._made[made_at] = f"(?:{self._made[made_at]}"  # it may be a repetition, as in a*(?i)*
        self._atom(f"){sign}", end - begin, product)
        self._begin, self._repeated_at = made_at, begin

    def _escaped(self) -> None:
        kind = self._pattern[self._at + 1 : self._at + 2]
        if kind == "Q":
            self._at += 2
            end = self._pattern.find(r"\E", self._at)
            for char in self._pattern[self._at : end if end >= 0 else None]:
                self._character(ord(char), 1)
            self._at += 2 * (end >= 0)
        elif kind in ("A", "z"):
            self._atom("(?:^)" if kind == "A" else "(?:$)", 2)
        elif kind in ("b", "B"):  # the engine knows more letters than RE2's ASCII
            self._atom(rf"(?:\{kind})", 2)
        elif kind and kind.lower() in "dsw":
            self._folded(_any_of(self._class(kind.lower(), kind.isupper())), 2)
        elif kind and kind in "pP":
            made, length = self._property(self._at)
            self._folded(made, length)
        else:
            self._character(*self._code(self._at))

    def _property(self, at: int) -> tuple[str, int]:
        found = _PROPERTY.match(self._pattern, at)
        if found is None:
            end = self._pattern.find("}", at, at + 64)
            whole = self._pattern[at : end + 1] if end >= 0 else self._pattern[at : at + 3]
            raise BadPattern(f"invalid character class range: `{whole}`")
        is_negative = (found[1] == "P") != bool(found[2])
        return rf"\{'P' if is_negative else 'p'}{{{found[3] or found[4]}}}", len(found.group())

    def _code(self, at: int) -> tuple[int, int]:
        """The character that an escape means, and how long the escape is."""
        pattern = self._pattern
        kind = pattern[at + 1 : at + 2]
        if not kind:
            raise BadPattern("trailing backslash at end of expression: ``")
        if found := _HEX.match(pattern, at):
            code = int(found[1] or found[2], 16)
            if code <= _LAST:
                return code, len(found.group())
        elif found := _OCTAL.match(pattern, at):
            return int(found.group()[1:], 8), len(found.group())
        elif kind in _CONTROLS:
            return _CONTROLS[kind], 2
        elif kind.isascii() and not kind.isalnum():
            return ord(kind), 2
        read = _HALF_HEX.match(pattern, at)
        raise BadPattern(f"invalid escape sequence: `{read.group() if read else ''}`")

    def _brackets(self) -> None:
        pattern, at = self._pattern, self._at + 1
        is_negative = pattern.startswith("^", at)
        at += is_negative
        made, first = [], at
        while at == first or not pattern.startswith("]", at):
            part, at = self._in_brackets(at)
            made.append(part)
        sign = "^" if is_negative else ""
        self._folded(f"[{sign}{''.join(made)}]", at + 1 - self._at)

    def _in_brackets(self, at: int) -> tuple[str, int]:
        pattern = self._pattern
        # Where there is an end somewhere: else each beginning would be read to the end in vain.
        if at + 2 <= self._last_end and (found := _POSIX.match(pattern, at)):
            if found[2] not in _CLASSES or len(found[2]) == 1:
                raise BadPattern(f"invalid character class range: `{found.group()}`")
            return _inside(self._class(found[2], bool(found[1]))), found.end()
        if pattern[at : at + 1] == "\\":
            kind = pattern[at + 1 : at + 2]
            if kind and kind in "pP":
                made, length = self._property(at)
                return made, at + length
            if kind and kind.lower() in "dsw":
                return _inside(self._class(kind.lower(), kind.isupper())), at + 2
        low, end = self._class_character(at)
        high = low
        if pattern.startswith("-", end) and not pattern.startswith("]", end + 1):
            if end + 1 < len(pattern):
                high, end = self._class_character(end + 1)
            if high < low:
                raise BadPattern(f"invalid character class range: `{pattern[at:end]}`")
        return _inside(((low, high),)), end

    def _class(self, name: str, is_negative: bool) -> _Ranges:
        spans = _CLASSES[name]
        if not is_negative:
            return spans
        # First folded and then negated: else each letter would be in it by its other case.
        return _without(_in_both_cases(spans) if "i" in self._flags else spans)

    def _class_character(self, at: int) -> tuple[int, int]:
        if at >= len(self._pattern):
            raise BadPattern(f"missing closing ]: `{self._pattern[self._at :]}`")
        if self._pattern[at] == "\\":
            code, length = self._code(at)
            return code, at + length
        return ord(self._pattern[at]), at + 1


def _written(code: int) -> str:
    char = chr(code)
    return char if char.isascii() and char.isalnum() else f"\\u{{{code:x}}}"


def _inside(spans: _Ranges) -> str:
    return "".join(
        _written(low) if low == high else f"{_written(low)}-{_written(high)}" for low, high in spans
    )


def _any_of(spans: _Ranges) -> str:
    return f"[{_inside(spans)}]"


def _without(spans: _Ranges) -> _Ranges:
    ends = [-1, *(high for _, high in spans)]
    begins = [*(low for low, _ in spans), _LAST + 1]
    return tuple(
        (end + 1, begin - 1) for end, begin in zip(ends, begins, strict=True) if end + 1 < begin
    )


@cache
def _in_both_cases(spans: _Ranges) -> _Ranges:
    """Of a class of ASCII; two letters beyond it are k and s in another form."""
    codes = {code for low, high in spans for code in range(low, high + 1)}
    codes |= {ord(chr(code).swapcase()) for code in codes}
    codes |= {also for code, also in _ALSO.items() if code in codes}
    return tuple((code, code) for code in sorted(codes))


_STEPS = {
    "\\": _Reading._escaped,
    "[": _Reading._brackets,
    "(": _Reading._opened,
    ")": _Reading._closed,
    "|": _Reading._alternative,
    ".": _Reading._any,
    "^": _Reading._anchor,
    "$": _Reading._anchor,
}
