from pathlib import Path

import pytest

from gpupool.agent.xid_policy import BadPolicy, Effect, load_policy


def test_the_built_in_table_knows_every_important_xid() -> None:
    policy = load_policy()
    assert policy.rule(31).effect is Effect.IGNORE
    assert policy.rule(79).effect is Effect.UNHEALTHY
    assert policy.rule(94).effect is Effect.SUSPECT
    assert policy.rule(99999) == policy.default


def test_a_users_file_overrides_the_built_in_table(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[xid.94]\neffect = "ignore"\n[default]\neffect = "unhealthy"\n')
    policy = load_policy(own)
    assert policy.rule(94).effect is Effect.IGNORE
    assert policy.rule(99999).effect is Effect.UNHEALTHY
    assert policy.rule(79).effect is Effect.UNHEALTHY


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[xid.94]\neffect = 'maybe'\n", "Invalid enum value 'maybe'"),
        ("[xid.ninety]\neffect = 'ignore'\n", 'N a whole number, found "ninety"'),
        ("[xids.9]\neffect = 'ignore'\n", "unknown field `xids`"),
        ("[xid.9", "Expected"),
    ],
)
def test_a_bad_file_is_refused_with_a_message(tmp_path: Path, text: str, complaint: str) -> None:
    own = tmp_path / "own.toml"
    own.write_text(text)
    with pytest.raises(BadPolicy, match=complaint):
        load_policy(own)


def test_a_missing_file_is_refused_with_a_message(tmp_path: Path) -> None:
    with pytest.raises(BadPolicy, match="that you may read, found: No such file"):
        load_policy(tmp_path / "none.toml")
