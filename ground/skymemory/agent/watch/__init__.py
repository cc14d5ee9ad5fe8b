"""The page to watch the sky: what the agent knows of its constellation, sampled, kept for some hours, and served."""
