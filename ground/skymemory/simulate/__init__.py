"""The paper's simulation (section 4): latencies of the three mappings, as formulas, and the figures of both."""
