"""Codecs, which turn the key-value tensors of a block into bytes for the satellites, and back."""

from skymemory.prompt.codecs.base import Codec, CodecError, codec_names, get_codec

__all__ = ["Codec", "CodecError", "codec_names", "get_codec"]
