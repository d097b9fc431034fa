import pytest

from gpupool.contract.planned_moves import (
    MOST_MOVES,
    BadPlannedMoves,
    PlannedMove,
    planned_moves_of,
    planned_moves_text,
)

MOVE = PlannedMove("left", "owner", ("GPU-a", "GPU-b"), "2026-11-19T00:00:00Z")


def test_moves_come_back_as_they_were_written() -> None:
    assert planned_moves_of(planned_moves_text([MOVE])) == (MOVE,)


def test_no_moves_are_an_empty_text() -> None:
    assert planned_moves_text([]) == ""
    assert planned_moves_of("") == ()


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"version":2,"moves":[]}',
        '{"version":1,"moves":[{"pod":"a"}]}',
        planned_moves_text([MOVE]).replace("left", ""),
        planned_moves_text([MOVE] * (MOST_MOVES + 1)),
        planned_moves_text([MOVE]) + " " * 70_000,
    ],
)
def test_what_nobody_can_have_meant_is_refused(text: str) -> None:
    with pytest.raises(BadPlannedMoves):
        planned_moves_of(text)
