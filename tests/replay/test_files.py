import json
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.core.gpu import GpuAsk
from gpupool.replay import rows
from gpupool.replay.arrivals import from_file
from gpupool.replay.files import read_trace
from gpupool.replay.trace import TraceError

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_openb_and_plain_files_say_the_same(tmp_path: Path, nodes_file: Path) -> None:
    openb = write(tmp_path / "a.csv", HEADER + "p,1500,2048,1,250,T4\nq,1000,1024,4,1000,\n")
    plain = write(
        tmp_path / "b.csv",
        "name,cpu,memory,gpu,models\np,1500m,2Gi,0.25,T4\nq,1,1Gi,4,\n",
    )
    listed = [
        {"name": "p", "cpu": "1.5", "memory": "2048Mi", "gpu": 0.25, "models": ["T4"]},
        {"name": "q", "cpu": 1, "memory": "1Gi", "gpu": 4},
    ]
    as_json = write(tmp_path / "c.json", json.dumps({"pods": listed}))
    found = [read_trace(path, nodes_file) for path in (openb, plain, as_json)]
    assert found[0].pods == found[1].pods == found[2].pods
    assert found[0].pods[0].request.gpus == (GpuAsk("main", units=250),)
    assert found[0].pods[1].request.gpus == (GpuAsk("main", whole=4),)
    assert found[0].capacity_milli == 14_000


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        (HEADER, "wanted a row for each pod, found none"),
        (HEADER + "p,x,1,1,1000,\n", "pods.csv:2: column cpu_milli: wanted a whole number"),
        (HEADER + "p,1,1,1,1001,\n", "pods.csv:2: column gpu_milli: wanted a whole number"),
        (HEADER + "p,1,1,1,0,\n", "pods.csv:2: column gpu_milli"),
        (HEADER + "p,1,1,1,1000\n", "pods.csv:2: wanted 6 columns as in line 1, found 5"),
        (HEADER + "p,1,1,0,0,\np,1,1,0,0,\n", "'p' is there twice"),
        (HEADER + "p,1,1,1,1000,X9\n", "pod p asks for X9"),
        (
            "name,cpu_milli,num_gpu\np,1,0\n",
            "pods.csv:2: wanted a column memory_mib, found",
        ),
        (
            "name,cpu,memory,gpu\np,1,64,1\n",
            "column memory: wanted at least 1Mi, such as 16Gi (a number without a unit is bytes)",
        ),
        ("name,cpu,memory,gpu\np,1,1500m,1\n", "column memory: wanted at least 1Mi"),
        ("name,cpu,memory,gpu\np,1,1Gi,1.5\n", "column gpu: wanted a number of cards"),
        ("name,cpu,memory,gpu\np,1,1Gi,nan\n", "column gpu: wanted a number of cards"),
        ("name,cpu,memory,gpu\np,1,1Gi,1E1000000\n", "column gpu: wanted a number of cards"),
        ("name,cpu,memory,gpu\np,1,1Gi,1E999990\n", "column gpu: wanted a number of cards"),
        ("name,cpu,memory,gpu\np,1,1Gi,1E-999999\n", "column gpu: wanted a number of cards"),
        ("name,cpu,memory,gpu\np,1,1Gi,sNaN\n", "column gpu: wanted a number of cards"),
        ("name,cpu,memory,gpu\np,1,1Gi,-1\n", "column gpu: wanted a number of cards"),
        ("name,cpu,memory,gpu\np,1E1000000,1Gi,1\n", "column cpu: wanted a quantity"),
        ('{"pods": [{"gpu": ' + "9" * 5000 + "}]}", "a number in this JSON is too long"),
        ("name,cpu,memory,gpu\np,lots,1Gi,1\n", "column cpu: wanted a quantity"),
        ('{"pods": 3}', "wanted a list"),
        ('{"pods": [3]}', "pods[0]: wanted an object"),
        ('{"pods": [', "this is not JSON"),
        ('{"kind": "List", "items": []}', "found 0 and 0"),
        ('{"kind": "List", "items": [3]}', "items[0]: wanted a whole Node or Pod"),
    ],
)
def test_bad_files_are_refused_with_file_and_line(
    text: str, words: str, tmp_path: Path, nodes_file: Path
) -> None:
    with pytest.raises(TraceError) as refused:
        read_trace(write(tmp_path / "pods.csv", text), nodes_file)
    assert words in str(refused.value)


def test_an_unknown_name_among_the_arrivals_is_refused(
    tmp_path: Path, pods_file: Path, nodes_file: Path
) -> None:
    trace = read_trace(pods_file, nodes_file)
    with pytest.raises(TraceError, match=r"order\.txt:2: there is no pod 'nobody'"):
        from_file(trace, write(tmp_path / "order.txt", "p1\nnobody\n"))


@given(st.text(max_size=60))
def test_no_input_leads_to_a_traceback(text: str) -> None:
    with TemporaryDirectory() as directory, suppress(TraceError):
        path = Path(directory) / "noise.csv"
        path.write_text(text, encoding="utf-8", errors="replace", newline="")
        read_trace(path, path)


def test_a_snapshot_of_a_cluster_is_a_trace(tmp_path: Path) -> None:
    node = {
        "kind": "Node",
        "metadata": {"name": "n", "labels": {}},
        "status": {
            "allocatable": {"cpu": "8", "memory": "32Gi", "pods": "9", "nvidia.com/gpu": "2"}
        },
    }
    limits = {"nvidia.com/gpu": "1"}
    container = {"name": "main", "resources": {"requests": limits, "limits": limits}}
    pods = [
        {
            "kind": "Pod",
            "metadata": {"name": f"p{at}", "namespace": "default", "uid": f"u{at}"},
            "spec": {"containers": [container], "nodeName": "n"},
            "status": {"phase": phase},
        }
        for at, phase in enumerate(("Running", "Pending", "Succeeded"))
    ]
    path = write(tmp_path / "all.json", json.dumps({"kind": "List", "items": [node, *pods]}))
    trace = read_trace(path, None)
    assert [pod.request.name for pod in trace.pods] == ["p0", "p1"]
    assert trace.capacity_milli == 2000
    assert [pod.gpu_milli for pod in trace.pods] == [1000, 1000]


@pytest.mark.parametrize("is_pipe", [False, True])
def test_no_more_is_read_than_a_trace_may_have(
    is_pipe: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pipe and /dev/zero have no size that could be asked for."""
    monkeypatch.setattr(rows, "_MOST_BYTES", 10)
    path, text = tmp_path / "pods.csv", b"a" * 11
    with ThreadPoolExecutor() as threads:
        if is_pipe:
            os.mkfifo(path)
            threads.submit(path.write_bytes, text)
        else:
            path.write_bytes(text)
        with pytest.raises(TraceError, match="found a larger file"):
            rows.read_text(path)


def test_a_trace_may_come_through_pipes(tmp_path: Path) -> None:
    """As in `gpupool replay <(zcat pods.csv.gz)`: a pipe can be read once."""
    nodes = [{"name": "n", "cpu": 8, "memory": "9Gi", "gpu": 4}]
    both = {"pods": [{"name": "p", "cpu": 1, "memory": "1Gi", "gpu": 4}], "nodes": nodes}
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor() as threads:
        threads.submit(pipe.write_text, json.dumps(both))
        found = threads.submit(read_trace, pipe, None).result(60)
    assert (len(found.pods), found.capacity_milli) == (1, 4000)
