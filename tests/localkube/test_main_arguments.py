"""`python -m localkube`: wrong arguments, and the limit of open files."""

import resource
import socket
from collections.abc import Iterator

import pytest

from localkube.__main__ import main
from localkube.cluster import Cluster, ClusterFailed


@pytest.fixture
def few_open_files() -> Iterator[int]:
    """The limit of most shells; yields the hard limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--nodes", "x"], "argument --nodes: wanted a number from 0 to 1000, found 'x'"),
        (["--nodes", "-1"], "argument --nodes: wanted a number from 0 to 1000, found '-1'"),
        (["--port", "x"], "argument --port: wanted a number from 0 to 65535, found 'x'"),
        (["--port", "99999"], "argument --port: wanted a number from 0 to 65535, found '99999'"),
    ],
)
def test_a_wrong_argument_is_refused_with_what_was_wanted(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert words in capsys.readouterr().err


def test_a_cluster_refuses_a_number_of_nodes_or_a_port_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="nodes: wanted 0 or more, found -1"):
        Cluster(nodes=-1)
    with pytest.raises(ValueError, match="port: wanted a number from 0 to 65535, found 99999"):
        Cluster(port=99999)


def test_a_port_in_use_is_named_in_python_too() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ClusterFailed, match=f"in use: 'port {port} of 127.0.0.1'"):
            Cluster(port=port).start()


def test_a_cluster_raises_the_limit_of_open_files_for_its_nodes(few_open_files: int) -> None:
    with Cluster(nodes=0):
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    assert hard == few_open_files
    assert soft > 256
