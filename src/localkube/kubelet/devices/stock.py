"""The devices of a node, as its plugins list them: by resource, with their health. Pure.

A resource has one source: the plugin that registered last. While a new plugin takes over, the
devices of the old one stay until the new one has listed its own, so that an upgrade leaves no gap.
When the source ends, its devices count as unhealthy: capacity stays, allocatable is zero. After a
grace period both are zero."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

GRACE_S = 300.0  # as long as a kubelet waits for a plugin to come back


class Counts(NamedTuple):
    capacity: Mapping[str, int]
    allocatable: Mapping[str, int]


@dataclass(slots=True)
class _Resource:
    source: str = ""  # the socket of its plugin
    healthy: frozenset[str] = frozenset()
    unhealthy: frozenset[str] = frozenset()
    stopped_at: float | None = None
    is_over: bool = False  # the grace period has ended


@dataclass(slots=True)
class Stock:
    _resources: dict[str, _Resource] = field(default_factory=dict)

    def __len__(self) -> int:
        """Resources that a plugin has, or had a moment ago."""
        return sum(not each.is_over for each in self._resources.values())

    def remember(self, resource: str, now: float) -> None:
        """The checkpoint has the resource: its plugin is expected to register again."""
        self._resources[resource] = _Resource(stopped_at=now)

    def register(self, resource: str, source: str) -> None:
        found = self._resources.setdefault(resource, _Resource())
        found.source = source
        found.stopped_at = None
        found.is_over = False

    def listed(self, resource: str, source: str, devices: Iterable[tuple[str, bool]]) -> bool:
        """`devices`: ids, and whether each is healthy. False: nothing has changed."""
        found = self._resources.get(resource)
        if found is None or found.source != source:
            return False
        listed = dict(devices)
        healthy = frozenset(id for id, is_healthy in listed.items() if is_healthy)
        unhealthy = frozenset(listed) - healthy
        changed = (found.healthy, found.unhealthy) != (healthy, unhealthy)
        found.healthy, found.unhealthy = healthy, unhealthy
        return changed

    def ended(self, resource: str, source: str, now: float) -> bool:
        """The plugin has ended. False: another one has taken over."""
        found = self._resources.get(resource)
        if found is None or found.source != source or found.stopped_at is not None:
            return False
        found.unhealthy |= found.healthy
        found.healthy = frozenset()
        found.stopped_at = now
        return True

    def expire(self, now: float) -> bool:
        """Drops the devices of plugins whose grace period is over. True: something has changed."""
        changed = False
        for found in self._resources.values():
            stopped = found.stopped_at is not None and now >= found.stopped_at + GRACE_S
            if stopped and not found.is_over:
                found.unhealthy = frozenset()
                found.is_over = changed = True
        return changed

    def counts(self) -> Counts:
        return Counts(
            {name: len(r.healthy) + len(r.unhealthy) for name, r in self._resources.items()},
            {name: len(r.healthy) for name, r in self._resources.items()},
        )

    def has(self, resource: str) -> bool:
        """Whether a plugin manages the resource, or did so within the grace period."""
        found = self._resources.get(resource)
        return found is not None and not found.is_over

    def is_away(self, resource: str) -> bool:
        """Whether the plugin is gone and may come back."""
        found = self._resources.get(resource)
        return found is not None and found.stopped_at is not None and not found.is_over

    def healthy(self, resource: str) -> frozenset[str]:
        found = self._resources.get(resource)
        return frozenset() if found is None else found.healthy

    def source(self, resource: str) -> str:
        return self._resources[resource].source

    def ids(self) -> dict[str, list[str]]:
        return {name: sorted(r.healthy | r.unhealthy) for name, r in self._resources.items()}
