"""Results, figures and verdicts to one page, to tables for programs, and to summaries for the terminal.

Runs nothing but the drawing. The page is a single file that needs no network, and no scripts for reading; the same
results give the same bytes.

- `write`: everything that goes into a results folder.
- `page`: the page, from the templates beside it; `score`, `scope`, `tables`, `click_log` and `pictures` prepare what it
  says, `symbols` and `colours` how it looks.
- `exports`: the same for programs.
- `terminal`: the summary of an experiment; `log_report`: what a log holds and what an evaluation on it says; both draw
  their tables with `listings`.
- `numbers`: regret beside the published numbers.
- `figures`: every picture.
"""
