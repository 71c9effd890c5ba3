"""Depth of code: right, or a refusal; the same as parso finds in the whole standard library."""

import json
import keyword
import os
import sys
import token
from collections import Counter
from pathlib import Path

import numpy as np
import parso
import pytest
from parso.python.tokenize import PythonTokenTypes as Parso
from parso.python.tokenize import tokenize as parso_tokens

from stateatlas import code_depth
from stateatlas.code_depth import KINDS, Unreadable, at_ends, depths, kinds, tokens
from stateatlas.corpora import stdlib

VERSION = parso.utils.parse_version_string(f"{sys.version_info.major}.{min(sys.version_info.minor, 13)}")
BRACKETS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


def depths_by_parso(text: str) -> np.ndarray:
    change, inside = np.zeros(len(text), dtype=int), 0
    starts = np.cumsum([0, *(len(line) for line in text.split("\n"))]) + np.arange(text.count("\n") + 2)
    for kind, string, (row, column), _ in parso_tokens(text, version_info=VERSION):
        inside += (kind == Parso.FSTRING_START) - (kind == Parso.FSTRING_END)
        if kind == Parso.OP and not inside:
            change[starts[row - 1] + column] = BRACKETS.get(string, 0)
    return np.minimum(change.cumsum(), 10)


def spelled(text: str) -> str:
    """Depth under every character, to be read below the text."""
    return "".join("0123456789X"[depth] for depth in depths(text))


def names(text: str) -> list[str]:
    return [KINDS[index] for index in kinds(text)]


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.slow), 10])
def test_the_standard_library_has_the_depths_that_parso_finds(every):
    functions = list(stdlib.functions(Counter()))
    assert len(functions) > 10_000
    met = Counter()
    for function in functions[::every]:
        found = depths(function.text)
        met.update(found.tolist())
        assert (found == depths_by_parso(function.text)).all(), f"{function.origin}: {function.name}"
    assert set(met) >= set(range(5))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(a[0], {1})", "011221112210"),
        ("x = '(' # [", "00000000000"),
        ("x = '''(\n['''", "0000000000000"),
        ("(f'{a[0]}(' )", "1111111111110"),
        ("(rb'(' b')')", "111111111110"),
        ("(f'{f\"{x[0]}\"}{{(')", "1" * 18 + "0"),
        ("(f'{x!r:{w[0]}}')", "11111111111111110"),
        ("(F'''{\nx(1)\n}''')", "1" * 16 + "0"),
        ("f(a,\\\n  b)", "0111111110"),
        ("f(\n#)\n)", "0111110"),
        ("f()", "010"),
        ("", ""),
    ],
)
def test_brackets_count_after_their_last_character_and_never_in_strings_or_comments(text, expected):
    assert spelled(text) == expected


def test_depth_is_capped_and_comes_back_from_above_the_cap():
    text = "(" * 13 + "0" + ")" * 13
    assert depths(text).tolist() == [*range(1, 11), 10, 10, 10, 10, 10, 10, 10, *range(9, -1, -1)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "\ufeff"])
@pytest.mark.parametrize("last", ["", "end"])
def test_line_ends_tabs_form_feeds_and_a_byte_order_mark_change_no_depth(start, end, last):
    lines = [
        "@d(1)",
        "def f(a,",
        "\tb=[(1)]):",
        "\t'''( é",
        "(",
        "'''",
        "\f",
        "\tx = {'é': (\\",
        "\t\t[1])}",
        "\treturn x",
    ]
    text = start + end.join(lines) + (end if last else "")
    by_hand, depth, quoted = [], 0, False
    for i, character in enumerate(text):
        if text[i : i + 3] == "'''":
            quoted = not quoted
        depth += 0 if quoted else BRACKETS.get(character, 0)
        by_hand.append(depth)
    assert depths(text).tolist() == by_hand
    assert all(token.end <= len(text) for token in tokens(text))


def test_a_token_stands_where_it_says():
    text = "\ufeffdef f(a):\r\n    return (a,\r\n        f'{a[0]}')\r\n"
    found = [text[start:end] for _, start, end in tokens(text)]
    lines = [
        "def",
        "f",
        "(",
        "a",
        ")",
        ":",
        "\r\n",
        "    ",
        "return",
        "(",
        "a",
        ",",
        "\r\n",
        "f'{a[0]}'",
        ")",
        "\r\n",
        "",
    ]
    assert found == lines
    assert names(text) == [
        "def", "NAME", "(", "NAME", ")", ":", "NEWLINE", "INDENT", "return", "(", "NAME", ",", "NL", "STRING", ")",
        "NEWLINE", "DEDENT",
    ]  # fmt: skip


