import base64
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from gpupool.local import kubeconfig_merge
from gpupool.local.config.settings import NAMES
from gpupool.local.kubeconfig_merge import (
    KubeconfigError,
    default_path,
    merge_into,
    remove_from,
    switch_to,
)
from localkube.kubeconfig import (
    Kubeconfig,
    read_token,
    render,
    write,
)

OURS = Kubeconfig(
    "lab", "https://127.0.0.1:6443", b"-----BEGIN CERTIFICATE-----\n", "gpupool_t", NAMES
)
OTHERS = """\
# production
apiVersion: v1
kind: Config
current-context: prod
preferences: {}
clusters:
- name: prod
  cluster: {server: "https://prod.example", insecure-skip-tls-verify: true}
users:
- name: 0123
  user:
    username: off
    password: 0123456
    exec:
      apiVersion: client.authentication.k8s.io/v1
      args: [--at, 12:34:56, "yes", 1_000]
contexts:
- name: prod
  context: {cluster: prod, user: 0123, namespace: "null"}
"""


def _load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def _names(path: Path) -> set[str]:
    config = _load(path)
    keys = ("clusters", "users", "contexts")
    return {f"{key}/{each['name']}" for key in keys for each in config[key]}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "config"
    found.write_text(OTHERS)
    return found


def test_a_kubeconfig_has_the_ca_and_the_token_within(tmp_path: Path) -> None:
    write(tmp_path / "kubeconfig", OURS)
    config = _load(tmp_path / "kubeconfig")
    cluster = config["clusters"][0]["cluster"]
    assert base64.b64decode(cluster["certificate-authority-data"]) == OURS.ca_pem
    assert "insecure-skip-tls-verify" not in cluster
    assert cluster["server"] == OURS.server
    assert config["users"][0] == {"name": "gpupool-lab", "user": {"token": "gpupool_t"}}
    assert config["current-context"] == "gpupool-lab"
    assert stat.S_IMODE((tmp_path / "kubeconfig").stat().st_mode) == 0o600


def test_the_token_can_be_read_back(tmp_path: Path) -> None:
    write(tmp_path / "kubeconfig", OURS)
    assert read_token(tmp_path / "kubeconfig") == "gpupool_t"


