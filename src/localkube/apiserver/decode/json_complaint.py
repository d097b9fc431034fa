"""What Go's JSON scanner says about a text that is not JSON. Slow; only for refusals."""

import re

_SPACE = b" \t\r\n"
_NUMBER_PARTS = (
    (re.compile(rb"-?"), ""),
    (re.compile(rb"0|[1-9][0-9]*"), "in numeric literal"),
    (re.compile(rb"\.[0-9]+|(?!\.)"), "after decimal point in numeric literal"),
    (re.compile(rb"[eE][+-]?[0-9]+|(?![eE])"), "in exponent of numeric literal"),
)
_ESCAPED = {b"\\": "\\\\", b"\b": "\\b", b"\f": "\\f", b"\n": "\\n", b"\r": "\\r", b"\t": "\\t"}
_LITERALS = {b"t": b"true", b"f": b"false", b"n": b"null"}
_STRING_PART = re.compile(rb'[^"\\\x00-\x1f]*')
_AFTER = {
    "{": "after object key:value pair",
    "[": "after array element",
    "": "after top-level value",
}


class BadJson(ValueError):
    """Says what Go's scanner says."""


class _Scan:
    """Walks through invalid JSON up to the first thing that is wrong."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.place = 0

    def next(self) -> bytes:
        """The next byte that is no space; raises at the end."""
        while self.place < len(self.text) and self.text[self.place] in _SPACE:
            self.place += 1
        return self.peek()

    def peek(self) -> bytes:
        if self.place >= len(self.text):
            raise BadJson("unexpected end of JSON input")
        return self.text[self.place : self.place + 1]

    def wrong(self, where: str) -> BadJson:
        return BadJson(f"invalid character {_shown(self.peek())} {where}")


def complaint(text: bytes) -> str:
    """Why `text` is no JSON; empty if only orjson minds it."""
    scan, opened, wants_value = _Scan(text), [""], True
    try:
        while True:
            if wants_value:
                wants_value = _value(scan, opened)
            elif not opened[-1] and not text[scan.place :].strip(_SPACE):
                return ""
            else:
                wants_value = _between(scan, opened)
    except BadJson as found:
        return str(found)


def _value(scan: _Scan, opened: list[str]) -> bool:
    """One value, or the opening of one. True if another value is wanted at once."""
    first = scan.next()
    if first in (b"{", b"["):
        opened.append(first.decode())
        scan.place += 1
        if scan.next() in (b"}", b"]") and scan.peek() == (b"}" if first == b"{" else b"]"):
            scan.place += 1
            opened.pop()
            return False
        if first == b"{":
            _key(scan)
        return True
    if first == b'"':
        _string(scan)
    elif first in _LITERALS:
        _literal(scan, _LITERALS[first])
    elif first == b"-" or first.isdigit():
        _number(scan)
    else:
        raise scan.wrong("looking for beginning of value")
    return False


def _between(scan: _Scan, opened: list[str]) -> bool:
    """What follows a value: a comma or the end of what it is in."""
    mark, inside = scan.next(), opened[-1]
    if inside and mark == b",":
        scan.place += 1
        if inside == "{":
            _key(scan)
        return True
    if (inside, mark) in (("{", b"}"), ("[", b"]")):
        scan.place += 1
        opened.pop()
        return False
    raise scan.wrong(_AFTER[inside])


def _key(scan: _Scan) -> None:
    if scan.next() != b'"':
        raise scan.wrong("looking for beginning of object key string")
    _string(scan)
    if scan.next() != b":":
        raise scan.wrong("after object key")
    scan.place += 1


def _string(scan: _Scan) -> None:
    scan.place += 1
    while True:
        part = _STRING_PART.match(scan.text, scan.place)
        scan.place = part.end() if part else scan.place
        mark = scan.peek()
        if mark == b'"':
            scan.place += 1
            return
        if mark != b"\\":
            raise scan.wrong("in string literal")
        _escape(scan)


def _escape(scan: _Scan) -> None:
    scan.place += 1
    if scan.peek() not in b'"\\/bfnrtu':
        raise scan.wrong("in string escape code")
    digits = 4 if scan.peek() == b"u" else 0
    scan.place += 1
    for _ in range(digits):
        if scan.peek() not in b"0123456789abcdefABCDEF":
            raise scan.wrong("in \\u hexadecimal character escape")
        scan.place += 1


def _number(scan: _Scan) -> None:
    for pattern, where in _NUMBER_PARTS:
        part = pattern.match(scan.text, scan.place)
        if part is None:
            # Go points at the byte after the point or the e.
            scan.place += scan.peek() in b".eE"
            scan.place += where.startswith("in exponent") and scan.peek() in b"+-"
            raise scan.wrong(where)
        scan.place = part.end()


def _literal(scan: _Scan, word: bytes) -> None:
    for letter in word:
        if scan.peek()[0] != letter:
            raise scan.wrong(f"in literal {word.decode()} (expecting {_shown(bytes([letter]))})")
        scan.place += 1


def _shown(byte: bytes) -> str:
    """As Go quotes a character."""
    if byte == b"'":
        return "'\\''"
    if byte in _ESCAPED:
        return f"'{_ESCAPED[byte]}'"
    if byte < b" " or byte == b"\x7f":
        return f"'\\x{byte[0]:02x}'"
    return f"'{byte.decode('latin-1')}'"
