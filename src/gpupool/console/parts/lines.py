"""Labels and taints as lines of a form, and back. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping

from gpupool.console.parts.form import Invalid
from gpupool.console.words import Translate
from kubeclient.objects import Obj

_VALUE = r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?"
_KEY = r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?" + _VALUE.removesuffix("?")
_LABEL = re.compile(f"({_KEY})=({_VALUE})")
_ANY = re.compile(r"([^=]+)=(.*)")
_TAINT = re.compile(f"({_KEY})(?:=({_VALUE}))?:(NoSchedule|PreferNoSchedule|NoExecute)")


def lines_of(pairs: Mapping[str, str]) -> str:
    return "\n".join(f"{key}={value}" for key, value in pairs.items())


def labels_of(t: Translate, field: str, text: str) -> dict[str, str]:
    """Raises Invalid."""
    return {match[1]: match[2] for match in _matches(t, field, text, _LABEL, "key=value")}


def tags_of(t: Translate, field: str, text: str) -> dict[str, str]:
    """Tags of machines may have any characters. Raises Invalid."""
    found = _matches(t, field, text, _ANY, "key=value")
    return {match[1].strip(): match[2].strip() for match in found}


def taint_lines(taints: Iterable[Obj]) -> str:
    return "\n".join(map(taint_words, taints))


def taint_words(taint: Obj) -> str:
    """As `kubectl taint` takes it: key=value:NoSchedule."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key') or ''}{value}:{taint.get('effect') or ''}"


def taint_kind(taint: Obj) -> tuple[str, str]:
    """A node has one of each: the key with the effect."""
    return str(taint.get("key") or ""), str(taint.get("effect") or "")


def taints_of(t: Translate, field: str, text: str) -> list[Obj]:
    """Raises Invalid."""
    found: dict[tuple[str, str], Obj] = {}
    for match in _matches(t, field, text, _TAINT, "key=value:NoSchedule"):
        taint = {"key": match[1], "effect": match[3]} | ({"value": match[2]} if match[2] else {})
        if (match[1], match[3]) in found:
            words = t("{taint} is there twice.", taint=f"{match[1]}:{match[3]}")
            raise Invalid({field: words})
        found[match[1], match[3]] = taint
    return list(found.values())


def _matches(
    t: Translate, field: str, text: str, pattern: re.Pattern[str], wanted: str
) -> Iterator[re.Match[str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        match = pattern.fullmatch(line.strip())
        if match is not None:
            yield match
        elif line.strip():
            words = t(
                "line {number}: wanted {wanted}, found: {found}",
                number=number,
                wanted=wanted,
                found=line.strip(),
            )
            raise Invalid({field: words})
