"""Instructions per request, counted by valgrind: the same on a busy machine as on a quiet one.

python -m bench.instructions

Of the API server called in process, without the wire: POST pod (one template; all different) and
binding, the commits included. Takes about two minutes. Needs valgrind.
"""

import asyncio
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.api_server import NoNodes
from bench.pods import Requests, bindings, creates
from localkube.apiserver.request import Answer, Request
from localkube.apiserver.security import certificates
from localkube.apiserver.security.identities import ADMIN
from localkube.apiserver.security.tokens import StaticTokens
from localkube.apiserver.server import ApiServer, build

_REQUESTS = 256
_AT_ONCE = 32
_PORT = 6443  # named in objects, never opened


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="gpupool-bench-") as directory:
        counts = Path(directory) / "counts"
        valgrind = ["valgrind", "-q", "--tool=callgrind", "--instr-atstart=no"]
        file = f"--callgrind-out-file={counts}"
        command = [*valgrind, file, sys.executable, "-m", "bench.instructions", directory]
        subprocess.run(command, check=True)
        for number, what in enumerate(("POST pod", "POST pod, all different", "binding"), 1):
            total = _total(counts.with_name(f"counts.{number}"))
            print(f"{what:24} {total // _REQUESTS:10,} instructions")


def _total(path: Path) -> int:
    lines = path.read_text().splitlines()
    return max(int(line.split()[1]) for line in lines if line.startswith(("totals:", "summary:")))


async def _measured(directory: Path) -> None:
    tokens = StaticTokens()
    token = tokens.issue(ADMIN)
    server = build(directory, certificates.ensure(directory), tokens, NoNodes())
    await server.bootstrap(_PORT)
    names, others = ([f"{letter}{n}" for n in range(_REQUESTS)] for letter in "pq")
    first = [f"w{n}" for n in range(_AT_ONCE)]
    for requests in (creates(first), creates([f"x{name}" for name in first], alike=False)):
        await _send(server, requests, token)
    await _send(server, bindings(first), token)
    for requests in (creates(names), creates(others, alike=False), bindings(names)):
        _control("--zero")
        _control("--instr=on")
        await _send(server, requests, token)
        _control("--instr=off")
        _control("--dump=all")
    server.close()


async def _send(server: ApiServer, requests: Requests, token: str) -> None:
    headers = {
        "host": "127.0.0.1",
        "authorization": f"Bearer {token}",
        "user-agent": "bench/1",
        "content-type": "application/json",
    }
    waiting = iter(requests)

    async def one_after_the_other() -> None:
        for method, path, body in waiting:
            request = Request(method, path, "", headers, body.encode(), warnings=[])
            reply = await server.front.handle(request)
            assert isinstance(reply, Answer), reply
            assert reply.status == 201, reply

    await asyncio.gather(*(one_after_the_other() for _ in range(_AT_ONCE)))


def _control(option: str) -> None:
    command = ["callgrind_control", option, str(os.getpid())]
    subprocess.run(command, check=True, capture_output=True)


if __name__ == "__main__":
    if len(sys.argv) == 1:
        main()
    else:
        os.chmod(sys.argv[1], 0o700)
        asyncio.run(_measured(Path(sys.argv[1])))
