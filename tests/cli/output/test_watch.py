"""`--watch`: in place on a terminal, page after page in a pipe, until Ctrl-C."""

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

import pytest

from gpupool.core.gpu import CardHealth
from gpupool.local.cluster_setup import Wish, set_up_directory
from gpupool.local.home import Home
from tests.cli.output.terminals import COMMAND, LIMIT_S, Terminal, terminal
from tests.cli.output.world import HOLDER, NODES_OF_WORLD, WAITER, World, holding

INTERRUPTED = 130


def test_a_terminal_shows_the_newest_table_in_the_place_of_the_one_before(world: World) -> None:
    world.set_health(CardHealth.HEALTHY)

    def shows(seen: Terminal, columns: int, *words: str) -> bool:
        """Titles, four cards and the hint, and nothing of the tables before."""
        lines = table_of(seen)
        is_fitting = len(lines) == 6 and max(map(len, lines)) <= columns
        return is_fitting and all(word in "\n".join(lines) for word in words)

    with terminal("gpu", "list", "-w", *world.where, columns=80) as seen:
        seen.until(lambda now: "\n".join(now.screen).count("healthy") == 4)
        world.set_health(CardHealth.UNHEALTHY, "XID 48")
        seen.until(lambda now: shows(now, 80, "unhealthy", "XID 48", "-o wide"))
        seen.resize(40)
        seen.until(lambda now: shows(now, 40, "unhealthy"))
        assert seen.interrupt() == INTERRUPTED
        assert "Traceback" not in seen.raw
        assert "unhealthy" in "\n".join(seen.screen)  # the last table stays


def test_a_table_that_is_higher_than_the_terminal_says_how_much_is_missing(world: World) -> None:
    with terminal("gpu", "list", "-w", "-o", "wide", *world.where, columns=80, rows=4) as seen:
        seen.until(lambda now: "and 3 more lines" in now.screen)
        assert [len(line) <= 80 for line in table_of(seen)] == [True] * 3
        assert seen.interrupt() == INTERRUPTED


def table_of(seen: Terminal) -> list[str]:
    """Below what standard error says, if it says something."""
    lines = [line for line in seen.screen if line.strip()]
    starts = [at for at, line in enumerate(lines) if line.startswith("NODE")]
    return lines[starts[-1] :] if starts else lines


@contextmanager
def piped(*arguments: object) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    command = [*COMMAND, *map(str, arguments)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield process, process.stdout
        finally:
            process.kill()


def interrupted(process: subprocess.Popen[str]) -> tuple[int, str]:
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=LIMIT_S)
    return process.returncode, said


def test_a_pipe_gets_one_line_of_json_for_each_change(world: World) -> None:
    world.set_health(CardHealth.HEALTHY)
    with piped("gpu", "list", "--watch", "-o", "json", *world.where) as (process, out):
        assert [item["health"] for item in items(out)] == ["healthy"] * 4
        world.set_health(CardHealth.CORDONED, "loud fan")
        assert [item["reason"] for item in items(out)] == ["", "loud fan", "", ""]
        code, said = interrupted(process)
    assert code == INTERRUPTED
    [note] = said.strip().splitlines()  # once, however often the agents are asked
    assert note.endswith("no agent runs on it.")


def test_a_watch_ends_when_its_reader_has_gone(world: World) -> None:
    """`gpupool gpu list --watch | head -1`: nothing changes, and the shell waits."""
    with piped("gpu", "pods", "--watch", *world.where) as (process, out):
        out.readline()
        out.close()
        assert process.wait(timeout=LIMIT_S) == 1
        assert process.stderr is not None
        assert process.stderr.read() == ""


