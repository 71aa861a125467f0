"""How a case ends other than by passing."""


class Failure(Exception):
    """A case went wrong; the text says how."""


class Unsupported(Exception):
    """A stack can't do what a case needs; the text says what."""
