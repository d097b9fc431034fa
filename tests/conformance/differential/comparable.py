"""What kubectl printed, without what varies from run to run. Pure."""

import json
import re
from typing import Any

from tests.conformance.record.normalise import normalise, unordered

# The letters that generated names and hashes are drawn from.
_DRAWN = "[bcdfghjklmnpqrstvwxz2456789]"
# Of what the run made; 100m is an amount.
_AGE = r"(?:1?\dm(?:\d{1,2}s)?|\d{1,3}s)"
_PATTERNS: tuple[tuple[re.Pattern[str], str], ...] = (
    # What kubectl logs when its own deadline comes while it asks for a watch.
    (re.compile(r"^[EWI]\d{4} .* reflector\.go:.*\n?", re.M), ""),
    # Files that kubectl makes, before their numbers are taken for hashes.
    (re.compile(r"\b(kubectl-edit-)\d+"), r"\1<number>"),
    (re.compile(r"\S*/(LIVE|MERGED)-\d+"), r"\1"),
    (re.compile(rf"-{_DRAWN}{{8,10}}(?:-{_DRAWN}{{5}}|-(?!\w))?(?![\w-])"), "-<hash>"),
    (re.compile(rf"(hash[=:] ?\"?){_DRAWN}{{8,10}}\b"), r"\1<hash>"),
    (re.compile(rf"-{_DRAWN}{{5}}(?![\w-])"), "-<suffix>"),
    # kubectl's own log, by date, time and process: E1116 03:04:39.123456    1234 memcache.go:265]
    (re.compile(r"^([EWIF])\d{4} [\d:.]+ +\d+ ", re.M), r"\1<log> "),
    (re.compile(r"\b\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}"), "<time>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d{4} UTC"), "<time>"),
    # diff names its files with the time of their making.
    (re.compile(r"\b\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}"), "<time>"),
    (re.compile(r"(?<=-----BEGIN CERTIFICATE-----)[^-]+(?=-----END)"), "<certificate>"),
    (re.compile(r"https://127\.0\.0\.1:\d+"), "<server>"),
    (re.compile(r"\b10(?:\.\d+){3}\b"), "<address>"),
    (re.compile(r"(?<![\d.])3[0-2]\d{3}(?=/(?:TCP|UDP)|\s*$)", re.M), "<port>"),
    (re.compile(rf"(?<![\w.-]){_AGE}(?= ago\b| *$|  |\))", re.M), "<age>"),
    (re.compile(r"(\(x\d+ over )<?\w+>?\)"), r"\1<age>)"),
    (re.compile(r"\b([rR]esource ?Version: +)\d+"), r"\1<version>"),
    # Columns are as wide as the longest cell, and ages and names are of any length.
    (re.compile(r"(?<=\S)(?: {2,}|\t+ *)"), "  "),
    (re.compile(r" +$", re.M), ""),
)


def comparable(text: str) -> str:
    """JSON with its keys sorted; anything else as it is; both without what varies."""
    lines = text.strip().splitlines()
    if text.startswith("{"):
        try:
            return _written(json.loads(text))
        except ValueError:
            pass
        try:  # a watch: an event on each line
            return "\n".join(_written(json.loads(line)) for line in lines)
        except ValueError:
            pass
    return plain(text)


def _written(document: Any) -> str:
    shown = unordered(normalise(document))
    if isinstance(shown, dict) and isinstance(shown.get("items"), list):
        shown = {**shown, "items": [_item(each) for each in shown["items"]]}
    return plain(json.dumps(shown, indent=1, sort_keys=True))


def _item(item: Any) -> Any:
    """Ours repeat apiVersion and kind in every item of a list."""
    if not isinstance(item, dict):
        return item
    return {key: value for key, value in item.items() if key not in ("apiVersion", "kind")}


def plain(text: str) -> str:
    text = str(normalise(text))
    for pattern, word in _PATTERNS:
        text = pattern.sub(word, text)
    return text.rstrip("\n")
