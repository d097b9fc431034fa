"""A condition is judged anew for each object, and within a budget."""

from collections.abc import Iterator

import pytest

from localkube.apiserver.admission.webhook_conditions import ConditionError, Conditions
from localkube.apiserver.admission.webhook_config import Condition
from localkube.apiserver.judges import Judges


@pytest.fixture
def judges() -> Iterator[Judges]:
    found = Judges()
    yield found
    found.close()


@pytest.mark.parametrize("names", [["a"], ["a", "b"]])
async def test_the_same_question_about_another_object_gets_another_answer(
    names: list[str], judges: Judges
) -> None:
    condition = [Condition("c", "object.kind == 'a'")]
    for name in names:
        assert await Conditions(judges).hold(condition, {"object": {"kind": name}}) is (name == "a")


async def test_a_condition_has_a_limit(judges: Judges) -> None:
    expression = "object.all(a, object.all(b, object.all(c, a + b + c != 'zzz')))"
    keys = {f"k{number}": "x" for number in range(100)}
    with pytest.raises(ConditionError, match="actual cost limit exceeded"):
        await Conditions(judges).hold([Condition("c", expression)], {"object": keys})


async def test_all_conditions_have_a_limit_together(judges: Judges) -> None:
    expression = "object.all(a, object.all(b, object.all(c, a + b + c != 'zzz')))"
    keys = {f"k{number}": "x" for number in range(100)}
    conditions = [Condition(f"c{number}", expression) for number in range(4)]
    with pytest.raises(ConditionError, match="running out of cost budget"):
        await Conditions(judges).hold(conditions, {"object": keys})
