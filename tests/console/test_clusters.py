"""Clusters in the console: the form, the commands, and a whole life of a cluster."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from gpupool.console.cluster_jobs import Job, Jobs, Verb
from gpupool.console.machines import MachineType
from gpupool.console.pages.cluster_form import cluster_fields, cluster_file, shared_words
from gpupool.console.parts.form import Invalid
from gpupool.console.platform import OwnMachine, Quota
from gpupool.console.words import ENGLISH, translator
from gpupool.testing import Cluster
from tests.console.conftest import Office
from tests.console.own_console import OwnConsole, running_console
from tests.e2e.kubectl import eventually

pytestmark = pytest.mark.timeout(600)

T = translator(ENGLISH)
P100 = MachineType("ecs.gn5-c4g1.xlarge", 4, 30, "Tesla P100-PCIE-16GB", 1)
QUOTAS = {name: Quota(name, 40) for name in ("nodes-per-cluster", "routes-per-cluster")}


def form(**changes: str) -> dict[str, str]:
    """As the browser sends it when only the name is typed."""
    fields = cluster_fields(T, (P100,))
    return {each.name: each.value for each in fields} | {"name": "clusters-a"} | changes


def test_the_form_makes_a_cluster_file() -> None:
    file = yaml.safe_load(cluster_file(T, form(**{"pool1-labels": "team=a"}), QUOTAS))
    assert (file["kind"], file["name"], file["region"]) == ("Cluster", "clusters-a", "cn-beijing")
    masters, workers = file["pools"]
    assert (masters["role"], masters["count"]) == ("control-plane", 1)
    assert workers == {
        "name": "workers",
        "instanceType": P100.name,
        "count": 2,
        "os": "CentOS 7.x",
        "labels": {"team": "a"},
    }


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"name": "A"}, "name", "small letters"),
        ({"name": "a" * 41}, "name", "at most 40"),
        ({"name": "--all"}, "name", "small letters"),
        ({"pool1-name": "../x"}, "pool1-name", "small letters"),
        ({"pool1-labels": "x"}, "pool1-labels", "line 1"),
        ({"pool2-name": "workers"}, "pool2-name", "another pool"),
        ({"pool1-count": "40"}, "", "Quota nodes-per-cluster is 40, wanted 41."),
    ],
)
def test_what_is_wrong_is_said_at_the_field(
    changes: dict[str, str], field: str, words: str
) -> None:
    with pytest.raises(Invalid) as refused:
        cluster_file(T, form(**changes), QUOTAS)
    assert set(refused.value.errors) == {field}
    assert words in refused.value.errors[field]


def test_quotas_that_clusters_share_are_shown_and_refused() -> None:
    eips = Quota("eips", 20, used=20, by_cluster=1)
    groups = Quota("security-groups", 100, used=20, by_cluster=1)
    quotas = {**QUOTAS, "eips": eips, "security-groups": groups}
    assert shared_words(T, quotas) == (
        ("Security groups: 21 of 100", False),
        ("Quota eips is 20, wanted 21. Raise it with: gpupool quota set eips=21", True),
    )
    with pytest.raises(
        Invalid, match=r"Quota eips is 20, wanted 21\. Raise it with: gpupool quota"
    ):
        cluster_file(T, form(), quotas)


def jobs(script: str) -> tuple[Jobs, asyncio.Queue[None]]:
    changes: asyncio.Queue[None] = asyncio.Queue()
    return Jobs((sys.executable, "-c", script), lambda: changes.put_nowait(None)), changes


async def ended(job: Job, changes: asyncio.Queue[None]) -> Job:
    while job.is_running:
        await asyncio.wait_for(changes.get(), 120)
    return job


async def test_a_command_gets_its_file_and_leaves_nothing_behind() -> None:
    script = "import sys; print(sys.argv[1:4]); print(open(sys.argv[-1]).read())"
    made, changes = jobs(script)
    job = await ended(made.begin("a", Verb.CREATE, "up", "--name", "a", config="x: 1"), changes)
    assert job.code == 0
    assert job.text.splitlines() == ["['up', '--name', 'a']", "x: 1"]
    assert job.task is not None
    await job.task
    assert not job.folder.exists()


async def test_a_command_that_fails_tells_its_error_without_control_characters() -> None:
    script = "import sys; print('\\x1b[31mhello\\x1b[0m'); print('Error: no'); sys.exit('try x')"
    made, changes = jobs(script)
    job = await ended(made.begin("a", Verb.START, "up"), changes)
    assert (job.code, job.last_line) == (1, "Error: no")
    assert "hello\n" in job.text
    assert "\x1b" not in job.text


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="module")
def console(home: Path) -> Iterator[OwnConsole]:
    pools = [{"name": "gpu", "instanceType": P100.name, "count": 1}]
    with Cluster(pools=pools) as cluster:
        env = {"GPUPOOL_HOME": str(home)}
        with running_console(cluster.kubeconfig, env=env) as found:
            yield found
    # Also after a test that failed half way.
    for name in ("clusters-a", "clusters-b"):
        reset = (sys.executable, "-m", "gpupool", "reset", "--name", name, "--yes")
        subprocess.run(reset, env={**os.environ, **env}, capture_output=True, check=False)


def delete(console: OwnConsole, name: str) -> None:
    assert console.posts(f"/clusters/{name}/delete", **{"typed-name": name})[0] == 303
    eventually(lambda: f'id="table-gpupool-{name}"' not in console.page("/clusters"), within_s=120)


def row(console: OwnConsole, name: str) -> str:
    page = console.page("/clusters")
    return page.partition(f'id="table-gpupool-{name}"')[2].partition("</tr>")[0]


def test_a_cluster_is_made_looked_at_stopped_started_and_deleted(
    console: OwnConsole,
) -> None:
    page = console.page("/clusters")
    assert "Create cluster" in page
    assert ">1/1<" in page, "the cluster of the console itself"
    page = console.page("/create/cluster")
    assert "Clusters: 0 of 5; nodes in a cluster: at most 40." in page
    assert '<optgroup label="gn5">' in page
    many = form(**{"pool1-count": "50", "pool1-type": P100.name})
    status, page = console.posts("/create/cluster", **many)
    assert status == 422
    assert "Quota nodes-per-cluster is 40, wanted 51." in page
    wanted = form(**{"pool1-count": "2", "pool1-type": P100.name, "masters-count": "0"})
    assert console.posts("/create/cluster", **wanted)[0] == 303
    assert console.posts("/create/cluster", **wanted)[0] == 422, "the name is taken"
    eventually(lambda: ">2/2<" in row(console, "clusters-a"), within_s=180)
    eventually(lambda: ">Running<" in row(console, "clusters-a"), within_s=120)

    def nodes() -> str:
        status, page, _ = console.asks("GET", "/clusters/gpupool-clusters-a/nodes")
        assert status == 200
        return page

    assert "2 of 2 nodes are ready." in nodes()
    eventually(lambda: nodes().count("1 × Tesla P100-PCIE-16GB") == 2, within_s=60)
    assert console.posts("/clusters/clusters-a/stop")[0] == 303
    eventually(lambda: ">Stopped<" in row(console, "clusters-a"), within_s=120)
    assert console.posts("/clusters/clusters-a/start")[0] == 303
    status, page = console.posts("/clusters/clusters-a/stop")
    assert (status, "Another command works on this cluster." in page) == (422, True)
    eventually(lambda: ">Running<" in row(console, "clusters-a"), within_s=180)
    eventually(lambda: ">2/2<" in row(console, "clusters-a"), within_s=120)
    status, _ = console.posts("/clusters/clusters-a/delete", **{"typed-name": "clusters"})
    assert status == 422, "another name was typed"
    delete(console, "clusters-a")
    assert console.asks("GET", "/clusters/gpupool-clusters-a/nodes")[0] == 404


def test_a_cluster_that_is_not_there_cannot_be_touched(console: OwnConsole) -> None:
    for name in ("nobody", "--all", "..%2F.."):
        for verb in ("start", "stop", "delete"):
            form_of = {"typed-name": name}
            assert console.posts(f"/clusters/{name}/{verb}", **form_of)[0] == 404
    assert console.asks("GET", "/clusters/nobody/nodes")[0] == 404


def test_contexts_are_listed_and_asked_only_when_somebody_opens_them(tmp_path: Path) -> None:
    pools = [{"name": "gpu", "instanceType": P100.name, "count": 1}]
    with Cluster(pools=pools) as cluster:
        known = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
        context = known["contexts"][0]
        evil = "<b>arn:aws:eks:eu:1:cluster/x"
        known["contexts"] = [
            {**context, "name": name} for name in ("arn:aws:eks:eu:1:cluster/a", "b", evil)
        ]
        known["current-context"] = "arn:aws:eks:eu:1:cluster/a"
        file = tmp_path / "kubeconfig"
        file.write_text(yaml.safe_dump(known), encoding="utf-8")
        with running_console(file) as console:
            assert console.home.endswith("cluster%2Fa")
            page = console.page("/clusters")
            assert page.count("Not asked yet") == 2
            assert "<b>" not in page
            assert console.asks("GET", "/clusters/b/nodes")[0] == 200
            assert console.page("/clusters").count("Not asked yet") == 1
            assert 'cluster%2Fa/search"' in console.page("/nodes")


def test_the_list_of_clusters_answers_when_the_first_one_has_stopped() -> None:
    with Cluster(pools=[]) as cluster, running_console(cluster.kubeconfig) as console:
        console.page("/nodes")
        cluster.stop()
        eventually(lambda: console.asks("GET", f"{console.home}/search?q=x")[0] == 502, within_s=60)
        _, page, _ = console.asks("GET", f"{console.home}/search?q=x")
        assert 'href="/clusters"' in page
        page = console.page("/clusters")
        assert "0 of 1 clusters run." in page
        assert "Create cluster" in page


THERE = (
    OwnMachine("m1", P100.name),
    OwnMachine("m2", P100.name),
    OwnMachine("small", "ecs.g6.large"),
    OwnMachine("used", P100.name, "other", "workers"),
)


def of_existing(**changes: str) -> dict[str, str]:
    fields = cluster_fields(T, (P100,), THERE)
    given = {each.name: each.value for each in fields} | {"name": "clusters-a"}
    return given | {"pool1-source": "existing", "pool1-machines": "m1\nm2"} | changes


def test_a_pool_is_made_of_existing_instances() -> None:
    file = yaml.safe_load(cluster_file(T, of_existing(), QUOTAS, THERE))
    workers = file["pools"][1]
    assert workers["instanceType"] == P100.name
    assert (workers["count"], workers["machines"]) == (2, ["m1", "m2"])
    offered = {each.name: each for each in cluster_fields(T, (P100,), THERE)}["pool1-machines"]
    assert [name for name, _ in offered.choices] == ["m1", "m2", "small"], "only free ones"


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"pool1-machines": ""}, "pool1-machines", "at least one"),
        ({"pool1-machines": "m1\nsmall"}, "pool1-machines", "of one type"),
        ({"pool1-machines": "used"}, "pool1-machines", "not free any more"),
        ({"pool1-machines": "--all"}, "pool1-machines", "not free any more"),
        (
            {"pool3-name": "b", "pool3-source": "existing", "pool3-machines": "m2"},
            "pool3-machines",
            "Another pool has these already: m2",
        ),
    ],
)
def test_instances_that_cannot_be_a_pool_are_refused(
    changes: dict[str, str], field: str, words: str
) -> None:
    with pytest.raises(Invalid) as refused:
        cluster_file(T, of_existing(**changes), QUOTAS, THERE)
    assert set(refused.value.errors) == {field}
    assert words in refused.value.errors[field]


def test_instances_are_added_and_removed(console: OwnConsole) -> None:
    add = {"type": P100.name, "count": "1", "names": "spare-1\nspare-2"}
    assert console.posts("/create/instances", **add)[0] == 303
    status, page = console.posts("/create/instances", **add)
    assert (status, "There is a machine &#34;spare-1&#34; already." in page) == (422, True)
    page = console.page("/instances")
    assert "2 of 2 instances are free." in page
    assert console.posts("/instances/spare-1/remove")[0] == 303
    assert console.asks("GET", f"{console.home}/instances/spare-1/remove")[0] == 404
    assert console.posts("/instances/--all/remove")[0] == 404
    assert console.posts("/create/instances", type="nope", count="1")[0] == 422
    assert "1 of 1 instances are free." in console.page("/instances")
    assert console.posts("/instances/spare-2/remove")[0] == 303


def test_a_damaged_file_of_instances_is_not_shown_as_none(console: OwnConsole, home: Path) -> None:
    file = home / "machines.json"
    file.write_text("{")
    page = console.page("/instances")
    file.unlink()
    assert "machines.json is damaged" in page
    assert "There are no instances." not in page


def test_a_console_that_serves_others_has_no_instances(office: Office) -> None:
    for path in ("instances", "create/instances", "instances/machine-1/remove"):
        assert office.sees(path)[0] == 404
    for path in ("create/instances", "instances/machine-1/remove"):
        assert office.sends(path, type=P100.name, count="1")[0] == 404


def test_a_pool_of_a_running_cluster_is_made_of_existing_instances(console: OwnConsole) -> None:
    add = {"type": P100.name, "count": "1", "names": "pooled"}
    assert console.posts("/create/instances", **add)[0] == 303
    empty = form(**{"pool1-count": "0", "pool1-type": P100.name, "masters-count": "0"})
    assert console.posts("/create/cluster", **{**empty, "name": "clusters-b"})[0] == 303
    eventually(lambda: ">Running<" in row(console, "clusters-b"), within_s=180)
    there = "/clusters/gpupool-clusters-b"
    page = console.asks("GET", f"{there}/create/pool")[1]
    assert 'name="machines" value="pooled"' in page
    pool = {"name": "existing", "count": "1", "type": "ecs.g6.large", "os": "CentOS 7.x"}
    wrong = console.asks("POST", f"{there}/create/pool", {**pool, "source": "existing"})
    assert wrong[0] == 422
    assert "Choose at least one instance." in wrong[1]
    chosen = {**pool, "source": "existing", "machines": "pooled"}
    assert console.asks("POST", f"{there}/create/pool", chosen)[0] == 303
    nodes = f"{there}/nodes/pooled"
    eventually(lambda: console.asks("GET", nodes)[0] == 200, within_s=120)
    assert P100.name in console.asks("GET", nodes)[1], "the type is that of the instance"
    assert "0 of 1 instances are free." in console.page("/instances")
    again = console.asks("POST", f"{there}/create/pool", {**chosen, "name": "again"})
    assert again[0] == 422, "it is not offered any more"
    delete(console, "clusters-b")
    assert "1 of 1 instances are free." in console.page("/instances")
    assert console.posts("/instances/pooled/remove")[0] == 303
    assert "pooled" not in console.page("/create/cluster")
