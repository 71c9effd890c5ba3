"""Needle-in-a-haystack prompts in the text format of RULER, with length and depth under control (protocol C).

The format and the scoring are those of RULER (Hsieh et al. 2024, arXiv 2404.06654, `niah` of its commit c3f5e3b4), to
the letter. Lengths and places differ on purpose: a prompt is as long as whole haystack units let it be, and the needle
that is asked for stands at the depth that is asked for. Essays are cut into sentences at `.`, `!` and `?`.
"""

import re
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from stateatlas.job import InputError

NEEDLE = "One of the special magic {kind} for {key} is: {value}."
NOISE = "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
QUESTION = (
    "Some special magic {kind} are hidden within the following text. Make sure to memorize it. "
    "I will quiz you about the {kind} afterwards.\n{context}\n"
    "What are all the special magic {kind} for {query} mentioned in the provided text?"
)
PREFIX = " The special magic {kind} for {query} mentioned in the provided text are"
SINGULAR = (("Some", "A"), ("are all", "is"), ("are", "is"))  # where one value is asked for
FEWEST = 6  # parts of a haystack that a needle needs to be put at a depth


@dataclass(frozen=True)
class Variant:
    """One of RULER's tasks: what the haystack, keys and values are, and how many of them there are."""

    haystack: str  # noise, essay or needle
    key: str = "words"
    value: str = "numbers"
    keys: int = 1
    values: int = 1
    queries: int = 1


VARIANTS = {
    "niah_single_1": Variant("noise"),
    "niah_single_2": Variant("essay"),
    "niah_single_3": Variant("essay", value="uuids"),
    "niah_multikey_1": Variant("essay", keys=4),
    "niah_multikey_2": Variant("needle"),
    "niah_multikey_3": Variant("needle", key="uuids", value="uuids"),
    "niah_multivalue": Variant("essay", values=4),
    "niah_multiquery": Variant("essay", keys=4, queries=4),
}


@dataclass(frozen=True)
class Prompt:
    """A prompt, answer prefix included, and what is looked for in the answer to it.

    needles: in the order of the text; units: of the haystack; before: how many of its parts (lines, or the essay's
    sentences) stand before the needle asked for, the first one asked for if there are several; parts: how many there
    are.
    """

    text: str
    answers: tuple[str, ...]
    needles: tuple[str, ...]
    units: int
    before: int
    parts: int

    @property
    def answer(self) -> str:
        """What a model that knows it would write next."""
        return " " + ", ".join(self.answers)


def score(text: str, answers: Sequence[str]) -> float:
    """Return the share of the answers that stand in a text, whatever the case (RULER's `string_match_all`)."""
    return float(np.mean([answer.lower() in text.lower() for answer in answers]))


@cache
def words() -> tuple[str, ...]:
    """Return every key of words, an adjective, a hyphen and a noun, from the lists that RULER takes them from."""
    from wonderwords import RandomWord

    lists = RandomWord()
    adjectives, nouns = (lists.filter(include_categories=[kind]) for kind in ("adjective", "noun"))
    return tuple(sorted({f"{a}-{n}" for a in adjectives for n in nouns}))


