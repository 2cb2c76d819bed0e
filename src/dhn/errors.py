"""The one exception that means: the input, not the program, is at fault."""


class UserError(ValueError):
    """One line for a person: what was expected, what came, how to mend it.

    The command line prints it without a traceback and exits with code 2.
    """
