"""Answers in which we differ from a real kube-apiserver, each with the reason why we keep it so."""

DIFFERENCES: dict[str, str] = {
    "version without token": "our own build, said so",
}
