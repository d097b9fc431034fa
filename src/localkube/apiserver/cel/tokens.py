"""From the text of an expression to its tokens."""

import math
import re
from typing import Any, NamedTuple

from localkube.apiserver.cel.errors import CompileError
from localkube.apiserver.cel.values import Uint

_SPACE = re.compile(r"(?:\s|//[^\n]*)+")
_TOKEN = re.compile(
    r"""
    (?P<float>\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)
    |(?P<int>0[xX][0-9a-fA-F]+|\d+)(?P<unsigned>[uU]?)
    |(?P<prefix>[bB][rR]|[rR][bB]|[bBrR])?(?P<quote>\"{3}|'{3}|\"|')
    |(?P<name>[A-Za-z_]\w*)
    |`(?P<escaped>[A-Za-z0-9_.\-/ ]+)`
    |(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/%!<>?:.,()\[\]{}=])
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPES = dict(zip("abfnrtv\\'\"`?", "\a\b\f\n\r\t\v\\'\"`?", strict=True))
_ESCAPE = re.compile(
    r"\\(?:(?P<one>[abfnrtv\\'\"`?])|[xX](?P<x>[0-9a-fA-F]{2})|u(?P<u>[0-9a-fA-F]{4})"
    r"|U(?P<U>[0-9a-fA-F]{8})|(?P<octal>[0-3][0-7]{2})|(?P<bad>.|$))",
    re.DOTALL,
)
INT64 = 1 << 63
_DIGITS = 21  # one more than any number of 64 bits has


class Token(NamedTuple):
    kind: str  # name, literal, sign, end
    text: str
    value: Any
    at: int


def tokens_of(expression: str) -> list[Token]:
    """Ends with a token of the kind `end`. Raises CompileError."""
    found: list[Token] = []
    at, end = 0, len(expression)
    while True:
        space = _SPACE.match(expression, at)
        at = space.end() if space else at
        if at >= end:
            found.append(Token("end", "<EOF>", None, end))
            return found
        match = _TOKEN.match(expression, at)
        if match is None:
            what = f"token recognition error at: '{expression[at]}'"
            raise CompileError(expression, at, f"Syntax error: {what}")
        if match["quote"]:
            token, at = _string(expression, match)
        else:
            token, at = _plain(expression, match), match.end()
        found.append(token)


def _plain(expression: str, match: re.Match[str]) -> Token:
    at, text = match.start(), match.group()
    if match["name"]:
        return Token("name", text, None, at)
    if match["escaped"]:
        return Token("escaped", match["escaped"], None, at)
    if match["sign"]:
        return Token("sign", text, None, at)
    if match["float"]:
        if math.isinf(float(text)):
            raise CompileError(expression, at, "invalid double literal")
        return Token("literal", text, float(text), at)
    number = _number(match["int"])
    if match["unsigned"]:
        if number >= 2 * INT64:
            raise CompileError(expression, at, "invalid uint literal")
        return Token("literal", text, Uint(number), at)
    if number > INT64:  # the lowest number is written as the negative of this one
        raise CompileError(expression, at, "invalid int literal")
    return Token("literal", text, number, at)


def _number(text: str) -> int:
    if text[:2] in ("0x", "0X"):
        return int(text, 16)
    # Python refuses to read thousands of digits. These are too many already.
    return int(text.lstrip("0")[:_DIGITS] or "0")


def _string(expression: str, match: re.Match[str]) -> tuple[Token, int]:
    prefix, quote = (match["prefix"] or "").lower(), match["quote"]
    raw, start = "r" in prefix, match.end()
    at = start
    while not expression.startswith(quote, at):
        if at >= len(expression) or (len(quote) == 1 and expression[at] in "\r\n"):
            what = f"token recognition error at: '{expression[match.start() : at]}'"
            raise CompileError(expression, match.start(), f"Syntax error: {what}")
        at += 2 if expression[at] == "\\" and not raw else 1
    body, end = expression[start:at], at + len(quote)
    is_bytes = "b" in prefix
    value: str | bytes
    if is_bytes:
        value = body.encode() if raw else _unescaped_bytes(expression, body, start)
    else:
        value = body if raw else _unescaped(expression, body, start)
    return Token("literal", expression[match.start() : end], value, match.start()), end


def _unescaped(expression: str, body: str, start: int) -> str:
    def replaced(match: re.Match[str]) -> str:
        if match["one"]:
            return _ESCAPES[match["one"]]
        if match["octal"]:
            return chr(int(match["octal"], 8))
        code = match["x"] or match["u"] or match["U"]
        if code and int(code, 16) < 0x110000 and not 0xD800 <= int(code, 16) < 0xE000:
            return chr(int(code, 16))
        why = f"Syntax error: invalid escape sequence '{match.group()}'"
        raise CompileError(expression, start + match.start(), why)

    return _ESCAPE.sub(replaced, body)


def _unescaped_bytes(expression: str, body: str, start: int) -> bytes:
    """Numeric escapes are bytes here, and characters elsewhere."""
    found, last = b"", 0
    for match in _ESCAPE.finditer(body):
        found += body[last : match.start()].encode()
        last = match.end()
        if match["x"] or match["octal"]:
            found += bytes([int(match["x"], 16) if match["x"] else int(match["octal"], 8)])
        else:
            found += _unescaped(expression, match.group(), start + match.start()).encode()
    return found + body[last:].encode()
