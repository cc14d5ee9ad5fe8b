"""Engines: where key-value tensors come from and go to. One file for each inference library."""
