"""Platform data behind one small protocol: profile, quotes, positions, alerts, signals, events; calendars."""
