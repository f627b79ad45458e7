"""Property tests draw the same cases everywhere; HINT_PROPERTIES=anew draws others, and more."""

import os

from hypothesis import HealthCheck, settings

# No limit of time in either: a busy machine must not change what a test says.
settings.register_profile(
    "same", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "anew",
    max_examples=2000,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HINT_PROPERTIES", "same"))
