from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from localkube.kubelet.lifecycle import (
    ALWAYS,
    NEVER,
    ON_FAILURE,
    RestartBackoff,
    begin,
    mark_exited,
    mark_failed,
    mark_running,
    plan,
)
from localkube.kubelet.pod_status import phase
from localkube.kubelet.state import (
    Container,
    Pod,
    Problem,
    Role,
    Stage,
    Stop,
    is_over,
)

BACKOFF = RestartBackoff()


def pod_of(*containers: Container) -> Pod:
    return Pod("u", "ns", "p", "n", "timer", containers, 0.0, {})


def main(name: str = "m", restart: str = ALWAYS) -> Container:
    return Container(name, Role.MAIN, restart)


def step(pod: Pod, now: float) -> tuple[list[str], list[str], float | None]:
    """Carries out the plan; returns the names started and stopped, and the time of the next
    look."""
    todo = plan(pod, now, BACKOFF)
    for index in todo.start:
        begin(pod.containers[index], f"run{pod.containers[index].restart_count}", now, BACKOFF)
        mark_running(pod.containers[index], now)
    for index in todo.stop:
        pod.containers[index].stopping = True
    names = [c.name for c in pod.containers]
    return [names[i] for i in todo.start], [names[i] for i in todo.stop], todo.look_at


def test_containers_start_together_and_once() -> None:
    pod = pod_of(main("a"), main("b"))
    assert step(pod, 0) == (["a", "b"], [], None)
    assert step(pod, 1) == ([], [], None)


def test_init_containers_run_one_after_the_other() -> None:
    pod = pod_of(
        Container("i", Role.INIT, ON_FAILURE), Container("j", Role.INIT, ON_FAILURE), main()
    )
    assert step(pod, 0)[0] == ["i"]
    assert phase(pod) == "Pending"
    mark_exited(pod.containers[0], 0, 1)
    assert step(pod, 1)[0] == ["j"]
    mark_exited(pod.containers[1], 0, 2)
    assert step(pod, 2)[0] == ["m"]
    assert phase(pod) == "Running"


def test_the_next_container_waits_until_a_sidecar_has_started() -> None:
    pod = pod_of(Container("s", Role.SIDECAR, ALWAYS), main())
    todo = plan(pod, 0, BACKOFF)
    begin(pod.containers[0], "id", 0, BACKOFF)
    mark_running(pod.containers[0], 0, probed=True)
    assert todo.start == [0]
    assert step(pod, 1)[0] == []
    pod.containers[0].started = True
    assert step(pod, 1)[0] == ["m"]


def test_a_failed_init_container_fails_a_pod_that_never_restarts() -> None:
    pod = pod_of(Container("i", Role.INIT, NEVER), main(restart=NEVER))
    step(pod, 0)
    mark_exited(pod.containers[0], 1, 1)
    assert plan(pod, 1, BACKOFF).over
    assert phase(pod) == "Failed"


def test_sidecars_stop_when_the_others_are_done_in_reverse() -> None:
    pod = pod_of(
        Container("s", Role.SIDECAR, ALWAYS), Container("t", Role.SIDECAR, ALWAYS), main("m", NEVER)
    )
    for _ in range(3):
        step(pod, 0)
    mark_exited(pod.containers[2], 0, 1)
    assert step(pod, 1)[1] == ["t"]
    assert step(pod, 1)[1] == []
    assert phase(pod) == "Running"
    mark_exited(pod.containers[1], 143, 2)
    assert step(pod, 2)[1] == ["s"]
    mark_exited(pod.containers[0], 143, 3)
    assert plan(pod, 3, BACKOFF).over
    assert phase(pod) == "Succeeded"


def test_the_first_restart_is_at_once_and_then_it_takes_longer_and_longer() -> None:
    pod = pod_of(main())
    now, waits = 0.0, []
    step(pod, now)
    for _ in range(8):
        mark_exited(pod.containers[0], 1, now)
        started, _, look_at = step(pod, now)
        waits.append(0.0 if look_at is None else look_at - now)
        if not started:
            assert look_at is not None
            now = look_at
            assert step(pod, now)[0] == ["m"]
    assert waits == [0, 10, 20, 40, 80, 160, 300, 300]
    assert pod.containers[0].restart_count == 8


def test_a_long_run_resets_the_back_off() -> None:
    pod = pod_of(main())
    step(pod, 0)
    for now in (0, 0):
        mark_exited(pod.containers[0], 1, now)
        step(pod, now)
    step(pod, 10)
    mark_exited(pod.containers[0], 1, 10 + 601)
    assert step(pod, 10 + 601)[0] == ["m"]
    assert pod.containers[0].backoff_s == 10


