"""When the chart makes the agent a plugin of the container runtime."""

import pytest

from tests.deploy.test_chart import agent_of


def nri_of(*flags: str) -> tuple[list[str], bool]:
    """What the agent is told about NRI, and whether it has the directory of the socket."""
    spec = agent_of(*flags)["spec"]
    (container,) = spec["containers"]
    told = [each for each in container["args"] if each.startswith("--nri")]
    mounts = {each["mountPath"] for each in container["volumeMounts"]}
    has_volume = any(each["name"] == "nri" for each in spec["volumes"])
    assert has_volume == ("/var/run/nri" in mounts)
    return told, has_volume


def test_an_agent_that_puts_no_cards_in_only_looks_whether_others_did() -> None:
    socket = "--nri=/var/run/nri/nri.sock"
    assert nri_of() == ([socket, "--nri-only-checks"], True)
    assert nri_of("--set", "agent.nri.enabled=true") == ([socket], True)


@pytest.mark.parametrize("off", ["agent.nri.checksStarts=false", "agent.audit.enabled=false"])
def test_an_agent_that_may_not_look_gets_no_socket_of_the_runtime(off: str) -> None:
    assert nri_of("--set", off) == ([], False)
    assert nri_of("--set", f"{off},agent.nri.enabled=true")[1]
