"""/livez, /healthz and /readyz, in kube-apiserver's format.

/livez and /healthz say whether the server answers: nothing that a restart of the process would
mend can be wrong while it does. /readyz also has a check for each program of the cluster, and fails
while one of them does, or while nothing can be written to the store. Its list names the programs
for everybody, and says what is wrong with them, and with which objects, to administrators only.
"""

from typing import NamedTuple

from localkube.apiserver.request import Answer, Request
from localkube.apiserver.security.rbac import MASTERS
from localkube.health import Health

PAGES = ("healthz", "livez", "readyz")
_TEXT = "text/plain; charset=utf-8"
_NO_SNIFFING = (("x-content-type-options", "nosniff"),)
# Of the server itself; scripts ask for them by these names.
_OWN = ("ping", "log")
_STORE = "etcd"


class _Line(NamedTuple):
    name: str
    failure: str = ""
    objects: tuple[str, ...] = ()


def answer(
    health: Health, request: Request, page: str, check: str, not_written: str
) -> Answer | None:
    """`check`: the one that is asked for, if not empty. `not_written`: why the store could not be
    written. None: there is no such check."""
    lines = _lines(health, page, not_written)
    user = request.user
    tells = user is not None and MASTERS in user.groups
    if check:
        for line in lines:
            if line.name == check:
                return _one(line, tells=tells)
        return None
    wanted = {name for text in request.query.get("exclude", []) for name in text.split(",") if name}
    shown = "".join(_shown(line, line.name in wanted, tells=tells) for line in lines)
    if unknown := wanted - {line.name for line in lines}:
        listed = ", ".join(f'"{name}"' for name in sorted(unknown))
        shown += f"warn: some health checks cannot be excluded: no matches for {listed}\n"
    if any(line.failure and line.name not in wanted for line in lines):
        text = f"{shown}{page} check failed\n"
        return Answer(500, text.encode(), _TEXT, _NO_SNIFFING)
    if "verbose" in request.query:
        return Answer(200, f"{shown}{page} check passed\n".encode(), _TEXT, _NO_SNIFFING)
    return Answer(200, b"ok", _TEXT, _NO_SNIFFING)


def _lines(health: Health, page: str, not_written: str) -> list[_Line]:
    is_ready_page = page == "readyz"
    programs = [_Line(*check) for check in health] if is_ready_page else []
    words = f"the store cannot be written: {not_written}" if not_written and is_ready_page else ""
    return [*map(_Line, _OWN), _Line(_STORE, words), *programs]


def _one(line: _Line, *, tells: bool) -> Answer:
    if line.failure:
        why = line.failure if tells else "reason withheld"
        return Answer(500, f"internal server error: {why}\n".encode(), _TEXT, _NO_SNIFFING)
    return Answer(200, b"ok", _TEXT, _NO_SNIFFING)


def _shown(line: _Line, excluded: bool, *, tells: bool) -> str:
    if excluded:
        return f"[+]{line.name} excluded: ok\n"
    if line.failure:
        return f"[-]{line.name} failed: {_one_line(line.failure) if tells else 'reason withheld'}\n"
    objects = "".join(f"   cannot handle {_one_line(what)}\n" for what in line.objects)
    return f"[+]{line.name} ok\n{objects if tells else ''}"


def _one_line(words: str) -> str:
    return " ".join(words.split())
