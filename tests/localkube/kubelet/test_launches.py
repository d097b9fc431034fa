import asyncio
import contextlib
import errno
import os
import resource
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from localkube.kubelet.launches import Launches, LaunchFailed, NotLaunched
from tests.localkube.kubelet.launcher_faults import FaultyLaunches, launch

PATIENCE_S = 30
LARGE = 900_000


class Ends:
    """The ends that a launcher has reported."""

    def __init__(self, launches: Launches) -> None:
        self.seen: Counter[str] = Counter()
        self.codes: dict[str, int] = {}
        self._changed = asyncio.Event()
        launches.exited = self._exited

    def _exited(self, run_id: str, code: int) -> None:
        self.seen[run_id] += 1
        self.codes[run_id] = code
        self._changed.set()

    async def until(self, *run_ids: str) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while not self.codes.keys() >= set(run_ids):
                self._changed.clear()
                await self._changed.wait()


@contextlib.asynccontextmanager
async def launcher(directory: Path, *faults: str) -> AsyncIterator[tuple[Launches, Ends]]:
    made = FaultyLaunches(directory / "run", *faults)
    try:
        yield made, Ends(made)
    finally:
        await made.close()


def streams() -> list[int]:
    return [os.open(os.devnull, os.O_RDWR) for _ in range(3)]


def open_files() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


async def settled(launches: Launches, *rest: str) -> None:
    """Waits until only these run, and nothing starts."""
    async with asyncio.timeout(PATIENCE_S):
        while launches._starting or launches._running != set(rest):
            # The launcher goes on meanwhile.
            with contextlib.suppress(LaunchFailed):
                await launches.start(launch("no-such-program", "no-such-program"), streams())


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


async def test_starts_that_are_cancelled_in_the_middle_touch_no_other_container(
    tmp_path: Path,
) -> None:
    async with launcher(tmp_path) as (launches, ends):
        await launches.start(launch("other", "sleep", "1000"), streams())
        pid = launches.pid
        before = open_files()
        starts = {
            f"c{n}": asyncio.create_task(
                launches.start(launch(f"c{n}", "sleep", "1000", size=LARGE), streams())
            )
            for n in range(40)
        }
        await starts["c0"]
        started = [run_id for run_id, task in starts.items() if not task.cancel()]
        await asyncio.gather(*starts.values(), return_exceptions=True)
        # The stream still works, and only what was started is left.
        await launches.start(launch("last", "true"), streams())
        await ends.until("last")
        for run_id in started:
            launches.signal(run_id, signal.SIGKILL)
        await ends.until(*started)
        await settled(launches, "other")
        assert launches.pid == pid
        assert "other" not in ends.codes
        assert set(ends.seen.values()) == {1}
        assert open_files() == before


async def test_a_start_that_is_cancelled_as_it_succeeds_leaves_no_process(tmp_path: Path) -> None:
    async with launcher(tmp_path) as (launches, ends):
        start = asyncio.create_task(launches.start(launch("a", "sleep", "1000"), streams()))
        settled = launches._settle

        def settle(run_id: str, outcome: int | LaunchFailed | NotLaunched) -> None:
            settled(run_id, outcome)
            start.cancel()  # before the task has seen the result

        launches._settle = settle  # type: ignore[method-assign]
        with pytest.raises(asyncio.CancelledError):
            await start
        await ends.until("a")
        assert ends.codes == {"a": 137}


async def test_no_signal_is_lost_while_the_launcher_does_not_read(tmp_path: Path) -> None:
    async with launcher(tmp_path) as (launches, ends):
        await launches.start(launch("a", "sleep", "1000"), streams())
        os.kill(launches.pid, signal.SIGSTOP)
        for _ in range(20_000):  # more than the buffer of a socket holds
            launches.signal("a", signal.SIGCONT)
        launches.signal("a", signal.SIGKILL)
        os.kill(launches.pid, signal.SIGCONT)
        await ends.until("a")
        assert ends.codes == {"a": 137}


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (f"fork {errno.EAGAIN} 0", "Resource temporarily unavailable"),
        (f"fork {errno.ENOMEM} 0", "Cannot allocate memory"),
        (f"pipe {errno.EMFILE} 0", "Too many open files"),
    ],
)
async def test_a_fault_at_the_start_is_the_failure_of_that_container(
    tmp_path: Path, fault: str, words: str
) -> None:
    async with launcher(tmp_path, fault) as (launches, ends):
        with pytest.raises(NotLaunched, match=words):
            await launches.start(launch("a", "true"), streams())
        await launches.start(launch("c", "sh", "-c", "exit 3"), streams())
        await ends.until("c")
        assert ends.codes == {"c": 3}


