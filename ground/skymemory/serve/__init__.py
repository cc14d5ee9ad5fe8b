"""`skymem serve`: an OpenAI-compatible server over `KVCManager`, for hosts without vLLM."""
