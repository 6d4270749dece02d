"""Results, figures and verdicts as one page, as tables for programs, and in the terminal. Nothing is run here.

The page is a single file that needs no network and no scripts. The same results give the same bytes.

- `cases`: results in order, their names, and how much was run.
- `figures`: every figure, each drawn light and dark, with its words.
- `tables`: regrets beside the published numbers.
- `page`: the page, from the templates beside it, and everything else that goes into a results folder.
- `terminal`: the summary of experiments, of a log, and of an evaluation on a log.
"""
