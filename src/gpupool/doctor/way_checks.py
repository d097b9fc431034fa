"""Judges how cards get into the containers of nodes. Pure."""

from collections.abc import Iterator

from gpupool.contract.names import LABEL_PINNED_WAY, LABEL_WAY
from gpupool.contract.nodes import node_of
from gpupool.core.nodes import NodeInfo
from gpupool.core.ways import OTHERS_PUT_IN, Way, Ways
from gpupool.doctor.alike import Saying, some_of
from gpupool.doctor.evidence import Evidence, Finding, Level


def way_of_node(ways: Ways) -> Saying:
    """How cards get into containers; nodes with the same way share a line."""
    if not ways.is_open:
        by = f" by {ways.chosen.words}" if ways.chosen is not None else ""
        return Saying(
            Level.WRONG,
            "ways",
            one=f"Cards of node {{}} do not get into containers{by}: {ways.problem}.",
            many=f"Cards of {{}} nodes do not get into containers{by} ({ways.problem})",
            mend="See docs/agent.md, or say which way to use: "
            f"kubectl label node {{}} {LABEL_PINNED_WAY}=...",
        )
    assert ways.chosen is not None
    told = ", as the installation says" if ways.is_pinned and ways.chosen not in ways.known else ""
    named = f" {ways.runtime_class}" if ways.chosen is Way.RUNTIME_CLASS else ""
    by = f"{ways.chosen.words}{named}{told}{_missing(ways)}"
    return Saying(
        Level.OK,
        "ways",
        one=f"Cards of node {{}} get into containers by {by}.",
        many=f"Cards of {{}} nodes get into containers by {by}",
    )


def _missing(ways: Ways) -> str:
    """What becomes of a container whose card did not get in. By the other ways there is none."""
    if ways.chosen not in OTHERS_PUT_IN:
        return ""
    if ways.checks_starts:
        return "; a container whose card is missing does not start"
    return "; a container whose card is missing is reported"


def mixed_ways(evidence: Evidence) -> Iterator[Finding]:
    """A pod's runtime class is fixed, so one template runs on one kind of node."""
    nodes = [node for node in map(node_of, evidence.nodes) if _ways(node) is not None]
    needing: dict[str, list[NodeInfo]] = {}
    for node in nodes:
        ways = _ways(node)
        if ways is not None and ways.chosen is Way.RUNTIME_CLASS:
            needing.setdefault(ways.runtime_class, []).append(node)
    for name, there in needing.items():
        others = [node.name for node in nodes if not _has_class(node, name)]
        if others:
            what = (
                f"{len(there)} nodes with cards need runtimeClassName {name}, and {len(others)} do "
                f"not have it: {some_of(others)}. One template of pods runs on one kind only."
            )
            mend = f"Choose by nodeSelector ({LABEL_WAY}), or give all nodes one way."
            yield Finding(Level.NOTE, "ways", what, mend)


def _ways(node: NodeInfo) -> Ways | None:
    return node.inventory.ways if node.inventory is not None else None


def _has_class(node: NodeInfo, name: str) -> bool:
    ways = _ways(node)
    return ways is not None and ways.runtime_class == name
