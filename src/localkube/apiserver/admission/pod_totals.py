"""What a pod's containers ask for together, as texts."""

from kubeclient.objects import Obj
from localkube.apiserver.defaults.pod_resources import aggregate

# These can be given for the whole pod, and are then not summed.
_POD_LEVEL = ("cpu", "memory")


def pod_totals(spec: Obj, part: str) -> dict[str, str]:
    """`part`: "requests" or "limits"."""
    totals = {name: amount.text for name, amount in aggregate(spec, part).items()}
    whole = (spec.get("resources") or {}).get(part) or {}
    return totals | {
        name: text
        for name, text in whole.items()
        if name in _POD_LEVEL or name.startswith("hugepages-")
    }
