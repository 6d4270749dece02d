"""The conformance suites: tests that every policy and every world passes, for those here and for those that you write.

Subclass `PolicyConformance` or `WorldConformance` in a test file, implement `make`, and run pytest.
"""

from hybandits.testing.policies import ARMS, Page, PolicyConformance, fingerprint
from hybandits.testing.worlds import WorldConformance

__all__ = ["ARMS", "Page", "PolicyConformance", "WorldConformance", "fingerprint"]
