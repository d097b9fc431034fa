"""Objects whose stored form shows every default that the server sets."""

from __future__ import annotations

from tests.conformance.record.samples import api_machinery, core, platform, pods, workloads

# Cluster objects first: pods refer to a ServiceAccount, a runtime or a priority class.
SAMPLES = (
    *core.SAMPLES,
    *platform.SAMPLES,
    *api_machinery.SAMPLES,
    *workloads.SAMPLES,
    *pods.SAMPLES,
)
