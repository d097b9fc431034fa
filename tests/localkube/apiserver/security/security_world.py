"""The cluster that fixtures/answers.json was recorded on, as our own classes see it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from localkube.apiserver.request import User
from localkube.apiserver.security.bootstrap_roles import bootstrap_objects
from localkube.apiserver.security.rbac import Authorizer
from localkube.apiserver.security.service_account_tokens import ServiceAccountTokens
from localkube.apiserver.security.token_requests import answer_token_request
from tests.localkube.apiserver.security import security_cases as cases

Json = Any
RECORDED: Json = json.loads((Path(__file__).parent / "fixtures" / "answers.json").read_text())
ADMIN = User("admin", ("system:masters", "system:authenticated"), uid="admin")


class Objects:
    """The recorded objects that are not of RBAC. Also what the authorizer asks about nodes."""

    def __init__(self, found: Iterable[Json]) -> None:
        self.found = list(found)

    def get(self, resource: str, namespace: str, name: str) -> Json | None:
        for each in self.found:
            metadata = each["metadata"]
            place = (each["kind"].lower() + "s", metadata.get("namespace", ""), metadata["name"])
            if place == (resource, namespace, name):
                return each
        return None

    def uid(self, resource: str, namespace: str, name: str) -> str | None:
        found = self.get(resource, namespace, name)
        return found and found["metadata"]["uid"]

    def node_of_pod(self, namespace: str, name: str) -> str | None:
        pod = self.get("pods", namespace, name)
        return pod and pod["spec"].get("nodeName")

    def pods_on(self, node: str) -> Iterator[Json]:
        for each in self.found:
            if each["kind"] == "Pod" and each["spec"].get("nodeName") == node:
                yield each

    def spec_of(self, resource: str, name: str) -> Json:
        found = self.get(resource.partition(".")[0], "", name)
        return (found or {}).get("spec", {})


def answered(asked: Sequence[Any], recording: str) -> list[ParameterSet]:
    """Each case with the answer that was recorded for it."""
    return [
        pytest.param(case, answer, id=f"{number} {case}"[:80])
        for number, (case, answer) in enumerate(zip(asked, RECORDED[recording], strict=True))
    ]


def recorded_objects() -> Objects:
    return Objects(deepcopy(RECORDED["found"]))


def store(authorizer: Authorizer, body: Json) -> None:
    metadata = body["metadata"]
    plural = body["kind"].lower() + "s"
    authorizer.replace(plural, metadata.get("namespace", ""), metadata["name"], body)


def recorded_authorizer() -> Authorizer:
    authorizer = Authorizer(recorded_objects())
    for body in bootstrap_objects() + cases.OBJECTS:
        store(authorizer, body)
    return authorizer


def new_key() -> bytes:
    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def token_for(tokens: ServiceAccountTokens, objects: Objects, spec: Json, now_s: float) -> str:
    """A token of the service account `robot`."""
    account = objects.get("serviceaccounts", "default", "robot")
    assert account is not None
    answer = answer_token_request(
        {"spec": spec}, account, tokens=tokens, find=objects.get, now_s=now_s
    )
    return str(answer["status"]["token"])


def person(name: str, groups: str = "") -> User:
    """Whom an administrator of the recording impersonated."""
    if not name:
        return ADMIN
    added: tuple[str, ...] = tuple(groups.split())
    if name.startswith("system:serviceaccount:") and not added:
        namespace = name.split(":")[2]
        added = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")
    return User(name, (*added, "system:authenticated"))
