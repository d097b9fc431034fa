"""inspect: the columns, dashes and percentages that scripts of the gpushare family read."""

from gpupool.cli.inspect_view import NodeView, PodView, details, summary


def node(name: str, address: str, cards: dict[int, int], *pods: tuple[str, int]) -> NodeView:
    views = tuple(PodView(pod, "default", {0: units}) for pod, units in pods)
    return NodeView(name, address, cards, views)


def test_the_summary_is_that_of_kubectl_inspect_gpushare() -> None:
    nodes = [
        node("cn-shanghai.i-uf61h64dz1tmlob9hmtb", "192.168.0.71", {0: 15}, ("a", 6)),
        node("cn-shanghai.i-uf61h64dz1tmlob9hmtc", "192.168.0.70", {0: 15}, ("b", 3)),
    ]
    assert summary(nodes, "GiB").splitlines() == [
        "NAME                                IPADDRESS     GPU0(Allocated/Total)  GPU Memory(GiB)",
        "cn-shanghai.i-uf61h64dz1tmlob9hmtb  192.168.0.71  6/15                   6/15",
        "cn-shanghai.i-uf61h64dz1tmlob9hmtc  192.168.0.70  3/15                   3/15",
        "-" * 78,
        "Allocated/Total GPU Memory In Cluster:",
        "9/30 (30%)",
    ]


def test_a_card_that_a_node_does_not_have_is_shown_as_0_of_0() -> None:
    nodes = [node("a", "1", {0: 4, 1: 4}), node("b", "2", {0: 4})]
    assert summary(nodes, "GiB").splitlines()[2].split() == ["b", "2", "0/4", "0/0", "0/4"]


def test_the_details_list_pods_and_dashes_count_their_rows() -> None:
    pods = (("app-3g-v1-0", 4), ("app-3g-v1-1", 4))
    shown = details([node("cn-hangzhou.192.168.2.167", "192.168.2.167", {0: 15}, *pods)])
    assert shown.splitlines() == [
        "",
        "NAME:       cn-hangzhou.192.168.2.167",
        "IPADDRESS:  192.168.2.167",
        "",
        "NAME         NAMESPACE  GPU0(Allocated)",
        "app-3g-v1-0  default    4",
        "app-3g-v1-1  default    4",
        "Allocated :  8 (53%)",
        "Total :      15",
        "-" * 56,
        "",
        "",
        "Allocated/Total GPU Memory In Cluster:  8/15 (53%)",
    ]


def test_pods_without_a_card_have_their_own_column() -> None:
    waiting = PodView("p", "default", {-1: 3})
    shown = summary([NodeView("a", "1", {0: 4}, (waiting,))], "GiB")
    assert "PENDING(Allocated)" in shown
    assert shown.splitlines()[1].split() == ["a", "1", "0/4", "3", "3/4"]
