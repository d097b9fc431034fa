"""What strangers write about their pods comes out as plain text of one line."""

import pytest

from gpupool.history.facts import user_of, workload_of


@pytest.mark.parametrize(
    ("written", "user"),
    [
        ("ann", "ann"),
        ("\x1b[31mann\x07", "[31mann"),
        ("ann\r\n=cmd|' /C calc'!A0", "ann  =cmd|' /C calc'!A0"),
        ("\u202enna", "nna"),  # would be read from right to left
        ("\n\t\x00", ""),
        ("x" * 999, "x" * 253),
        ("安娜", "安娜"),
    ],
)
def test_a_user_is_one_line_of_text(written: str, user: str) -> None:
    assert user_of({"annotations": {"gpupool.io/user": written}}) == user


def test_a_user_that_is_nothing_is_looked_for_elsewhere() -> None:
    labels = {"app.kubernetes.io/created-by": "bob"}
    assert user_of({"annotations": {"gpupool.io/user": "\n"}, "labels": labels}) == "bob"


def test_an_owner_of_any_text_is_one_line() -> None:
    owner = {"controller": True, "kind": "Job\n", "name": "a\x1b[2Jb" + "c" * 999}
    found = workload_of({"metadata": {"name": "p", "ownerReferences": [owner]}})
    assert found == "Job/a [2Jb" + "c" * 247
