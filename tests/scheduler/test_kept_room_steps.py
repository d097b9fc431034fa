"""Room is looked for in steps, with decisions in between."""

from collections.abc import Hashable
from typing import Any

import pytest

from gpupool.engine.reservations import Reservations
from gpupool.scheduler import kept_room
from tests.scheduler.model_api import UNITS
from tests.scheduler.test_kept_room import a_world, fill, wait


async def test_nobody_new_has_a_turn_while_better_room_is_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise all that wait would be looked for one after the other, without a pause."""
    monkeypatch.setattr(kept_room, "PODS_AT_ONCE", 1)
    monkeypatch.setattr(Reservations, "most", lambda _: 9)
    world = a_world(4)
    await fill(world, *"abcdefgh")
    world.api.add_pod("large", UNITS)
    await world.settle()
    await wait(world)
    await wait(world, *[5.0] * 40)
    for name in ("first", "second", "third"):
        world.api.add_pod(name, 3 * UNITS)  # fits nowhere
    await world.settle()
    await wait(world)
    for _ in range(120):
        await wait(world, 5.0)

    given_up: list[Hashable] = []
    steps: list[float] = []
    move_late = Reservations.move_late

    def counted(self: Reservations, *args: Any) -> bool:
        steps.append(world.now_s)
        return move_late(self, *args)

    monkeypatch.setattr(Reservations, "_give_up", lambda _, key: given_up.append(key))
    monkeypatch.setattr(Reservations, "move_late", counted)
    (kept,) = world.state.kept_room._reservations.all()
    kept.look_s = 0.0
    world.state.cluster.node_changes.append(0)  # nobody is hopeless any more
    for _ in range(1000):
        await wait(world, 0.03)
        if given_up:
            break
    for _ in range(100):
        await wait(world, 0.03)
    assert len(steps) > 3
    assert len(given_up) == 1
