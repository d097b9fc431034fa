"""ProgramEvents: events about programs that fail, and about objects that a program cannot handle.

A failing program is reported on the namespace of the system, an object on itself. Each program has
a recorder of its own, so that one that fails often takes no event from another.
"""

import asyncio
import datetime

from kubeclient.client import Kube
from kubeclient.events import WARNING, Recorder
from kubeclient.objects import Obj

PROGRAM_FAILED = "ProgramFailed"
NOT_UNDERSTOOD = "NotUnderstood"
_SYSTEM = "kube-system"
# With its own name as namespace: the event is to be there, and not in `default`.
_PLACE: Obj = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": _SYSTEM, "namespace": _SYSTEM},
}


class ProgramEvents:
    def __init__(self, kube: Kube) -> None:
        self._kube = kube
        self._recorders: dict[str, Recorder] = {}
        self._new: asyncio.Queue[Recorder] = asyncio.Queue()

    async def run(self) -> None:
        """Writes the events, until cancelled. What was reported before is written, too."""
        self._new = asyncio.Queue()
        for recorder in self._recorders.values():  # of before
            self._new.put_nowait(recorder)
        async with asyncio.TaskGroup() as tasks:
            while True:
                recorder = await self._new.get()
                tasks.create_task(recorder.run(), name="program-events")

    def program_failed(self, program: str, words: str) -> None:
        self._of(program).event(_PLACE, WARNING, PROGRAM_FAILED, f"{program} failed: {words}")

    def object_not_handled(self, program: str, obj: Obj, words: str) -> None:
        # An event about each event would never end.
        if obj.get("kind") == "Event":
            return
        text = f"{program} cannot handle this object: {words}"
        self._of(program).event(obj, WARNING, NOT_UNDERSTOOD, text)

    def _of(self, program: str) -> Recorder:
        recorder = self._recorders.get(program)
        if recorder is None:
            recorder = Recorder(self._kube, program, lambda: datetime.datetime.now(datetime.UTC))
            self._recorders[program] = recorder
            self._new.put_nowait(recorder)
        return recorder
