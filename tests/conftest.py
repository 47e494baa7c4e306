"""What holds for all tests: none depends on how fast the machine is."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("any speed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any speed")

# Shells have what they start in the background ignore Ctrl-C, which children inherit: tests interrupt some of theirs.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
