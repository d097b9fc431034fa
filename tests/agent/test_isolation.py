from hypothesis import given
from hypothesis import strategies as st

from gpupool.agent.isolation import IsolationState, next_isolation

ISOLATED = {"cgpu": "true"}
FREE = {"cgpu": "true", "cgpu.disable.isolation": "true"}
WHOLE: dict[str, str] = {}
STARTED_WITHIN_S = 60  # how long after its pod was bound a container may start


def test_a_shared_node_publishes_what_its_labels_ask_for() -> None:
    states = [
        next_isolation(IsolationState(), labels, has_limiter=True, now_s=0).published
        for labels in (ISOLATED, FREE, WHOLE)
    ]
    assert states == [True, False, None]


def test_without_a_limiter_no_isolation_is_published() -> None:
    found = next_isolation(IsolationState(), ISOLATED, has_limiter=False, now_s=0)
    assert found == IsolationState(published=False)
    assert not found.is_limiting(0)


@given(
    st.lists(st.tuples(st.sampled_from([ISOLATED, FREE, WHOLE]), st.integers(1, 1000)), min_size=1),
    st.integers(0, STARTED_WITHIN_S),
)
def test_a_pod_that_was_promised_isolation_starts_with_the_limiter(
    changes: list[tuple[dict[str, str], int]], delay_s: int
) -> None:
    state, now_s, promised_at_s = IsolationState(), 0, None
    for labels, pause_s in changes:
        now_s += pause_s
        if state.published:
            promised_at_s = now_s  # a pod may be bound until the very moment of the change
        state = next_isolation(state, labels, has_limiter=True, now_s=now_s)
        if promised_at_s is not None and now_s - promised_at_s <= STARTED_WITHIN_S:
            assert state.is_limiting(promised_at_s + delay_s)


def test_the_limiter_is_mounted_no_more_some_time_after_isolation_ends() -> None:
    state = next_isolation(IsolationState(published=True), FREE, has_limiter=True, now_s=1000)
    assert state.is_limiting(1299)
    assert not state.is_limiting(1300)
