"""The server process of `gpupool up --foreground`, with a stub instead of a cluster.

python stub_server.py HOME NAME BEHAVIOUR REPORT_TO [ATTACHED_TO]
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpupool.cli.programs import log_to_stderr
from gpupool.local.cluster_setup import Prepared, Wish, set_up_directory
from gpupool.local.config.settings import LocalSettings
from gpupool.local.home import Home
from gpupool.local.reports import write_to
from gpupool.local.serve import RunningCluster, serve


@dataclass(frozen=True)
class Listening:
    port: int


async def run_cluster(
    settings: LocalSettings, *, ready: Callable[[RunningCluster], None], stop: asyncio.Event
) -> None:
    match sys.argv[3]:
        case "breaks":
            raise RuntimeError("the database is damaged")
        case "port in use":
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(_taken())
        case "dies":
            sys.stderr.write("about to die\n")
            sys.exit(7)
        case "hangs":
            await stop.wait()
        case "ignores stop":
            ready(Listening(settings.port or 4321))
            await asyncio.Event().wait()
        case _:
            ready(Listening(settings.port or 4321))
            await stop.wait()


async def _taken() -> None:
    raise OSError(98, "Address already in use")


def main() -> int:
    log_to_stderr()
    prepared = set_up_directory(Home(Path(sys.argv[1])), Wish(name=sys.argv[2], port=0))
    assert isinstance(prepared, Prepared)
    attached_to = int(sys.argv[5]) if len(sys.argv) > 5 else None
    return serve(
        prepared, run=run_cluster, tell=write_to(int(sys.argv[4])), attached_to=attached_to
    )


if __name__ == "__main__":
    sys.exit(main())
