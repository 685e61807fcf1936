"""rliable_examples.py: interquartile means and 95 % intervals that rliable itself computed. `examples` has rows of values, mean, low, high.

They are from rliable 1.2.0 with arch 7.2.0, scipy 1.17.1 and numpy 2.4.6 (2026-11-27). With three times 50,000 resamples, no number
differed by more than 0.04. The code, with `values` of each row:

    from rliable import library, metrics
    scores = {"runs": numpy.array(values)[:, None]}  # runs x tasks
    library.get_interval_estimates(scores, lambda x: numpy.array([metrics.aggregate_iqm(x)]), reps=50_000)
"""

import pytest

EXAMPLES = {
    "ten": ([-151.9, -349.9, -152.8, -153.2, -152.4, -152.8, -153.0, -152.3, -154.2, -160.2], -153.06667, -187.41667, -152.5),
    "five": ([-160.9, -155.1, -157.6, -166.7, -154.1], -157.86667, -164.76667, -154.43333),
    "ties": ([500.0, 500.0, 500.0, 499.5, 500.0, 84.0, 500.0, 498.5], 499.875, 395.5, 500.0),
}
examples = pytest.mark.parametrize("values, mean, low, high", EXAMPLES.values(), ids=EXAMPLES)


def is_rliables(found, mean, low, high):
    """Intervals of other draws differ: by 3 % of their width at most."""
    tolerance = 0.03 * (high - low)
    return found == (pytest.approx(mean, abs=1e-4), pytest.approx(low, abs=tolerance), pytest.approx(high, abs=tolerance))
