"""Mathematics as symbols."""

from __future__ import annotations

import pytest

from hybandits.paper.claims import CLAIMS
from hybandits.report.symbols import in_symbols


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("sqrt(T), sqrt(T log T)", "√T, √(T log T)"),
        ("lambda_min(V_t) and W_i,t", "λ<sub>min</sub>(V<sub>t</sub>) and W<sub>i,t</sub>"),
        ("1 - 4 delta, theta, beta_i", "1 - 4 δ, θ, β<sub>i</sub>"),
        ("rho_x >= 0.1 +- 0.02", "ρ<sub>x</sub> ≥ 0.1 ± 0.02"),  # noqa: RUF001
        ("d1 = 40, d2 = 5; id1", "d<sub>1</sub> = 40, d<sub>2</sub> = 5; id1"),
        ("t^0.55, t^-1, t^(1/2)", "t<sup>0.55</sup>, t<sup>-1</sup>, t<sup>1/2</sup>"),
        ("8.4e8 times, 1e-05", "8.4·10<sup>8</sup> times, 1·10<sup>-5</sup>"),
        ("the mean of x z' is 0", "the mean of x zᵀ is 0"),
        ("<b> & alphabet", "&lt;b&gt; &amp; alphabet"),
    ],
)
def test_formulas_become_symbols(text: str, html: str) -> None:
    assert in_symbols(text) == html


def test_no_claim_is_left_in_ascii() -> None:
    for title, statement in CLAIMS.values():
        said = f"{in_symbols(title)} {in_symbols(statement)}"
        for ascii_ in ("sqrt", "sigma", "lambda", "delta", "theta", "_", "<=", "&lt;=", "^"):
            assert ascii_ not in said, said
