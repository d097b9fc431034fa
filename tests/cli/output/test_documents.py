"""Documents for programs: what one reader reads, all do."""

import json

import yaml

from gpupool.cli.output.documents import json_text, yaml_text

DOCUMENT = {"items": [{"name": "1e3", "node": "0X1F", "reason": "12:30", "used": None, "cards": 3}]}


def test_a_document_is_the_same_as_json_and_as_yaml() -> None:
    assert json.loads(json_text(DOCUMENT)) == yaml.safe_load(yaml_text(DOCUMENT)) == DOCUMENT


def test_names_that_look_like_numbers_have_quotes() -> None:
    assert yaml_text(DOCUMENT) == (
        "items:\n- name: '1e3'\n  node: '0X1F'\n  reason: '12:30'\n  used: null\n  cards: 3"
    )
