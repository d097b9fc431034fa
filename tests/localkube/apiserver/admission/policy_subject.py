"""Admission policies of a small cluster, under test."""

from typing import Any

from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Attributes
from localkube.apiserver.admission.policies import Policies
from localkube.apiserver.admission.webhook_client import WebhookClient
from localkube.apiserver.conversion.convert import Conversions
from localkube.apiserver.defaults.apply import apply_defaults
from localkube.apiserver.judges import Judges
from localkube.apiserver.kinds import Kinds, builtin_kinds
from localkube.apiserver.long_work import LongWork
from localkube.apiserver.request import User
from localkube.apiserver.security.access import ALLOWED, DENIED, Verdict
from localkube.apiserver.status import ApiError
from localkube.apiserver.validation.validate import validate_create
from tests.localkube.apiserver.admission.small_cluster import KINDS, SmallCluster, a_cluster

_GROUP = "admissionregistration.k8s.io"
POLICIES = f"validatingadmissionpolicies.{_GROUP}"
BINDINGS = f"validatingadmissionpolicybindings.{_GROUP}"
RULE = {
    "apiGroups": [""],
    "apiVersions": ["v1"],
    "operations": ["CREATE", "UPDATE"],
    "resources": ["configmaps"],
}


class PolicySubject:
    def __init__(self, cluster: SmallCluster | None = None) -> None:
        self.cluster = cluster or a_cluster()
        self.kinds = Kinds(builtin_kinds())
        self.asked: list[dict[str, str]] = []
        convert = Conversions(self.cluster, WebhookClient(lambda _: None, LongWork())).between
        self.judges = Judges()
        self.policies = Policies(self.cluster, self.kinds, convert, self._allowed, self.judges)

    def _allowed(
        self, user: User | None, account: tuple[str, str] | None, question: dict[str, str]
    ) -> Verdict:
        self.asked.append(question | ({"account": "/".join(account)} if account else {}))
        return ALLOWED if question["verb"] == "get" else DENIED

    def policy(self, expression: str = "false", name: str = "p", **spec: Any) -> None:
        """With `expression` to validate writes of ConfigMaps, unless `spec` says otherwise."""
        given = {
            "matchConstraints": {"resourceRules": [RULE]},
            "validations": [{"expression": expression}],
        }
        self._put(POLICIES, "ValidatingAdmissionPolicy", name, given | spec)

    def bind(self, name: str = "b", policy: str = "p", **spec: Any) -> None:
        given = {"policyName": policy, "validationActions": ["Deny"]}
        self._put(BINDINGS, "ValidatingAdmissionPolicyBinding", name, given | spec)

    def _put(self, resource: str, kind: str, name: str, spec: Obj) -> None:
        thing = {
            "apiVersion": f"{_GROUP}/v1",
            "kind": kind,
            "metadata": {"name": name},
            "spec": spec,
        }
        apply_defaults(thing, KINDS[resource])
        assert validate_create(thing, KINDS[resource]) == []
        self.cluster.write(resource, thing)

    async def refusal(self, attributes: Attributes) -> ApiError | None:
        try:
            await self.policies.validate(attributes)
        except ApiError as error:
            return error
        return None

    async def said(self, attributes: Attributes) -> str:
        """The refusal behind what all refusals begin with; empty if there is none."""
        error = await self.refusal(attributes)
        return "" if error is None else str(error).partition(" denied request: ")[2]
