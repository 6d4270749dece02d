"""Where work runs: this process, local processes, or a Ray cluster. Knows nothing of what the work is.

An engine maps a function over tasks and yields results as they finish. `function(task, report)` must be importable by
name and depend on its task alone, so that neither the number of workers nor the engine shows in the results;
`report(amount)` says how far it has come.
"""

from hybandits.engines.interface import Engine, EngineError, Progress, Report, Work, cores
from hybandits.engines.local import Here, Local
from hybandits.engines.ray import Ray

__all__ = ["Engine", "EngineError", "Here", "Local", "Progress", "Ray", "Report", "Work", "cores"]
