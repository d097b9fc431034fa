"""Creates and deletes pods for an owner, with the events that Kubernetes records."""

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
    """Whether the namespace is terminating. Nothing can be created in it then, and that is neither
    worth an event nor a retry."""
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
    """Deletes this pod, not a later one of the same name. It is no error if the pod is gone."""
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
    """Runs the jobs in batches of one, two, four and so on, and stops after a batch with a failure.
    If the server refuses all of them (a quota, say), one request fails and not five hundred.
    Returns the results, and the failure."""
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
    """Waits for all jobs, then raises the first failure."""
    results = await asyncio.gather(*jobs, return_exceptions=True)
    done: list[T] = []
    for result in results:
        if isinstance(result, BaseException):
            raise result
        done.append(result)
    return done
