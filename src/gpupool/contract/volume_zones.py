"""Zone and region labels of a volume -> the nodes that reach it, as in kube-scheduler's VolumeZone.

Older volumes say by labels where they are, not by node affinity. A label may name several zones,
separated by two underscores. A node without any such label reaches every volume: its cluster has no
zones. A volume with an old ("beta") label is also reached by nodes with the new one.
"""

from collections.abc import Iterator, Mapping

from kubeclient.placement import NodeOperator, NodeRequirement, NodeTerm

_NEW = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_KEYS = (*_NEW, *_NEW.values())
_SEPARATOR = "__"
_WITHOUT_ZONES = NodeTerm(
    tuple(NodeRequirement(key, NodeOperator.DOES_NOT_EXIST, ()) for key in _KEYS)
)


def zone_terms(labels: Mapping[str, str]) -> Iterator[tuple[NodeTerm, ...]]:
    """For each zone or region label: one of the terms must match."""
    for key in _KEYS:
        zones = tuple(zone.strip() for zone in labels.get(key, "").split(_SEPARATOR))
        if not all(zones):  # no such label, or one that cannot be read: kube-scheduler ignores both
            continue
        terms = [_WITHOUT_ZONES, NodeTerm((NodeRequirement(key, NodeOperator.IN, zones),))]
        if key in _NEW:
            terms.append(
                NodeTerm(
                    (
                        NodeRequirement(key, NodeOperator.DOES_NOT_EXIST, ()),
                        NodeRequirement(_NEW[key], NodeOperator.IN, zones),
                    )
                )
            )
        yield tuple(terms)
