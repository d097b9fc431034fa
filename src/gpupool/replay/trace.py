"""Trace: nodes and pods from files, as values of the engine.

A card of a trace has 1000 units of memory, so that a unit is a thousandth of a card.
"""

from dataclasses import dataclass

from gpupool.contract.names import LABEL_NVIDIA_NAME
from gpupool.core.gpu import Card, GpuAsk, Inventory
from gpupool.core.nodes import NodeInfo
from gpupool.core.pods import PodRequest
from kubeclient.placement import NodeOperator, NodeRequirement, NodeTerm

MILLI = 1000
_MOST_PODS = 1_000_000  # on one node: traces do not state a limit
_MIB = 2**20


@dataclass(frozen=True, slots=True)
class TracePod:
    request: PodRequest  # its uid is the one in the trace
    gpu_milli: int  # all GPU that it asks for, in thousandths of a card
    cards: int  # how many cards it needs a part of
    arrives_s: int | None = None
    runs_s: int | None = None  # None: for ever
    gang: str = ""  # pods with the same name start together or not at all
    ran_s: int = 0  # so long it had run before it arrived


@dataclass(frozen=True, slots=True)
class Window:
    """Of a stream of pods: those that arrive from `begin_s` to `end_s` are measured."""

    begin_s: int
    end_s: int
    stop_s: int  # when the stream ends: who still waits has waited at least until then


@dataclass(frozen=True, slots=True)
class Trace:
    name: str
    nodes: tuple[NodeInfo, ...]
    pods: tuple[TracePod, ...]
    window: Window | None = None  # None: all pods are measured, until the last one has ended
    seed: int | None = None  # of a trace that was made by chance; None: it was recorded

    @property
    def capacity_milli(self) -> int:
        return MILLI * sum(len(node.inventory.cards) for node in self.nodes if node.inventory)


class TraceError(ValueError):
    """A trace cannot be used; the text says where and why."""


@dataclass(frozen=True, slots=True)
class Machine:
    """A node of a trace."""

    name: str
    cpu_milli: int
    memory_mib: int
    cards: int
    model: str


@dataclass(frozen=True, slots=True)
class Job:
    """A pod of a trace."""

    name: str
    cpu_milli: int
    memory_mib: int
    cards: int
    card_milli: int  # of each card
    models: tuple[str, ...] = ()  # empty: any
    arrives_s: int | None = None
    runs_s: int | None = None
    gang: str = ""


def node_of(machine: Machine) -> NodeInfo:
    cards = tuple(
        Card(index, f"{machine.name}-{index}", machine.model, MILLI, unit_mib=1)
        for index in range(machine.cards)
    )
    return NodeInfo(
        machine.name,
        labels={LABEL_NVIDIA_NAME: machine.model},
        allocatable={
            "cpu": machine.cpu_milli,
            "memory": machine.memory_mib * _MIB,
            "pods": _MOST_PODS,
        },
        inventory=Inventory(cards) if cards else None,
    )


def bound_to(models: tuple[str, ...]) -> tuple[NodeTerm, ...]:
    wanted = NodeRequirement(LABEL_NVIDIA_NAME, NodeOperator.IN, models)
    return (NodeTerm(labels=(wanted,)),)


def pod_of(job: Job) -> TracePod:
    gpus: tuple[GpuAsk, ...] = ()
    if job.cards and job.card_milli == MILLI:
        gpus = (GpuAsk("main", whole=job.cards),)
    elif job.cards:
        gpus = (GpuAsk("main", units=job.card_milli, cards=job.cards),)
    request = PodRequest(
        uid=job.name,
        namespace="default",
        name=job.name,
        resources={"cpu": job.cpu_milli, "memory": job.memory_mib * _MIB, "pods": 1},
        node_terms=bound_to(job.models) if job.models else None,
        gpus=gpus,
    )
    amount = job.cards * job.card_milli
    return TracePod(request, amount, job.cards, job.arrives_s, job.runs_s, job.gang)
