"""All that is said to both servers, and what is expected to differ."""

from collections.abc import Mapping

from tests.conformance.differential.differences import DIFFERENCES
from tests.conformance.differential.programs import PROGRAMS, Program
from tests.conformance.differential.script import Script, load_all

Work = Script | Program


def everything() -> list[Work]:
    return [*load_all(), *PROGRAMS]


def expected_of(work: Work) -> Mapping[str, str]:
    """Why it differs, by step."""
    return DIFFERENCES.get(work.name, {})
