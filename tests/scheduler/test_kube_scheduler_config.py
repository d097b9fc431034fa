"""The configuration that `gpupool scheduler config` prints for kube-scheduler."""

from typing import Any

from gpupool.contract.names import EXTENDER_PROFILE
from gpupool.scheduler.kube_scheduler_config import (
    MANAGED,
    SMALLEST_SAMPLE,
    ExtenderTls,
    kube_scheduler_config,
)


def extender_of(config: Any) -> Any:
    (extender,) = config["extenders"]
    return extender


def test_plain_http_needs_neither_an_authority_nor_a_kubeconfig() -> None:
    config = kube_scheduler_config("http://127.0.0.1:8888/")
    extender = extender_of(config)
    assert extender["urlPrefix"] == "http://127.0.0.1:8888/gpushare-scheduler"
    assert extender["enableHTTPS"] is False
    assert "tlsConfig" not in extender
    assert "clientConnection" not in config


def test_https_names_the_authority_and_the_server() -> None:
    config = kube_scheduler_config(
        "https://gpupool",
        ExtenderTls(ca_file="/ca.crt", server_name="gpupool.svc"),
        kubeconfig="/kubeconfig",
    )
    extender = extender_of(config)
    assert extender["enableHTTPS"] is True
    assert extender["tlsConfig"] == {"caFile": "/ca.crt", "serverName": "gpupool.svc"}
    assert config["clientConnection"] == {"kubeconfig": "/kubeconfig"}


def test_only_what_is_given_stands_in_the_tls_configuration() -> None:
    config = kube_scheduler_config("https://gpupool", ExtenderTls(ca_file="/ca.crt"))
    assert extender_of(config)["tlsConfig"] == {"caFile": "/ca.crt"}


def test_kube_scheduler_shows_a_certificate_of_its_own() -> None:
    tls = ExtenderTls(ca_file="/ca.crt", cert_file="/client.crt", key_file="/client.key")
    shown = extender_of(kube_scheduler_config("https://gpupool", tls))["tlsConfig"]
    assert shown == {"caFile": "/ca.crt", "certFile": "/client.crt", "keyFile": "/client.key"}


def test_pods_with_gpus_wait_while_the_extender_is_away() -> None:
    extender = extender_of(kube_scheduler_config("https://gpupool"))
    assert extender["ignorable"] is False
    assert {each["name"] for each in extender["managedResources"]} == set(MANAGED)


def profiles(percent: int = SMALLEST_SAMPLE) -> dict[str, Any]:
    """By their names."""
    config = kube_scheduler_config("https://gpupool", percent=percent)
    assert "percentageOfNodesToScore" not in config, "that counts for the pods of all profiles"
    return {each.pop("schedulerName"): each for each in config["profiles"]}


def test_pods_without_gpus_are_placed_as_before() -> None:
    assert profiles()["default-scheduler"] == {}


def test_pods_with_gpus_have_a_profile_with_a_small_sample() -> None:
    assert profiles()[EXTENDER_PROFILE] == {"percentageOfNodesToScore": 1}


def test_another_sample_is_for_pods_with_gpus_alone() -> None:
    found = profiles(100)
    assert found["default-scheduler"] == {}
    assert found[EXTENDER_PROFILE] == {"percentageOfNodesToScore": 100}
