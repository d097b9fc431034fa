"""The site of `make docs`: complete, without broken links, and readable without a network."""

import re
import sys
from pathlib import Path
from subprocess import run

import pytest
import yaml

from tools.site import ROOT, ROOT_PAGES, linked_from, repository_path, rewritten, site_path


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(made)]
    built = run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    return made


@pytest.mark.parametrize(
    ("path", "page"),
    [
        ("README.md", "index.md"),
        ("docs/agent.md", "agent.md"),
        ("docs/decisions", "decisions/index.md"),
        ("docs/pictures/map.webp", "pictures/map.webp"),
        ("examples/notebook.yaml", "files/examples/notebook.yaml.md"),
        ("bench/README.md", "files/bench/README.md"),
    ],
)
def test_every_file_of_the_repository_has_its_place_in_the_site(path: str, page: str) -> None:
    assert site_path(path) == page


def test_a_page_knows_its_file() -> None:
    assert repository_path("index.md") == "README.md"
    assert repository_path("decisions/0001-own-api-server.md").startswith("docs/decisions/")
    assert repository_path("files/bench/README.md") == "bench/README.md"


def test_links_are_those_of_the_site() -> None:
    text = "[a](docs/agent.md#audit) [b](examples/notebook.yaml) ![c](docs/pictures/map.webp)"
    assert rewritten(text, "README.md") == (
        "[a](agent.md#audit) [b](files/examples/notebook.yaml.md) ![c](pictures/map.webp)"
    )
    assert rewritten("[r](../README.md)", "docs/agent.md") == "[r](index.md)"
    assert rewritten("[w](https://semver.org/)", "README.md") == "[w](https://semver.org/)"


def test_a_link_to_nowhere_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    rewritten("[x](docs/nothing.md)", "README.md")
    assert caplog.messages == ["README.md links to docs/nothing.md, which does not exist"]


def test_pages_that_are_linked_from_linked_pages_are_found() -> None:
    assert "examples/notebook.yaml" in linked_from(["README.md"])


def test_every_page_of_the_documentation_is_in_the_navigation() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    sections = yaml.safe_load(text)["nav"]
    listed = [each for section in sections for each in _pages(section)]
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} | set(ROOT_PAGES.values())
    assert sorted(page for page in listed if "/" not in page) == sorted(pages)


def _pages(entry: dict[str, object]) -> list[str]:
    (found,) = entry.values()
    if isinstance(found, list):
        return [page for each in found for page in _pages(each)]
    return [str(found)]


def test_the_site_is_built_without_a_warning(site: Path) -> None:
    for page in ("index.html", "security.html", "decisions/index.html", "examples/index.html"):
        assert (site / page).is_file()


def test_nothing_is_fetched_from_elsewhere_when_the_site_is_read(site: Path) -> None:
    fetched = re.compile(r'<(?:script|img|iframe)[^>]+src="(?:https?:)?//|<link[^>]+href="https?:')
    pages = [path for path in site.rglob("*.html") if fetched.search(path.read_text("utf-8"))]
    assert not pages


def test_links_between_pages_lead_to_files_of_the_site(site: Path) -> None:
    for page in site.rglob("*.html"):
        if page.name == "404.html":  # its links begin at the root of a server
            continue
        for target in re.findall(r'<a [^>]*href="([^"#:]+)[#"]', page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"
