"""Group versions that other API servers answer: found, asked, and shown with our own."""

from dataclasses import dataclass

from localkube.apiserver.aggregation.availability import Availability
from localkube.apiserver.aggregation.proxy import Forwarder
from localkube.apiserver.aggregation.registry import Remotes

__all__ = ["Aggregation"]


@dataclass(frozen=True, slots=True)
class Aggregation:
    remotes: Remotes
    forwarder: Forwarder
    availability: Availability
