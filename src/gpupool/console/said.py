"""What scheduler and agents say about pods and cards, in the visitor's language.

They say it in English, in conditions and annotations that other programs read as well. Here it is
recognised by its form (`said_forms.py`), and said again with the same names and numbers.
"""

import re
from collections.abc import Mapping

from gpupool.console.parts.cells import Text
from gpupool.console.said_events import REASONS
from gpupool.console.said_forms import FORMS, INSIDE, LISTS, NUMBERS
from gpupool.console.words import Translate

_LONGEST = 2_000  # who writes more than that gets it back as it is
_DEEPEST = 6  # forms inside forms
# Commas stand between reasons, and inside of some: a new reason begins with its count.
_BETWEEN: Mapping[str, re.Pattern[str]] = {
    "reasons": re.compile(r", (?=\d+ )"),
    "names": re.compile(r", "),
    "facts": re.compile(r"; "),
    "complaints": re.compile(r"; (?=(?:spec|metadata)\b)"),
}
_FIELD = re.compile(r"\{(\w+)\}")


def said(t: Translate, text: str) -> str:
    """As it was said, if there are no words for it."""
    return _said(t, text, FORMS, _DEEPEST) if len(text) <= _LONGEST else text


def shortly(t: Translate, text: str) -> str:
    """What a waiting pod lacks, out of a message of the scheduler: the cards, else why no node will
    do. What it says of preemption is for those who read all of it."""
    text = text.partition(" Reserved for it since ")[0]  # what it has is not what it lacks
    _, is_about_cards, cards = text.rpartition("GPUs: ")
    if is_about_cards:
        return said(t, f"GPUs: {cards}")
    return said(t, text.partition(" preemption: ")[0])


def said_cell(t: Translate, text: str) -> Text:
    """The same in a column of a table."""
    words = said(t, text)
    if words == text:
        return Text(words or "–", language="en" if words else "")
    return Text(words, original=text)


def reason_cell(t: Translate, reason: str) -> Text:
    """The reason of an event. Programs read the name, so it stays to be seen."""
    words = t(reason) if reason in REASONS else reason
    return Text(words) if words == reason else Text(words, original=reason)


def _said(t: Translate, text: str, forms: tuple[str, ...], deep: int) -> str:
    for form in forms if deep else ():
        if found := _PATTERNS[form].fullmatch(text):
            values = found.groupdict()
            return t(form, **{key: _value(t, key, values[key], deep - 1) for key in values})
    return text


def _value(t: Translate, key: str, value: str, deep: int) -> str:
    if key in NUMBERS:
        return value
    forms = INSIDE.get(key, FORMS)
    if key not in LISTS:
        return _said(t, value, forms, deep)
    parts = [_said(t, each, forms, deep) for each in _BETWEEN[key].split(value)]
    return t(LISTS[key]).join(parts)


def _pattern(form: str) -> re.Pattern[str]:
    """A text ends where what follows it comes first. Only the last one may contain that: else a
    hostile text would be tried in as many ways as it is long, squared."""
    first, *rest = _FIELD.split(form)
    pairs = list(zip(rest[::2], rest[1::2], strict=True))
    last = max((i for i, (name, _) in enumerate(pairs) if name not in NUMBERS), default=-1)
    parts = [_part(name, after, i == last) for i, (name, after) in enumerate(pairs)]
    return re.compile(re.escape(first) + "".join(parts))


def _part(name: str, after: str, is_last: bool) -> str:
    inner = r"\d+" if name in NUMBERS else ".+" if is_last else f"(?:(?!{re.escape(after)}).)+"
    return f"(?P<{name}>{inner}){re.escape(after)}"


_PATTERNS = {form: _pattern(form) for forms in (FORMS, *INSIDE.values()) for form in forms}
