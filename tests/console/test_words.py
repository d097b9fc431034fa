"""Every text of the console is there in every language."""

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

from jinja2 import Environment, nodes

from gpupool.console.words import CHINESE, ENGLISH, TABLES, language_of, translator

CONSOLE = Path(__file__).parent.parent.parent / "src/gpupool/console"
TEMPLATES = sorted((CONSOLE / "templates").rglob("*.html"))
# Names that are the same in every language.
SAME_EVERYWHERE = {
    "gpupool",
    "gpupool console",
    "kubectl create token NAME",
    "YAML",
    "EN",
    "中文",
    "Ctrl-K",
}
UNITS = {"GiB", "MiB", "C"}


def texts_of_code() -> Iterator[str]:
    """The first argument of t(...) and word(...)."""
    for path in CONSOLE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and _is_translation(node.func):
                first = node.args[0]
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value


def _is_translation(called: ast.expr) -> bool:
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return name in ("t", "word")


def texts_of_templates() -> Iterator[str]:
    for path in TEMPLATES:
        tree = Environment(autoescape=True).parse(path.read_text(encoding="utf-8"))
        for call in tree.find_all(nodes.Call):
            if isinstance(call.node, nodes.Name) and call.node.name == "t" and call.args:
                first = call.args[0]
                if isinstance(first, nodes.Const):
                    yield first.value


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_every_text_is_translated() -> None:
    texts = {*texts_of_code(), *texts_of_templates()}
    assert len(texts) > 100, "the search for texts finds nothing any more"
    for language, table in TABLES.items():
        if language != ENGLISH:
            assert not texts - set(table), f"missing in {language}"


def test_no_translation_is_left_over() -> None:
    texts = {*texts_of_code(), *texts_of_templates()}
    assert not (set(TABLES[CHINESE]) | set(TABLES[ENGLISH])) - texts


def test_translations_have_the_same_fields() -> None:
    for text, translated in (*TABLES[CHINESE].items(), *TABLES[ENGLISH].items()):
        assert fields(text) == fields(translated), text


def test_templates_have_no_text_of_their_own() -> None:
    """All words of a template go through t(...)."""
    for path in TEMPLATES:
        source = path.read_text(encoding="utf-8")
        # What the engine fills in becomes a tab, which separates texts as tags do.
        plain = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}|<!doctype html>", "\t", source, flags=re.S)
        attributes = re.findall(r'(?:title|placeholder|aria-label)="([^"]*)"', plain)
        texts = (*re.split(r"<[^>]*>", plain), *attributes)
        for text in (part for each in texts for part in each.split("\t")):
            words = text.strip(" \n.,·/:×°%–☰◐⌕*…")
            known = words in SAME_EVERYWHERE or words in UNITS or not re.search(r"\w", words)
            assert known, f"{path.name}: {words!r} is not translated"


def test_the_browser_chooses_the_language_until_the_visitor_does() -> None:
    assert language_of("", "zh-CN,zh;q=0.9,en;q=0.8") == CHINESE
    assert language_of("", "zh-TW") == CHINESE
    assert language_of("", "en-GB,zh;q=0.5") == ENGLISH
    assert language_of("", "de,zh;q=0.3,en;q=0.7") == ENGLISH
    assert language_of("", "de, fr;q=x") == ENGLISH
    assert language_of(ENGLISH, "zh-CN") == ENGLISH
    assert language_of("klingon", "zh-CN") == CHINESE


def test_a_text_without_a_translation_stays_english() -> None:
    assert translator(CHINESE)("{n} unheard words", n=3) == "3 unheard words"
    assert translator(CHINESE)("Node pool") == "节点池"
