"""Defaults of storage, scheduling and flow control kinds: fixed values of a few fields each."""

from kubeclient.objects import Obj
from localkube.apiserver.defaults.volumes import persistent_source


def storage_class(value: Obj) -> None:
    value.setdefault("reclaimPolicy", "Delete")
    value.setdefault("volumeBindingMode", "Immediate")


def csi_driver(value: Obj) -> None:
    spec: Obj = value["spec"]
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)
    spec.setdefault("fsGroupPolicy", "ReadWriteOnceWithFSType")
    spec.setdefault("volumeLifecycleModes", ["Persistent"])
    spec.setdefault("requiresRepublish", False)
    spec.setdefault("seLinuxMount", False)


def volume_attachment(value: Obj) -> None:
    inline = value["spec"]["source"].get("inlineVolumeSpec")
    if inline is not None:
        persistent_source(inline)


def priority_class(value: Obj) -> None:
    value.setdefault("preemptionPolicy", "PreemptLowerPriority")


def flow_schema(value: Obj) -> None:
    if not value["spec"]["matchingPrecedence"]:
        value["spec"]["matchingPrecedence"] = 1000


def priority_level(value: Obj) -> None:
    for name, shares in (("exempt", 0), ("limited", 30)):
        if name in value["spec"]:
            value["spec"][name].setdefault("nominalConcurrencyShares", shares)
            value["spec"][name].setdefault("lendablePercent", 0)
    queuing = value["spec"].get("limited", {}).get("limitResponse", {}).get("queuing")
    if queuing is not None:
        for name, number in (("handSize", 8), ("queues", 64), ("queueLengthLimit", 50)):
            if not queuing[name]:
                queuing[name] = number
