"""Defaults of storage classes, CSI drivers and priority classes."""

from kubeclient.objects import Obj


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


def priority_class(value: Obj) -> None:
    value.setdefault("preemptionPolicy", "PreemptLowerPriority")
