"""What an agent in a pod loads: it runs on every GPU node, and memory is what it costs there."""

import subprocess
import sys
from pathlib import Path

from localkube.apiserver.security.certificates import ensure

# Each takes from half a megabyte to nine.
_HEAVY = ("aiohttp", "yaml", "prometheus_client", "cryptography", "numpy", "rich", "jinja2", "grpc")


def test_an_agent_in_a_pod_loads_nothing_heavy_that_it_does_not_need(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(ensure(tmp_path).ca_pem)
    (tmp_path / "token").write_text("t")
    program = f"""
import asyncio, sys
from pathlib import Path
import gpupool.cli.main, gpupool.cli.agent, gpupool.agent.run
from gpupool.hardware.nvml import NvmlDriver
from kubeclient.credentials import find_access
from kubeclient.errors import NoAnswer
from kubeclient.https import connected

async def main():
    environ = {{"KUBERNETES_SERVICE_HOST": "127.0.0.1", "KUBERNETES_SERVICE_PORT": "1"}}
    access = await find_access(environ, in_cluster=Path({str(tmp_path)!r}))
    async with connected(access, "agent") as kube:
        try:
            await kube.page("/version")
        except NoAnswer:
            print("asked")

asyncio.run(main())
print([name for name in {_HEAVY} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.stdout == "asked\n[]\n", done.stderr
