"""What a container leaves behind for people to read: its termination message."""

from localkube.kubelet.container_run import ContainerRun
from localkube.kubelet.log_file import log_paths

_LAST_BYTES = 2048
_LAST_LINES = 80


def termination_message(run: ContainerRun, code: int, log_files: int) -> str:
    """Its own words, or the end of its log when it wants that and has failed."""
    own = run.files.termination_message()
    wants_log = run.spec.get("terminationMessagePolicy") == "FallbackToLogsOnError"
    if own or code == 0 or not wants_log:
        return own
    lines: list[bytes] = []
    for path in log_paths(run.output.log.path, log_files):
        if path.exists():
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - 8 * _LAST_BYTES))
                lines += file.read().splitlines()
    texts = [line.split(b" ", 3)[-1] for line in lines[-_LAST_LINES:]]
    return b"\n".join(texts)[-_LAST_BYTES:].decode("utf-8", "replace")
