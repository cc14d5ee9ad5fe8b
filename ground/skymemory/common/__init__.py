"""Helpers for every package: defaults, files that are written whole, progress, compiled libraries, the machine."""
