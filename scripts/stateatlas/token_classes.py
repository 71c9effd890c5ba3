"""Token classes of study C, decided on text and offsets: on characters, not on how a tokenizer spells them."""

import re
import unicodedata
from collections.abc import Sequence

import numpy as np

# `content` is the reference. `other` (spaces, symbols, pieces of no word) is in no class.
CLASSES = ("bos", "newline", "period", "comma", "punctuation", "digit", "function_word", "content", "other")
BOS = CLASSES.index("bos")
CONTENT = CLASSES.index("content")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
# Articles, pronouns, prepositions, conjunctions, auxiliaries and particles of English.
_LIST = """
a an the this that these those each every either neither some any no all both such another other
i me my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
we us our ours ourselves they them their theirs themselves one who whom whose which what whoever whatever
about above across after against along among around as at before behind below beneath beside besides between beyond
by despite down during except for from in inside into like near of off on onto out outside over past per since
through throughout till to toward towards under until up upon via with within without
and but or nor so yet if because although though while whereas unless than whether when where why how
am is are was were be been being do does did doing have has had having can could may might must shall should will
would ought not there here then too also very just only even
"""
FUNCTION_WORDS = frozenset(_LIST.split())


def classify(text: str, offsets: Sequence[tuple[int, int]]) -> np.ndarray:
    """Return the class of every token of a text, an index into `CLASSES`, uint8.

    offsets: (start, end) of every token in `text`, as characters. A token that holds a newline is a newline. Spaces
    around a token do not count. A piece of a word is what the whole word is.
    """
    function = np.zeros(len(text) + 1, bool)
    letters = np.zeros(len(text) + 1, bool)
    for word in _WORD.finditer(text):
        letters[word.start() : word.end()] = True
        function[word.start() : word.end()] = word.group().lower() in FUNCTION_WORDS
    return np.array([CLASSES.index(_class(text, *span, function, letters)) for span in offsets], np.uint8)


def _class(text: str, start: int, end: int, function: np.ndarray, letters: np.ndarray) -> str:
    piece = text[start:end]
    bare = piece.strip()
    if "\n" in piece or "\r" in piece:
        return "newline"
    if bare in (".", ","):
        return "period" if bare == "." else "comma"
    if bare and all(unicodedata.category(c).startswith("P") for c in bare):
        return "punctuation"
    if bare.isdecimal():
        return "digit"
    first = start + piece.index(bare)
    if not bare or not letters[first : first + len(bare)].all():
        return "other"
    return "function_word" if function[first] else "content"
