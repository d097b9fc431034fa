"""Whose a process is. Where the agent sees all processes of its node: by their cgroups."""

import re
from pathlib import Path

_POD = re.compile(r"pod([0-9a-f]{8}(?:[-_][0-9a-f]{4}){3}[-_][0-9a-f]{12})")


def owner_by_cgroup(pid: int) -> str:
    """The uid of the pod, as kubelets name its cgroup; empty for processes that are no pod's."""
    try:
        text = Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
    found = _POD.search(text)
    return found[1].replace("_", "-") if found else ""
