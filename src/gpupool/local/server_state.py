"""What `gpupool status` says of a server: whether it answers, and what fails in its cluster."""

from gpupool.local.home import ClusterDirectory
from gpupool.local.server_process import Server, ask_server
from localkube.kubeconfig import read_token

ANSWERING = ("Running", "Degraded")
_READY_LIMIT_S = 2.0
_WORKS, _FAILED, _OBJECT = "[+]", "[-]", "   "


def state_of(cluster: ClusterDirectory, server: Server | None) -> tuple[str, list[str]]:
    """The word for it, and what is wrong inside."""
    if server is None:
        return "Stopped", []
    if not server.port:
        return server.state, []
    answer = ask_server(
        cluster.path,
        server.port,
        "/readyz?verbose",
        token=_token(cluster),
        timeout_s=_READY_LIMIT_S,
        wants=(200, 500),
    )
    if answer is None:
        return "NotAnswering", []
    text = answer.decode(errors="replace")
    fails = any(line.startswith(_FAILED) for line in text.splitlines())
    return "Degraded" if fails else "Running", troubles_of(text)


def _token(cluster: ClusterDirectory) -> str:
    """Without it, the server withholds the reasons."""
    try:
        return read_token(cluster.kubeconfig)
    except (OSError, ValueError):
        return ""


def troubles_of(readyz: str) -> list[str]:
    """What the verbose page of readiness says of programs that fail, and of objects that a program
    cannot handle."""
    found: list[str] = []
    program = ""
    for line in readyz.splitlines():
        if line.startswith(_FAILED):
            found.append(line.removeprefix(_FAILED))
        elif line.startswith(_WORKS):
            program = line.removeprefix(_WORKS).removesuffix(" ok")
        elif line.startswith(_OBJECT):
            found.append(f"{program} {line.strip()}")
    return found
