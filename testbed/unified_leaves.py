"""Cgroup v2 for containers on a machine whose controllers are all cgroup v1.

    install(folder, runc, hierarchy) -> Path     the program that containerd runs in place of runc

Such a machine (systemd calls it hybrid) has a hierarchy of cgroup v2 without controllers, and runc
leaves containers at its root. The program here gives each container a leaf there, at the path that
the kubelet has chosen for it, after runc has made the container and before its program starts; and
removes the leaf when runc deletes the container. So leaf, path, membership and the kernel's answers
about them are as on a machine with cgroup v2 alone. What is not: processes that `exec` starts are
in no leaf, because runc knows nothing of it.
"""

from __future__ import annotations

from pathlib import Path

UNIFIED = Path("/sys/fs/cgroup/unified")


def install(folder: Path, runc: Path, hierarchy: Path = UNIFIED) -> Path:
    program = folder / "runc-with-leaves"
    known = folder / "leaves"
    known.mkdir(exist_ok=True)
    program.write_text(
        f"""#!/bin/sh
bundle= pid= before=
for word in "$@"; do
  case "$before" in --bundle|-b) bundle=$word;; --pid-file) pid=$word;; esac
  before=$word
done
case " $* " in
*" create "*)
  {runc} "$@" || exit $?
  path=$(sed -n 's/.*"cgroupsPath":"\\([^"]*\\)".*/\\1/p' "$bundle/config.json")
  mkdir -p "{hierarchy}/$path" && cat "$pid" > "{hierarchy}/$path/cgroup.procs" || exit 1
  echo "$path" > "{known}/$before" ;;
*" delete "*)
  {runc} "$@"; code=$?
  if [ $code = 0 ] && [ -e "{known}/$before" ]; then
    cd {hierarchy} && rmdir -p ".$(cat "{known}/$before")" 2> /dev/null
    rm "{known}/$before"
  fi
  exit $code ;;
*) exec {runc} "$@" ;;
esac
"""
    )
    program.chmod(0o755)
    return program
