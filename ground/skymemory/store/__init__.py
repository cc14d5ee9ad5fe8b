"""Blocks of bytes under keys, in the sky: put, find, get, purge and prefetch."""
