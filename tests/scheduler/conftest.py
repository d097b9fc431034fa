from collections.abc import Iterator

import pytest

from gpupool.engine import patience


@pytest.fixture(scope="module")
def short_patience() -> Iterator[None]:
    """Pods have waited for long after a minute, not after a quarter of an hour."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(patience, "LEAST_PATIENCE_S", 60.0)
        yield
