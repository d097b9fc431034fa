"""A hook of mkdocs (mkdocs.yml): pages from outside of docs/, and links that lead out of docs/.

Files link to one another as they lie in the repository, so that the links work there. The site has
another layout: what lies outside of docs/ and is linked from a page becomes a page of the site.
A link to a file that does not exist is a warning, which fails the build in strict mode.
"""

import logging
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

log = logging.getLogger(f"mkdocs.{__name__}")  # strict mode counts its warnings

ROOT = Path(__file__).parent.parent
# Pages that lie outside of docs/: path in the repository -> path in the site.
ROOT_PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "RELEASE.md": "release.md",
    "SCOPE.md": "scope.md",
    "SECURITY.md": "security.md",
    "src/kubeclient/README.md": "kubeclient.md",
    "src/localkube/README.md": "localkube.md",
    "src/localkube/EXTENDING.md": "localkube-extending.md",
}
# Directories that have a page of their own, which lists what is in them.
LISTS = {"docs/decisions": "decisions/index.md", "examples": "examples/index.md"}
_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)]*)?\))")
_LANGUAGES = {".yaml": "yaml", ".py": "python", ".c": "c", ".h": "c", ".toml": "toml"}


def site_path(path: str) -> str:
    """Where a file or directory of the repository is found in the site."""
    known = ROOT_PAGES.get(path) or LISTS.get(path)
    if known:
        return known
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"files/{path}" if path.endswith(".md") else f"files/{path}.md"


def repository_path(site: str) -> str:
    """The file of the repository that a page of the site was made from."""
    for path, known in ROOT_PAGES.items():
        if site == known:
            return path
    return site.removeprefix("files/") if site.startswith("files/") else f"docs/{site}"


def targets(markdown: str, source: str) -> Iterator[str]:
    """The files of the repository to which a file of the repository links."""
    for _, target, _ in _LINK.findall(markdown):
        if "://" not in target and not target.startswith("mailto:"):
            yield _resolved(source, target)


def _resolved(source: str, target: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def rewritten(markdown: str, source: str) -> str:
    """Its links as they are in the site."""
    folder = posixpath.dirname(site_path(source))

    def link(found: re.Match[str]) -> str:
        before, target, after = found.groups()
        if "://" in target or target.startswith("mailto:"):
            return found[0]
        path = _resolved(source, target)
        if not (ROOT / path).exists():
            log.warning("%s links to %s, which does not exist", source, target)
            return found[0]
        return before + posixpath.relpath(site_path(path), folder or ".") + after

    return _LINK.sub(link, markdown)


def linked_from(sources: Iterable[str]) -> set[str]:
    """Files outside of docs/ that these pages link to, directly or through one another."""
    found: set[str] = set()
    left = list(sources)
    while left:
        source = left.pop()
        for target in targets((ROOT / source).read_text(encoding="utf-8"), source):
            if target in ROOT_PAGES or target.startswith("docs/") or target in found:
                continue
            if (ROOT / target).is_file():
                found.add(target)
                left += [target] if target.endswith(".md") else []
    return found


def _code_page(path: str) -> str:
    text = (ROOT / path).read_text(encoding="utf-8").rstrip()
    language = _LANGUAGES.get(Path(path).suffix, "text")
    return f"# {path}\n\n```{language}\n{text}\n```\n"


def _title(path: Path) -> str:
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix("#").strip()


def _decisions() -> str:
    pages = sorted((ROOT / "docs" / "decisions").glob("*.md"))
    return "# Decisions\n\n" + "".join(f"- [{_title(page)}]({page.name})\n" for page in pages)


def examples() -> list[str]:
    return sorted(f"examples/{path.name}" for path in (ROOT / "examples").glob("*.yaml"))


def _examples() -> str:
    lines = "".join(f"- [{path}](../files/{path}.md)\n" for path in examples())
    return f"# Examples\n\nEach can be applied as it is, and is run by a test.\n\n{lines}"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    inside = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    outside = linked_from([*inside, *ROOT_PAGES]) | set(examples())
    made = {site: (ROOT / path).read_text(encoding="utf-8") for path, site in ROOT_PAGES.items()}
    made |= {LISTS["docs/decisions"]: _decisions(), LISTS["examples"]: _examples()}
    for path in sorted(outside):
        text = (ROOT / path).read_text(encoding="utf-8")
        made[site_path(path)] = text if path.endswith(".md") else _code_page(path)
    for site, text in made.items():
        files.append(File.generated(config, site, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    site = page.file.src_uri
    is_made_here = site in LISTS.values() or not (ROOT / repository_path(site)).is_file()
    return markdown if is_made_here else rewritten(markdown, repository_path(site))
