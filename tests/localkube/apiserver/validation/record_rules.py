"""Records recorded_rules.json: what a real kube-apiserver says of objects with one spoilt field.

    python -m tests.localkube.apiserver.validation.record_rules

full_objects.json and full_statuses.json hold objects that it accepts. Of the thousands of ways to
spoil them, a fixed choice is recorded; the order of what it says is not, it varies.
"""

import json
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from testbed.controlplane import ControlPlane
from tests.conformance.record.client import Client
from tests.localkube.apiserver.validation.rules_subject import kind_of
from tests.localkube.apiserver.validation.single_changes import (
    Change,
    Obj,
    changed,
    changes,
    comparable,
    without_nulls,
    written,
)

FOLDER = Path(__file__).parent
# Rules only: nothing that fills in, or refuses for what else is in the cluster.
_OFF = (
    *("ServiceAccount", "DefaultTolerationSeconds", "Priority", "LimitRanger", "ResourceQuota"),
    *("DefaultStorageClass", "StorageObjectInUseProtection", "RuntimeClass", "PodSecurity"),
    *("TaintNodesByCondition", "DefaultIngressClass", "PersistentVolumeClaimResize"),
    *("CertificateApproval", "CertificateSigning", "CertificateSubjectRestriction"),
    *("ValidatingAdmissionPolicy", "MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"),
)
_MOST = {"create": 60, "update": 25, "status": 50}
_FOR_PODS = 2
_CHANGEABLE_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


def main() -> None:
    objects = json.loads((FOLDER / "full_objects.json").read_bytes())
    statuses = json.loads((FOLDER / "full_statuses.json").read_bytes())
    flags = {"kube-apiserver": [f"--disable-admission-plugins={','.join(_OFF)}"]}
    texts: dict[str, int] = {}
    with ControlPlane(flags=flags) as plane:
        client = Client(plane.url, plane.token, plane.ca_file)
        recorded = {
            name: dict(_recorded(client, name, obj, statuses.get(name), texts))
            for name, obj in objects.items()
        }
    _write({"texts": list(texts), "objects": recorded})


def _recorded(
    client: Client, name: str, obj: Obj, status: Obj | None, texts: dict[str, int]
) -> Iterator[tuple[str, Any]]:
    place = _place(obj)

    def asked(verb: str, path: str, base: Obj, chosen: list[Change]) -> Iterator[list[Any]]:
        method = "POST" if verb == "create" else "PUT"
        for change in chosen:
            answer = client.send(method, f"{path}?dryRun=All", changed(base, change))
            if answer.status in (200, 201, 422):
                yield [*written(change), _causes(answer.response, texts)]

    yield "create", list(asked("create", place, obj, _choice(name, "create", changes(obj))))
    if "name" not in obj["metadata"]:
        return
    stored = _stored(client, place, obj)
    yield "stored", stored
    at = f"{place}/{obj['metadata']['name']}"
    possible = (change for change in changes(stored) if _is_updatable(change))
    yield "update", list(asked("update", at, stored, _choice(name, "update", possible)))
    if status is not None:
        full = {**stored, "status": status}
        possible = (change for change in changes(full) if change.path[0] == "status")
        yield (
            "status",
            list(asked("status", f"{at}/status", full, _choice(name, "status", possible))),
        )
    client.send("PATCH", at, {"metadata": {"finalizers": None}}, _MERGE)
    client.send("DELETE", f"{at}?gracePeriodSeconds=0")


_MERGE = {"Content-Type": "application/merge-patch+json"}


def _place(obj: Obj) -> str:
    kind = kind_of(obj)
    root = f"/apis/{kind.api_version}" if kind.group else "/api/v1"
    return (
        f"{root}/namespaces/default/{kind.plural}" if kind.namespaced else f"{root}/{kind.plural}"
    )


def _choice(name: str, verb: str, possible: Iterator[Change]) -> list[Change]:
    found = list(possible)
    most = _MOST[verb] * (_FOR_PODS if name.partition("-")[0] == "Pod" else 1)
    return random.Random(f"{name} {verb}").sample(found, most) if len(found) > most else found


def _is_updatable(change: Change) -> bool:
    if change.path[0] == "metadata":
        return change.path[1] in _CHANGEABLE_METADATA
    return change.path[0] != "status"


def _stored(client: Client, place: str, obj: Obj) -> Obj:
    answer = client.send("POST", place, obj)
    assert answer.status == 201, answer.response
    if obj["kind"] in ("CustomResourceDefinition", "Namespace"):
        time.sleep(2)  # until the server has noted that the names are free
        answer = client.send("GET", f"{place}/{obj['metadata']['name']}")
    stored: Obj = without_nulls(answer.response)
    stored["metadata"].pop("managedFields", None)  # those of an APIService are not tracked
    return stored


def _causes(response: Any, texts: dict[str, int]) -> list[int]:
    causes = response.get("details", {}).get("causes", ()) if response["kind"] == "Status" else ()
    said = (f"{one['reason']}|{one.get('field', '')}|{one['message']}" for one in causes)
    return sorted(texts.setdefault(comparable(text), len(texts)) for text in said)


def _write(recorded: Obj) -> None:
    lines = ["{", '"texts": [', _lines(recorded["texts"]), "],", '"objects": {']
    for place, (name, verbs) in enumerate(recorded["objects"].items()):
        lines.append(f'{"," if place else ""}"{name}": {{')
        for number, (verb, cases) in enumerate(verbs.items()):
            text = json.dumps(cases) if verb == "stored" else f"[\n{_lines(cases)}\n]"
            lines.append(f'{"," if number else ""}"{verb}": {text}')
        lines.append("}")
    path = FOLDER / "recorded_rules.json"
    path.write_text("\n".join([*lines, "}}", ""]))


def _lines(items: list[Any]) -> str:
    return ",\n".join(json.dumps(item, separators=(",", ":")) for item in items)


if __name__ == "__main__":
    main()
