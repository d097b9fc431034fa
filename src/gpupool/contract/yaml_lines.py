"""Lines as editors count them. Pure.

YAML ends a line also at three characters at which editors do not: a text that was pasted from
elsewhere may have them in a comment. What is wrong would be marked in a line too far down.
"""

import re

_ODD = "\x85\u2028\u2029"  # next line, line separator, paragraph separator
_LINE_OF_YAML = re.compile(rf"[^\r\n{_ODD}]*(?:\r\n|[\r\n{_ODD}]|\Z)")


class EditorLines:
    """Where a position of the YAML parser is in an editor; all numbers count from 1."""

    def __init__(self, text: str) -> None:
        self._starts: list[tuple[int, int]] = []  # by line of YAML; empty: they are the same
        if not any(each in text for each in _ODD):
            return
        line, before = 1, 0
        for found in _LINE_OF_YAML.findall(text):
            self._starts.append((line, before))
            line, before = (line, before + len(found)) if found[-1:] in _ODD else (line + 1, 0)

    def place(self, line: int, column: int) -> tuple[int, int]:
        if line > len(self._starts):
            return line, column
        there, before = self._starts[line - 1]
        return there, before + column
