"""Commands: flags -> settings -> run."""
