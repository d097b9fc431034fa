"""What was found in a cluster, as plain values."""

import datetime
from dataclasses import dataclass, field
from enum import StrEnum

from kubeclient.objects import Obj


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"  # it works, but may surprise
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    about: str
    what: str  # what was found, in one sentence
    mend: str = ""  # how to repair it


@dataclass(frozen=True, slots=True)
class Right:
    """One right that a program of ours needs, and whether it has it."""

    account: str
    verb: str
    resource: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    now: datetime.datetime  # by this machine's clock
    version: str = ""  # v1.35.8
    nodes: tuple[Obj, ...] = ()
    pods: tuple[Obj, ...] = ()
    lease: Obj = field(default_factory=dict)  # of scheduler and extender; empty: there is none
    webhooks: tuple[Obj, ...] = ()  # those of our two webhook configurations that exist
    authority_pem: bytes = b""  # the CA bundle in admission's Secret
    trial: Obj | None = None  # a GPU pod as the API server would create it (dry run)
    trial_error: str = ""  # or why the API server refused it
    rights: tuple[Right, ...] = ()
    agents: Obj = field(default_factory=dict)  # the agents' DaemonSet; empty: there is none
    runtime_classes: tuple[Obj, ...] = ()
    node_leases: tuple[Obj, ...] = ()  # the Leases that kubelets renew
    unseen: tuple[str, ...] = ()  # the API server's refusals to show something
