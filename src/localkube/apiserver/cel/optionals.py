"""Optional values: what is in them, and what is selected from them."""

from collections.abc import Mapping
from typing import Any

from localkube.apiserver.cel.errors import EvaluationError, no_such_overload
from localkube.apiserver.cel.field_names import name_in
from localkube.apiserver.cel.frame import Frame
from localkube.apiserver.cel.values import Optional, looked_up


def given(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, Optional):
        raise no_such_overload()
    return value.values


def optional_field(frame: Frame, value: Any, field: str) -> Optional:
    held = value.values[0] if isinstance(value, Optional) and value.values else value
    return optional_item(frame, value, name_in(held, field) if isinstance(held, Mapping) else field)


def optional_item(frame: Frame, value: Any, key: Any) -> Optional:
    """`value.?key`, and any selection from an optional."""
    frame.charge(1)
    if isinstance(value, Optional):
        if not value.values:
            return value
        value = value.values[0]
    if value is None:
        return Optional.NONE
    if not isinstance(value, Mapping | list):
        raise no_such_overload()
    try:
        return Optional((looked_up(value, key),))
    except EvaluationError:
        return Optional.NONE