def items(out: IO[str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(out.readline())["items"]
    return found


def test_a_pipe_gets_every_new_table_below_a_blank_line(world: World) -> None:
    with piped("gpu", "pods", "-n", "default", "-w", *world.where) as (_, out):
        assert out.readline().startswith("POD")
        assert out.readline().startswith(HOLDER)
        world.add(holding("second", NODES_OF_WORLD[1], 0))
        assert out.readline() == "\n"
        assert out.readline().startswith("POD")
        assert [out.readline().split()[0] for _ in range(2)] == [HOLDER, "second"]
    world.remove("second")


def test_allocated_memory_is_followed(world: World) -> None:
    with piped("inspect", "-w", "-o", "json", *world.where) as (process, out):
        assert [item["allocatedUnits"] for item in items(out)] == [5, 0]
        world.add(holding("second", NODES_OF_WORLD[1], 1))
        found = items(out)
        assert [item["allocatedUnits"] for item in found] == [5, 5]
        assert found[1]["pods"] == [
            {
                "namespace": "default",
                "name": "second",
                "isolation": "limiter",
                "pendingUnits": 0,
                "cards": [{"index": 1, "allocatedUnits": 5}],
            }
        ]
        world.remove("second")
        assert [item["allocatedUnits"] for item in items(out)] == [5, 0]
        assert interrupted(process)[0] == INTERRUPTED


def test_a_waiting_pod_is_followed_until_it_is_gone(world: World) -> None:
    world.add(holding("third", NODES_OF_WORLD[0], 0))
    with piped("explain", "third", "-w", "-o", "json", *world.where) as (process, out):
        [answer] = items(out)
        assert (answer["verdict"], answer["node"]) == ("placed", NODES_OF_WORLD[0])
        world.remove("third")
        _, said = process.communicate(timeout=LIMIT_S)
        assert process.returncode == 1
        assert said == 'Error: pods "third" not found. See which there are: kubectl get pods -A\n'


def test_why_a_pod_waits_is_followed(world: World) -> None:
    world.set_health(CardHealth.HEALTHY)
    with terminal("explain", WAITER, "-w", *world.where, columns=80) as seen:
        seen.until(lambda now: f"default/{WAITER} fits nowhere now." in now.screen)
        world.set_health(CardHealth.LOST, "it is gone")
        seen.until(lambda now: "lost (it is gone)" in "\n".join(now.screen))
        assert "\n".join(seen.screen).count("fits nowhere now") == 1
        assert seen.interrupt() == INTERRUPTED


@pytest.mark.parametrize("command", [("gpu", "list", "nobody"), ("inspect", "nobody")])
def test_a_wrong_name_ends_a_watch_at_once(world: World, command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [*COMMAND, *command, "-w", *world.where], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (
        1,
        'Error: nodes "nobody" not found. See which there are: kubectl get nodes\n',
    )


def test_a_manifest_cannot_be_watched(world: World) -> None:
    done = subprocess.run(
        [*COMMAND, "explain", "-f", "-", "-w", *world.where],
        capture_output=True,
        text=True,
        check=False,
        input="",
    )
    assert done.returncode == 2
    assert "--watch is for a pod" in done.stderr


def test_a_message_in_place_of_a_table_is_broken_into_lines_of_the_terminal(home: Home) -> None:
    """The next table is written over all of them."""
    with terminal("clusters", "-w", columns=20) as seen:
        seen.until(lambda now: now.screen[-2:-1] == ["gpupool up"])
        assert seen.screen == ["There is no cluster", "yet. Make one:", "gpupool up", ""]
        set_up_directory(home, Wish(name="late", port=0))
        seen.until(lambda now: any(line.startswith("late ") for line in now.screen))
        assert seen.screen[0].startswith("NAME")


def test_clusters_are_watched_too(home: Home) -> None:
    with terminal("clusters", "-w", columns=80) as seen:
        seen.until(lambda now: "There is no cluster yet." in "\n".join(now.screen))
        set_up_directory(home, Wish(name="late", port=0))
        seen.until(lambda now: any(line.startswith("late ") for line in now.screen))
        assert "There is no cluster yet." not in "\n".join(seen.screen)
        assert seen.interrupt() == INTERRUPTED
