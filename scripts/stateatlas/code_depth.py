"""Nesting depth of Python code after every character and every token (protocol A, Code-Depth).

The depth is the number of open `()[]{}`, at most 10. Brackets in comments, strings and f-strings never count: an
f-string is one token here, its replacement fields included, as it is to Python 3.11. Python 3.12 takes f-strings
apart (PEP 701); its parts are put together again, so both give the same tokens.

Code that the running interpreter does not parse is refused: what a tokenizer says of an unterminated string or of
Python 2's backticks is a guess, and no depth is better than a wrong one.
"""

import ast
import io
import keyword
import re
import token
import tokenize
import warnings
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

import numpy as np

CAP = 10
CHANGE = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}

# What a token can be, written out so that it is the same under every interpreter.
OPERATORS = (
    "(", ")", "[", "]", "{", "}", ",", ":", ".", ";", "@", "=", "->", ":=", "+", "-", "*", "/", "//", "%", "**", "<<",
    ">>", "&", "|", "^", "~", "<", ">", "<=", ">=", "==", "!=", "...", "+=", "-=", "*=", "/=", "//=", "%=", "**=",
    "<<=", ">>=", "&=", "|=", "^=", "@=",
)  # fmt: skip
KEYWORDS = (
    "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class", "continue", "def", "del",
    "elif", "else", "except", "finally", "for", "from", "global", "if", "import", "in", "is", "lambda", "nonlocal",
    "not", "or", "pass", "raise", "return", "try", "while", "with", "yield",
)  # fmt: skip
TYPES = ("NAME", "NUMBER", "STRING", "COMMENT", "NEWLINE", "NL", "INDENT", "DEDENT")
KINDS = (*OPERATORS, *KEYWORDS, *TYPES)

_INDEX = {kind: index for index, kind in enumerate(KINDS)}
_STRING_STARTS = {getattr(token, name, None) for name in ("FSTRING_START", "TSTRING_START")} - {None}
_STRING_ENDS = {getattr(token, name, None) for name in ("FSTRING_END", "TSTRING_END")} - {None}
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_BOM = "\ufeff"


class Unreadable(ValueError):
    """Code that has no certain tokens; such code is skipped and counted."""


class Token(NamedTuple):
    """A token: one of `KINDS`, and where it stands in the text, `start` up to and without `end`."""

    kind: str
    start: int
    end: int


def parse(source: str) -> ast.Module:
    """Return the syntax tree of code, without its warnings about it.

    Raises
    ------
    Unreadable
        If this interpreter does not parse it.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.removeprefix(_BOM))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise Unreadable(f"no Python of this interpreter: {error}") from error


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of `text` as the standard library's `tokenize` finds them; a DEDENT has no characters.

    Any line ends are read, and a byte order mark is passed over. Offsets count characters of `text` as it is.

    Raises
    ------
    Unreadable
        If the interpreter does not parse the text, or its tokenizer meets a character that it does not know.
    """
    bom = len(text) - len(text.removeprefix(_BOM))
    lines = _LINE.findall(text, bom)
    starts = list(accumulate(map(len, lines), initial=bom))
    bare = [line.rstrip("\r\n") for line in lines]
    source = "".join(f"{line}\n" for line in bare)
    parse(source)

    def offset(row: int, column: int) -> int:
        """Past a line's last character stands its end of line, of one or two characters or none."""
        past = row <= len(bare) and column > len(bare[row - 1])
        return starts[row] if past else min(starts[row - 1] + column, len(text))

    opened: list[int] = []  # where f-strings begin that have not ended
    try:
        for kind, string, start, end, _ in tokenize.generate_tokens(io.StringIO(source).readline):
            if kind in _STRING_STARTS:
                opened.append(offset(*start))
            elif kind in _STRING_ENDS:
                begin = opened.pop()
                if not opened:
                    yield Token("STRING", begin, offset(*end))
            elif not opened and kind != token.ENDMARKER:
                yield Token(_kind(kind, string), offset(*start), offset(*end))
    except (tokenize.TokenError, SyntaxError) as error:
        raise Unreadable(f"no tokens: {error}") from error


def depths(text: str) -> np.ndarray:
    """Return the depth after every character of `text`, (characters,) uint8; `Unreadable` where there is none."""
    change = np.zeros(len(text), dtype=np.int64)
    for kind, start, _ in tokens(text):
        if kind in CHANGE:
            change[start] = CHANGE[kind]
    return np.minimum(np.cumsum(change), CAP).astype(np.uint8)


def at_ends(depth: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the depth after each token of any tokenizer, in the shape of `ends`.

    depth: after every character. ends: int, where each token ends (the second of its offsets); a token without
    characters that stands before the text, such as BOS, ends at 0 and has depth 0.
    """
    return np.concatenate([np.zeros(1, dtype=depth.dtype), depth])[ends]


def kinds(text: str) -> bytes:
    """Return the tokens of `text` as indices into `KINDS`, one byte each; `Unreadable` where there are none."""
    return bytes(_INDEX[kind] for kind, _, _ in tokens(text))


def _kind(kind: int, string: str) -> str:
    name = string if kind == token.OP or keyword.iskeyword(string) else token.tok_name[kind]
    if name not in _INDEX:
        raise Unreadable(f"no token of Python: {string!r}")
    return name
