"""Where work runs: in this process (`Here`), in processes of this machine (`Local`), or on a Ray cluster (`Ray`).

An engine maps a function over tasks and yields the results as they finish; it knows nothing of what the work is. All
engines give the same results: see `Engine` for what the function must promise.
"""

from hybandits.engines.interface import Engine, EngineError, Progress, Report, Work, cores
from hybandits.engines.local import Here, Local
from hybandits.engines.ray import Ray

__all__ = ["Engine", "EngineError", "Here", "Local", "Progress", "Ray", "Report", "Work", "cores"]
