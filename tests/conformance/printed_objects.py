"""Refusals of a real kube-apiserver print objects as its internal Go types; ours as they were sent.

Both say the same once the printed objects, and differences of them, are left out of the text.
"""

import json
import re

_VALUE = re.compile(r"(?:(?:Invalid|Unsupported|Duplicate) value|Not found): (?=[\[{]|null)")
_DIFFERENCE = re.compile(r"\n@@ .*?\n(?=, |\]|$)", re.S)


def without_objects(text: str) -> str:
    text, found, begin = _DIFFERENCE.sub("\n<difference>", text), "", 0
    for match in _VALUE.finditer(text):
        if match.start() < begin:
            continue  # inside an object that is left out
        _, end = json.JSONDecoder().raw_decode(text, match.end())
        found += f"{text[begin : match.end()]}<object>"
        begin = end
    return found + text[begin:]
