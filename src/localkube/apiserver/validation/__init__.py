"""Validation in kube-apiserver's words. Pure; a file per API group."""