@dataclass
class Draw:
    """The keys and values of one prompt, drawn once: more haystack changes none of them."""

    variant: Variant
    rng: np.random.Generator
    essay: Sequence[str] = ()
    digits: int = 7
    keys: list[str] = field(init=False)
    values: list[list[str]] = field(init=False)

    def __post_init__(self):
        self.others: list[str] = []  # lines of a haystack of needles
        self.keys = self._new_keys(self.variant.keys)
        self.values = [[self._value() for _ in range(self.variant.values)] for _ in self.keys]
        self.asked = self.rng.permutation(len(self.keys))[: self.variant.queries]
        # Where needles stand that are not the one at the depth asked for.
        self.places = self.rng.random(len(self.keys) * self.variant.values)

    def prompt(self, units: int, depth: float) -> Prompt:
        """Return the prompt with so many haystack units, with the needle asked for after the share `depth` of them."""
        parts, joined = self._haystack(units)
        before = round(depth * len(parts))
        needles = [
            (NEEDLE.format(kind=self.variant.value, key=self.keys[key], value=value), key == self.asked[0] and not i)
            for key in range(len(self.keys))
            for i, value in enumerate(self.values[key])
        ]
        gaps = iter((self.places * (len(parts) + 1)).astype(int).tolist())
        placed = [(before if first else next(gaps), text) for text, first in needles]
        placed.sort(key=lambda needle: needle[0])
        pieces = [*parts]
        for place, text in reversed(placed):
            pieces.insert(place, text)
        return self._asked(joined.join(pieces), [text for _, text in placed], units, before, len(parts))

    def _asked(self, context: str, needles: list[str], units: int, before: int, parts: int) -> Prompt:
        keys, kind = [self.keys[i] for i in self.asked], self.variant.value
        query = ", ".join(keys[:-1]) + ", and " + keys[-1] if len(keys) > 1 else keys[0]
        question, prefix = QUESTION, PREFIX
        answers = tuple(value for i in self.asked for value in self.values[i])
        if len(answers) == 1:
            kind = kind[:-1]
            for plural, singular in SINGULAR:
                question, prefix = question.replace(plural, singular), prefix.replace(plural, singular)
        text = question.format(kind=kind, context=context, query=query) + prefix.format(kind=kind, query=query)
        return Prompt(text, answers, tuple(needles), units, before, parts)

    def _haystack(self, units: int) -> tuple[list[str], str]:
        """Return the parts between which needles can stand, and what joins them."""
        if self.variant.haystack == "noise":
            return [NOISE] * units, "\n"
        if self.variant.haystack == "needle":
            while len(self.others) < units:
                [key] = self._new_keys(1)
                self.others.append(NEEDLE.format(kind=self.variant.value, key=key, value=self._value()))
            return self.others[:units], "\n"
        return [part for part in re.split(r"(?<=[.!?])\s+", " ".join(self.essay[:units])) if part], " "

    def _new_keys(self, number: int) -> list[str]:
        """Draw keys that no needle of this prompt has: the question has one answer."""
        taken = {*getattr(self, "keys", ()), *self.others}
        found: list[str] = []
        while len(found) < number:
            key = words()[self.rng.integers(len(words()))] if self.variant.key == "words" else self._uuid()
            if key not in found and not any(key in other for other in taken):
                found.append(key)
        return found

    def _value(self) -> str:
        if self.variant.value == "uuids":
            return self._uuid()
        return str(self.rng.integers(10 ** (self.digits - 1), 10**self.digits))

    def _uuid(self) -> str:
        return str(uuid.UUID(bytes=self.rng.bytes(16), version=4))


def fitted(draw: Draw, length: int, depth: float, count: Callable[[str], int], fewest: int = 1) -> Prompt:
    """Return the longest prompt of at most `length` tokens: it lacks less than one haystack unit.

    count: the tokens of a text as the model reads it, `<bos>` included. fewest: the parts of the haystack that there
    have to be.

    Raises
    ------
    InputError
        If so few tokens hold no such prompt, or if the essay is too short to fill them.
    """
    kind = draw.variant.haystack
    most = min(len(draw.essay), length) if kind == "essay" else length  # a word is a token at least
    raised = "raise sink.needles.lengths in config.yaml"

    def tokens(units: int) -> int:
        return count(draw.prompt(units, depth).text)

    if kind == "essay" and (most < 2 * FEWEST or tokens(most) < length):
        raise InputError(f"the essay has {most} words, too few for a prompt of {length} tokens: give a longer text")
    least = tokens(1)
    if least > length:
        raise InputError(
            f"the shortest prompt in a haystack of {kind} has {least} tokens, more than {length}: {raised}"
        )
    # From two lengths the third follows nearly; the last steps are counted.
    apart = (tokens(FEWEST) - least) / (FEWEST - 1)
    units = min(most - 1, 1 + int((length - least) / apart))
    while tokens(units) > length:
        units -= 1
    while tokens(units + 1) <= length:
        units += 1
    prompt = draw.prompt(units, depth)
    if prompt.parts < fewest:
        raise InputError(
            f"{length} tokens hold {prompt.parts} parts of a haystack of {kind}, too few to put a needle at a depth "
            f"({fewest} are needed): {raised}"
        )
    return prompt
