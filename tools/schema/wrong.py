"""What every part of the generator can say."""


class Wrong(Exception):
    """What is wrong, with where."""
