"""What all tests share: property tests assert no timing, since machines are shared."""

from hypothesis import settings

settings.register_profile("paceline", deadline=None)
settings.load_profile("paceline")
