"""From results to verdicts: which of the paper's claims hold in what was run, and on what evidence.

`judge` (in `judging`) reads results and runs nothing. It judges every claim once per protocol: as the released code
has it, and as the text has it. Claims 1 to 3 are also judged on fresh environments, where there are any. Every kind of
claim has a file of its own: `regret_order` (claims 1 to 3, with `growth_in_arms`), `growth_in_rounds` (4),
`design_matrix` (5), `key_lemma` (6), `beyond_burn_in` (5 and 6 on a problem small enough to reach the burn-in),
`regret_bounds` (7) and `click_log` (8).

**Intervals respect environments.** Policies are compared in pairs, since row i of both saw the same contexts and noise.
The trials of an environment share their contexts and parameters, so they say little more than one trial does; counted
as independent they would make intervals far too short. Runs are therefore averaged per environment, and the interval is
Student's on those means: 5 environments, 4 degrees of freedom; 100 fresh ones, 99. Where there is one environment but
every trial draws contexts of its own (`diversity`), trials are the units, and verdicts are about that one draw of the
parameters.

Another question is whether the published means themselves come out again: in the same environments, where runs differ
only by noise. That interval is given beside the first and does not decide: few readers care about five draws of theta.

**Several parts.** A claim holds if each of its parts does, at the stated confidence each. That needs no correction: a
false claim has a false part, and that part passes with at most the error of a single test. A claim does not hold if one
of its parts is significantly contradicted; parts are then many chances for an accident, so each is tested with the
error divided by their number (Bonferroni). Otherwise the claim is undecided.

**Exponents** are least-squares slopes of log y against log t, over the rounds from T/2 to T, one per run. For an arm's
block, t is the number of its pulls, and all arms of a run share one slope but have intercepts of their own, since some
arms see more diverse features than others. Smallest eigenvalues start to grow late, by an offset that depends on the
policy (bounds that seek wide directions balance a matrix sooner than independent rows do), so their exponents come from
increments.

**One log** (claim 8). All trials play the same rounds of one log and differ by noise and the policies' own draws, so
intervals are over trials and verdicts are about that log. With one trial the comparison is exact for that trial, but
nothing tells how much of it is noise: the numbers are shown and the claim stays undecided, as it does wherever there is
no interval. A synthetic log has the format of Yahoo's and none of its content: whatever comes out there, the claim
stays undecided, and the findings inform without deciding.
"""

from hybandits.paper.claims.judging import judge
from hybandits.paper.claims.verdicts import CONFIDENCE, FAILS, HOLDS, OPEN, Answer, Finding, Verdict

__all__ = ["CONFIDENCE", "FAILS", "HOLDS", "OPEN", "Answer", "Finding", "Verdict", "judge"]
