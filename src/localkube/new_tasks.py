"""Tasks that are added to a group while it may be stopping."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

_T = TypeVar("_T")


def add_task(
    tasks: asyncio.TaskGroup, work: Coroutine[Any, Any, _T], name: str
) -> asyncio.Task[_T]:
    """Raises CancelledError if the group stops and takes no new tasks: the caller is one of its
    tasks, and is cancelled next. As an error, it would be told to users as a fault."""
    try:
        return tasks.create_task(work, name=name)
    except RuntimeError as error:
        work.close()
        raise asyncio.CancelledError from error
