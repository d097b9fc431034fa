"""History over HTTP: the same answers as from the file, and words for wrong questions."""

from pathlib import Path

import aiohttp
import msgspec
import pytest

from gpupool.health import LOOPBACK, Address, serving
from gpupool.history import pages
from gpupool.history.database import NoHistory
from gpupool.history.pages import ClusterHistory, FileHistory, history_app
from gpupool.history.reader import Points, Sums
from gpupool.history.samples import FIELDS, Sample
from gpupool.history.series import Key, Kind
from gpupool.history.store import Entry, Store
from kubeclient.client import Listing

START = 1_700_006_400
CARD = Key(Kind.CARD, "GPU-a")
ENTRY = Entry(Sample(seen=60_000, used=7), START + 30, {"node": "n1", "units": 3})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "history.sqlite"
    with Store(path) as store:
        store.add(START * 1000, START * 1000 + 60_000, {CARD: ENTRY})
    return path


async def _get(path: Path, question: str) -> tuple[int, bytes]:
    async with (
        serving(history_app(path), Address(LOOPBACK, 0)) as where,
        aiohttp.ClientSession() as session,
        session.get(f"http://{where.host}:{where.port}{question}") as answer,
    ):
        return answer.status, await answer.read()


async def test_sums_and_points_are_those_of_the_file(path: Path) -> None:
    until = START + 60
    status, body = await _get(path, f"/history/sums?kind=card&since={START}&until={until}")
    assert status == 200
    expected = await FileHistory(path).sums(Kind.CARD, START, until)
    assert msgspec.json.decode(body, type=Sums) == expected
    assert expected.of[0][1] == ENTRY.sample
    assert expected.of[0][0].info == {"node": "n1", "units": 3}
    question = f"/history/points?kind=card&name=GPU-a&since={START}&until={until}"
    status, body = await _get(path, question)
    points = msgspec.json.decode(body, type=Points)
    assert points == await FileHistory(path).points(Kind.CARD, "GPU-a", START, until)


@pytest.mark.parametrize(
    "question",
    [
        "/history/sums",
        "/history/sums?kind=moon&since=1",
        "/history/sums?kind=card&since=nan",
        "/history/sums?kind=card&since=1&until=inf",
        "/history/sums?kind=card&since=-1e300",
        "/history/points?kind=card",
        "/history/points?kind=card&name=GPU-a&since=0&until=1e18",
        "/history/points?kind=card&name=GPU-a&since=-inf",
        "/history/points?kind=card&name=GPU-a&since=1&most=many",
    ],
)
async def test_a_wrong_question_is_refused(path: Path, question: str) -> None:
    status, body = await _get(path, question)
    assert status == 400
    assert body.startswith(b"a wrong question")


async def test_a_client_of_another_version_is_told_so(path: Path) -> None:
    """Figures have places, not names: of another version they would be taken for others."""
    for kind in ("sums?kind=card", "points?kind=card&name=GPU-a"):
        question = f"/history/{kind}&since={START}&until={START + 60}&figures="
        assert (await _get(path, f"{question}{FIELDS}"))[0] == 200
        status, body = await _get(path, f"{question}{FIELDS + 1}")
        assert status == 400
        assert b"of the same version" in body


class _Pods:
    """Of a cluster with a collector."""

    async def list(self, *_: object, **__: object) -> Listing:
        pod = {
            "metadata": {"name": "c"},
            "spec": {"containers": []},
            "status": {"phase": "Running"},
        }
        return Listing([pod], "1")


def _answering(monkeypatch: pytest.MonkeyPatch, body: bytes) -> ClusterHistory:
    async def page(*_: object, **__: object) -> tuple[int, bytes]:
        return 200, body

    monkeypatch.setattr(pages, "page_of_pod", page)
    return ClusterHistory(_Pods(), "kube-system")  # type: ignore[arg-type]


_CARD = {"kind": "card", "name": "GPU-a", "first_s": 1, "last_s": 2, "info": {}}


@pytest.mark.parametrize("figures", [FIELDS - 2, FIELDS - 1, 0])
async def test_a_collector_of_an_older_version_is_not_believed(
    monkeypatch: pytest.MonkeyPatch, figures: int
) -> None:
    old = [5] * figures
    sums = {"since_s": 1, "until_s": 2, "of": [[_CARD, old]]}
    with pytest.raises(NoHistory, match="another version"):
        await _answering(monkeypatch, msgspec.json.encode(sums)).sums(Kind.CARD, 1)
    points = {"step_s": 1, "since_s": 1, "values": [None, old]}
    with pytest.raises(NoHistory, match="another version"):
        await _answering(monkeypatch, msgspec.json.encode(points)).points(Kind.CARD, "GPU-a", 1)


@pytest.mark.parametrize("body", [b"[]", b'{"of": 5}', b"null", b'{"values": [7]}', b"<html>"])
async def test_an_answer_that_is_none_is_said_in_words(
    monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    history = _answering(monkeypatch, body)
    with pytest.raises(NoHistory):
        await history.sums(Kind.CARD, 1)
    with pytest.raises(NoHistory):
        await history.points(Kind.CARD, "GPU-a", 1)


async def test_who_asks_for_a_history_that_is_missing_is_told_so(tmp_path: Path) -> None:
    status, body = await _get(tmp_path / "none", "/history/sums?kind=card&since=1")
    assert status == 503
    assert b"no history was written yet" in body
    with pytest.raises(NoHistory):
        await FileHistory(tmp_path / "none").sums(Kind.CARD, 1)
