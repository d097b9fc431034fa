"""Paths of files inside containers and volumes."""

from localkube.apiserver.validation.errors import Errors, invalid


def no_backsteps(errors: Errors, path: str, at: str) -> None:
    if ".." in path and ".." in path.split("/"):
        errors.append(invalid(at, path, "must not contain '..'"))


def descending(errors: Errors, path: str, at: str) -> None:
    """Relative, and never up."""
    if path.startswith("/"):
        errors.append(invalid(at, path, "must be a relative path"))
    no_backsteps(errors, path, at)


def not_reserved(errors: Errors, path: str, at: str) -> None:
    """Names that begin with two dots belong to the kubelet."""
    descending(errors, path, at)
    if path.startswith("..") and not path.startswith("../"):
        errors.append(invalid(at, path, "must not start with '..'"))


def is_mode(mode: int) -> bool:
    return 0 <= mode <= 0o777


MODE = "must be a number between 0 and 0777 (octal), both inclusive"
