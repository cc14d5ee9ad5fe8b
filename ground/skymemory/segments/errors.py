"""Errors about segments in the sky."""


class SegmentError(ValueError):
    """A segment cannot be stored, changed or used; the message says why."""


class UnknownSegmentError(SegmentError):
    """The sky has no segment of this id."""


class ExpiredSegmentError(SegmentError):
    """The segment has expired by this host's clock."""


class OtherModelError(SegmentError):
    """The segment is of another model, tokenizer, codec or block size than this program's."""


class CancelledLinkError(Exception):
    """Nobody waits for the cache of a prompt any more."""


class CancelledSegmentError(Exception):
    """Nobody waits for a segment any more."""


class SilentSkyError(SegmentError):
    """Nobody answered, so that nothing is known of the segment."""


class HiddenSegmentError(SilentSkyError):
    """The segment was not found, and satellites that may hold it do not answer. It can be put again."""
