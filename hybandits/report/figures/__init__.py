"""Results to pictures; runs nothing.

Every figure is written as PNG and as SVG, with the numbers that it shows as CSV, and the same results give the same
bytes. Policies are told apart by colour, line style and marker alike, so that pictures read without colour too.
"""

from hybandits.report.figures.drawing import draw_all
from hybandits.report.figures.outcomes import Figure

__all__ = ["Figure", "draw_all"]
