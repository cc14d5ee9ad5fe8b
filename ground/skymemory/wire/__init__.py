"""Bytes of packets and blocks: `icd` (generated from icd/skymemory.toml), `packets`, `envelope` and `key_derivation`."""
