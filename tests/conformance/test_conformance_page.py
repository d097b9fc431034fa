"""docs/conformance.md says how far our API server is that of Kubernetes, and no more than that.

Write it anew with: python -m tests.conformance.test_conformance_page
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.conformance.deliberate_differences import DIFFERENCES, NOT_REPLAYED, OBJECTS

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
_FIXTURES = Path(__file__).parent / "fixtures"
_HEAD = """\
# Conformance

<!-- Generated out of tests/conformance/deliberate_differences.py. -->

The API server of the local cluster answers as kube-apiserver 1.35 does. This is tested by replaying
what was recorded from a real one: {requests} requests ({replayed} of them compared, {same} with the
same answer), {objects} objects as they are stored, the printed rows of {tables} resources, and the
discovery documents. Compared are status, warnings and body; what varies from run to run (times,
uids, versions, allocated addresses) counts as equal. In lists, our items repeat apiVersion and
kind.

The fixtures are in tests/conformance/fixtures; tests/conformance/record is the recorder.
"""


def _table(title: str, first: str, rows: Mapping[str, str]) -> Iterator[str]:
    yield f"\n## {title}\n\n| {first} | Why |\n|---|---|\n"
    for name, why in sorted(rows.items()):
        yield f"| {name} | {why} |\n"


def page() -> str:
    count = {
        name: len(json.loads((_FIXTURES / f"{name}.json").read_bytes()))
        for name in ("requests", "defaults", "tables")
    }
    replayed = count["requests"] - len(NOT_REPLAYED)
    parts = [
        _HEAD.format(
            requests=count["requests"],
            replayed=replayed,
            same=replayed - len(DIFFERENCES),
            objects=count["defaults"],
            tables=count["tables"],
        ),
        *_table("Answers that differ on purpose", "Request", DIFFERENCES),
        *_table("Objects that are stored in another way", "Object", OBJECTS),
        *_table("Requests that are not compared", "Request", NOT_REPLAYED),
    ]
    return "".join(parts)


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page()


if __name__ == "__main__":
    PAGE.write_text(page())
