"""What a look at a cluster found, as plain values."""

import datetime
from dataclasses import dataclass, field
from enum import StrEnum

from kubeclient.objects import Obj


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"  # works, and may surprise
    WRONG = "wrong"


@dataclass(frozen=True, slots=True)
class Finding:
    level: Level
    about: str
    what: str  # what is wrong, in one sentence
    mend: str = ""  # what to do about it


@dataclass(frozen=True, slots=True)
class Right:
    """Something that one of our programs must be allowed to do, and whether it is."""

    account: str
    verb: str
    resource: str
    allowed: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    now: datetime.datetime  # by our own clock
    version: str = ""  # v1.35.8
    nodes: tuple[Obj, ...] = ()
    pods: tuple[Obj, ...] = ()
    lease: Obj = field(default_factory=dict)  # of who decides about GPUs; empty: there is none
    webhooks: tuple[Obj, ...] = ()  # our configurations that are there
    authority_pem: bytes = b""  # of the Secret
    trial: Obj | None = None  # a GPU pod as the API server would have created it
    trial_error: str = ""  # or why it would not
    rights: tuple[Right, ...] = ()
    agents: Obj = field(default_factory=dict)  # their DaemonSet; empty where there is none
    runtime_classes: tuple[Obj, ...] = ()
    node_leases: tuple[Obj, ...] = ()  # which kubelets renew
    unseen: tuple[str, ...] = ()  # what we may not look at, in the server's words
