"""The Binder: when an assignment is released or kept after a Binding that did not succeed."""

from gpupool.scheduler.ledger import Knowledge
from tests.scheduler.model_api import Fate
from tests.scheduler.stepped import Stepped


def one_pod() -> tuple[Stepped, str]:
    stepped = Stepped()
    stepped.api.set_node("n", ill=False)
    stepped.api.add_pod("p", 1, priority=0)
    return stepped, stepped.uid("p")


def knowledge(stepped: Stepped, uid: str) -> Knowledge | None:
    place = stepped.state.ledger.assignment(uid)
    return place.knowledge if place is not None else None


async def test_a_scheduler_that_may_not_lead_any_more_sends_nothing() -> None:
    stepped, uid = one_pod()
    writes = stepped.try_next()
    stepped.leads = False
    await stepped.write(writes)
    assert "nodeName" not in stepped.api.pods["p"]["spec"]
    assert knowledge(stepped, uid) is None
    assert stepped.backing_off() == 1


async def test_an_assignment_is_kept_while_an_earlier_binding_may_still_arrive() -> None:
    stepped, uid = one_pod()
    await stepped.write(stepped.try_next(), Fate.LOST_REQUEST)
    assert knowledge(stepped, uid) is Knowledge.UNANSWERED
    stepped.now_s += 2
    # The pod is read; the second Binding is refused with 429. The first may still be on its way.
    await stepped.write(stepped.try_next(), Fate.OK, Fate.BUSY)
    assert knowledge(stepped, uid) is Knowledge.UNANSWERED
    assert stepped.backing_off() == 1


async def test_an_assignment_is_released_when_no_binding_can_arrive_any_more() -> None:
    stepped, uid = one_pod()
    await stepped.write(stepped.try_next(), Fate.LOST_REQUEST)
    stepped.now_s += 100
    await stepped.write(stepped.try_next())
    assert knowledge(stepped, uid) is None
    assert stepped.backing_off() == 1
    stepped.now_s += 20
    await stepped.write(stepped.try_next())
    assert stepped.api.pods["p"]["spec"]["nodeName"] == "n"


async def test_an_assignment_is_released_when_the_pod_was_deleted() -> None:
    stepped, uid = one_pod()
    await stepped.write(stepped.try_next(), Fate.LOST_REQUEST)
    stepped.now_s += 2
    writes = stepped.try_next()
    stepped.api.delete_pod("p")  # the watch has not said so yet
    await stepped.write(writes)
    assert knowledge(stepped, uid) is None


async def test_refusals_do_not_keep_the_place_of_a_lost_binding_for_ever() -> None:
    stepped, uid = one_pod()
    lost_s = stepped.now_s
    await stepped.write(stepped.try_next(), Fate.LOST_REQUEST)
    while knowledge(stepped, uid) is Knowledge.UNANSWERED:
        assert stepped.now_s <= lost_s + 110
        stepped.now_s += 10
        await stepped.write(stepped.try_next(), Fate.OK, Fate.FORBIDDEN)
    assert stepped.now_s > lost_s + 90
    assert knowledge(stepped, uid) is None


async def test_another_lost_binding_begins_the_time_again() -> None:
    stepped, uid = one_pod()
    await stepped.write(stepped.try_next(), Fate.LOST_REQUEST)
    stepped.now_s += 60
    await stepped.write(stepped.try_next(), Fate.OK, Fate.LOST_REQUEST)
    stepped.now_s += 60
    await stepped.write(stepped.try_next(), Fate.OK, Fate.FORBIDDEN)
    assert knowledge(stepped, uid) is Knowledge.UNANSWERED
