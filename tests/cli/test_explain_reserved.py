"""`gpupool explain` repeats what the scheduler says of room that it keeps for a pod."""

from gpupool.cli.explain import words_of_room
from gpupool.scheduler.kept_words import LEFT, RESERVED


def test_the_sentence_about_kept_room_is_found_in_the_condition() -> None:
    sentence = f"{RESERVED} since 2026-11-17T10:00:00Z: room on n, expected in 5 min from then."
    condition = {"type": "PodScheduled", "message": f"0/1 nodes are available. {sentence}"}
    assert words_of_room({"status": {"conditions": [condition]}}) == (sentence,)


def test_other_pods_have_none() -> None:
    condition = {"type": "PodScheduled", "message": "0/1 nodes are available."}
    for status in ({}, {"conditions": None}, {"conditions": [condition, {"type": "Ready"}]}):
        assert words_of_room({"status": status}) == ()


def test_room_that_is_left_to_larger_pods_is_said() -> None:
    condition = {"type": "PodScheduled", "message": LEFT}
    assert words_of_room({"status": {"conditions": [condition]}}) == (LEFT,)
