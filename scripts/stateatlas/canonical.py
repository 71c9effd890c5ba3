"""Canonical JSON, and hashes of code that only a change of meaning can change (standard library only)."""

import ast
import functools
import hashlib
import json
import re
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent
ROOT = PACKAGE.parent.parent  # of the project: its committed data lies below


def canonical(value: object) -> str:
    """Return `value` as JSON with sorted keys and no spaces: equal values give equal strings."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def sha256(data: str | bytes) -> str:
    """Return the hex sha256 of text (as UTF-8) or bytes."""
    return hashlib.sha256(data.encode() if isinstance(data, str) else data).hexdigest()


def sha256_file(path: Path) -> str:
    """Return the hex sha256 of a file, read in pieces."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def env_hash(path: Path) -> str:
    """Hash the exact pins (`name==version`) of an environment file, and of the script that completes it if there is
    one: not its comments, order or place."""
    files = [Path(path), Path(path).with_suffix(".post-deploy.sh")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files if file.exists())
    pins = re.findall(r"^\s*-?\s*['\"]?([\w.\[\]-]+==[\w.+!-]+)", text, flags=re.MULTILINE)
    return sha256(canonical(sorted(pin.lower() for pin in pins)))


def code_hash(files: list[Path]) -> str:
    """Hash the meaning of source files: Python without comments, docstrings and layout, others byte by byte.

    The same on every supported Python, since only fields that are set enter. File names enter relative to the
    scripts folder, so the place of the project does not.
    """
    parts = [(path.relative_to(PACKAGE.parent).as_posix(), _meaning(path, path.stat().st_mtime_ns)) for path in files]
    return sha256(canonical(sorted(parts)))


@functools.cache
def _meaning(path: Path, _mtime: int) -> str:
    if path.suffix != ".py":
        return sha256_file(path)
    return sha256(canonical(_node(ast.parse(path.read_bytes(), str(path)))))


def _node(node: object) -> object:
    """Return an AST as lists: class name, then every field that is set."""
    if isinstance(node, list):
        return [_node(item) for item in node]
    if isinstance(node, ast.Constant):
        return ["Constant", type(node.value).__name__, repr(node.value)]
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.JoinedStr):  # Python 3.12 puts empty texts between the parts of nested f-strings
        return ["JoinedStr", *(_node(part) for part in node.values if getattr(part, "value", None) != "")]
    fields = {name: getattr(node, name, None) for name in node._fields if name not in ("ctx", "type_comment")}
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        fields["body"] = _without_docstring(node.body)
    return [
        type(node).__name__,
        *([k, _node(v)] for k, v in sorted(fields.items()) if v is not None and v != []),
    ]


def _without_docstring(body: list) -> list:
    first = body[0] if body else None
    documented = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return body[1:] if documented and isinstance(first.value.value, str) else body


def closure(*entries: Path) -> list[Path]:
    """Return the files that `entries` import, directly or not, from the package, themselves included.

    Only import statements are followed; what is loaded by name (a task, an architecture, a figure) is an entry of
    its own. Beside a subpackage's `__init__.py`, C sources belong to it.
    """
    found: set[Path] = set()
    todo = [Path(entry) for entry in entries]
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            todo.extend(_imports(path, path.stat().st_mtime_ns))
    return sorted(found)


@functools.cache
def _imports(path: Path, _mtime: int) -> tuple[Path, ...]:
    if path.suffix != ".py":
        return ()
    files: set[Path] = set(path.parent.glob("*.[ch]")) if path.name == "__init__.py" else set()
    for node in ast.walk(ast.parse(path.read_bytes(), str(path))):
        if isinstance(node, ast.ImportFrom):
            if node.level:
                raise ValueError(f"{path}, line {node.lineno}: relative import; write `from {PACKAGE.name}...` instead")
            modules = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        else:
            continue
        for module in modules:
            files |= _files(module)
    return tuple(files)


def _files(module: str) -> set[Path]:
    """Return the files that importing `module` runs: the packages above it and its own, if they are ours."""
    parts = module.split(".")
    if parts[0] != PACKAGE.name:
        return set()
    files = set()
    for depth in range(1, len(parts) + 1):
        stem = PACKAGE.parent.joinpath(*parts[:depth])
        files |= {path for path in (stem.with_suffix(".py"), stem / "__init__.py") if path.is_file()}
    return files
