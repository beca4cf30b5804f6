"""The corpus is drawn with a seed and with nothing else."""

import random

import pytest

from testbed import corpus

PINNED = "48a30e03c4663d83f1447efb60e48a67810cc27f82006973ce84ad95111d6bf6"


def test_the_same_seed_gives_the_same_corpus():
    assert corpus.digest(seed=1, n_texts=50) == corpus.digest(seed=1, n_texts=50)


def test_another_seed_gives_another_corpus():
    assert corpus.digest(seed=1, n_texts=50) != corpus.digest(seed=2, n_texts=50)


def test_the_corpus_is_the_one_the_weights_were_trained_on():
    assert corpus.digest(seed=1, n_texts=50) == PINNED


@pytest.mark.parametrize("template", corpus.DOCUMENTS, ids=lambda template: template["id"])
def test_a_filled_document_has_no_open_slot(template):
    text = corpus.fill_document(template, random.Random(0))
    assert "{" not in text
    assert "}" not in text


@pytest.mark.parametrize("template", corpus.RECORDS, ids=lambda template: template["id"])
def test_no_word_is_in_two_records_of_a_registry(template):
    registry = corpus.draw_registry(template, random.Random(0), n_records=10, n_rules=3)
    words = [word for _, record in registry.records for word in record.split()]
    assert len(words) == len(set(words))
