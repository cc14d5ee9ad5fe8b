"""CCSDS Space Packets with the SkyMemory header: `icd` (generated from icd/skymemory.toml) and `packets`."""
