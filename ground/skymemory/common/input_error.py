"""The base of errors about what a person gave, by which the command line knows them without importing who raises them."""


class InputError(Exception):
    """Something that a person gave is wrong: a file, a name, or a step. The message says what is allowed."""
