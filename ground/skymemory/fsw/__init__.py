"""A satellite inside a Python process: flight software, Software Bus, housekeeping, events, code on board in Python.

    with Executive(["--plane", "3", "--slot", "10", "--planes", "5", "--slots", "19"]) as satellite:
        print(satellite.kvc_housekeeping().chunks)

The package needs only the standard library and its compiled library, so that it runs in a small container.
"""

from skymemory.fsw.bus import App, FswError, Pipe
from skymemory.fsw.executive import Executive
from skymemory.fsw.messages import Message
from skymemory.fsw.onboard import OnboardApp
from skymemory.fsw.structures import EventType

__all__ = ["App", "EventType", "Executive", "FswError", "Message", "OnboardApp", "Pipe"]
