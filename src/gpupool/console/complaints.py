"""What is wrong with a manifest, each with the line that it is about.

YAML's own mistakes have a line. The API server names fields: as causes of its answer, or only in
its text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gpupool.console.said import said
from gpupool.console.words import Translate
from gpupool.contract.yaml_document import Document, Mark, Path
from kubeclient.bounded_numbers import bounded_number
from kubeclient.errors import Refused

_STEP = re.compile(r"([^.\[\]]+)|\[([^\[\]]*)\]")
_IN_TEXT = (
    re.compile(r'(?P<words>(?:unknown|duplicate) field "(?P<field>[^"]+)")'),
    # Its first dot follows no other part of a path: else each dot of a value would be tried.
    re.compile(r"(?<![\w.\[\]-])\.(?P<words>(?P<field>[\w.\[\]-]+): field not declared in schema)"),
    re.compile(
        r"(?P<words>cannot unmarshal \w+ into Go struct field \w+\.(?P<field>[\w.]+) of .+)"
    ),
)
_MOST = 50


@dataclass(frozen=True, slots=True)
class Complaint:
    words: str
    line: int = 0  # 0: the manifest as a whole
    about: str = ""  # the object, as it is called before the words


class BadManifest(Exception):
    def __init__(self, *complaints: Complaint) -> None:
        super().__init__("; ".join(_named(each.about, each.words) for each in complaints))
        self.complaints = complaints


def complaints_of(shown: str, document: Document, refused: Refused) -> Iterator[Complaint]:
    """`shown`: the object, as it is called before each complaint."""
    named = list(_named_fields(refused))[:_MOST]
    if not named:
        yield Complaint(str(refused), line_of(document.problem("").mark), shown)
    for field, words in named:
        mark = document.key_problem("", *field_path(field)).mark
        yield Complaint(words, line_of(mark), shown)


def _named_fields(refused: Refused) -> Iterator[tuple[str, str]]:
    """Fields, and what the API server says about each."""
    causes = (refused.status.get("details") or {}).get("causes") or ()
    named = [each for each in causes if each.get("field")]
    for cause in named:
        yield str(cause["field"]), f"{cause['field']}: {cause.get('message', '')}"
    if not named:
        for pattern in _IN_TEXT:
            for found in pattern.finditer(str(refused)):
                yield found["field"], found["words"]


def field_path(field: str) -> Path:
    """spec.containers[0].image as steps. "<nil>" and the like name no field."""
    return tuple(
        name or (index if (at := bounded_number(index)) is None else at)
        for name, index in _STEP.findall(field)
    )


def line_of(mark: Mark | None) -> int:
    return mark.line if mark else 0


def errors_of(t: Translate, bad: BadManifest) -> dict[str, str]:
    """For a form with an editor: what to say below it, and the lines to mark."""
    words = [_words(t, each) for each in bad.complaints]
    lines = " ".join(str(each.line) for each in bad.complaints if each.line)
    return {"manifest": "\n".join(words), "lines": lines}


def _words(t: Translate, complaint: Complaint) -> str:
    words = _named(complaint.about, said(t, complaint.words))
    return t("line {line}: {words}", line=complaint.line, words=words) if complaint.line else words


def _named(about: str, words: str) -> str:
    return f"{about}: {words}" if about else words
