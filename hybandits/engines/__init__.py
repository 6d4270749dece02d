"""Engines, which run work in this process, in processes of this machine, or on a Ray cluster.

An engine maps a function over tasks and yields the results as they finish; it knows nothing of what the work is. All
engines give the same results: see `Engine` for what the function must promise.
"""

from hybandits.engines.interface import Engine, EngineError, Progress, Report, Work, cores
from hybandits.engines.local import ProcessEngine, SerialEngine
from hybandits.engines.ray import Ray

__all__ = ["Engine", "EngineError", "ProcessEngine", "Progress", "Ray", "Report", "SerialEngine", "Work", "cores"]
