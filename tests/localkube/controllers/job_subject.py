"""Helpers for tests of Jobs: creates a Job, reads its status, ends its pods."""

from typing import Any

from kubeclient.objects import Obj
from kubeclient.resources import JOBS, PODS
from tests.localkube.controllers.desk import Desk
from tests.localkube.controllers.samples import template

INDEX = "batch.kubernetes.io/job-completion-index"


async def create(desk: Desk, **spec: Any) -> None:
    made = template("j", restartPolicy="Never")
    await desk.create(JOBS, {"metadata": {"name": "j"}, "spec": {"template": made, **spec}})
    await desk.settle()


async def status(desk: Desk) -> Obj:
    found: Obj = (await desk.get(JOBS, "j"))["status"]
    return found


async def conditions(desk: Desk) -> dict[str, tuple[str, str]]:
    found = (await status(desk)).get("conditions", [])
    return {c["type"]: (c["reason"], c["message"]) for c in found if c["status"] == "True"}


async def open_pods(desk: Desk) -> list[Obj]:
    """The pods that have not ended."""
    found = await desk.all(PODS)
    return [p for p in found if p["status"]["phase"] in ("Pending", "Running")]


async def end(desk: Desk, phase: str, count: int = 1, code: int = 1) -> None:
    """Ends `count` open pods."""
    stamp = desk.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    exit_code = 0 if phase == "Succeeded" else code
    terminated = {"exitCode": exit_code, "startedAt": stamp, "finishedAt": stamp}
    container = {
        "name": "c",
        "image": "nginx",
        "imageID": "",
        "ready": False,
        "restartCount": 0,
        "state": {"terminated": terminated},
    }
    for pod in (await open_pods(desk))[:count]:
        await desk.set_phase(pod, phase, containerStatuses=[container])
    await desk.settle()


def indexes(pods: list[Obj]) -> list[str]:
    return sorted(pod["metadata"]["annotations"][INDEX] for pod in pods)
