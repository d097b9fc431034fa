"""Every case of requests.json."""

from __future__ import annotations

from tests.conformance.record.cases import (
    access,
    applying,
    basics,
    budgets,
    cluster,
    config,
    custom,
    listing,
    patching,
    pod_life,
    pods,
    reviews,
    statuses,
    strict,
    workloads,
)

CASES = (
    *basics.CASES,
    *pods.CASES,
    *pod_life.CASES,
    *patching.CASES,
    *applying.CASES,
    *listing.CASES,
    *workloads.CASES,
    *cluster.CASES,
    *budgets.CASES,
    *config.CASES,
    *access.CASES,
    *custom.CASES,
    *statuses.CASES,
    *strict.CASES,
    *reviews.CASES,
)
