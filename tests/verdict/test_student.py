import pytest
from scipy import stats

from verdict.errors import VerdictError
from verdict.student import detectable_t, two_sided_t


@pytest.mark.parametrize("df", [1, 2, 5, 9, 13, 13.92])
@pytest.mark.parametrize("level", [0.9, 0.95, 0.978, 0.99])
def test_the_quantile_is_that_of_student(level: float, df: float) -> None:
    assert two_sided_t(level, df) == pytest.approx(stats.t.ppf((1 + level) / 2, df), rel=1e-9)


@pytest.mark.parametrize("df", [1, 2, 5, 13, 21])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_an_effect_of_the_detectable_size_is_found_with_that_power(power: float, df: float) -> None:
    nc = detectable_t(0.95, df, power)
    assert stats.nct.sf(two_sided_t(0.95, df), df, nc) == pytest.approx(power, abs=1e-6)


@pytest.mark.parametrize("level", [0, 1, 95])
def test_a_level_in_per_cent_is_refused(level: float) -> None:
    with pytest.raises(VerdictError, match=r"write 0\.95 for 95 %"):
        two_sided_t(level, 5)


def test_no_degree_of_freedom_is_refused() -> None:
    with pytest.raises(VerdictError, match="at least one degree of freedom, found 0"):
        two_sided_t(0.95, 0)


def test_a_power_in_per_cent_is_refused() -> None:
    with pytest.raises(VerdictError, match=r"write 0\.8 for 80 %"):
        detectable_t(0.95, 5, 80)
