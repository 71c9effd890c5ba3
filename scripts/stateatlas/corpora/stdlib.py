"""Functions of the running interpreter's standard library, split by package.

The text of a function begins at its `def`, without decorators, and goes on as in its file, as in CodeSearchNet.
Functions inside functions are part of these.
"""

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from stateatlas import code_depth
from stateatlas.corpora import Document, modules, split
from stateatlas.corpora.functions import Function, kept

# Code-Depth needs test functions of 120 tokens, which three in ten reach: hence the large parts beside training.
SHARES = (0.6, 0.2)


def documents(skipped: Counter, root: str | Path = "") -> Iterator[Document]:
    """Yield the functions that CodeSearchNet's filter keeps; `root` is the folder of the library's modules."""
    yield from split(kept(functions(skipped, root), skipped), modules.package, *SHARES)


def functions(skipped: Counter, root: str | Path = "") -> Iterator[Document]:
    """Yield all functions that stand in no other, module by module."""
    for module in modules.files(skipped, root):
        try:
            tree = code_depth.parse(module.text)
        except code_depth.Unreadable:
            skipped["module that is no Python of this interpreter"] += 1
            continue
        for name, text in _functions(tree, module.text.split("\n")):
            yield Document("", module.origin, name, text)


def _functions(tree: ast.Module, lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the qualified name and the text of functions in the order of the source."""
    todo: list[tuple[ast.AST, str]] = [(tree, "")]
    while todo:
        node, prefix = todo.pop()
        if isinstance(node, Function):
            yield prefix + node.name, _text(lines, node)
        else:
            inner = f"{prefix}{node.name}." if isinstance(node, ast.ClassDef) else prefix
            children = [child for child in ast.iter_child_nodes(node) if not isinstance(child, ast.expr)]
            todo.extend((child, inner) for child in reversed(children))


def _text(lines: list[str], node: Function) -> str:
    """Return the source of a node; columns of the syntax tree count bytes."""
    part = lines[node.lineno - 1 : node.end_lineno]
    part[-1] = part[-1].encode()[: node.end_col_offset].decode()
    part[0] = part[0][node.col_offset :]
    return "\n".join(part)
