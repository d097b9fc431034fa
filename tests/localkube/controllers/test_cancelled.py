"""A controller that is stopped in the middle of its work stops."""

import asyncio
from pathlib import Path
from typing import NoReturn

import pytest

from kubeclient.errors import Conflict
from kubeclient.objects import Obj
from kubeclient.resources import CRON_JOBS, STATEFUL_SETS, Resource
from localkube.controllers import cron_job, stateful_set
from localkube.controllers.run import Controller
from tests.localkube.controllers.desk import desk_for

_POD = {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Always"}
_TEMPLATE = {"metadata": {"labels": {"app": "x"}}, "spec": _POD}
_JOB = {"template": {"spec": _POD | {"restartPolicy": "Never"}}}
_SET = {"selector": {"matchLabels": {"app": "x"}}, "serviceName": "s", "template": _TEMPLATE}
_SUBJECTS: dict[str, tuple[Controller, Resource, Obj, Obj]] = {
    "StatefulSet": (stateful_set.controller(), STATEFUL_SETS, _SET, {"replicas": 0}),
    "CronJob": (
        cron_job.CONTROLLER,
        CRON_JOBS,
        {"schedule": "* * * * *", "jobTemplate": {"spec": _JOB}},
        {"lastScheduleTime": "2026-01-01T00:00:00Z"},
    ),
}

_SET_STEPS = "localkube.controllers.stateful_set._Set"
_CRON_JOB = "localkube.controllers.cron_job._CronJob"
# What acts, and what writes the status afterwards.
_STEPS = {
    "StatefulSet": (f"{_SET_STEPS}._act", "kubeclient.client.Kube.update_status"),
    "CronJob": (f"{_CRON_JOB}._start_if_due", f"{_CRON_JOB}._write_status"),
}


@pytest.mark.parametrize("kind", _SUBJECTS)
async def test_a_conflict_while_it_stops_does_not_let_a_worker_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    controller, resource, spec, status = _SUBJECTS[kind]

    async def stopped(*_: object) -> NoReturn:
        raise asyncio.CancelledError

    async def changed_meanwhile(*_: object) -> NoReturn:
        raise Conflict({"code": 409})

    async with desk_for(tmp_path, controller) as desk:
        await desk.create(resource, {"metadata": {"name": "it"}, "spec": spec})
        change = {"status": status}
        await desk.kube.patch(resource.path("default", "it", "status"), change)
        await desk._catch_up()
        act, write = _STEPS[kind]
        monkeypatch.setattr(act, stopped)
        monkeypatch.setattr(write, changed_meanwhile)
        with pytest.raises(asyncio.CancelledError):
            await controller.reconcile(("default", "it"), desk.contexts[0])
