"""Twin of campaign.gates.synthetic, from the configuration to what may be told of such boots."""

import json

import pytest

from campaign.asked import feasible, pinned
from campaign.engine.spec import speculative_config
from campaign.errors import ConfigError
from campaign.gates import Gates
from campaign.gates.acceptance import Acceptance
from campaign.gates.kv import Kv
from campaign.gates.quality import Quality
from campaign.gates.step_rate import StepRate
from campaign.gates.synthetic import label, read
from tests.fakes.campaign import campaign
from tests.fakes.evidence import whole
from verdict.words import Verdict


def judged(synthetic: str):
    """Three gates on a bracket in which each finds what it looks for."""
    gates = Gates(acceptance=Acceptance(), quality=Quality(prompts="q.jsonl"), step_rate=StepRate()).switched_on()
    evidence = whole(synthetic=synthetic)
    return {name: read(name, gate.check(evidence), evidence) for name, gate in gates.items()}


def test_a_made_up_acceptance_passes_no_gate_that_reads_it_and_labels_the_speed():
    mark = label(2.5)
    found = judged(mark)
    assert {name: result.verdict for name, result in found.items()} == {
        "acceptance": Verdict.INCONCLUSIVE, "quality": Verdict.INCONCLUSIVE, "step_rate": Verdict.PASS,
    }  # fmt: skip
    assert mark == "synthetic acceptance (2.5 tokens a step, made up by the engine)"
    assert all(mark in result.line for result in found.values())
    assert not found["acceptance"].numbers


def test_a_gate_that_judges_no_claim_has_the_label_below_its_line():
    evidence = whole(synthetic=label(2.5))
    result = read("kv", Kv().check(evidence), evidence)
    assert (result.details[0], label(2.5) in result.line) == (label(2.5), False)


def test_an_engine_that_drafts_for_real_is_told_as_ever():
    assert {result.verdict for result in judged(label(None)).values()} == {Verdict.PASS}


def drafting(length: float | None, **fields: object):
    """A campaign on a GPU build that makes its acceptance up."""
    found = campaign()
    found.engine.version, found.engine.build, found.engine.serve_arguments = "0.29.0", "cu130", None
    found.model.method, found.model.drafter, found.model.num_speculative_tokens = "dflash", "d", 5
    found.model.synthetic_acceptance_length = length
    for name, value in fields.items():
        setattr(found.engine if hasattr(found.engine, name) else found.model, name, value)
    return found


def test_the_engine_is_asked_for_it_by_its_own_keys():
    assert json.loads(json.dumps(speculative_config(drafting(2.5)))) == {
        "method": "dflash", "model": "d", "num_speculative_tokens": 5,
        "rejection_sample_method": "synthetic", "synthetic_acceptance_length": 2.5,
    }  # fmt: skip
    assert "rejection_sample_method" not in speculative_config(drafting(None))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"num_speculative_tokens": 1}, "wanted at most 2, the tokens of a step"),
        ({"build": "cpu"}, "the CPU build's sampler refuses it"),
        ({"method": None, "drafter": None}, "is set, but model.method is null"),
    ],
    ids=["longer than a step", "CPU build", "no drafts"],
)
def test_what_cannot_be_made_up_is_refused_before_a_boot(fields, words):
    with pytest.raises(ConfigError, match=words):
        feasible._check_drafting(drafting(2.5, **fields), {})


def test_an_engine_that_cannot_is_refused_by_its_pinned_list(tmp_path, monkeypatch):
    """A version whose list has no such key; the list is the engine's own, without it."""
    plain = json.loads((pinned.FOLDER / "0.29.0.json").read_text(encoding="utf-8"))
    assert pinned.SYNTHETIC in plain.pop("speculation")
    (tmp_path / "0.19.9.json").write_text(json.dumps(plain), encoding="utf-8")
    monkeypatch.setattr(pinned, "FOLDER", tmp_path)
    with pytest.raises(ConfigError, match=r"vLLM 0\.19\.9 cannot make its acceptance up"):
        feasible._check_drafting(drafting(2.5, version="0.19.9"), {})
