"""The one word for a whole pod: Pending, Running, Succeeded or Failed. Pure."""

from collections import Counter

from localkube.kubelet.lifecycle import NEVER, restarts
from localkube.kubelet.state import Container, Pod, Role, Stage

PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"


def phase(pod: Pod) -> str:
    if pod.rejected is not None:
        return FAILED
    over = all(c.stage in (Stage.WAITING, Stage.EXITED) for c in pod.containers)
    if pod.stop is not None and over and pod.stop.verdict is not None:
        return FAILED
    if not pod.initialized:
        failed = any(_failed_for_good(c) for c in pod.containers if c.role is Role.INIT)
        return FAILED if over and (failed or pod.stop is not None) else PENDING
    return _of_mains(pod, over)


def _failed_for_good(container: Container) -> bool:
    ended = container.exit
    return ended is not None and ended.code != 0 and container.restart == NEVER


def _of_mains(pod: Pod, over: bool) -> str:
    mains = [c for c in pod.containers if c.role is Role.MAIN]
    kinds = Counter(_kind(c) for c in mains)
    if kinds["running"]:
        return PENDING if kinds["waiting"] else RUNNING
    if kinds["waiting"]:
        return FAILED if pod.stop is not None and over else PENDING
    if pod.stop is None and any(restarts(c) for c in mains):
        return RUNNING  # between two runs
    if not over:
        return RUNNING  # its sidecars are still to stop
    succeeded = all(c.exit is not None and c.exit.code == 0 for c in mains)
    return SUCCEEDED if succeeded else FAILED


def _kind(container: Container) -> str:
    match container.stage:
        case Stage.RUNNING:
            return "running"
        case Stage.EXITED:
            return "exited"
        case _ if container.before is not None:
            return "running"  # it ran before and is on its way back
        case _:
            return "waiting"
