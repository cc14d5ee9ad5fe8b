"""Segments: tokens whose keys and values are cached by content alone, and used wherever the segment stands in a prompt."""
