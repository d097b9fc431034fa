"""Defaults of the apps group."""

from kubeclient.objects import Obj
from localkube.apiserver.defaults.core_cluster import persistent_volume_claim
from localkube.apiserver.defaults.pods import template_in_spec


def deployment(value: Obj) -> None:
    spec: Obj = value["spec"]
    template_in_spec(value)
    spec.setdefault("replicas", 1)
    strategy = spec["strategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", "25%")
        rolling.setdefault("maxSurge", "25%")
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)


def daemon_set(value: Obj) -> None:
    spec: Obj = value["spec"]
    template_in_spec(value)
    strategy = spec["updateStrategy"]
    if strategy.setdefault("type", "RollingUpdate") == "RollingUpdate":
        rolling = strategy.setdefault("rollingUpdate", {})
        rolling.setdefault("maxUnavailable", 1)
        rolling.setdefault("maxSurge", 0)
    spec.setdefault("revisionHistoryLimit", 10)


def stateful_set(value: Obj) -> None:
    spec: Obj = value["spec"]
    template_in_spec(value)
    spec.setdefault("podManagementPolicy", "OrderedReady")
    strategy = spec["updateStrategy"]
    if "type" not in strategy:
        strategy["type"] = "RollingUpdate"
        strategy.setdefault("rollingUpdate", {})
    if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
        strategy["rollingUpdate"].setdefault("partition", 0)
        # Of a feature that this release has switched off, and so it does not keep it.
        strategy["rollingUpdate"].pop("maxUnavailable", None)
    retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
    retention.setdefault("whenDeleted", "Retain")
    retention.setdefault("whenScaled", "Retain")
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    for claim in spec.get("volumeClaimTemplates", ()):
        # Kept as whole objects, which name their type.
        claim["kind"], claim["apiVersion"] = "PersistentVolumeClaim", "v1"
        persistent_volume_claim(claim)


def replica_set(value: Obj) -> None:
    template_in_spec(value)
    value["spec"].setdefault("replicas", 1)
