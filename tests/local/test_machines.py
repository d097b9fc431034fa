"""Machines that exist without a cluster: kept, claimed, given back, and never of two clusters."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.local.home import CannotUse, Home
from gpupool.local.machines import MOST, ClusterMachines, Machine, Machines, Wanted
from gpupool.local.pool_machines import machines_check
from kubeclient.objects import Obj
from localkube.apiserver.admission.attributes import Attributes, Operation

TYPE = "ecs.g6.xlarge"


@pytest.fixture
def machines(home: Home) -> Machines:
    home.root.mkdir()
    return Machines(home)


def wanted(*names: str, pool: str = "workers", type_: str = TYPE) -> tuple[Wanted, ...]:
    return (Wanted(pool, type_, names),)


def owners(machines: Machines) -> dict[str, str]:
    return {name: each.cluster for name, each in machines.all().items()}


def test_machines_without_names_get_the_first_free_ones(machines: Machines) -> None:
    machines.add(TYPE, ["machine-2", "cn-beijing.192.168.0.9"])
    new = machines.add(TYPE, count=3)
    assert [each.name for each in new] == ["machine-1", "machine-3", "machine-4"]
    assert machines.all()["machine-1"] == Machine("machine-1", TYPE)


@pytest.mark.parametrize(
    ("names", "words"),
    [
        (["A"], 'lower-case letters, digits, "-" and "."'),
        (["a" * 64], "at most 63"),
        (["a", "a"], 'There is a machine "a" already'),
        (["old"], 'There is a machine "old" already'),
        ([f"m{n}" for n in range(1001)], "at most 1000 machines at once, found 1001"),
    ],
)
def test_bad_names_add_nothing(machines: Machines, names: list[str], words: str) -> None:
    machines.add(TYPE, ["old"])
    with pytest.raises(CannotUse, match=words):
        machines.add(TYPE, names)
    assert list(machines.all()) == ["old"]


def test_there_is_an_end_to_machines(machines: Machines) -> None:
    for _ in range(MOST // 1000):
        machines.add(TYPE, count=1000)
    with pytest.raises(CannotUse, match="10000 are there, 1 more"):
        machines.add(TYPE, count=1)


def test_a_machine_of_a_cluster_is_not_removed(machines: Machines) -> None:
    machines.home.make("a", None)
    machines.add(TYPE, ["free", "used"])
    machines.claim("a", wanted("used"))
    with pytest.raises(CannotUse, match='"used" is a node of cluster "a"'):
        machines.remove(["free", "used"])
    assert list(machines.all()) == ["free", "used"]
    machines.remove(["free"])
    assert list(machines.all()) == ["used"]


def test_a_machine_that_is_not_there_cannot_be_removed(machines: Machines) -> None:
    with pytest.raises(CannotUse, match='no machine "x"'):
        machines.remove(["x"])


def test_a_machine_is_of_one_cluster(machines: Machines) -> None:
    for name in ("a", "b"):
        machines.home.make(name, None)
    machines.add(TYPE, ["m", "n"])
    machines.claim("a", wanted("m"))
    machines.claim("a", wanted("m"))  # what one has, one may ask for again
    with pytest.raises(CannotUse, match='"m" is a node of cluster "a"'):
        machines.claim("b", wanted("n", "m"))
    assert owners(machines) == {"m": "a", "n": ""}


def test_a_machine_is_of_one_pool(machines: Machines) -> None:
    machines.home.make("a", None)
    machines.add(TYPE, ["m"])
    machines.claim("a", wanted("m"))
    with pytest.raises(CannotUse, match='node of pool "workers" of the same cluster'):
        machines.claim("a", wanted("m", pool="other"))


@pytest.mark.parametrize(
    ("wish", "words"),
    [
        (wanted("x"), 'there is no machine "x"'),
        (wanted("m", type_="ecs.gn5-c4g1.xlarge"), "is of type ecs.g6.xlarge"),
    ],
)
def test_what_cannot_be_a_node_of_the_pool_is_refused(
    machines: Machines, wish: tuple[Wanted, ...], words: str
) -> None:
    machines.add(TYPE, ["m"])
    with pytest.raises(CannotUse, match=words):
        machines.claim("a", wish)


def test_what_a_cluster_held_that_is_gone_is_free(machines: Machines) -> None:
    """`up` or `reset` was killed between its two writes."""
    machines.add(TYPE, ["m"])
    machines.claim("gone", wanted("m"))
    assert owners(machines) == {"m": ""}
    machines.home.make("b", None)
    machines.claim("b", wanted("m"))
    assert owners(machines) == {"m": "b"}


def test_a_new_cluster_does_not_inherit_what_its_name_held(machines: Machines) -> None:
    machines.add(TYPE, ["m", "n"])
    machines.claim("a", wanted("m"))
    machines.claim("a", wanted("n"), is_new=True)
    machines.home.make("a", None)
    assert owners(machines) == {"m": "", "n": "a"}


def test_a_cluster_on_a_disk_that_is_not_there_keeps_its_machines(
    machines: Machines, tmp_path: Path
) -> None:
    machines.home.make("far", tmp_path / "disk")
    machines.add(TYPE, ["m"])
    machines.claim("far", wanted("m"))
    (tmp_path / "disk").rename(tmp_path / "unplugged")
    assert owners(machines) == {"m": "far"}


def test_a_damaged_file_is_named(machines: Machines) -> None:
    file = machines.home.root / "machines.json"
    for text in (b"{", b'{"machines": [1]}', b"\xff", b"[" * 100_000):
        file.write_bytes(text)
        with pytest.raises(CannotUse, match=r"machines\.json is damaged"):
            machines.all()


@pytest.mark.parametrize(
    "said",
    [
        {"name": "m", "cluster": "a\x00b"},
        {"name": "m", "cluster": "../../elsewhere"},
        {"name": "m", "cluster": "a" * 5000},
        {"name": ""},
        {"name": "\x1b[31m"},
    ],
)
def test_a_file_with_names_that_nobody_can_have_is_damaged(
    machines: Machines, said: dict[str, str]
) -> None:
    saved = {"machines": [{"instance_type": TYPE, **said}]}
    (machines.home.root / "machines.json").write_text(json.dumps(saved))
    with pytest.raises(CannotUse, match=r"machines\.json is damaged"):
        machines.all()


def test_a_server_sees_what_others_change(machines: Machines) -> None:
    machines.home.make("a", None)
    mine = ClusterMachines(machines, "a")
    assert mine.held() == {}
    machines.add(TYPE, ["m"])
    machines.claim("a", wanted("m"))
    assert list(mine.held()) == ["m"]
    machines.release("a")
    assert mine.held() == {}


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["claim", "release", "make", "delete", "forget", "remove"]),
        st.sampled_from(["a", "b", "c"]),
        st.sets(st.sampled_from(["m1", "m2", "m3"]), min_size=1),
    ),
    max_size=25,
)


@given(STEPS)
def test_whatever_is_done_a_machine_is_never_in_two_clusters(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str, set[str]]]
) -> None:
    """`forget` is a deletion that was killed before it gave the machines back; `has` is what each
    cluster was told that it has, and has not been told to give back."""
    home = Home(tmp_path_factory.mktemp("home"))
    machines, has = Machines(home), dict[str, set[str]]()
    machines.add(TYPE, ["m1", "m2", "m3"])
    for what, cluster, names in steps:
        _do(machines, has, what, cluster, names)
        for name in ("m1", "m2", "m3"):
            users = [each for each, its in has.items() if name in its]
            assert len(users) <= 1, f"{name} is of {users}"
            assert not users or machines.all()[name].cluster == users[0]


def _do(
    machines: Machines, has: dict[str, set[str]], what: str, cluster: str, names: set[str]
) -> None:
    try:
        if what == "make" and cluster not in has:
            machines.claim(cluster, wanted(*names), is_new=True)
            machines.home.make(cluster, None)
            has[cluster] = set(names)
        elif what == "claim" and cluster in has:
            machines.claim(cluster, wanted(*names))
            has[cluster] |= names
        elif what == "release" and cluster in has:
            has[cluster] -= names
            machines.release(cluster, names)
        elif what in ("delete", "forget") and cluster in has:
            del has[cluster]
            machines.home.delete(machines.home.existing(cluster))
            if what == "delete":
                machines.release(cluster)
        elif what == "remove":
            machines.remove(names)
            machines.add(TYPE, names)
    except CannotUse:
        pass


CLAIMER = """
import sys
from pathlib import Path
from gpupool.local.home import CannotUse, Home
from gpupool.local.machines import Machines, Wanted

