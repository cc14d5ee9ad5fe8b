"""Prompts and their key-value tensors, which become blocks with keys and coded bytes, and tensors again."""
