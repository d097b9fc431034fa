"""Every case of requests.json."""

from __future__ import annotations

from tests.conformance.record.cases import basics

CASES = (*basics.CASES,)
