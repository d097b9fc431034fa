"""Records recorded_costs.json: what kube-apiserver's own code thinks that rules of CRDs cost.

    python -m tests.localkube.apiserver.cel.record_costs

It needs Go and the modules of the test-bed, and takes minutes to build the first time.
"""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.localkube.apiserver.cel.rule_budgets import SCHEMAS
from tests.localkube.apiserver.cel.rule_costs import RULES, SCHEMA

TARGET = Path(__file__).with_name("recorded_costs.json")
_MODULE = Path(__file__).parents[4] / "testbed/kubernetes"


def main() -> None:
    asked = [{**SCHEMA, "x-kubernetes-validations": [{"rule": rule}]} for rule in RULES]
    answers = _answers([*asked, *SCHEMAS])
    costs = {rule: answer["costs"][0] for rule, answer in zip(RULES, answers, strict=False)}
    errors = [answer["errors"] for answer in answers[len(RULES) :]]
    TARGET.write_text(json.dumps({"costs": costs, "errors": errors}, indent=1) + "\n")


def _answers(schemas: list[dict[str, Any]]) -> list[dict[str, Any]]:
    done = subprocess.run(
        ["go", "run", "-mod=readonly", "-trimpath", "./rulecosts"],
        cwd=_MODULE,
        input=json.dumps(schemas),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    main()
