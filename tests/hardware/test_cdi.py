import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpupool.hardware.cdi import (
    BadSpec,
    BindMount,
    DeviceNode,
    Edits,
    Hook,
    completed,
    edits_for,
    read_specs,
    spec_of,
)

UUID = "GPU-1ad9a4c5-0000-4000-8000-000000000001"
OTHER = "GPU-1ad9a4c5-0000-4000-8000-000000000002"
# As nvidia-ctk writes it, shortened.
SPEC = f"""
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
  - name: "0"
    containerEdits: {{deviceNodes: [{{path: /dev/nvidia0}}]}}
  - name: {UUID}
    containerEdits: {{deviceNodes: [{{path: /dev/nvidia0}}]}}
  - name: {OTHER}
    containerEdits: {{deviceNodes: [{{path: /dev/nvidia1, major: 195, minor: 1, type: c}}]}}
containerEdits:
  env: [NVIDIA_VISIBLE_DEVICES=void]
  deviceNodes: [{{path: /dev/nvidiactl, hostPath: /run/nvidia/driver/dev/nvidiactl}}]
  hooks:
    - hookName: createContainer
      path: /usr/bin/nvidia-cdi-hook
      args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib64]
  mounts:
    - hostPath: /usr/lib64/libcuda.so.615
      containerPath: /usr/lib64/libcuda.so.615
      options: [ro, nosuid, nodev, bind]
"""


def test_a_card_is_found_by_its_uuid_with_what_all_cards_need() -> None:
    found = edits_for([spec_of(SPEC)], UUID)
    assert found == Edits(
        env=("NVIDIA_VISIBLE_DEVICES=void",),
        device_nodes=(
            DeviceNode("/dev/nvidiactl", "/run/nvidia/driver/dev/nvidiactl"),
            DeviceNode("/dev/nvidia0"),
        ),
        mounts=(
            BindMount(
                "/usr/lib64/libcuda.so.615",
                "/usr/lib64/libcuda.so.615",
                ("ro", "nosuid", "nodev", "bind"),
            ),
        ),
        hooks=(
            Hook(
                "createContainer",
                "/usr/bin/nvidia-cdi-hook",
                ("nvidia-cdi-hook", "update-ldcache", "--folder", "/usr/lib64"),
            ),
        ),
    )


def test_two_cards_bring_what_they_share_once() -> None:
    specs = [spec_of(SPEC)]
    first, second = edits_for(specs, UUID), edits_for(specs, OTHER)
    assert first
    assert second
    both = first + second
    assert [node.path for node in both.device_nodes] == [
        "/dev/nvidiactl",
        "/dev/nvidia0",
        "/dev/nvidia1",
    ]
    assert len(both.mounts) == len(both.hooks) == len(both.env) == 1


def test_an_unknown_card_has_no_edits_and_an_index_is_no_name() -> None:
    assert edits_for([spec_of(SPEC)], "GPU-none") is None


def test_the_later_directory_wins_and_other_kinds_and_files_are_left_out(tmp_path: Path) -> None:
    static, dynamic = tmp_path / "etc", tmp_path / "run"
    static.mkdir()
    dynamic.mkdir()
    (static / "nvidia.yaml").write_text(SPEC)
    (static / "README").write_text("no specification")
    (static / "nic.yaml").write_text("kind: vendor.com/nic\ndevices: []\n")
    (dynamic / "nvidia.yaml").write_text(SPEC.replace("/dev/nvidia0", "/dev/nvidia7"))
    (dynamic / "plugin.json").write_text(
        f'{{"kind": "k8s.device-plugin.nvidia.com/gpu", "devices": [{{"name": "{UUID}"}}]}}'
    )
    specs, wrong = read_specs((static, dynamic, tmp_path / "missing"))
    assert wrong == []
    assert [spec.kind for spec in specs] == [
        "k8s.device-plugin.nvidia.com/gpu",
        "nvidia.com/gpu",
        "nvidia.com/gpu",
    ]
    found = edits_for(specs, UUID)
    assert found
    assert found.device_nodes[-1].path == "/dev/nvidia7"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "Expected `object`"),
        ("devices: []", "missing required field `kind`"),
        ("kind: nvidia.com/gpu\ndevices: [{}]", "missing required field `name`"),
        ("kind: [", "line 1"),
        ("kind: nvidia.com/gpu\ndevices: [{name: a, containerEdits: {env: 3}}]", "env"),
    ],
)
def test_a_file_that_is_no_specification_is_named_and_skipped(
    tmp_path: Path, text: str, words: str
) -> None:
    (tmp_path / "bad.yaml").write_text(text)
    (tmp_path / "good.yaml").write_text(SPEC)
    specs, wrong = read_specs((tmp_path,))
    assert len(specs) == 1
    assert len(wrong) == 1
    assert str(tmp_path / "bad.yaml") in wrong[0]
    assert words in wrong[0] or words.replace("line 1", ":1:") in wrong[0]


def test_a_file_that_is_too_long_or_not_text_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "long.yaml").write_bytes(b"#" * (1 << 20) + b"\n")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    (tmp_path / "folder.yaml").mkdir()
    specs, wrong = read_specs((tmp_path,))
    assert specs == []
    assert len(wrong) == 3


@given(st.text(max_size=200))
def test_any_text_is_a_specification_or_a_complaint(text: str) -> None:
    try:
        spec_of(text)
    except BadSpec:
        return


def test_numbers_that_are_missing_are_those_of_the_node() -> None:
    found = completed(Edits(device_nodes=(DeviceNode("/dev/x", "/dev/null"),)))
    node = os.stat("/dev/null")
    assert found.device_nodes[0] == DeviceNode(
        "/dev/x", "/dev/null", "c", os.major(node.st_rdev), os.minor(node.st_rdev)
    )
    given_ = Edits(device_nodes=(DeviceNode("/dev/none", type="c", major=195, minor=1),))
    assert completed(given_) == given_


def test_devices_are_looked_for_where_we_see_those_of_the_node(tmp_path: Path) -> None:
    (tmp_path / "nvidia-caps").mkdir()
    (tmp_path / "nvidia-caps" / "cap1").write_text("no device")
    (tmp_path / "null").symlink_to("/dev/null")
    driver = DeviceNode("/dev/null", "/run/nvidia/driver/dev/null")
    assert completed(Edits(device_nodes=(driver,)), tmp_path).device_nodes[0].minor == 3
    for name, words in (("/dev/zero", "No such file"), ("/dev/nvidia-caps/cap1", "is no device")):
        with pytest.raises(OSError, match=words):
            completed(Edits(device_nodes=(DeviceNode(name),)), tmp_path)


def test_a_pipe_in_the_place_of_a_file_is_named_and_does_not_hold_the_agent(tmp_path: Path) -> None:
    """To open a pipe waits for somebody who writes: the container runtime would wait with us."""
    os.mkfifo(tmp_path / "nvidia.json")
    (tmp_path / "nvidia.yaml").symlink_to(tmp_path / "nvidia.json")
    (tmp_path / "zeros.json").symlink_to("/dev/zero")
    specs, wrong = read_specs([tmp_path])
    assert specs == []
    assert wrong == [
        f"{tmp_path / name}: wanted a file, found something else"
        for name in ("nvidia.json", "nvidia.yaml", "zeros.json")
    ]
