"""What can be known of a source file without importing it: its literals. Importing would load numpy or torch."""

import ast
import functools
from pathlib import Path

from stateatlas.canonical import PACKAGE


@functools.cache
def literal(path: Path, name: str) -> object:
    """Return the literal that `name` is set to in a module or in a class of it; None if there is none."""
    body = ast.parse(path.read_bytes()).body
    for node in [*body, *(inner for part in body if isinstance(part, ast.ClassDef) for inner in part.body)]:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", None) == name:
            return ast.literal_eval(node.value)
    return None


def modules(kind: str, defines: str) -> dict[str, Path]:
    """Return the files of a folder of the package that define a class or a function `defines`, by name."""
    found = {}
    for path in sorted((PACKAGE / kind).glob("[!_.]*.py")):
        body = ast.parse(path.read_bytes()).body
        if any(isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == defines for node in body):
            found[path.stem] = path
    return found
