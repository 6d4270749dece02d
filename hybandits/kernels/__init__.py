"""Arrays in, arrays out: the arrow factor, HyRan's sums, and the rules that turn means and widths into a choice."""
