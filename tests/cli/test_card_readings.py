"""Notes about nodes without readings, and the table of cards."""

from gpupool.cli.card_readings import notes
from gpupool.cli.card_tables import CardRow, cards_table
from gpupool.cli.output.layout import Layout
from gpupool.core.gpu import Card, Wall
from gpupool.core.readings import CardReading, ContainerUse

CARD = Card(0, "GPU-a", "T4", 15079)
USES = (
    ContainerUse("ns", "p", "c", 3000, "u", 3226, 3226, Wall.LIMITER, 3100, 20, 61.2, 9_500, 7.0),
    ContainerUse("ns", "q", "", 96),
)
READING = CardReading("GPU-a", 3096, 11983, 15079, 70, 35, 61, 55_400, 70_000, 1590, USES)


def test_nodes_with_the_same_problem_share_a_note() -> None:
    problems = {"a": "no agent", **dict.fromkeys("bcdef", "it hangs")}
    assert notes(problems) == [
        "No readings of 5 nodes (b, c, d and 2 others): it hangs.",
        "No readings of node a: no agent.",
    ]
    assert notes({}) == []


def test_notes_are_few_however_many_problems_there_are() -> None:
    found = notes({f"n{number}": f"problem {number}" for number in range(500)})
    assert len(found) == 6
    assert found[-1] == "No readings of 495 more nodes, for other reasons."


def test_what_a_card_does_is_shown_with_its_units() -> None:
    [head, line] = cards_table([CardRow("n", CARD, READING)]).lines(Layout())
    shown = dict(zip(head.split(), line.split(), strict=False))
    assert {key: shown[key] for key in ("USED", "FREE", "UTIL", "TEMP", "POWER")} == {
        "USED": "3096MiB",
        "FREE": "11983MiB",
        "UTIL": "70%",
        "TEMP": "61C",
        "POWER": "55W",
    }
    wide = cards_table([CardRow("n", CARD, READING)]).lines(Layout(wide=True))[1]
    for word in ("35%", "70W", "1590MHz", "ns/p/c=3000MiB,ns/q=96MiB"):
        assert word in wide.split()


def test_documents_have_numbers_with_units_in_their_names() -> None:
    [item] = cards_table([CardRow("n", CARD, READING)]).document()["items"]
    assert item["memoryUsedMiB"] == 3096
    assert item["powerWatts"] == 55.4
    assert item["powerLimitWatts"] == 70.0
    first, second = item["usedBy"]
    assert first == {
        "namespace": "ns",
        "pod": "p",
        "container": "c",
        "memoryUsedMiB": 3000,
        "memoryPeakMiB": 3100,
        "memoryRequestMiB": 3226,
        "memoryLimitMiB": 3226,
        "isolation": "limiter",
        "smPercent": 20,
        "idleSeconds": 61,
        "powerWatts": 9.5,
        "watchedSinceSeconds": 7.0,
    }
    known = {"namespace": "ns", "pod": "q", "memoryUsedMiB": 96}
    assert second == dict.fromkeys(first) | known


def test_what_nobody_tells_is_unknown_and_never_0() -> None:
    table = cards_table([CardRow("n", CARD), CardRow("n", CARD, CardReading("GPU-a"))])
    _, *lines = table.lines(Layout(wide=True))
    for line in lines:
        assert line.split().count("unknown") == 9
    for item in table.document()["items"]:
        names = [key for key in item if key.startswith(("memoryUsed", "memoryFree", "sm", "power"))]
        assert {item[key] for key in (*names, "memoryPercent", "usedBy")} == {None}
        assert len(names) == 6
