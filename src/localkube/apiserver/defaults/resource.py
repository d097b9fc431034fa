"""Defaults of dynamic resource allocation."""

from datetime import UTC, datetime

from kubeclient.objects import Obj


def resource_claim(value: Obj) -> None:
    _claim_spec(value["spec"])
    results = value["status"].get("allocation", {}).get("devices", {}).get("results", ())
    _tolerations(results)


def resource_claim_template(value: Obj) -> None:
    _claim_spec(value["spec"]["spec"])


def resource_slice(value: Obj) -> None:
    for device in value["spec"].get("devices", ()):
        for taint in device.get("taints", ()):
            # The one default that is a moment: since when the device is tainted.
            taint.setdefault("timeAdded", datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def _claim_spec(spec: Obj) -> None:
    for request in spec["devices"].get("requests", ()):
        if "exactly" in request:
            _count(request["exactly"])
        for choice in request.get("firstAvailable", ()):
            _count(choice)


def _count(request: Obj) -> None:
    if request.setdefault("allocationMode", "ExactCount") == "ExactCount":
        request.setdefault("count", 1)
    _tolerations([request])


def _tolerations(holders: list[Obj]) -> None:
    for holder in holders:
        for toleration in holder.get("tolerations", ()):
            toleration.setdefault("operator", "Equal")
