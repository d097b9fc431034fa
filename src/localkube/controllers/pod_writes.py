"""Pods made and removed on behalf of an owner, with the events that Kubernetes tells of it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from kubeclient.errors import Conflict, KubeError, NotFound, Refused
from kubeclient.events import NORMAL, WARNING
from kubeclient.objects import Obj
from kubeclient.resources import PODS
from localkube.controllers.run import Context

T = TypeVar("T")


def namespace_is_going(error: BaseException) -> bool:
    """Then nothing can be made in it, and there is nothing to say about that."""
    if not isinstance(error, Refused):
        return False
    causes = (error.status.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)


async def create_pod(context: Context, owner: Obj, pod: Obj) -> Obj:
    try:
        created = await context.kube.create(PODS, pod)
    except KubeError as error:
        if not namespace_is_going(error):
            text = f"Error creating: {error}"
            context.events.event(owner, WARNING, "FailedCreate", text)
        raise
    text = f"Created pod: {created['metadata']['name']}"
    context.events.event(owner, NORMAL, "SuccessfulCreate", text)
    return created


async def delete_pod(context: Context, owner: Obj, name: str, uid: str) -> None:
    """The very pod that was seen; that it has gone already is fine."""
    namespace = owner["metadata"]["namespace"]
    options = {"preconditions": {"uid": uid}}
    try:
        await context.kube.delete(PODS, name, namespace, options=options)
    except (NotFound, Conflict):
        return
    except KubeError as error:
        context.events.event(owner, WARNING, "FailedDelete", f"Error deleting: {error}")
        raise
    context.events.event(owner, NORMAL, "SuccessfulDelete", f"Deleted pod: {name}")


async def slow_start(
    jobs: Sequence[Callable[[], Awaitable[T]]],
) -> tuple[list[T], KubeError | None]:
    """One, two, four at a time: what is refused is refused once, not five hundred times.
    Returns what was done, and what ended it early."""
    done: list[T] = []
    started, size = 0, 1
    while started < len(jobs):
        batch = jobs[started : started + size]
        results = await asyncio.gather(*(job() for job in batch), return_exceptions=True)
        failure: KubeError | None = None
        for result in results:
            if isinstance(result, KubeError):
                failure = failure or result
            elif isinstance(result, BaseException):
                raise result
            else:
                done.append(result)
        if failure is not None:
            return done, failure
        started, size = started + size, size * 2
    return done, None


async def all_at_once(jobs: Sequence[Awaitable[T]]) -> list[T]:
    """Waits for all of them, then raises the first failure."""
    results = await asyncio.gather(*jobs, return_exceptions=True)
    done: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done
