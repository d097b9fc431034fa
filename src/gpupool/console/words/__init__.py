"""The words of the console in the languages that it speaks.

Code and templates have the English text: `t("Node pools")`. Every other language has one table from
that text to its own (`zh.py`, and a file for each page beside it); `en.py` has only what the
console says in other words than those who said it. A text that comes from a variable is marked
where it stands: `word("healthy")`. `tests/console/test_words.py` collects both, and fails on a text
that a table does not have.
"""

from collections.abc import Callable, Mapping
from functools import partial

from gpupool.console.words.en import EN
from gpupool.console.words.zh import ZH

ENGLISH, CHINESE = "en", "zh-CN"
TABLES: Mapping[str, Mapping[str, str]] = {ENGLISH: EN, CHINESE: ZH}

# t("{free} of {all} cards", free=3, all=8)
Translate = Callable[..., str]


def word(text: str) -> str:
    """Marks a text that is translated later, by `t` with a variable."""
    return text


def translator(language: str) -> Translate:
    return partial(_translated, TABLES.get(language, {}))


def _translated(table: Mapping[str, str], text: str, /, **values: object) -> str:
    found = table.get(text, text)
    return found.format(**values) if values else found


def language_of(chosen: str, accept_language: str) -> str:
    """What the visitor chose, else what their browser prefers among ours, else English."""
    if chosen in TABLES:
        return chosen
    wanted = sorted(map(_preference, accept_language.split(",")[:20]))
    for _, tag in wanted:
        if tag.startswith("zh"):
            return CHINESE
        if tag.startswith("en"):
            return ENGLISH
    return ENGLISH


def _preference(part: str) -> tuple[float, str]:
    """Sorts the most wanted first: "zh-CN;q=0.8"."""
    tag, _, quality = part.strip().casefold().partition(";q=")
    try:
        return -float(quality or 1), tag
    except ValueError:
        return 0.0, tag
