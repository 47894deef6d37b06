"""User errors: one message, one hint, no traceback."""


class PacelineError(Exception):
    """Base class of errors that the user can fix.

    ``message`` describes the problem in one line, ``hint`` the remedy; ``problems`` has both, and
    those of further errors of a file. The command line prints all and exits with code 2; library
    callers catch this class.
    """

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.problems = [(message, hint)]


class UnknownNameError(PacelineError):
    """An unknown model, device, link, framework or command."""


class InputError(PacelineError):
    """An invalid value, file or combination of options."""


class MissingExtraError(PacelineError):
    """An optional dependency is missing; the hint is its pip command."""


class StoreError(PacelineError):
    """The database cannot be opened, read or written."""


class EnvironmentUnusableError(PacelineError):
    """The interpreter of a framework is missing or cannot import the framework."""


class PacelineWarning(UserWarning):
    """A warning for the user; the command line prints it."""
