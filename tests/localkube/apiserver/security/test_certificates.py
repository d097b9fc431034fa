import contextlib
import datetime
import ipaddress
import ssl
import stat
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from cryptography import x509

from localkube.apiserver.security import certificates
from localkube.apiserver.security.certificates import (
    CertificateError,
    Certificates,
    ensure,
    server_context,
)
from localkube.data_directory import NotPrivate

MADE = {
    *("ca.crt", "ca.key", "server.crt", "server.key", "sa.key", "certificates.json"),
    *("front-proxy-ca.crt", "front-proxy-client.crt", "front-proxy-client.key"),
}


def _server(directory: Path) -> x509.Certificate:
    return x509.load_pem_x509_certificate((directory / "server.crt").read_bytes())


def _names(certificate: x509.Certificate) -> set[str]:
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(each) for each in found.get_values_for_type(x509.IPAddress)}
    return addresses | set(found.get_values_for_type(x509.DNSName))


def _handshake(made: Certificates, client: ssl.SSLContext, name: str) -> ssl.SSLObject:
    """The client's side of a TLS connection to a server of ours, in memory."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    theirs = client.wrap_bio(down, up, server_hostname=name)
    ours = server_context(made).wrap_bio(up, down, server_side=True)
    for _ in range(4):
        for side in (theirs, ours):
            with contextlib.suppress(ssl.SSLWantReadError):
                side.do_handshake()
    assert theirs.version() in ("TLSv1.2", "TLSv1.3")
    return theirs


def test_everything_is_made_at_the_first_start_and_private(tmp_path: Path) -> None:
    ensure(tmp_path)
    assert {each.name for each in tmp_path.iterdir()} == MADE
    assert {stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()} == {0o600}


def test_a_second_start_changes_nothing(tmp_path: Path) -> None:
    first = ensure(tmp_path)
    before = {each.name: each.read_bytes() for each in tmp_path.iterdir()}
    assert ensure(tmp_path) == first
    assert {each.name: each.read_bytes() for each in tmp_path.iterdir()} == before


def test_a_second_start_does_not_load_the_slow_library(tmp_path: Path) -> None:
    ensure(tmp_path)
    program = (
        "import pathlib, sys\n"
        "from localkube.apiserver.security.certificates import ensure, server_context\n"
        "server_context(ensure(pathlib.Path(sys.argv[1])))\n"
        "sys.exit('cryptography' in sys.modules)\n"
    )
    assert (
        subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=False).returncode == 0
    )


def test_the_certificate_names_the_loopback_and_the_service(tmp_path: Path) -> None:
    ensure(tmp_path, ["10.1.2.3", "box.example.org"])
    assert _names(_server(tmp_path)) == {
        *certificates.ALWAYS_NAMED,
        "10.1.2.3",
        "box.example.org",
    }


def test_the_certificates_last_as_long_as_said(tmp_path: Path) -> None:
    made = ensure(tmp_path)
    ca = x509.load_pem_x509_certificate(made.ca_pem)
    now = datetime.datetime.now(datetime.UTC)
    assert (ca.not_valid_after_utc - now).days in (3649, 3650)
    assert (_server(tmp_path).not_valid_after_utc - now).days in (364, 365)


@pytest.mark.parametrize("name", ["127.0.0.1", "::1", "localhost", "kubernetes.default.svc"])
def test_a_strict_client_that_trusts_the_ca_connects(tmp_path: Path, name: str) -> None:
    made = ensure(tmp_path)
    client = ssl.create_default_context(cadata=made.ca_pem.decode())
    client.verify_flags |= ssl.VerifyFlags.VERIFY_X509_STRICT
    client.set_alpn_protocols(["h2", "http/1.1"])
    connection = _handshake(made, client, name)
    assert connection.selected_alpn_protocol() == "http/1.1"


def test_another_name_is_not_accepted(tmp_path: Path) -> None:
    made = ensure(tmp_path)
    client = ssl.create_default_context(cadata=made.ca_pem.decode())
    with pytest.raises(ssl.SSLCertVerificationError):
        _handshake(made, client, "example.org")


def test_old_versions_of_tls_are_refused(tmp_path: Path) -> None:
    assert server_context(ensure(tmp_path)).minimum_version == ssl.TLSVersion.TLSv1_2


def test_new_names_renew_the_servers_certificate_only(tmp_path: Path) -> None:
    first = ensure(tmp_path)
    old = _server(tmp_path)
    second = ensure(tmp_path, ["box"])
    assert _server(tmp_path) != old
    assert (second.ca_pem, second.service_account_key_pem) == (
        first.ca_pem,
        first.service_account_key_pem,
    )


@pytest.mark.parametrize(("days_left", "is_renewed"), [(61, False), (59, True), (-1, True)])
def test_a_certificate_near_its_end_is_renewed(
    tmp_path: Path, days_left: int, is_renewed: bool
) -> None:
    ensure(tmp_path)
    old = _server(tmp_path)
    now_s = time.time() + (365 - days_left) * 86400
    ensure(tmp_path, clock=lambda: now_s)
    assert (_server(tmp_path) != old) == is_renewed


def test_a_clock_set_far_back_renews_the_certificate(tmp_path: Path) -> None:
    ensure(tmp_path)
    old = _server(tmp_path)
    now_s = time.time() - 86400
    ensure(tmp_path, clock=lambda: now_s)
    assert _server(tmp_path) != old


@pytest.mark.parametrize("name", ["server.crt", "server.key", "certificates.json"])
@pytest.mark.parametrize("damage", [b"", b"garbage"])
def test_a_damaged_file_of_the_server_is_made_anew(
    tmp_path: Path, name: str, damage: bytes
) -> None:
    first = ensure(tmp_path)
    (tmp_path / name).write_bytes(damage)
    made = ensure(tmp_path)
    assert made.ca_pem == first.ca_pem
    server_context(made)


@pytest.mark.parametrize("name", ["ca.crt", "ca.key"])
def test_a_damaged_authority_is_an_error_that_says_what_to_do(tmp_path: Path, name: str) -> None:
    ensure(tmp_path)
    (tmp_path / name).write_bytes(b"garbage")
    with pytest.raises(CertificateError, match=r"remove both to have new ones made"):
        ensure(tmp_path)
    for each in ("ca.crt", "ca.key"):
        (tmp_path / each).unlink()
    server_context(ensure(tmp_path))


def test_an_authority_without_its_key_is_an_error(tmp_path: Path) -> None:
    ensure(tmp_path)
    (tmp_path / "ca.key").unlink()
    with pytest.raises(CertificateError, match=r"ca\.key is missing"):
        ensure(tmp_path)


def test_a_key_of_another_authority_is_an_error(tmp_path: Path) -> None:
    for each in ("a", "b"):
        (tmp_path / each).mkdir()
        ensure(tmp_path / each)
    (tmp_path / "a" / "ca.key").write_bytes((tmp_path / "b" / "ca.key").read_bytes())
    with pytest.raises(CertificateError, match=r"ca\.key is not the key of ca\.crt"):
        ensure(tmp_path / "a")


def test_a_first_start_that_was_interrupted_is_begun_again(tmp_path: Path) -> None:
    ensure(tmp_path)
    (tmp_path / "certificates.json").unlink()
    (tmp_path / "ca.key").unlink()
    server_context(ensure(tmp_path))


def test_an_authority_near_its_end_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from localkube.apiserver.security import certificate_making

    monkeypatch.setattr(certificate_making, "CA_DAYS", 30)
    first = ensure(tmp_path)
    monkeypatch.setattr(certificate_making, "CA_DAYS", 3650)
    second = ensure(tmp_path)
    assert second.ca_pem != first.ca_pem
    assert second.service_account_key_pem == first.service_account_key_pem


def test_a_name_that_cannot_be_in_a_certificate_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="schlüssel"):
        ensure(tmp_path, ["schlüssel.example"])


def test_a_key_that_others_can_read_stops_the_start(tmp_path: Path) -> None:
    ensure(tmp_path)
    (tmp_path / "ca.key").chmod(0o640)
    with pytest.raises(NotPrivate, match="chmod 600"):
        ensure(tmp_path)


def test_notes_tell_only_times_and_a_digest(tmp_path: Path) -> None:
    ensure(tmp_path)
    notes = msgspec.json.decode((tmp_path / "certificates.json").read_bytes())
    assert set(notes) == {"digest", "not_before_s", "not_after_s"}


def test_addresses_are_written_as_addresses(tmp_path: Path) -> None:
    ensure(tmp_path)
    names = _server(tmp_path).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert ipaddress.ip_address("::1") in names.get_values_for_type(x509.IPAddress)
