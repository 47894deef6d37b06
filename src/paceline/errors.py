"""Errors meant for the user: one message, one hint, no traceback."""


class PacelineError(Exception):
    """Root of every error that is the user's to mend.

    ``message`` says what is wrong in one line, ``hint`` what to type or change instead.
    The command line prints both and exits with 2; library callers catch this one class.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UnknownNameError(PacelineError):
    """A model, device, link, framework or command that no registry has."""


class InputError(PacelineError):
    """A value, file or combination of options that cannot be meant."""


class MissingExtraError(PacelineError):
    """An optional dependency is needed for what was asked; the hint is its pip line."""


class StoreError(PacelineError):
    """The database cannot be opened, read or written."""


class EnvironmentUnusableError(PacelineError):
    """A framework's interpreter is missing or cannot import its framework."""


class PacelineWarning(UserWarning):
    """Something the user should know of that does not stop the work; the command line prints it."""
