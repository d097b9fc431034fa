"""`gpupool console` of the owner, signed in by its key."""

import contextlib
import http.client
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode


@dataclass
class OwnConsole:
    port: int
    cookie: str
    home: str  # "/clusters/NAME"

    def page(self, path: str) -> str:
        """Of the cluster: "/nodes"."""
        status, text, _ = self.asks("GET", f"{self.home}{path}")
        assert status == 200, f"{path}: {status}"
        return text

    def posts(self, path: str, **form: str) -> tuple[int, str]:
        status, text, _ = self.asks("POST", f"{self.home}{path}", form)
        return status, text

    def asks(
        self, method: str, path: str, form: dict[str, str] | None = None
    ) -> tuple[int, str, http.client.HTTPMessage]:
        headers = {"Cookie": self.cookie, "Accept-Language": "en"}
        if method == "POST":
            headers["Content-Type"] = "application/x-www-form-urlencoded"
            headers["Origin"] = f"http://127.0.0.1:{self.port}"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        with contextlib.closing(connection):
            connection.request(method, path, urlencode(form or {}) or None, headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(), answer.headers


@contextlib.contextmanager
def running_console(kubeconfig: Path, *, env: dict[str, str] | None = None) -> Iterator[OwnConsole]:
    """`env` is added to the environment."""
    program = (sys.executable, "-m", "gpupool", "console", "--port", "0")
    # Whatever clusters this machine has are none of the tests' business.
    no_clusters = {"GPUPOOL_HOME": str(kubeconfig.parent / "no-clusters")}
    command = (*program, "--kubeconfig", str(kubeconfig))
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, **no_clusters, **(env or {})}
    )
    try:
        assert process.stdout is not None
        found = re.search(r"localhost:(\d+)/\?key=(\S+)", process.stdout.readline())
        assert found is not None
        console = OwnConsole(int(found[1]), "", "")
        status, _, headers = console.asks("GET", f"/?key={found[2]}")
        assert status == 303
        console.cookie = headers["Set-Cookie"].split(";")[0]
        console.home = headers["Location"].rpartition("/")[0]
        yield console
    finally:
        process.terminate()
        process.communicate(timeout=60)
