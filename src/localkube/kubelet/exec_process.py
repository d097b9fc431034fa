"""Additional programs in a container: for kubectl exec, probes and hooks."""

import asyncio
import os
import signal
from collections.abc import Callable, Sequence

from localkube.kubelet.container_run import Inside
from localkube.kubelet.descriptors import Reader
from localkube.kubelet.launches import Launch, Launches, LaunchFailed

_MOST_OUTPUT = 10 * 1024
TIMED_OUT = -1
# In a namespace with one user, tar (kubectl cp) must not try to change the owner of files.
_PLAIN_TAR = {"TAR_OPTIONS": "--no-same-owner"}


class ExecProcesses:
    """Starts programs besides the containers' own, and waits for their end."""

    def __init__(self, launches: Launches) -> None:
        self._launches = launches
        self._ended: dict[str, asyncio.Future[int]] = {}
        self._containers: dict[str, str] = {}  # run -> container

    def ended(self, run_id: str, code: int) -> bool:
        """Called for every process that has ended. True: it was one of these programs."""
        self._containers.pop(run_id, None)
        future = self._ended.pop(run_id, None)
        if future is not None and not future.done():
            future.set_result(code)
        return future is not None

    async def start(
        self, inside: Inside, argv: Sequence[str], descriptors: list[int], *, tty: bool = False
    ) -> tuple[str, asyncio.Future[int]]:
        """Takes over the descriptors. Raises LaunchFailed."""
        run_id = os.urandom(16).hex()
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._ended[run_id] = future
        self._containers[run_id] = inside.container_id
        one_user = inside.view is not None or os.getuid() != 0
        launch = Launch(
            run_id,
            inside.container_id,
            argv,
            (_PLAIN_TAR if one_user else {}) | inside.env,
            inside.cwd,
            inside.view,
            is_main=False,
            tty=tty,
        )
        try:
            await self._launches.start(launch, descriptors)
        except BaseException:
            del self._ended[run_id], self._containers[run_id]
            raise
        return run_id, future

    def signal(self, run_id: str, number: int) -> None:
        self._launches.signal(run_id, number)

    def kill_all(self, containers: set[str]) -> None:
        for run_id, container in self._containers.items():
            if container in containers:
                self.signal(run_id, signal.SIGKILL)

    async def output(
        self, inside: Inside, argv: Sequence[str], timeout_s: float
    ) -> tuple[int, str]:
        """Runs a program; returns its exit code and its output, both streams together. Raises
        OSError if the machine cannot start it."""
        said = bytearray()
        reading, writing = os.pipe()
        reader = Reader(reading, _collector(said))
        descriptors = [writing]
        try:
            descriptors.append(os.dup(writing))
            descriptors.insert(0, os.open(os.devnull, os.O_RDONLY))
            run_id, ended = await self.start(inside, argv, descriptors)
        except BaseException as error:
            reader.close()
            while descriptors:
                os.close(descriptors.pop())
            if isinstance(error, LaunchFailed):
                return error.code, error.about(argv[0])
            raise
        try:
            async with asyncio.timeout(timeout_s):
                code = await asyncio.shield(ended)
        except TimeoutError:
            code = TIMED_OUT
        finally:
            self.signal(run_id, signal.SIGKILL)
            reader.drain()
        return code, said.decode("utf-8", "replace")


def _collector(said: bytearray) -> Callable[[bytes], None]:
    def take(data: bytes) -> None:
        said.extend(data[: max(0, _MOST_OUTPUT - len(said))])

    return take
