"""Mathematics in claims and captions, written in ASCII for terminals, as symbols for the page."""

from __future__ import annotations

import re

from markupsafe import Markup, escape

_GREEK = dict(zip(["alpha", "beta", "gamma", "delta", "theta", "lambda", "rho", "sigma"], "αβγδθλρσ", strict=True))
_SIGNS = {"&lt;=": "≤", "&gt;=": "≥", "+-": "±", " x~": " x̃", "||": "‖"}
_MATRIX = r"[MUVWBZR]"


def in_symbols(text: str) -> Markup:
    """A text with its formulas in HTML: Greek letters, subscripts, powers, roots and signs; everything is escaped.

    >>> print(in_symbols("sigma_max(B_i,t) <= sqrt(T), about 10^10 rounds for d1 = d2 = 10"))
    σ<sub>max</sub>(B<sub>i,t</sub>) ≤ √T, about 10<sup>10</sup> rounds for d<sub>1</sub> = d<sub>2</sub> = 10
    """
    html = str(escape(text))
    for ascii_, sign in _SIGNS.items():
        html = html.replace(ascii_, sign)
    html = re.sub(r"\bsqrt\((\w+)\)", r"√\1", html)
    html = re.sub(r"\bsqrt\(", "√(", html)
    html = re.sub(rf"\b({'|'.join(_GREEK)})(?=_|\b)", lambda m: _GREEK[m[1]], html)
    html = re.sub(rf"([{''.join(_GREEK.values())}])_(min|max|[a-z0-9])(?![A-Za-z0-9])", r"\1<sub>\2</sub>", html)
    html = re.sub(rf"\b({_MATRIX}|T)_((?:i,t|[ito0])(?![A-Za-z0-9]))", r"\1<sub>\2</sub>", html)
    html = re.sub(r"\bd([12])\b", r"d<sub>\1</sub>", html)
    html = re.sub(r"(?<=[\w)>])\^\(([^()]*)\)", r"<sup>\1</sup>", html)
    html = re.sub(r"(?<=[\w)>])\^(-?\w+(?:[./]\d+)?)", r"<sup>\1</sup>", html)
    html = re.sub(r"\b(\d(?:\.\d+)?)e\+?(-?)0*(\d+)\b", r"\1·10<sup>\2\3</sup>", html)
    html = re.sub(r"\b([xz])&#39;(?!\w)", r"\1ᵀ", html)
    return Markup(html)
