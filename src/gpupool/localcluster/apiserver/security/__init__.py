"""Certificates, tokens, identities, RBAC."""