def test_an_f_string_is_one_token_under_every_python():
    nested = "x = f'{a!r:>{w}}' f\"\"\"{f'{b[0]}'}(\n{{\"\"\" + f''"
    assert names(nested) == ["NAME", "=", "STRING", "STRING", "+", "STRING", "NEWLINE"]
    assert not depths(nested).any()


def test_quotes_of_the_same_kind_inside_a_field_are_read_where_python_reads_them():
    text = """x(f"{d["("]}")"""
    if sys.version_info >= (3, 12):
        assert depths(text).tolist() == [0] + [1] * (len(text) - 2) + [0]
    else:
        with pytest.raises(Unreadable):
            depths(text)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    print 'x'",
        "def f():\n    return `x`",
        "raise E, 'x'",
        "x = 0777",
        "x = 10L",
        "x = 'unterminated (",
        "x = '''unterminated (",
        "x = (1",
        "x = 1)",
        "x = (1]",
        "  indented",
        "def f():\n\tx\n        y",
        "if x:\n        a\n    b",
        "x = $",
        "x = 1 \\",
        "x\0",
        "x = '\ud800'",
        "(" * 100_000,
    ],
)
def test_what_is_no_python_is_refused_and_never_guessed(text):
    for read in (depths, kinds):
        with pytest.raises(Unreadable):
            read(text)


def test_no_text_is_a_crash():
    rng = np.random.default_rng(0)
    pieces = [
        "(",
        ")",
        "[",
        "'",
        '"',
        "'''",
        "f'",
        "{",
        "}",
        "\\",
        "\n",
        "\r",
        "\t",
        "\f",
        "#",
        " ",
        "x",
        "é",
        "\ufeff",
        "def f():",
    ]
    read = 0
    for _ in range(3000):
        text = "".join(rng.choice(pieces, size=rng.integers(1, 12)))
        try:
            assert len(depths(text)) == len(text)
            read += 1
        except Unreadable:
            pass
    assert read > 50


def test_code_is_what_this_python_says_and_its_warnings_stay_with_it(recwarn):
    assert names("x = '\\d'") == ["NAME", "=", "STRING", "NEWLINE"]
    assert not recwarn


def test_kinds_are_the_operators_and_keywords_of_python():
    assert set(code_depth.OPERATORS) == set(token.EXACT_TOKEN_TYPES) - {"!"}  # `!` stands in f-strings alone
    assert set(code_depth.KEYWORDS) == set(keyword.kwlist)
    assert len(set(KINDS)) == len(KINDS) < 256


def test_the_tokens_of_any_tokenizer_get_the_depth_after_their_last_character():
    depth = depths("f((a))")
    ends = np.array([[0, 1, 2, 5], [0, 3, 4, 6]])
    assert at_ends(depth, ends).tolist() == [[0, 0, 1, 1], [0, 2, 2, 0]]


def test_the_depth_of_our_own_tokens_is_the_running_count():
    text = Path(stdlib.__file__).read_text(encoding="utf-8")
    found = list(tokens(text))
    running = np.minimum(np.cumsum([BRACKETS.get(kind, 0) for kind, _, _ in found]), 10)
    assert (at_ends(depths(text), np.array([end for _, _, end in found])) == running).all()


def test_real_rows_of_codesearchnet():
    if not (folder := os.environ.get("STATEATLAS_TEST_DATA")):
        pytest.skip("STATEATLAS_TEST_DATA is not set: it names the folder with CodeSearchNet's sample")
    rows = [json.loads(line) for path in Path(folder).glob("codesearchnet/*.jsonl") for line in path.open()]
    assert len(rows) == 6
    for row in rows:
        text = row["original_string"]
        assert (depths(text) == depths_by_parso(text)).all()
        # Its own tokens leave out layout, documentation and nothing with a bracket in it.
        theirs = np.cumsum([BRACKETS[t] for t in row["code_tokens"] if t in BRACKETS])
        ours = np.cumsum([BRACKETS[kind] for kind, _, _ in tokens(text) if kind in BRACKETS])
        assert theirs.tolist() == ours.tolist()
