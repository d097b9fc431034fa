"""What `whatif` and `defrag` say when nothing helps: no more than they have tried."""

from gpupool.cli.defrag_view import Proposal
from gpupool.cli.defrag_view import page_of as defrag_page
from gpupool.cli.output.pages import Prose
from gpupool.cli.whatif_view import page_of as whatif_page
from gpupool.core.pods import PodRequest
from gpupool.scheduler.what_if import Answer, Fate, Workload


def words_of(page: Prose) -> str:
    return "\n".join(line.text for line in page.text)


def test_pods_that_no_tried_number_of_nodes_takes_might_fit_on_more() -> None:
    pod = PodRequest(uid="u", namespace="default", name="a", resources={"pods": 1})
    workload = Workload("Deployment", "default", "a", pod, copies=10_000)
    answer = Answer((Fate(workload, (), 0, "no card is free"),), (), ())
    assert "\n100 further nodes of any pool would not be enough." in words_of(whatif_page(answer))


def test_a_workload_of_0_replicas_asks_for_no_pods_and_is_told_how_many_would_fit() -> None:
    pod = PodRequest(uid="u", namespace="default", name="a", resources={"pods": 1})
    workload = Workload("Deployment", "default", "a", pod, copies=0)
    said = words_of(whatif_page(Answer((Fate(workload, (), 2, "no card is free"),), (), ())))
    assert said.splitlines()[:2] == [
        "Deployment default/a: asks for no pods",
        "  2 pods would fit",
    ]


def test_without_a_free_card_no_pod_with_0_whole_cards_is_promised() -> None:
    said = words_of(defrag_page(Proposal((), None, 0, 0)))
    assert said == "No move gains anything: no whole card is free, and no move would free one."


def test_more_moves_are_advised_only_where_they_would_do() -> None:
    said = words_of(defrag_page(Proposal(("team/a",), None, 0, 0, enough_moves=8)))
    assert said == (
        "There is no plan: no moves make room for team/a (0 of 1 pods would fit). "
        "With more moves there is one: --max-moves 8."
    )
    said = words_of(defrag_page(Proposal(("team/a",), None, 0, 0)))
    assert "max-moves" not in said
    assert "gpupool explain -f" in said


def test_room_for_several_pods_is_not_denied_for_each_of_them() -> None:
    """It is made for one after the other, and two plans may do what one does not find."""
    said = words_of(defrag_page(Proposal(("team/a", "team/b"), None, 0, 0, placed=1)))
    assert said.startswith(
        "There is no plan: with room for those before it no moves make room for team/b "
        "(1 of 2 pods would fit). Asking for fewer at a time may find moves for all of them. "
    )
    alone = words_of(defrag_page(Proposal(("team/a", "team/b"), None, 0, 0)))
    assert "There is no plan: no moves make room for team/a" in alone
    assert "fewer" not in alone
