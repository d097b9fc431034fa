"""A row of the tables of bad input: a command, what it is given, and what it must say."""

from collections.abc import Mapping
from typing import NamedTuple


class Bad(NamedTuple):
    code: int  # 2: not used as the help says; 1: it cannot be done
    line: str  # after `gpupool`, as one types it
    words: tuple[str, ...]  # all of them in the message
    environment: Mapping[str, str] = {}
    stdin: str = ""


def bad(code: int, line: str, *words: str, stdin: str = "", **environment: str) -> Bad:
    return Bad(code, line, words, environment, stdin)
