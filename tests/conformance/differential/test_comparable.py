"""What varies counts as equal; what does not vary stays."""

import pytest

from tests.conformance.differential.comparable import comparable


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("NAME   AGE\na      9s\n", "NAME   AGE\na      12s\n"),
        ("pod/web-7c5ddbdf54-xk2q9 created", "pod/web-6d4cf56db6-zz2b4 created"),
        ("service/a   10.96.3.4   80:30111/TCP", "service/a   10.0.1.2   80:31999/TCP"),
        ('{"kind":"A","uid":"x","b":1}', '{"b":1,"uid":"y","kind":"A"}'),
        ("Created:   Mon, 16 Nov 2026 03:04:39 +0000", "Created:  Tue, 17 Nov 2026 03:00:00 +0000"),
        ("E1116 03:04:39.12    9 reflector.go:1] no\nerror: late", "error: late"),
        ("E1116 03:04:39.123456    1234 a.go:1] no", "E1117 04:04:39.123456   99 a.go:1] no"),
    ],
)
def test_what_varies_counts_as_equal(one: str, other: str) -> None:
    assert comparable(one) == comparable(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a: 1", "a: 2"),
        ("a:\n  b: 1", "a:\nb: 1"),
        ("pod/web created", "pod/web configured"),
        ('{"a":[1,2]}', '{"a":[2,1]}'),
        ("port: 8080", "port: 8081"),
    ],
)
def test_what_does_not_vary_stays(one: str, other: str) -> None:
    assert comparable(one) != comparable(other)