home, name = Home(Path(sys.argv[1])), sys.argv[2]
machines, won = Machines(home), []
input()
for number in range(1, 101):
    try:
        with home.alone():
            machines.claim(name, (Wanted("p", "ecs.g6.xlarge", (f"machine-{number}",)),))
        won.append(number)
    except CannotUse:
        pass
print(*won)
"""


def test_two_processes_at_once_never_get_the_same_machine(machines: Machines) -> None:
    machines.add(TYPE, count=100)
    for name in ("a", "b"):
        machines.home.make(name, None)
    both = [
        subprocess.Popen(
            [sys.executable, "-c", CLAIMER, str(machines.home.root), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b")
    ]
    for each in both:
        assert each.stdin is not None
        each.stdin.write("\n")
        each.stdin.flush()
    won = [set(map(int, each.communicate(timeout=120)[0].split())) for each in both]
    assert not won[0] & won[1]
    assert won[0] | won[1] == set(range(1, 101))
    for name, its in zip("ab", won, strict=True):
        found = {n for n in its if machines.all()[f"machine-{n}"].cluster == name}
        assert found == its


def refused(machines: Machines | None, spec: object, old: Obj | None = None) -> str:
    """Why the write of such a NodePool is refused."""
    held = ClusterMachines(machines, "a") if machines is not None else None
    before = {"spec": old} if old is not None else None
    operation = Operation.UPDATE if old is not None else Operation.CREATE
    written = Attributes(
        *(operation, None, "", "", "workers", None, {"spec": spec}, before, False, {}, []),  # type: ignore[arg-type]
    )
    return machines_check(held)(written, None)  # type: ignore[arg-type]  # it asks neither


def test_a_pool_of_machines_of_another_type_is_refused_when_it_is_written(
    machines: Machines,
) -> None:
    machines.add(TYPE, ["m1"])
    machines.add("ecs.gn5-c4g1.xlarge", ["m2"])
    right: Obj = {"instanceType": TYPE, "machines": ["m1", "not-there-yet"]}
    wrong: Obj = {"instanceType": TYPE, "machines": ["m1", "m2"]}
    assert refused(machines, right) == ""
    assert refused(machines, wrong) == (
        f'Pool "workers": wanted machines of type {TYPE}; "m2" is of type ecs.gn5-c4g1.xlarge.'
    )
    assert refused(machines, wrong, right) != "", "an edit may bring them too"
    assert refused(machines, {**wrong, "count": 1}, wrong) == "", "others may change the rest"
    assert refused(None, wrong) == "", "the controller says that there are none"


@pytest.mark.parametrize("odd", [None, 7, {"machines": 7}, {"machines": [{}, None, 1]}])
def test_what_is_no_pool_is_left_to_the_schema(machines: Machines, odd: object) -> None:
    machines.add(TYPE, ["m1"])
    assert refused(machines, odd) == ""
