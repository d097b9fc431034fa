"""Which kinds are served: one row each. Built-in rows come from data; CRDs add rows at run time."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from localkube.apiserver import data


@dataclass(frozen=True, slots=True)
class Subresource:
    """`pods/log` and friends, as discovery lists them."""

    name: str  # "log"
    kind: str  # "Pod"
    group: str  # the subresource's own group and version: pods/eviction is policy/v1 Eviction
    version: str
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PrinterColumn:
    """A column of kubectl get, as a CRD's additionalPrinterColumns define it."""

    name: str
    type: str
    json_path: str
    format: str = ""
    description: str = ""
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    # All versions of one resource share one place in the store; objects lie there in this version.
    storage_version: str = ""
    # events.k8s.io/v1 events are core/v1 events in other words: they live in the core's place.
    storage_group: str | None = None
    has_status: bool = False  # spec writes ignore status, /status writes ignore the rest
    has_generation: bool = False
    custom: bool = False  # defined by a CRD
    # One of several versions of a custom kind: which one objects lie in may have changed.
    one_of_many: bool = False
    # Neither stored nor listed: reviews, bindings, metrics.
    virtual: bool = False
    selectable: tuple[str, ...] = ()  # field selectors beyond metadata.name and metadata.namespace
    printer_columns: tuple[PrinterColumn, ...] = ()  # of a custom kind; none means Age
    api_version: str = field(init=False)
    resource: str = field(init=False)  # the key in the store: "pods", "deployments.apps"

    def __post_init__(self) -> None:
        set_ = object.__setattr__  # frozen: derived once here, read on every request
        set_(self, "api_version", f"{self.group}/{self.version}" if self.group else self.version)
        group = self.group if self.storage_group is None else self.storage_group
        set_(self, "resource", f"{self.plural}.{group}" if group else self.plural)
        if not self.storage_version:
            set_(self, "storage_version", self.version)

    def __hash__(self) -> int:
        """Of few fields: they tell almost all kinds apart, and equality looks at the rest."""
        return hash((self.group, self.version, self.plural, self.kind))

    def subresource(self, name: str) -> Subresource | None:
        for found in self.subresources:
            if found.name == name:
                return found
        return None

    @property
    def qualified(self) -> str:
        """As error texts name it: "pods", "deployments.apps"."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Kinds:
    """The served kinds, by (group, version, plural)."""

    def __init__(self, rows: Iterable[Kind]) -> None:
        self._rows: dict[tuple[str, str, str], Kind] = {}
        self._versions: Counter[tuple[str, str]] = Counter()  # how many kinds each has
        # Grows with each change, so that discovery and OpenAPI documents know when to be remade.
        self.generation = 0
        for row in rows:
            self.add(row)

    def add(self, kind: Kind) -> None:
        key = (kind.group, kind.version, kind.plural)
        if key not in self._rows:
            self._versions[kind.group, kind.version] += 1
        self._rows[key] = kind
        self.generation += 1

    def remove(self, kind: Kind) -> None:
        del self._rows[kind.group, kind.version, kind.plural]
        version = (kind.group, kind.version)
        self._versions[version] -= 1
        if not self._versions[version]:
            del self._versions[version]
        self.generation += 1

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        return self._rows.get((group, version, plural))

    def by_kind(self, group: str, version: str, kind: str) -> Kind | None:
        return next(
            (k for k in self if (k.group, k.version, k.kind) == (group, version, kind)), None
        )

    def has_version(self, group: str, version: str) -> bool:
        return (group, version) in self._versions

    def has_group(self, group: str) -> bool:
        return any(g == group for g, _, _ in self._rows)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._rows.values())


_TUPLES = ("verbs", "short_names", "categories", "selectable")


def builtin_kinds() -> list[Kind]:
    """Kubernetes' own, in the order of its discovery: groups by priority, resources by name."""
    return [_kind(row) for row in data.read("kinds.json")]


def _kind(row: dict[str, Any]) -> Kind:
    for key in _TUPLES:
        row[key] = tuple(row.get(key, ()))
    row["subresources"] = tuple(
        Subresource(**{**sub, "verbs": tuple(sub["verbs"])}) for sub in row.get("subresources", ())
    )
    row.setdefault("namespaced", False)
    return Kind(**row)
