"""What the clusters of this home use of the platform: security groups, load balancers, EIPs.

As the document says, a cluster gets a security group, two load balancers (inside and outside) for
its API server, and a NAT gateway with an EIP. Each Service of type LoadBalancer takes one more load
balancer. The directory of a cluster has the number of those, so that stopped clusters count too.
"""

import asyncio
import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from gpupool.local.config.quotas import exceeded
from gpupool.local.config.spec import Quotas
from gpupool.local.home import CannotUse, Home
from localkube.data_directory import write_private

SECURITY_GROUPS, LOAD_BALANCERS, EIPS = "security-groups", "load-balancers", "eips"
# What each cluster takes.
BY_CLUSTER = {SECURITY_GROUPS: 1, LOAD_BALANCERS: 2, EIPS: 1}
_FILE = "load-balancers"


def used(home: Home) -> dict[str, int]:
    """By the names of the quotas."""
    clusters = home.clusters()
    found = {name: each * len(clusters) for name, each in BY_CLUSTER.items()}
    found[LOAD_BALANCERS] += sum(_services(cluster.path) for cluster in clusters)
    return found


@dataclass(frozen=True, slots=True)
class ServiceQuota:
    """The load balancers that Services of one cluster have, within the quota of all clusters."""

    home: Home
    directory: Path  # of the cluster
    quotas: Callable[[], Quotas]

    async def more(self, number: int) -> str:
        """Called before the cluster has so many. Returns why it may not; empty: it may."""
        # In a thread: others may hold the lock for a second.
        return await asyncio.to_thread(self._more, number)

    async def fewer(self, number: int) -> None:
        await asyncio.to_thread(self._write, number)

    def _more(self, number: int) -> str:
        try:
            with self.home.alone():
                had = _services(self.directory)
                if number <= had:
                    return ""
                now = used(self.home)[LOAD_BALANCERS]
                limit = self.quotas().load_balancers
                if over := exceeded(LOAD_BALANCERS, limit, now, now - had + number):
                    return "; ".join(map(str, over))
                write_private(self.directory / _FILE, str(number).encode())
        except CannotUse as error:
            return error.message
        except OSError as error:  # a full disk
            return str(error)
        return ""

    def _write(self, number: int) -> None:
        # A home that cannot be written to: the next Service that asks is told so.
        with contextlib.suppress(OSError, CannotUse), self.home.alone():
            if number != _services(self.directory):
                write_private(self.directory / _FILE, str(number).encode())


def _services(directory: Path) -> int:
    try:
        text = (directory / _FILE).read_bytes()[:20]
    except OSError:  # none so far, or it is being deleted
        return 0
    return int(text) if text.isdigit() and len(text) < 10 else 0
