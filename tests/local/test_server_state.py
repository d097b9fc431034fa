"""What `gpupool status` makes of the page of readiness."""

from gpupool.local.server_state import troubles_of

PAGE = """[+]ping ok
[-]scheduler failed: OverflowError: int too large
[+]kubelet ok
   cannot handle Pod default/odd: ValueError: year 0 is out of range
readyz check failed
"""


def test_failing_programs_and_objects_that_are_not_handled_are_named() -> None:
    assert troubles_of(PAGE) == [
        "scheduler failed: OverflowError: int too large",
        "kubelet cannot handle Pod default/odd: ValueError: year 0 is out of range",
    ]


def test_a_cluster_without_troubles_has_none_to_show() -> None:
    assert troubles_of("[+]ping ok\n[+]scheduler ok\nreadyz check passed\n") == []
