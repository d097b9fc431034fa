"""Every case of requests.json."""

from __future__ import annotations

from tests.conformance.record.cases import (
    access,
    applying,
    basics,
    cluster,
    custom,
    listing,
    patching,
    pods,
    workloads,
)

CASES = (
    *basics.CASES,
    *pods.CASES,
    *patching.CASES,
    *applying.CASES,
    *listing.CASES,
    *workloads.CASES,
    *cluster.CASES,
    *access.CASES,
    *custom.CASES,
)
