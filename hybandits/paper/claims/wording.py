"""Numbers and names as verdicts write them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from hybandits.foundation.checks import FloatArray


def number(value: float) -> str:
    """A number with as many digits as a reader needs.

    >>> number(0.12345), number(1234.5), number(8.43e8), number(math.inf), number(math.nan)
    ('0.123', '1,234', '8.4e8', 'infinite', 'unknown')
    """
    if not math.isfinite(value):
        return "unknown" if math.isnan(value) else "infinite"
    if abs(value) >= 1e6:
        return f"{value:.2g}".replace("e+0", "e").replace("e+", "e")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def percent(share: float) -> str:
    """A share as a percentage.

    >>> percent(0.95)
    '95 %'
    """
    return f"{100 * share:.4g} %"


def fraction(value: float) -> str:
    """A simple number as a fraction.

    >>> fraction(0.5)
    '1/2'
    """
    return str(Fraction(value))


def mean(values: FloatArray) -> str:
    """The mean of the values that are finite, as a number in words."""
    finite = values[np.isfinite(values)]
    return number(float(finite.mean())) if len(finite) else "unknown"


def join_names(names: Sequence[str]) -> str:
    """Names as a list in a sentence.

    >>> join_names(["a"]), join_names(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def name_a_few(names: Sequence[str]) -> str:
    """The same with at most four names, or three and how many more there are.

    >>> name_a_few(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    return join_names(names) if len(names) <= 4 else f"{', '.join(names[:3])} and {len(names) - 3} more"
