"""Sample data and scripted scenarios of the reference domain, trading."""

SAMPLE_USER = "user-123"
"""The user of the sample data, CARLOS in the requirements."""
