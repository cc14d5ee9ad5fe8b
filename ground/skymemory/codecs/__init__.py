"""Codecs: key-value tensors of one block <-> the bytes that go to the satellites."""

from skymemory.codecs.base import Codec, CodecError, codec_names, get_codec

__all__ = ["Codec", "CodecError", "codec_names", "get_codec"]
