"""The conformance suites: tests that every policy and every world passes, for those here and for those that you write.

Subclass `PolicyConformance` or `WorldConformance` in a test file, implement `make`, and run pytest.
"""

try:
    from hybandits.testing.policies import ARMS, Page, PolicyConformance, fingerprint
    from hybandits.testing.worlds import WorldConformance
except ModuleNotFoundError as problem:
    if problem.name != "pytest":
        raise
    raise ModuleNotFoundError("hybandits.testing needs pytest: pip install pytest") from None

__all__ = ["ARMS", "Page", "PolicyConformance", "WorldConformance", "fingerprint"]
