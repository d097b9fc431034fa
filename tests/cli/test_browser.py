"""Whether a browser can be opened, and what is said where it cannot."""

import pytest

from gpupool.cli.browser import from_elsewhere, has_screen, tunnel_words


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"DISPLAY": "", "WAYLAND_DISPLAY": "wayland-0"}, True),
        ("linux", {"BROWSER": "w3m"}, True),
        ("linux", {"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}, False),
        ("darwin", {}, True),
        ("darwin", {"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}, False),
    ],
)
def test_a_browser_needs_a_screen(platform: str, environ: dict[str, str], expected: bool) -> None:
    assert has_screen(platform, environ) is expected


def test_without_a_screen_a_tunnel_leads_to_the_page() -> None:
    assert tunnel_words("http://127.96.0.1", "ada@10.0.0.7").splitlines() == [
        "There is no screen here. On the machine with your browser:",
        "  ssh -N -L 8080:127.96.0.1:80 ada@10.0.0.7",
        "Then open http://localhost:8080 there.",
    ]


def test_the_tunnel_keeps_a_port_that_everybody_may_use_and_the_rest_of_the_link() -> None:
    words = tunnel_words("http://127.0.0.1:30080/lab?key=a", "b")
    assert "  ssh -N -L 30080:127.0.0.1:30080 b\n" in words
    assert words.endswith("open http://localhost:30080/lab?key=a there.")


def test_the_tunnel_keeps_a_name_that_only_browsers_find() -> None:
    words = tunnel_words("http://a.localhost:8080/?key=k", "b")
    assert "  ssh -N -L 8080:127.0.0.1:8080 b\n" in words
    assert words.endswith("open http://a.localhost:8080/?key=k there.")
    assert from_elsewhere("http://a.localhost:8080", {}) != ""


@pytest.mark.parametrize(
    ("link", "environ"),
    [
        ("http://127.0.0.1:1", {"DISPLAY": ":0", "SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}),
        ("http://203.0.113.9", {}),
        ("https://jupyter.example.com", {}),
    ],
)
def test_nothing_is_said_where_a_browser_can_open_the_link(
    link: str, environ: dict[str, str]
) -> None:
    assert from_elsewhere(link, environ) == ""


def test_who_came_by_ssh_is_told_the_address_that_led_here() -> None:
    environ = {"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}
    assert "@6.7.8.9\n" in from_elsewhere("http://127.0.0.1:9999", environ)
