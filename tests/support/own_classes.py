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
from hybandits import EpsilonGreedy, Policy


class Cautious(EpsilonGreedy):
    """A wrapper of one's own."""

    def __init__(self, policy, *, epsilon=0.05, seed=None):
        super().__init__(policy, epsilon=epsilon, seed=seed)


class Inner(EpsilonGreedy):
    """One whose wrapped policy has another name."""

    def __init__(self, *, inner, seed=None):
        super().__init__(inner, epsilon=0.5, seed=seed)


class Shapeless(EpsilonGreedy):
    """One that wraps nothing and has no shape."""

    def __init__(self, *, height=3, seed=None):
        raise RuntimeError("never called")


class Unfinished(Policy):
    pass


class Demanding(EpsilonGreedy):
    def __init__(self, *, d1, d2, temperature, seed=None):
        raise ZeroDivisionError("too hot")


def helper():
    pass


class Other:
    pass
'''
"""A module with wrappers, and with classes that are not policies, or not whole."""
