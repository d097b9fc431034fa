"""A process that has everything loaded, and forks an API server of ours whenever it is asked to.

So a server starts in a tenth of a second and can be killed two hundred times in a test. One line of
JSON on standard input for each: where its data is, where its log goes. One line back: its pid; a
second one, from the server itself, with its address once it answers.
"""

import asyncio
import gc
import os
import signal
import sys
from pathlib import Path
from typing import Any

import orjson
import uvloop

from gpupool.cli.programs import log_to_stderr
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import build
from localkube.apiserver.store.file import StoreDamaged
from tests.conformance.api_server import NoNodes


async def serve(job: dict[str, Any], report_to: int, parent: int) -> None:
    directory = Path(job["directory"])
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    loop.add_reader(parent, os._exit, 3)  # the nursery has gone
    made = certificates.ensure(directory)
    tokens = StaticTokens()
    tokens.add(job["token"], ADMIN)
    server = build(directory, made, tokens, NoNodes())
    http = await server.listen(0)
    await server.bootstrap(http.port)
    (directory / "ca-for-tests.crt").write_bytes(made.ca_pem)
    records = asyncio.ensure_future(server.keep_records())
    _say(report_to, {"pid": os.getpid(), "port": http.port})
    await stop.wait()
    records.cancel()
    await http.close(grace_s=2.0)
    server.close()


def child(job: dict[str, Any], report_to: int, parent: int) -> int:
    log = os.open(job["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(log, 1)
    os.dup2(log, 2)
    log_to_stderr()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(job, report_to, parent))
    except StoreDamaged as error:
        _say(report_to, {"pid": os.getpid(), "refused": str(error)})
        return 1
    return 0


def _say(descriptor: int, report: dict[str, Any]) -> None:
    os.write(descriptor, orjson.dumps(report) + b"\n")


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    report_to = os.dup(1)
    parent, hold = os.pipe()
    gc.freeze()
    for line in sys.stdin.buffer:
        job = orjson.loads(line)
        pid = os.fork()
        if pid == 0:
            os.close(hold)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os._exit(child(job, report_to, parent))
        _say(report_to, {"forked": pid})


if __name__ == "__main__":
    main()