@pytest.mark.parametrize(
    "fault",
    [
        f"write_text {errno.ENOSPC} 1",
        f"unlink {errno.EROFS} 1",
        f"listdir {errno.EMFILE} 0",
        f"listdir {errno.EMFILE} 2",
    ],
)
async def test_a_fault_of_the_disk_or_of_proc_hides_no_end(tmp_path: Path, fault: str) -> None:
    async with launcher(tmp_path, fault) as (launches, ends):
        await launches.start(launch("a", "sh", "-c", "exit 3"), streams())
        await launches.start(launch("b", "sleep", "1000"), streams())
        await ends.until("a")
        launches.signal("b", signal.SIGKILL)
        await ends.until("b")
        assert ends.codes == {"a": 3, "b": 137}
        assert set(ends.seen.values()) == {1}


async def test_descriptors_that_the_kernel_drops_are_a_failure_with_words(tmp_path: Path) -> None:
    async with launcher(tmp_path) as (launches, _):
        await launches.namespaces()
        soft, hard = resource.prlimit(launches.pid, resource.RLIMIT_NOFILE)
        resource.prlimit(launches.pid, resource.RLIMIT_NOFILE, (4, hard))
        with pytest.raises(NotLaunched, match="Too many open files"):
            await launches.start(launch("a", "true"), streams())
        resource.prlimit(launches.pid, resource.RLIMIT_NOFILE, (soft, hard))
        with pytest.raises(LaunchFailed):
            await launches.start(launch("b", "no-such-program"), streams())


async def test_a_launcher_that_cannot_begin_says_why(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "probe").write_text("")  # where it makes a directory
    async with launcher(tmp_path) as (launches, _):
        for _ in range(2):
            with pytest.raises(NotLaunched, match="File exists"):
                await launches.start(launch("a", "true"), streams())
        (tmp_path / "run" / "probe").unlink()
        await launches.start(launch("a", "true"), streams())


@pytest.mark.parametrize("program", ["hang-at-first", "hang-at-last"])
async def test_a_start_that_hangs_holds_no_other_up_and_can_be_cancelled(
    tmp_path: Path, program: str
) -> None:
    async with launcher(tmp_path) as (launches, ends):
        slow = asyncio.create_task(launches.start(launch("slow", program), streams()))
        await launches.start(launch("a", "true"), streams())
        await ends.until("a")
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        await launches.start(launch("b", "true"), streams())
        await ends.until("b")
        await settled(launches)


@pytest.mark.parametrize(
    ("argv", "env", "words"),
    [
        (["true", "a\0b"], {}, r"argument 'a\\x00b' contains a NUL byte"),
        (["true"], {"A_b": "\0"}, "environment variable 'A_b' contains a NUL byte"),
    ],
)
async def test_a_nul_byte_is_refused_in_words(
    tmp_path: Path, argv: list[str], env: dict[str, str], words: str
) -> None:
    async with launcher(tmp_path) as (launches, _):
        made = launch("a", *argv)
        with pytest.raises(LaunchFailed, match=words) as failure:
            await launches.start(made._replace(env=made.env | env), streams())
        assert failure.value.code == 126


def test_words_about_a_program_are_text() -> None:
    assert LaunchFailed(127, "No such file").about("\udcff") == (
        'exec: "?": executable file not found in $PATH'
    )
    assert LaunchFailed(126, "Is a Directory").about("/") == 'exec: "/": is a Directory'