@pytest.mark.parametrize(
    ("restart", "code", "comes_back", "word"),
    [
        (ALWAYS, 0, True, "Running"),
        (ALWAYS, 1, True, "Running"),
        (ON_FAILURE, 0, False, "Succeeded"),
        (ON_FAILURE, 1, True, "Running"),
        (NEVER, 0, False, "Succeeded"),
        (NEVER, 1, False, "Failed"),
    ],
)
def test_the_restart_policy_decides(restart: str, code: int, comes_back: bool, word: str) -> None:
    pod = pod_of(main(restart=restart))
    step(pod, 0)
    mark_exited(pod.containers[0], code, 1)
    assert phase(pod) == word
    assert (step(pod, 1)[0] == ["m"]) is comes_back


def test_a_failed_start_is_repeated_and_is_no_restart() -> None:
    pod = pod_of(main())
    begin(pod.containers[0], "id", 0, BACKOFF)
    mark_failed(pod.containers[0], Problem("CreateContainerConfigError", "no"), 5)
    assert step(pod, 1) == ([], [], 5)
    assert phase(pod) == "Pending"
    assert step(pod, 5)[0] == ["m"]
    assert pod.containers[0].restart_count == 0


def test_an_unhealthy_container_is_stopped_once_and_comes_back() -> None:
    pod = pod_of(main(restart=ON_FAILURE))
    step(pod, 0)
    pod.containers[0].unhealthy = True
    assert step(pod, 1)[1] == ["m"]
    assert step(pod, 1)[1] == []
    mark_exited(pod.containers[0], 0, 2)
    assert step(pod, 2)[0] == ["m"]


def test_an_ephemeral_container_runs_once_and_delays_nothing() -> None:
    pod = pod_of(main(restart=NEVER), Container("e", Role.EPHEMERAL, NEVER))
    assert step(pod, 0)[0] == ["m", "e"]
    mark_exited(pod.containers[1], 1, 1)
    assert step(pod, 1)[0] == []
    assert phase(pod) == "Running"


@dataclass
class Model:
    """A simulated pod, to which things happen in any order."""

    pod: Pod
    now: float = 0.0

    def act(self, action: str, which: int, code: int) -> None:
        container = self.pod.containers[which % len(self.pod.containers)]
        match action:
            case "exit" if container.stage is Stage.RUNNING:
                mark_exited(container, code, self.now)
            case "wait":
                self.now += 7
            case "stop" if self.pod.stop is None:
                self.pod.stop = Stop(self.now, 30)
            case "sicken" if container.stage is Stage.RUNNING:
                container.unhealthy = True
            case _:
                pass

    def look(self) -> list[str]:
        return step(self.pod, self.now)[0]


roles = st.lists(st.sampled_from([Role.INIT, Role.SIDECAR]), max_size=3)
actions = st.lists(
    st.tuples(
        st.sampled_from(["exit", "wait", "stop", "sicken"]),
        st.integers(0, 5),
        st.sampled_from([0, 0, 1]),
    ),
    max_size=25,
)


def made(first: Sequence[Role], mains: int, policy: str) -> Pod:
    containers = [
        Container(
            f"{role.name}{number}",
            role,
            ALWAYS if role is Role.SIDECAR else (NEVER if policy == NEVER else ON_FAILURE),
        )
        for number, role in enumerate(first)
    ]
    containers += [main(f"m{number}", policy) for number in range(mains)]
    return pod_of(*containers)


@given(roles, st.integers(1, 2), st.sampled_from([ALWAYS, ON_FAILURE, NEVER]), actions)
def test_whatever_happens_the_order_is_kept(
    first: list[Role], mains: int, policy: str, things: list[tuple[str, int, int]]
) -> None:
    model = Model(made(first, mains, policy))
    pod = model.pod
    finished = False
    for action, which, code in things:
        started = model.look()
        inits = [c for c in pod.containers if c.role is Role.INIT]
        running = [c for c in inits if c.stage is Stage.RUNNING]
        assert len(running) <= 1, "init containers run alone"
        if any(c.role is Role.MAIN and c.stage is not Stage.WAITING for c in pod.containers):
            assert all(c.exit is not None and c.exit.code == 0 for c in inits)
        if pod.stop is not None or finished:
            assert not started, "nothing starts in a pod that ends"
        stopping = [c for c in pod.containers if c.stopping and not c.unhealthy]
        if pod.stop is not None and any(c.role is Role.SIDECAR for c in stopping):
            assert all(is_over(c) for c in pod.containers if c.role is not Role.SIDECAR)
        finished = finished or phase(pod) in ("Succeeded", "Failed")
        model.act(action, which, code)


@given(roles, st.integers(1, 2), st.sampled_from([ALWAYS, ON_FAILURE, NEVER]), actions)
def test_a_pod_that_stops_comes_to_an_end(
    first: list[Role], mains: int, policy: str, things: list[tuple[str, int, int]]
) -> None:
    model = Model(made(first, mains, policy))
    for action, which, code in things:
        model.look()
        model.act(action, which, code)
    model.act("stop", 0, 0)
    for _ in range(len(model.pod.containers) + 1):
        model.look()
        for container in model.pod.containers:
            if container.stopping and container.stage is Stage.RUNNING:
                mark_exited(container, 143, model.now)
    assert plan(model.pod, model.now, BACKOFF).over
    assert all(is_over(container) for container in model.pod.containers)
