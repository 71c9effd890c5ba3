"""Which functions of code are kept: the filter of CodeSearchNet's authors (Husain et al. 2019, arXiv 1909.09436).

Documented in three words or more, three lines or more without the documentation, no tests, no special methods, and
no duplicates: two functions that differ in comments, layout and documentation alone are one.
"""

import ast
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from stateatlas import code_depth
from stateatlas.corpora import Document

Function = ast.FunctionDef | ast.AsyncFunctionDef


def kept(candidates: Iterable[Document], skipped: Counter) -> Iterator[Document]:
    """Yield the functions that pass, with their tokens; count the others by reason.

    The text of a candidate begins at its `def` or at its decorators. Of duplicates the first one is kept, whatever
    splits they are in.
    """
    seen: set[bytes] = set()
    for candidate in candidates:
        try:
            function = _function(code_depth.parse(candidate.text))
            reason = _refusal(function)
            kinds = b"" if reason else code_depth.kinds(candidate.text)
        except code_depth.Unreadable:
            reason = "no Python of this interpreter"
        if not reason and (mark := _mark(function)) in seen:
            reason = "duplicate"
        if reason:
            skipped[reason] += 1
        else:
            seen.add(mark)
            yield replace(candidate, kinds=kinds)


def _function(module: ast.Module) -> Function | None:
    return module.body[0] if len(module.body) == 1 and isinstance(module.body[0], Function) else None


def _refusal(function: Function | None) -> str:
    """Return why a function is left out, or nothing."""
    if function is None:
        return "no single function"
    documentation = ast.get_docstring(function, clean=False) or ""
    first, name = function.body[0], function.name
    lines = function.end_lineno - function.lineno - (first.end_lineno - first.lineno)  # but for the documentation
    reasons = {
        "undocumented": not documentation,
        "documented in under three words": len(documentation.split()) < 3,
        "test": "test" in name.lower(),
        "special method": name.startswith("__") and name.endswith("__"),
        "under three lines": lines < 3,
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def _mark(function: Function) -> bytes:
    """Return a hash of what a function does: of its syntax tree without the documentation."""
    function.body = function.body[1:]
    return hashlib.sha256(ast.dump(function).encode("utf-8", "surrogatepass")).digest()
