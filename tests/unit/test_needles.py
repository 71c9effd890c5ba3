"""Needle prompts: RULER's text to the letter, with length and depth as asked for."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from stateatlas import needles, possible
from stateatlas.job import InputError

ESSAY = ("It was a dark night. The rain fell in torrents! Was it so? " * 200).split()
ALL = list(needles.VARIANTS)


def count(text):
    return len(re.findall(r"\w+|\W", text))


def drawn(name, seed=0, essay=ESSAY):
    return needles.Draw(needles.VARIANTS[name], np.random.default_rng(seed), essay)


def test_a_prompt_is_that_of_the_reference_to_the_letter():
    if not (folder := os.environ.get("STATEATLAS_TEST_DATA")):
        pytest.skip("STATEATLAS_TEST_DATA is not set: it names the folder with RULER's samples")
    rows = [json.loads(line) for line in Path(folder, "ruler", "niah_reference.jsonl").read_text().splitlines()]
    assert len(rows) == 8
    for row in rows:
        sample = row["sample"]
        expected = sample["input"] + sample["answer_prefix"]
        draw = drawn("niah_single_1")
        draw.keys, draw.values = [re.search(r"numbers for (\S+) is", expected)[1]], [sample["outputs"]]
        units, lines = expected.count(needles.NOISE), expected.split("\n")
        before = next(i for i, line in enumerate(lines) if line.startswith("One of")) - 1
        prompt = draw.prompt(units, before / units)
        assert prompt.text == expected
        assert list(prompt.answers) == sample["outputs"]
        assert draw.keys[0] in needles.words()


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("depth", [0, 0.15, 0.5, 0.85, 1])
def test_length_is_within_a_unit_and_the_needle_where_it_was_asked_to_be(name, depth):
    for seed in range(3):
        draw = drawn(name, seed)
        prompt = needles.fitted(draw, 1200, depth, count, needles.FEWEST)
        assert count(prompt.text) <= 1200 < count(draw.prompt(prompt.units + 1, depth).text)
        asked = needles.NEEDLE.format(
            kind=draw.variant.value, key=draw.keys[draw.asked[0]], value=draw.values[draw.asked[0]][0]
        )
        assert prompt.text.count(asked) == 1
        assert prompt.before == round(depth * prompt.parts)
        own = [text for text in prompt.needles if text != asked]
        context = prompt.text.split("\n", 1)[1].rsplit("\n", 1)[0]
        before = context[: context.index(asked)]
        for text in own:
            before = before.replace(text, "")
        ends = r"\n" if draw.variant.haystack != "essay" else r"(?<=[.!?])\s+"
        assert len([part for part in re.split(ends, before.strip()) if part]) == prompt.before


@pytest.mark.parametrize("name", ALL)
def test_every_needle_is_whole_and_every_answer_is_in_the_text(name):
    variant = needles.VARIANTS[name]
    prompt = needles.fitted(drawn(name), 1500, 0.5, count)
    assert len(prompt.needles) == variant.keys * variant.values
    assert all(prompt.text.count(needle) == 1 for needle in prompt.needles)
    assert len(prompt.answers) == variant.queries * variant.values
    assert all(answer in prompt.text for answer in prompt.answers)
    plural = len(prompt.answers) > 1
    assert prompt.text.startswith("Some special magic" if plural else "A special magic")
    assert prompt.text.endswith("are" if plural else "is")
    assert needles.score(prompt.answer.upper(), prompt.answers) == 1


def test_the_score_is_the_share_of_answers_found_whatever_the_case():
    assert needles.score("they are ABC and 12.", ["abc", "12", "13", "14"]) == 0.5


@pytest.mark.parametrize(
    ("name", "length", "essay", "message"),
    [
        ("niah_single_1", 40, ESSAY, "the shortest prompt in a haystack of noise has"),
        ("niah_single_1", 200, ESSAY, "too few to put a needle at a depth"),
        ("niah_single_2", 1000, ESSAY[:50], "the essay has 50 words, too few"),
        ("niah_single_2", 1000, [], "the essay has 0 words, too few"),
    ],
)
def test_what_cannot_be_is_refused_at_once(name, length, essay, message):
    with pytest.raises(InputError, match=message):
        needles.fitted(drawn(name, essay=essay), length, 0.5, count, needles.FEWEST)


def test_keys_of_a_prompt_differ():
    draw = drawn("niah_multikey_3")
    prompt = draw.prompt(60, 0.5)
    keys = re.findall(r"magic uuids for (\S+) is:", prompt.text)
    assert len(keys) == len(set(keys)) == 61


def test_the_variants_without_an_essay_are_those_that_the_config_check_knows():
    found = [name for name, variant in needles.VARIANTS.items() if variant.haystack != "essay"]
    assert sorted(found) == sorted(possible.WITHOUT_ESSAY)