@pytest.mark.parametrize("text", [None, "", "{", "[]", "users: []", "users: [{user: null}]"])
def test_what_is_no_kubeconfig_has_no_token(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "kubeconfig"
    if text is not None:
        path.write_text(text)
        path.chmod(0o600)
    assert read_token(path) == ""


def test_the_token_is_not_shown_by_accident() -> None:
    assert "gpupool_t" not in repr(OURS)


def test_a_write_without_a_change_leaves_the_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    write(path, OURS)
    before = path.stat().st_ino
    write(path, OURS)
    assert path.stat().st_ino == before


def test_merging_keeps_everything_else(path: Path) -> None:
    before = _load(path)
    merge_into(path, OURS)
    after = _load(path)
    for key in ("clusters", "users", "contexts"):
        assert after[key][:-1] == before[key]
        assert after[key][-1]["name"] == "gpupool-lab"
    assert after["current-context"] == "prod"
    # As written, not as understood: one program's number is another's text.
    for text in ("0123456", "12:34:56", '"yes"', "1_000", "username: off", '"null"', "name: 0123"):
        assert text in path.read_text()


def test_merging_again_updates_our_entry(path: Path) -> None:
    merge_into(path, OURS)
    moved = Kubeconfig("lab", "https://127.0.0.1:7443", OURS.ca_pem, "gpupool_u", NAMES)
    merge_into(path, moved)
    after = _load(path)
    assert [each["cluster"]["server"] for each in after["clusters"]] == [
        "https://prod.example",
        "https://127.0.0.1:7443",
    ]
    assert after["users"][-1]["user"]["token"] == "gpupool_u"


def test_removing_undoes_merging(path: Path) -> None:
    before = _load(path)
    merge_into(path, OURS)
    remove_from(path, "lab")
    assert _load(path) == before


def test_two_clusters_live_side_by_side(path: Path) -> None:
    merge_into(path, OURS)
    merge_into(path, Kubeconfig("two", OURS.server, OURS.ca_pem, "gpupool_2", NAMES))
    remove_from(path, "lab")
    assert _names(path) == {
        "clusters/prod",
        "users/83",
        "contexts/prod",
        "clusters/gpupool-two",
        "users/gpupool-two",
        "contexts/gpupool-two",
    }


def test_the_file_becomes_private_and_a_copy_is_kept_once(path: Path) -> None:
    path.chmod(0o644)
    merge_into(path, OURS)
    copy = path.with_name("config.before-gpupool")
    assert copy.read_text() == OTHERS
    assert {stat.S_IMODE(each.stat().st_mode) for each in (path, copy)} == {0o600}
    remove_from(path, "lab")
    merge_into(path, OURS)
    assert copy.read_text() == OTHERS
    assert {each.name for each in path.parent.iterdir()} == {"config", "config.before-gpupool"}


def test_a_new_file_is_made_with_ours_as_the_current_context(tmp_path: Path) -> None:
    path = tmp_path / ".kube" / "config"
    merge_into(path, OURS)
    assert _load(path) == yaml.safe_load(render(OURS))
    assert {each.name for each in path.parent.iterdir()} == {"config"}
    remove_from(path, "lab")
    assert _load(path)["current-context"] == ""


@pytest.mark.parametrize("text", ["", "clusters: null\nusers:\n", '{"clusters": []}'])
def test_sparse_files_are_merged_into(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    merge_into(path, OURS)
    assert _names(path) == {f"{key}/gpupool-lab" for key in ("clusters", "users", "contexts")}


@pytest.mark.parametrize("key", ["clusters", "users", "contexts"])
def test_a_foreign_entry_of_our_name_is_left_alone(tmp_path: Path, key: str) -> None:
    path = tmp_path / "config"
    text = f"{key}:\n- name: gpupool-lab\n"
    path.write_text(text)
    with pytest.raises(KubeconfigError, match=f"already has gpupool-lab under {key}"):
        merge_into(path, OURS)
    remove_from(path, "lab")
    assert path.read_text() == text
    assert {each.name for each in tmp_path.iterdir()} == {"config"}


@pytest.mark.parametrize("text", ["{", "- a", "text", "a: 1\n---\nb: 2\n"])
def test_a_file_that_is_no_kubeconfig_is_left_alone(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config"
    path.write_text(text)
    with pytest.raises(KubeconfigError, match="Nothing was changed"):
        merge_into(path, OURS)
    assert path.read_text() == text


def test_a_mistake_of_yaml_is_told_in_one_line_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "config").write_text("clusters: [yaml\n")
    with pytest.raises(KubeconfigError) as refused:
        merge_into(tmp_path / "config", OURS)
    assert str(refused.value) == (
        f"{tmp_path}/config:2:1: not valid YAML: while parsing a flow sequence, did not find "
        "expected ',' or ']'. Nothing was changed."
    )


def test_a_link_stays_a_link(path: Path) -> None:
    link = path.with_name("link")
    link.symlink_to(path)
    merge_into(link, OURS)
    assert link.is_symlink()
    assert "clusters/gpupool-lab" in _names(path)


def test_kubectls_lock_is_respected(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconfig_merge, "_LOCK_WAIT_S", 0)
    path.with_name("config.lock").touch()
    with pytest.raises(KubeconfigError, match=r"config\.lock exists"):
        merge_into(path, OURS)
    assert path.read_text() == OTHERS
    path.with_name("config.lock").unlink()
    merge_into(path, OURS)
    assert not path.with_name("config.lock").exists()


def test_the_context_can_be_switched_to(path: Path) -> None:
    with pytest.raises(KubeconfigError, match="no context gpupool-lab"):
        switch_to(path, "lab")
    merge_into(path, OURS)
    switch_to(path, "lab")
    assert _load(path)["current-context"] == "gpupool-lab"
    remove_from(path, "lab")
    assert _load(path)["current-context"] == ""


def test_removing_what_is_not_there_is_fine(path: Path, tmp_path: Path) -> None:
    remove_from(path, "lab")
    remove_from(tmp_path / "nowhere", "lab")
    assert path.read_text() == OTHERS
    assert not (tmp_path / "nowhere").exists()


def test_the_file_is_the_one_that_kubectl_would_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert default_path({}) == tmp_path / ".kube" / "config"
    assert default_path({"KUBECONFIG": ""}) == tmp_path / ".kube" / "config"
    assert default_path({"KUBECONFIG": ":/a/b:/c"}) == Path("/a/b")


def test_a_file_with_only_our_entries_is_not_copied(tmp_path: Path) -> None:
    path = tmp_path / "config"
    merge_into(path, OURS)
    remove_from(path, OURS.cluster)
    merge_into(path, OURS)
    assert {each.name for each in tmp_path.iterdir()} == {"config"}


def test_there_are_no_anchors(tmp_path: Path) -> None:
    merge_into(tmp_path / "config", OURS)
    for text in (render(OURS), (tmp_path / "config").read_bytes()):
        assert b"&" not in text
