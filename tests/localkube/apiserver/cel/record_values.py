"""Records recorded_values.json: what a real kube-apiserver makes of each expression.

    python -m tests.localkube.apiserver.cel.record_values

Each expression is the message of a policy of its own, and a dry run is denied by it.
"""

import json
import time
from pathlib import Path
from typing import Any

from testbed.controlplane import ControlPlane
from tests.conformance.record.client import Client
from tests.localkube.apiserver.cel.expressions import EXPRESSIONS, OBJECT

TARGET = Path(__file__).with_name("recorded_values.json")
_POLICIES = "/apis/admissionregistration.k8s.io/v1"
_THINGS = "/api/v1/namespaces/default/configmaps?dryRun=All"
_LABEL = "policy-under-test"
_DENIED = " denied request: "
_LONGEST_S = 60


def policy(number: int, expression: str) -> dict[str, Any]:
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": f"p{number}"},
        "spec": {
            "matchConstraints": {
                "resourceRules": [rule],
                "objectSelector": {"matchLabels": {_LABEL: f"p{number}"}},
            },
            "variables": [{"name": "value", "expression": expression}],
            "validations": [
                {
                    "expression": "[dyn(variables.value)].size() == 0",
                    "messageExpression": "'value: %s'.format([dyn(variables.value)])",
                }
            ],
        },
    }


def binding(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": f"p{number}"},
        "spec": {"policyName": f"p{number}", "validationActions": ["Deny"]},
    }


def outcome(client: Client, number: int) -> str:
    metadata = OBJECT["metadata"] | {
        "labels": {**OBJECT["metadata"]["labels"], _LABEL: f"p{number}"}
    }
    answer = client.send("POST", _THINGS, OBJECT | {"metadata": metadata})
    if answer.status == 201:
        return ""
    return str(answer.response["message"].partition(_DENIED)[2])


def create(client: Client, number: int, expression: str) -> str:
    """Why it is no expression; empty if it is one."""
    answer = client.send(
        "POST", f"{_POLICIES}/validatingadmissionpolicies", policy(number, expression)
    )
    if answer.status == 422:
        causes = answer.response["details"]["causes"]
        first = next(each for each in causes if each["field"] == "spec.variables[0].expression")
        return str(first["message"].partition('": ')[2])
    client.send("POST", f"{_POLICIES}/validatingadmissionpolicybindings", binding(number))
    return ""


def main() -> None:
    with ControlPlane() as plane:
        client = Client(plane.url, plane.token, plane.ca_file)
        problems = [create(client, number, each) for number, each in enumerate(EXPRESSIONS)]
        found = []
        for number, expression in enumerate(EXPRESSIONS):
            said, limit_s = problems[number], time.monotonic() + _LONGEST_S
            while not said and time.monotonic() < limit_s:
                said = outcome(client, number)
                if not said:
                    time.sleep(0.2)  # until the server has seen the binding
            found.append([expression, said])
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in found)
    TARGET.write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
