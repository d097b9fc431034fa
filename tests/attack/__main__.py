"""Runs all attacks, one part after the other, within ten minutes: `make attack`.

    python -m tests.attack

ATTACK_SEED: the dice; printed, and given again to see the same once more. ATTACK_SECONDS: for each
attack that goes on until its time is up. SOAK: seconds of churn on a whole cluster.
"""

import os
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from native import build
from tests.attack.campaign import SECONDS, SEED, USUAL_SECONDS
from tests.native import sanitizers

ROOT = Path(__file__).resolve().parents[2]
PYTEST = (sys.executable, "-m", "pytest", "-q", "-n", "2")
# Escapes from a container, stolen tokens, floods: whole stories, each with its own dice.
STORIES = (
    "tests/localkube/kubelet/test_*escape*.py",
    "tests/e2e/test_limiter_attacks.py",
    "tests/deploy/test_node_policies.py",
    "tests/deploy/test_stolen_tokens.py",
    "tests/faults/test_wire_attacks.py",
    "tests/localkube/apiserver/http/test_websocket_floods.py",
    "tests/localkube/apiserver/http/test_spdy_session.py",
    "tests/localkube/apiserver/aggregation/test_large_answers.py",
    "tests/contract/test_hostile_yaml.py",
)


@dataclass(frozen=True)
class Part:
    name: str
    command: tuple[str, ...]


def parts() -> list[Part]:
    stories = [str(path.relative_to(ROOT)) for glob in STORIES for path in sorted(ROOT.glob(glob))]
    limiter = (sys.executable, "-m", "tests.native.sanitizers", "-n", "2", "-m", "attack")
    found = [
        Part("API server, store and soak", (*PYTEST, "-m", "attack", "tests/attack")),
        Part("escapes and stolen tokens", (*PYTEST, "-m", "not kubernetes", *stories)),
    ]
    if _has_compiler():
        found.append(Part("limiter under ASan", (*limiter, "tests/native/isolation")))
    else:
        sys.stdout.write("NO GCC OR CLANG: the limiter is attacked without ASan.\n")
        found.append(Part("limiter", (*PYTEST, "-m", "attack", "tests/native/isolation")))
    return found


def _has_compiler() -> bool:
    try:
        sanitizers.find_runtime(sanitizers.find_toolchain().command[0])
    except build.BuildError:
        return False
    return True


def main() -> int:
    seed = os.environ.get(SEED) or str(random.SystemRandom().randrange(1, 1_000_000))
    seconds = os.environ.get(SECONDS) or f"{USUAL_SECONDS:.0f}"
    if not seed.isdigit() or not seconds.isdigit():
        sys.stderr.write(f"SEED and BUDGET: wanted whole numbers, found {seed!r}, {seconds!r}.\n")
        return 2
    sys.stdout.write(f"Attacks with seed {seed} (make attack SEED={seed}), {seconds} s each.\n")
    ended: list[tuple[Part, int, float]] = []
    for part in parts():
        sys.stdout.write(f"\n{part.name}: {' '.join(part.command[1:])}\n")
        sys.stdout.flush()
        began_s = time.monotonic()
        variables = os.environ | {SEED: seed, SECONDS: seconds}
        code = subprocess.run(part.command, check=False, cwd=ROOT, env=variables).returncode
        ended.append((part, code, time.monotonic() - began_s))
    sys.stdout.write("\n")
    for part, code, took_s in ended:
        sys.stdout.write(f"{'held' if code == 0 else 'BROKEN':<8}{took_s:5.0f} s  {part.name}\n")
    sys.stdout.write(f"seed {seed}\n")
    return int(any(code for _, code, _ in ended))


if __name__ == "__main__":
    sys.exit(main())
