"""SVG files made lean: coordinates as fine as anybody can see, and nothing unused."""

from __future__ import annotations

import re


def lean_svg(text: str) -> str:
    """An SVG file of matplotlib's with fewer digits, without comments, metadata and ids that nobody refers to.

    Ids of panels, curves and keys (`plotted`) stay.
    """
    text = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' d="([^"]*)"', lambda m: f' d="{coarse(m[1])}"', text)
    text = re.sub(r' (x|y)="(-?[\d.]+)"', lambda m: f' {m[1]}="{hundredth(m[2])}"', text)
    text = re.sub(
        r'(?<=transform=")[^"]*', lambda m: re.sub(r"-?\d+\.\d{3,}(?=[ ,)])", lambda n: _place(n[0], m[0]), m[0]), text
    )
    used = set(re.findall(r"(?:href=\"#|url\(#)([^\")]+)", text))
    text = re.sub(r' id="([^"]*)"', lambda m: m[0] if m[1] in used or _MARKED.match(m[1]) else "", text)
    return re.sub(r"\s*\n\s*", "\n", text).strip() + "\n"


_MARKED = re.compile(r"(panel|curve|key)-\d+")
_LONG_PATH = 400


def _place(value: str, transform: str) -> str:
    """Places need no more than two digits; scales do."""
    return hundredth(value) if transform.startswith(("translate", "rotate")) and "scale" not in transform else value


def coarse(path: str) -> str:
    """Path data with fewer digits; of a long line, points that fall together on a tenth of a point are drawn once."""
    if re.search("[^MLz0-9eE.+ \n-]", path) or len(path) < _LONG_PATH:
        return re.sub(r"-?\d+\.\d+", lambda m: hundredth(m[0]), " ".join(path.split()))
    kept: list[str] = []
    for command, x, y in re.findall(r"([MLz])(?:\s*([-\d.eE]+)\s+([-\d.eE]+))?", path):
        point = f"{float(x):.1f} {float(y):.1f}" if x else ""
        if command != "L":
            kept.append(f"{command}{point}")
        elif point != kept[-1].lstrip("ML"):
            # Further points of a line need no letter of their own.
            kept.append(point if kept[-1][0] not in "Mz" else f"L{point}")
    return " ".join(kept)


def hundredth(value: str) -> str:
    """A coordinate to two digits.

    >>> hundredth("12.3456"), hundredth("3.000001")
    ('12.35', '3')
    """
    return f"{float(value):.2f}".rstrip("0").rstrip(".")
