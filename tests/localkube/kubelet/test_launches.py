import asyncio
from pathlib import Path

from localkube.kubelet.launches import Launches


async def test_a_start_is_reported_before_the_exit(tmp_path: Path) -> None:
    launches = Launches(tmp_path, isolate=False)
    heard: list[str] = []
    launches.exited = lambda run_id, code: heard.append(f"{run_id} exited {code}")
    started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    launches._starting["a"] = started

    async def wait() -> None:
        heard.append(f"a started {await started}")

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    launches._take({"op": "started", "id": "a", "pid": 7})
    launches._take({"op": "exited", "id": "a", "code": 3})  # both came in one read
    await waiting
    await asyncio.sleep(0)
    assert heard == ["a started 7", "a exited 3"]
