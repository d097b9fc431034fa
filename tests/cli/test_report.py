"""Reports for people and programs: figures, advice, CSV and a page that stands alone."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest
from click.testing import CliRunner

from gpupool.cli.durations import words
from gpupool.cli.output.layout import Layout
from gpupool.cli.report import command
from gpupool.cli.report_html import html_text
from gpupool.cli.report_view import Report, csv_text, shown_parts
from gpupool.history.advice import Advice
from gpupool.history.reader import Points
from gpupool.history.samples import Sample
from gpupool.history.series import Kind, Series
from gpupool.history.usage import idle_pods, usage_of

HOUR = 3_600_000
GOT = Sample(
    seen=10 * HOUR,
    have=20 * HOUR,
    asked=6 * HOUR,
    given=4 * HOUR,
    told=3 * HOUR,
    used=HOUR,
    idle=HOUR,
    known=3 * HOUR,
    within=HOUR,
    memory_given=12 * 1024 * 36_000,
    memory_used=3 * 1024 * 36_000,
    peak=3100,
)
INFO: dict[str, str | int] = {
    "workload": "Deployment/trainer",
    "cards": 1,
    "memoryMiB": 12288,
    "node": "n1",
    "user": "ann",
}
SERIES = Series(Kind.CONTAINER, "research/trainer-x/main", 0, 36_000, 6_000, INFO)
ADVICE = [
    Advice("research", "Deployment/<i>", "main", 12, 12288, 3100, 14.2, 4, "kubectl <set>"),
    Advice("research", "Job/once", "main", 12, 12288, 3100, 0.4, 4, None),
]
IDLE = GOT._replace(told=4 * HOUR, idle=4 * HOUR)


def report(**changes: object) -> Report:
    made = Report(
        "namespace",
        36_000,
        0,
        36_000,
        [usage_of("<b>research</b>", GOT), usage_of("=cmd()", Sample(seen=1))],
        GOT,
        Points(3600, 0, (GOT, None, GOT)),
        idle_pods(
            [(SERIES, GOT._replace(told=4 * HOUR, idle=4 * HOUR))], {SERIES.name: 0.0}, 7200, 36_000
        ),
        ADVICE,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_what_nobody_told_is_unknown_and_not_unused() -> None:
    usage = usage_of("a", GOT)
    assert (usage.given, usage.used, usage.idle, usage.unknown) == (4, 1, 2, 1)
    assert usage.used_percent == pytest.approx(100 / 3)
    assert usage_of("a", GOT._replace(known=0, within=0)).used_percent is None


def test_the_time_is_the_one_that_was_asked_for() -> None:
    """The sums begin with a minute of the history, which may be the one before."""
    hour = report(asked_s=3600, since_s=32_340, cluster=GOT._replace(seen=HOUR))
    assert "GPU-hours of the last 60 min: " in "\n".join(hour.lines(Layout(None)))
    assert "last 60 min" in html_text(hour)


def test_what_a_person_reads_adds_up_to_the_last_digit() -> None:
    thirds = usage_of("a", Sample(given=HOUR, known=2 * HOUR // 3, within=HOUR // 3))
    assert shown_parts(thirds) == ["1.00", "0.33", "0.34", "0.33"]
    assert shown_parts(usage_of("a", Sample())) == ["0.00"] * 4
    text = "\n".join(report().lines(Layout(None)))
    assert "4.00 given = 1.00 used + 2.00 idle + 1.00 unknown." in text


@pytest.mark.parametrize(
    ("sample", "began_s"),
    [
        pytest.param(GOT._replace(told=4 * HOUR), 0, id="it worked"),
        pytest.param(GOT._replace(told=HOUR, idle=HOUR), 0, id="too little is known"),
        pytest.param(GOT._replace(told=4 * HOUR, idle=4 * HOUR), 8000, id="it is too young"),
        pytest.param(IDLE._replace(seen=HOUR, given=HOUR // 2), 0, id="nobody looked for long"),
        pytest.param(IDLE._replace(given=0, told=0, idle=0), 0, id="it has no card"),
    ],
)
def test_a_pod_is_not_called_idle_without_proof(sample: Sample, began_s: int) -> None:
    assert idle_pods([(SERIES, sample)], {SERIES.name: float(began_s)}, 7200, 36_000) == []


def test_a_pod_that_worked_while_nobody_looked_is_not_idle() -> None:
    worked = replace(SERIES, active_s=20_000)
    assert idle_pods([(worked, IDLE)], {SERIES.name: 0.0}, 7200, 36_000) == []
    assert idle_pods([(worked, IDLE)], {SERIES.name: 0.0}, 20_000, 36_000) != []


def test_a_pod_that_is_gone_is_not_idle() -> None:
    idle = GOT._replace(told=4 * HOUR, idle=4 * HOUR)
    assert idle_pods([(SERIES, idle)], {}, 7200, 36_000) == []
    assert len(idle_pods([(SERIES, idle)], {SERIES.name: 0.0}, 7200, 36_000)) == 1


def test_the_text_says_what_is_idle_and_what_would_do() -> None:
    text = "\n".join(report().lines(Layout(None)))
    assert "Idle, and holding 0.4 GPUs (1):" in text
    assert "research/trainer-x (Deployment/trainer of ann)" in text
    assert "4 would do" in text
    assert "kubectl <set>" in text
    assert "have to be made anew" in text


def test_a_command_is_one_line_however_narrow_the_terminal() -> None:
    long = f"kubectl -n research set resources deployment/{'x' * 60} -c main --limits=a=1"
    text = report(advice=[replace(ADVICE[0], command=long)]).lines(Layout(60))
    assert f"    {long}" in text


def test_a_spreadsheet_takes_no_name_for_a_formula() -> None:
    lines = csv_text(report()).splitlines()
    assert lines[0].startswith("namespace,askedGpuHours,givenGpuHours")
    assert lines[2].startswith("'=cmd()")


def test_the_page_is_whole_and_loads_nothing() -> None:
    page = html_text(report())
    opened: list[str] = []

    class Check(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            assert tag not in ("script", "link", "img", "iframe", "b" if "research" in page else "")
            assert not {name for name, _ in attrs} & {"src", "href", "onload"}
            if tag not in ("meta", "path", "rect"):
                opened.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in ("path", "rect"):
                assert opened.pop() == tag

    Check().feed(page.replace("<b>", "<strong>").replace("</b>", "</strong>"))
    assert not opened
    assert "&lt;b&gt;research" in page
    assert page.count("M48.0") == 3  # three areas; where nobody looked, they are interrupted
    assert "prefers-color-scheme: dark" in page


def test_the_page_marks_who_used_nothing_and_has_a_total() -> None:
    nothing = usage_of("lazy", Sample(seen=1, given=2 * HOUR, known=2 * HOUR))
    some = usage_of("busy", Sample(seen=1, given=2 * HOUR, known=2 * HOUR, within=HOUR))
    page = html_text(report(rows=[nothing, some]))
    assert page.count('<span class="low">0%</span>') == 1
    total = page[page.index('<tr class="total">') :]
    assert total.startswith(
        '<tr class="total"><td class="text">total</td><td>0.00</td><td>4.00</td><td>1.00</td>'
        "<td>25%</td><td>3.00</td><td>0.00</td>"
    )


def test_a_pod_that_was_resized_is_idle_with_what_it_holds_now() -> None:
    smaller = replace(SERIES, info={**INFO, "milliCards": 133})
    [found] = idle_pods([(smaller, IDLE)], {SERIES.name: 0.0}, 7200, 36_000)
    assert found.held_cards == 0.133


def test_a_page_of_an_unknown_time_says_so() -> None:
    empty = report(rows=[], cluster=None, points=Points(60, 0, (None,)), idle=[], advice=[])
    assert "Nothing is known of this time." in html_text(empty)
    assert empty.missing()


@pytest.mark.parametrize("text", ["7", "d", "-1h", "91d", "1y", "999999999d"])
def test_a_time_that_is_none_is_refused_in_words(text: str) -> None:
    result = CliRunner().invoke(command, ["--since", text])
    assert result.exit_code == 2
    assert "wanted a time from 60 s to 90 d, such as 30m, 2h or 7d" in result.output


def test_times_are_told_as_people_say_them() -> None:
    assert [words(s) for s in (90, 720, 7200, 9000, 86400, 14 * 86400)] == [
        "90 s",
        "12 min",
        "2 h",
        "2.5 h",
        "24 h",
        "14 d",
    ]
