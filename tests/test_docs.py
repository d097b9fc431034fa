"""Documentation that can be wrong is checked: files, links, fields, generated pages."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpupool.local.config.file_format import cluster_schema
from tools.docs import PAGES

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES_WITH_LINKS = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])


@pytest.mark.parametrize("name", PAGES)
def test_generated_pages_are_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == PAGES[name](), "run: make docs"


@pytest.mark.parametrize("page", PAGES_WITH_LINKS, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    local = [target for target in targets if not target.startswith("http")]
    assert not [target for target in local if not (page.parent / target).exists()]


def test_every_path_in_the_map_exists() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    paths = set(re.findall(r"`((?:src|tests|tools|docs|bench|testbed|examples)/[\w./-]*)`", page))
    assert paths
    assert not sorted(path for path in paths if not (ROOT / path).exists())


def test_every_make_target_in_the_documentation_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in PAGES_WITH_LINKS:
        named = re.findall(r"`make ([a-z-]+)", page.read_text(encoding="utf-8"))
        assert set(named) <= targets, page.name


def fields(schema: Any) -> Iterator[str]:
    for definition in schema["$defs"].values():
        yield from definition["properties"]


def test_every_field_of_the_cluster_file_is_described() -> None:
    page = (DOCS / "cluster-file.md").read_text(encoding="utf-8")
    described = {
        word for code in re.findall(r"`([\w.\[\]]+)`", page) for word in re.split(r"\W+", code)
    }
    assert set(fields(cluster_schema())) <= described
