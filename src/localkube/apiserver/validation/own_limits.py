"""Limits that Kubernetes does not have, and what is beyond them since before there were any.

A store may hold objects that a former version took. As Kubernetes does with rules that came later,
such an object can still be changed, scaled and deleted: what is beyond a limit may stay as it is,
or shrink, but not grow.
"""

from collections.abc import Callable
from dataclasses import dataclass

from localkube.apiserver.status import FieldError
from localkube.apiserver.validation.errors import Errors, too_many


@dataclass(frozen=True, slots=True)
class Excess(FieldError):
    found: int
    limit: int


def excess(path: str, found: int, limit: int) -> Excess:
    said = too_many(path, found, limit)
    return Excess(said.field, said.reason, said.message, found, limit)


def ratcheted(errors: Errors, of_old: Callable[[], Errors]) -> Errors:
    """Without what was as large before. `of_old`: the errors of the object as it is stored, which
    are asked for only if they matter."""
    if not any(isinstance(error, Excess) for error in errors):
        return errors
    before = {(e.field, e.limit): e.found for e in of_old() if isinstance(e, Excess)}
    return [
        error
        for error in errors
        if not isinstance(error, Excess) or error.found > before.get((error.field, error.limit), 0)
    ]
