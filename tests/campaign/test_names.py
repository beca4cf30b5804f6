"""Names that other rooms rely on."""

import re

import pytest

from campaign import names


def test_position_one_is_called_pos1_as_people_say_it() -> None:
    assert names.acceptance_pp(1) == "acceptance_pos1_pp"


def test_no_two_metrics_share_a_name() -> None:
    metrics = [value for key, value in vars(names).items() if key.isupper() and not key.startswith("TAG_")]
    metrics += [names.acceptance_pp(position) for position in range(1, 17)]
    assert len(metrics) == len(set(metrics))


NAMES = [value for key, value in vars(names).items() if key.isupper() and isinstance(value, str)]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_needs_no_escaping_in_mlflow(name: str) -> None:
    assert re.fullmatch(r"[a-z][a-z0-9_.]*", name)


def test_importing_the_names_imports_nothing_heavy(python) -> None:
    done = python("-c", "import sys, campaign.names; print(*sys.modules)")
    assert {"numpy", "hydra", "omegaconf", "mlflow", "prometheus_client"} & set(done.stdout.split()) == set()
