"""The fixtures of the agent's own tests."""

from tests.recuerdo.conftest import calendars, clock, house, no_settings_of_the_tester

__all__ = ["calendars", "clock", "house", "no_settings_of_the_tester"]
