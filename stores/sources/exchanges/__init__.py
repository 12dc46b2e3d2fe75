"""When each exchange trades: the library's calendars, the corrections to them, and markets of our own."""
