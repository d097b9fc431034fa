"""Runs the tests of the native parts on libraries that are built with ASan and UBSan.

    python -m tests.native.sanitizers [arguments of pytest]

The libraries are built with gcc or clang into build/sanitizers. The tests start programs, most of
them in Python, with the runtime of ASan preloaded: a program that was not built with ASan can load
libraries that were only if the runtime is there from the start. Every report of a sanitizer goes to
a file. If there is one at the end, the run fails, even if the test that caused the report expected
its program to fail.

Not every test can run this way; `reason_to_leave_out` says which cannot, and why.
"""

import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from native import build

ROOT = Path(__file__).resolve().parents[2]
_PLACE = ROOT / "build" / "sanitizers"
_BUILT = "GPUPOOL_SANITIZED_BUILD"  # set for the run of pytest: where the libraries are
_RUNTIME = "GPUPOOL_SANITIZER_RUNTIME"  # and the libraries to preload
_REPORTS = "GPUPOOL_SANITIZER_REPORTS"  # and the directory of the reports
_FLAGS = (
    *("-O1", "-g", "-fno-omit-frame-pointer"),
    # The limiter's dlsym must end in a tail call (lookup.c), which gcc makes from -O2 on.
    "-foptimize-sibling-calls",
    *("-fsanitize=address,undefined,float-cast-overflow", "-fno-sanitize-recover=all"),
)

# By the name of a file or of a test.
_LEFT_OUT = {
    "test_build.py": "checks the files that are shipped",
    "test_wheel.py": "checks the files that are shipped",
    "test_bypass.py": "loads libraries into a second linker namespace, which ASan does not support",
    "test_what_gets_round_the_limiter_is_held_by_the_driver": "as test_bypass.py",
    "test_a_static_program_is_held_however_the_limiter_is_loaded": "as test_bypass.py",
    "test_walls_in_cgroups.py": "checks the agent; the driver's calls have tests of their own",
    "test_ordinary_programs.py": "starts programs without the runtime of ASan",
    "test_a_program_may_close_a_driver_in_another_namespace": "as test_bypass.py",
    "test_share.py": "measures time, and the sanitizers take time",
    "test_a_process_killed_at_any_instruction_leaves_an_exact_count": "checks the order of the "
    "instructions that are shipped; the sanitizers add thousands",
    "test_a_region_that_was_cut_short_ends_programs_and_gives_nobody_more": "ends a program by "
    "SIGBUS, which ASan reports",
    "test_contexts_are_counted_with_their_measured_memory": "the product starts a program of its "
    "own here, without the runtime of ASan",
    "test_a_card_that_cannot_be_used_does_not_hide_the_contexts_of_the_others": "as above",
}


def is_active() -> bool:
    return _BUILT in os.environ


def built() -> Path:
    """The directory with lib/, bin/ and limiter/."""
    return Path(os.environ[_BUILT])


def variables() -> dict[str, str]:
    """What programs need in their environment; nothing unless the sanitizers are active."""
    if not is_active():
        return {}
    return {
        "LD_PRELOAD": os.environ[_RUNTIME],
        _REPORTS: os.environ[_REPORTS],
        # Python does not free all its memory at its end.
        "ASAN_OPTIONS": f"detect_leaks=0:{_log_path()}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:{_log_path()}",
    }


def leak_variables() -> dict[str, str]:
    """In addition, for a program that is not in Python: reports memory that is not freed."""
    return {"ASAN_OPTIONS": f"detect_leaks=1:{_log_path()}"} if is_active() else {}


def _log_path() -> str:
    return f"log_path={os.environ[_REPORTS]}/report"


def reason_to_leave_out(item: pytest.Item) -> str | None:
    """Why the test cannot run under the sanitizers; None if it can."""
    return _LEFT_OUT.get(item.path.name) or _LEFT_OUT.get(getattr(item, "originalname", item.name))


def find_toolchain() -> build.Toolchain:
    """Raises BuildError, in one sentence, if there is no compiler."""
    for name in ("gcc", "clang"):
        path = shutil.which(name)
        if path:
            shared = ("-shared-libasan",) if name == "clang" else ()
            return build.Toolchain(
                (path,), (*build.COMMON_FLAGS, *_FLAGS, *shared), _asked(path, "--version"), False
            )
    raise build.BuildError(
        "The sanitizers need gcc or clang, and neither is on the PATH (on Debian: apt install gcc)."
    )


def find_runtime(compiler: str) -> tuple[str, ...]:
    """The libraries to preload. Raises BuildError, in one sentence, if ASan's is missing.

    libstdc++ is one of them: ASan looks for the functions that throw exceptions when it starts, and
    a Python program loads libstdc++ only later, with a module that is written in C++.
    """
    machine = platform.machine()
    found = _libraries(compiler, "libasan.so", "libubsan.so")
    if len(found) == 2:
        # In this order: ASan's must be the first, and our function is to hide the one of UBSan.
        return (found[0], str(_build_report(compiler)), found[1], "libstdc++.so.6")
    found = _libraries(compiler, f"libclang_rt.asan-{machine}.so", "libclang_rt.asan.so")
    if found:
        return (found[0], "libstdc++.so.6")
    raise build.BuildError(
        f"{compiler} has no runtime libraries of ASan and UBSan (Debian: libasan and libubsan)."
    )


def _libraries(compiler: str, *names: str) -> list[str]:
    """The paths of those libraries that the compiler has."""
    found = [_asked(compiler, f"-print-file-name={name}") for name in names]
    return [os.path.realpath(path) for path in found if os.path.isabs(path)]


def _build_report(compiler: str) -> Path:
    source, library = Path(__file__).with_name("ubsan_report.c"), _PLACE / "ubsan_report.so"
    library.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([compiler, "-shared", "-fPIC", source, "-o", library], check=True)
    return library


def _asked(compiler: str, option: str) -> str:
    done = subprocess.run([compiler, option], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def _run(arguments: list[str], place: Path, runtime: tuple[str, ...]) -> int:
    with tempfile.TemporaryDirectory() as reports:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-m", "not slow", *arguments],
            check=False,
            cwd=ROOT,
            env={**os.environ, _BUILT: str(place), _RUNTIME: " ".join(runtime), _REPORTS: reports},
        )
        found = sorted(Path(reports).iterdir())
        for report in found:
            sys.stderr.write(f"{report.read_text(encoding='utf-8', errors='replace')}\n")
    if found:
        sys.stderr.write(f"{len(found)} reports of the sanitizers.\n")
    return 1 if found else done.returncode


def main(arguments: list[str]) -> int:
    try:
        toolchain = find_toolchain()
        runtime = find_runtime(toolchain.command[0])
        place = build.build_with(toolchain, _PLACE)
    except build.BuildError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return _run(arguments or ["-n", "2", "tests/native"], place, runtime)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
