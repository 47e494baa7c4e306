"""How many replicates to see what: planning a run, its resolution, and a certificate."""

from .statistics.planning import Certificate, Detectable, Plan, detectable, plan, plan_certificate

__all__ = ["Certificate", "Detectable", "Plan", "detectable", "plan", "plan_certificate"]
