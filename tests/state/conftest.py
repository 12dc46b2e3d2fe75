"""Property tests of the ground floor run under one profile."""

import tests.state.generated  # noqa: F401  (loads the profile)
