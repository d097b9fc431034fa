"""What history costs: the size of 90 days, the collector's minute, and a screen of `gpupool top`.

Synthetic moments: nodes with eight cards, and a pod with a share on each. 70 % of them work, with
random figures, which is the worst case for compression.
"""

import gc
import random
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from gpupool.cli.output.layout import Layout
from gpupool.cli.output.text import table_lines
from gpupool.cli.top_rows import NodeCards, Now, chosen, rows_of, table_of
from gpupool.core.gpu import Card, CardShare
from gpupool.core.readings import CardReading, ContainerUse
from gpupool.history.accounts import entries
from gpupool.history.facts import Held, Moment, NodeFacts
from gpupool.history.levels import LEVELS
from gpupool.history.reader import Reader
from gpupool.history.series import Kind
from gpupool.history.store import Store

START = 1_700_006_400
_CARDS = 8
_MINUTES = 4
_SCREEN = 50  # lines


def measure_history() -> dict[str, Any]:
    gc.set_threshold(50_000, 20, 100)  # as the programs set it
    return {
        "collector": [_collector(nodes) for nodes in (500, 5_000)],
        "top": _top(5_000),
    }


def _collector(nodes: int) -> dict[str, Any]:
    dice = random.Random(1)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "history.sqlite"
        costs = []
        with Store(path) as store:
            before = _moment(nodes, 0, dice)
            for minute in range(1, _MINUTES + 1):
                after = _moment(nodes, minute, dice)
                began = time.process_time()
                store.add(before.at_ms, after.at_ms, entries(before, after))
                costs.append(time.process_time() - began)
                before = after
        bytes_90_days = _bytes_of_90_days(path)
        began = time.perf_counter()
        Reader(path, lambda: START + 600).points(Kind.CARD, "GPU-0-0", START, START + 600)
        chart_s = time.perf_counter() - began
    return {
        "nodes": nodes,
        "cards": nodes * _CARDS,
        # The first one makes all series.
        "first_minute_cpu_s": costs[0],
        "minute_cpu_s": min(costs[1:]),
        "gib_90_days": bytes_90_days / 1024**3,
        "chart_s": chart_s,
    }


def _bytes_of_90_days(path: Path) -> float:
    """Of all series, from the size of a slot of each level, with SQLite's own share."""
    connection = sqlite3.connect(path)
    total = 0.0
    for level, values in enumerate(LEVELS):
        [size] = connection.execute(
            "SELECT sum(length(data)) FROM blocks WHERE level = ? AND start_s = "
            "(SELECT max(start_s) FROM blocks WHERE level = ?)",
            (level, level),
        ).fetchone()
        total += size * values.keep_s / values.step_s
    [blocks] = connection.execute("SELECT sum(length(data)) FROM blocks").fetchone()
    connection.execute("VACUUM")
    whole = _file_bytes(connection)
    connection.execute("DELETE FROM blocks")
    connection.commit()
    connection.execute("VACUUM")
    series = _file_bytes(connection)
    connection.close()
    return float(series + total * (whole - series) / blocks)


def _file_bytes(connection: sqlite3.Connection) -> int:
    pages, size = (
        connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size")
    )
    return int(pages * size)


def _held(node: int, card: int) -> Held:
    share = CardShare(f"GPU-{node}-{card}", card, 3, 3226, 15)
    name = f"p-{node}-{card}"
    return Held(
        f"team-{node % 50}",
        name,
        "main",
        name,
        f"Job/j-{node}",
        "",
        f"n{node}",
        (share,),
        0,
        3,
        0,
        None,
    )


def _reading(node: int, card: int, dice: random.Random) -> CardReading:
    works = dice.random() < 0.7
    percent, used = (dice.randrange(100), dice.randrange(500, 3226)) if works else (0, 0)
    use = ContainerUse(
        f"team-{node % 50}",
        f"p-{node}-{card}",
        "main",
        used,
        uid=f"p-{node}-{card}",
        sm_percent=percent,
        idle_s=0.0 if works else 7200.0,
        power_mw=dice.randrange(20_000, 90_000),
    )
    uuid = f"GPU-{node}-{card}"
    return CardReading(uuid, used, sm_percent=percent, power_mw=60_000, containers=(use,))


def _moment(nodes: int, minute: int, dice: random.Random) -> Moment:
    places = [(node, card) for node in range(nodes) for card in range(_CARDS)]
    held = (_held(*place) for place in places)
    readings = (_reading(*place, dice) for place in places)
    return Moment(
        (START + 60 * minute) * 1000,
        {
            f"n{n}": NodeFacts(f"pool-{n % 5}", tuple(f"GPU-{n}-{c}" for c in range(_CARDS)), 120)
            for n in range(nodes)
        },
        {(each.uid, each.container): each for each in held},
        {each.uuid: each for each in readings},
        {f"n{n}": START + 60 * minute for n in range(nodes)},
    )


def _top(nodes: int) -> dict[str, Any]:
    moment = _moment(nodes, 0, random.Random(1))
    cards = {
        f"n{n}": NodeCards(
            "pool", tuple(Card(c, f"GPU-{n}-{c}", "V100", 16130) for c in range(_CARDS))
        )
        for n in range(nodes)
    }
    now = Now(cards, list(moment.held.values()), moment.cards)
    found: dict[str, Any] = {"nodes": nodes, "cards": nodes * _CARDS}
    for view in ("nodes", "cards", "pods"):
        best = min(_screen_s(now, view) for _ in range(5))
        found[f"{view}_ms"] = best * 1000
    return found


def _screen_s(now: Now, view: str) -> float:
    """All rows, sorted, and the lines that are seen."""
    began = time.process_time()
    rows = chosen(rows_of(now, view), "util")
    table_lines(table_of(view, rows[:_SCREEN]), Layout(140, live=True))
    return time.process_time() - began


def history_rows(figures: dict[str, Any]) -> list[tuple[str, str, str, str]]:
    rows = []
    for each in figures["collector"]:
        title = f"history: a minute of {each['nodes']:,} nodes, {each['cards']:,} cards"
        rows.append((title, f"{each['minute_cpu_s']:.2f} s CPU", "", ""))
        rows.append(("history: 90 days of them", f"{each['gib_90_days']:.2f} GiB", "", ""))
    top = figures["top"]
    for view in ("nodes", "cards", "pods"):
        title = f"top: a screen of {view}, {top['cards']:,} cards"
        rows.append((title, f"{top[f'{view}_ms']:.0f} ms", "< 200 ms", ""))
    return rows
