"""Classes of one's own in modules, as the documentation tells users to write them."""

from __future__ import annotations

import doctest
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"


def documented(page: str, name: str) -> str:
    """The text of a module with the class that a page of the documentation defines, and the imports before it."""
    examples = doctest.DocTestParser().get_examples((DOCS / page).read_text())
    sources = [example.source for example in examples]
    last = next(i for i, source in enumerate(sources) if source.startswith(f"class {name}"))
    imports = [source for source in sources[:last] if source.startswith(("import ", "from "))]
    return "".join(imports) + "\n\n" + sources[last]


def write_softmax(folder: Path) -> None:
    """softmax.py of docs/adding-a-policy.md."""
    (folder / "softmax.py").write_text(documented("adding-a-policy.md", "Softmax"))


def write_drifting(folder: Path) -> None:
    """drifting.py of docs/adding-a-world.md."""
    (folder / "drifting.py").write_text(documented("adding-a-world.md", "Drifting"))


WRAPPERS = '''
from hybandits import EpsilonGreedy, Greedy, Policy


class Cautious(EpsilonGreedy):
    """A wrapper of one's own."""

    def __init__(self, policy, *, epsilon=0.05, seed=None):
        super().__init__(policy, epsilon=epsilon, seed=seed)


class Inner(EpsilonGreedy):
    """One whose wrapped policy has another name."""

    def __init__(self, *, inner, seed=None):
        super().__init__(inner, epsilon=0.5, seed=seed)
        self.inner = self.policy


class Unfinished(Policy):
    pass


class Careless(Greedy):
    def __init__(self, *, d1, d2, boldness=1.0):
        super().__init__(d1=d1, d2=d2)


class Demanding(EpsilonGreedy):
    def __init__(self, *, d1, d2, temperature, seed=None):
        raise ZeroDivisionError("too hot")


def helper():
    pass


class Other:
    pass
'''
"""A module with wrappers, and with classes that are not policies, or not whole."""


FAILING = """
import hybandits
from hybandits.simulation.worlds import Synthetic


class Cautious(hybandits.Greedy):
    def choose(self, *arguments, **options):
        if self.rounds > 30:
            raise LookupError("no such thing")
        return super().choose(*arguments, **options)


class Shut(Synthetic):
    def rounds(self, horizon, trial=0):
        for block in super().rounds(horizon, trial):
            if horizon > 2:
                raise IndexError("nothing left")
            yield block


class Short(Synthetic):
    def rounds(self, horizon, trial=0):
        return super().rounds(max(horizon // 2, 2), trial)


class Long(Synthetic):
    def rounds(self, horizon, trial=0):
        return super().rounds(horizon + 1, trial)


class Holes(Synthetic):
    def rounds(self, horizon, trial=0):
        for block in super().rounds(horizon, trial):
            block.means[-1, 0] = float("nan")
            yield block


class Modest(Synthetic):
    def rounds(self, horizon, trial=0):
        for block in super().rounds(horizon, trial):
            yield block._replace(best=block.best - 0.01)


class Twice(Synthetic):
    def rounds(self, horizon, trial=0):
        for block in super().rounds(horizon, trial):
            block.rounds.index[0, 1] = block.rounds.index[0, 0]
            yield block
"""
"""failing.py: policies and worlds that fail while they are played, or do not give what they promise."""
