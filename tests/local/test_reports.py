"""What a starting server says through its pipe."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.local.reports import Failed, Ready, Report, Step, read_lines, write_to

reports = st.one_of(
    st.builds(Step, st.text(max_size=5)),
    st.builds(Ready, st.integers(0, 65535)),
    st.builds(Failed, st.text(max_size=5)),
)


@given(steps=st.lists(st.builds(Step, st.text(max_size=5)), max_size=3), last=reports)
def test_what_is_written_is_read(steps: list[Step], last: Report) -> None:
    receive, send = os.pipe()
    tell = write_to(send)
    for step in steps:
        tell(step)
    tell(last)
    if isinstance(last, Step):
        os.close(send)
    with os.fdopen(receive, "rb") as pipe:
        assert list(read_lines(iter([pipe.read()]))) == [*steps, last]


def test_lines_may_come_in_pieces() -> None:
    chunks = iter([b'{"st', b'ep": "a"}\n{"ready"', b": 1}\n"])
    assert list(read_lines(chunks)) == [Step("a"), Ready(1)]


def test_a_closed_pipe_is_no_error() -> None:
    receive, send = os.pipe()
    os.close(receive)
    tell = write_to(send)
    tell(Step("x"))
    os.close(send)


def test_an_unknown_report_is_refused() -> None:
    with pytest.raises(ValueError, match="not a report"):
        list(read_lines(iter([b'{"hello": 1}\n'])))
