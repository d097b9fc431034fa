"""Defaults as kube-apiserver writes them. Pure; a file per API group."""
