"""Records what the server makes of objects: as sent, and as stored."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance.record import replay
from tests.conformance.record.client import Client
from tests.conformance.record.samples import SAMPLES

NAMESPACE = "samples"


def record(client: Client) -> dict[str, Any]:
    """`path`, `sent`, `warnings` and `stored` of each sample, by label."""
    for step in replay.namespace_steps(NAMESPACE):
        client.send(step.method, step.path, step.body)
    recorded = {}
    for sample in SAMPLES:
        path = sample.path.replace("{ns}", NAMESPACE)
        sent = json.loads(json.dumps(sample.body).replace("{ns}", NAMESPACE))
        answer = client.send("POST", path, sent)
        if answer.status != 201:
            raise ValueError(f"{sample.label}: {answer.status}: {answer.response}")
        recorded[sample.label] = {
            "path": path,
            "sent": sent,
            "warnings": list(answer.warnings),
            "stored": answer.response,
        }
    return recorded
