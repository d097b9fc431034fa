"""Which group versions are answered by which service: the APIServices with a service.

Only what this server does not serve itself is forwarded, but for metrics.k8s.io, which elsewhere is
always somebody else's.
"""

import base64
from collections.abc import Iterator
from dataclasses import dataclass, replace

from kubeclient.objects import Obj
from localkube.apiserver.admission.webhook_config import Service
from localkube.apiserver.kinds import Kinds

RESOURCE = "apiservices.apiregistration.k8s.io"
AVAILABLE = "Available"
_REPLACEABLE = frozenset({"metrics.k8s.io"})
_PREFIX = "/apis/"


@dataclass(frozen=True, slots=True)
class Remote:
    name: str  # of the APIService
    group: str
    version: str
    service: Service
    ca_pem: str  # empty: those of the machine
    is_checked: bool  # whether the server's certificate is
    is_available: bool
    priority: int
    version_priority: int
    resources: tuple[Obj, ...] = ()  # as its own discovery lists them, when it last answered

    @property
    def path(self) -> str:
        return f"{_PREFIX}{self.group}/{self.version}"

    @property
    def host(self) -> str:
        return f"{self.service.name}.{self.service.namespace}.svc"


class Remotes:
    def __init__(self, kinds: Kinds) -> None:
        self._kinds = kinds
        self._found: dict[tuple[str, str], Remote] = {}
        self.generation = 0  # grows with each change: documents must then be made anew

    def replace(self, name: str, obj: Obj | None) -> None:
        """`obj`: the APIService of that name; None if it is gone."""
        new = None if obj is None else _remote(obj)
        old = next((each for each in self._found.values() if each.name == name), None)
        if old is not None:
            del self._found[old.group, old.version]
        if new is not None and self._may_forward(new):
            kept = old.resources if old is not None else ()
            self._found[new.group, new.version] = replace(new, resources=kept)
        if old is not None or new is not None:
            self.generation += 1

    def learn(self, remote: Remote, resources: tuple[Obj, ...]) -> None:
        """What it says that it serves."""
        known = self._found.get((remote.group, remote.version))
        if known is not None and known.resources != resources:
            self._found[known.group, known.version] = replace(known, resources=resources)
            self.generation += 1

    def of_path(self, path: str) -> Remote | None:
        if not self._found or not path.startswith(_PREFIX):
            return None
        group, _, rest = path[len(_PREFIX) :].partition("/")
        return self._found.get((group, rest.partition("/")[0]))

    def __iter__(self) -> Iterator[Remote]:
        return iter(tuple(self._found.values()))

    def _may_forward(self, remote: Remote) -> bool:
        if remote.group in _REPLACEABLE:
            return True
        return bool(remote.group) and not self._kinds.has_version(remote.group, remote.version)


def _remote(obj: Obj) -> Remote | None:
    spec = obj["spec"]
    service = spec.get("service")
    if service is None:
        return None
    conditions = (obj.get("status") or {}).get("conditions", ())
    return Remote(
        name=obj["metadata"]["name"],
        group=spec.get("group", ""),
        version=spec.get("version", ""),
        service=Service(service["namespace"], service["name"], "", service["port"]),
        ca_pem=base64.b64decode(spec.get("caBundle", "")).decode(errors="replace"),
        is_checked=not spec.get("insecureSkipTLSVerify"),
        is_available=any(
            each["type"] == AVAILABLE and each["status"] == "True" for each in conditions
        ),
        priority=spec["groupPriorityMinimum"],
        version_priority=spec["versionPriority"],
    )
