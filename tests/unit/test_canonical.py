"""The hash of code changes with its meaning and with nothing else: not with layout, comments, place or Python."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stateatlas import canonical

SOURCE = '''
"""Doc of the module."""
import math
from stateatlas import seeds  # a comment


def area(radius: float, *, scale=2.0) -> float:
    """Doc of the function."""
    if radius > 0 and scale:
        return math.pi * radius**2 * scale
    return f"{radius:>{3}}"


class Circle:
    """Doc of the class."""

    sides = 1_000

    def draw(self):
        """Doc of the method."""
        return [x for x in range(3) if x] or -1
'''

# Every form that a Python version has represented in its own way, or may.
ODD = r'''
w = 5; x = 1.5
a = f"{x:{w}}"; b = f"{x:>{w}.{w}}"; c = f"{x!r:^{w}}" "tail" f"{w}"; d = f"{x=}"; e = f"{x = !r:{w}}"
f = "a" "b" f"c" 'd'; g = f"{{}}{x}{{{w}}}"; h = f"""
{x
}  {x:{w}{w}}"""
i = rf"\d{x}\n"; j = f"\N{EM DASH}{x}"; k = f"{'nested'}{f'{w}'}"; t = f""; u = f"{x:}"; v = f"{x:%Y-%m}"
l = b"a" b"b"; m = u"x"; n = 1_000; o = 0x10; p = 1e-3; q = ...; r = 1j; s = -0.0
@staticmethod
def one(a, /, b: int = 1, *args: int, c, d=None, **k) -> "x":
    global zz
    inner = lambda *a, **k: (yield)
    return
async def two():
    async with a as b, c as d: pass
    async for i in x: await y
    [z async for z in q if z]
class A(B, metaclass=C):
    x: int = 3
    def f(self): "only doc"
match x:
    case [1, *rest] if y: pass
    case {"a": 1, **kw}: pass
    case A(b=1) | None: pass
    case _: pass
try: pass
except* ValueError as e: pass
with (open("a") as f, open("b")): pass
del a, b
a[1:2, ..., ::3] += 1
if (n := 3) > 2: pass
print(*a, **{**b, "c": 1}, end="")
{1, 2}; {k: v for k, v in x}
import a.b as c, d
from . import z
from ..y import (q as r)
assert a, "b"
raise X from Y
'''

SAME = {
    "a comment": ("import math", "# why\nimport math  # here"),
    "blank lines": ("\n\n\ndef", "\n\n\n\n\n\ndef"),
    "the module's docstring": ("Doc of the module", "Another doc"),
    "a function's docstring": ("Doc of the function", "Another doc"),
    "a method's docstring": ('        """Doc of the method."""\n', ""),
    "a class's docstring": ("Doc of the class", "Another doc"),
    "the layout of a call": ("math.pi * radius**2 * scale", "(\n    math.pi\n    * radius**2 * scale\n)"),
    "quotes": ('f"{radius:>{3}}"', "f'{radius:>{3}}'"),
    "the way a number is written": ("1_000", "1000"),
}
OTHER = {
    "a number": ("2.0", "2.5"),
    "an integer instead of a float": ("2.0", "2"),
    "a name": ("radius >", "scale >"),
    "an operator": (" and ", " or "),
    "a comparison": ("> 0", ">= 0"),
    "a keyword-only argument": ("*, scale", "scale"),
    "an annotation": ("radius: float", "radius: int"),
    "a format": (":>{3}", ":<{3}"),
    "a sign": ("or -1", "or 1"),
    "an import": ("import math\n", "import math, os\n"),
    "a statement more": ("sides = 1_000", "sides = 1_000; corners = 0"),
    "a decorator": ("    def draw", "    @property\n    def draw"),
    "the order of statements": ("import math\nfrom", "from stateatlas import seeds\nimport math\nfrom"),
    "a text that is no docstring": ("import math", "'text'\nimport math"),
}


@pytest.fixture
def package(tmp_path, monkeypatch) -> Path:
    """An empty package in a folder of its own."""
    folder = tmp_path / "scripts" / "stateatlas"
    folder.mkdir(parents=True)
    monkeypatch.setattr(canonical, "PACKAGE", folder)
    return folder


def write(package: Path, source: str, name: str = "shapes.py") -> str:
    path = package / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(source, encoding="utf-8")
    canonical._meaning.cache_clear()
    return canonical.code_hash([path])


@pytest.mark.parametrize(("old", "new"), SAME.values(), ids=SAME)
def test_what_has_no_meaning_leaves_the_hash_alone(package, old, new):
    assert old in SOURCE
    assert write(package, SOURCE) == write(package, SOURCE.replace(old, new))


@pytest.mark.parametrize(("old", "new"), OTHER.values(), ids=OTHER)
def test_what_has_a_meaning_changes_the_hash(package, old, new):
    assert old in SOURCE
    assert write(package, SOURCE) != write(package, SOURCE.replace(old, new, 1))


def test_the_name_of_a_file_counts_but_not_its_folder_its_age_or_the_order(package, tmp_path, monkeypatch):
    first = write(package, SOURCE)
    assert first != write(package, SOURCE, "others.py")
    os.utime(package / "shapes.py", (1, 1))
    both = canonical.code_hash([package / "shapes.py", package / "others.py"])
    moved = tmp_path / "it's moved" / "scripts" / "stateatlas"
    shutil.copytree(package, moved)
    monkeypatch.setattr(canonical, "PACKAGE", moved)
    assert both == canonical.code_hash([moved / "others.py", moved / "shapes.py"])


def test_sources_that_are_not_python_count_byte_by_byte(package):
    assert write(package, "int x; /* one */", "kernel.c") != write(package, "int x; /* two */", "kernel.c")


def test_the_hash_does_not_depend_on_the_locale():
    plain = run_alone(sys.executable, "-X", "utf8=0", LC_ALL="C", PYTHONCOERCECLOCALE="0")
    assert plain == run_alone(sys.executable)


@pytest.mark.parametrize("python", ["python3.11", "python3.12", "python3.13", "python3.14"])
def test_every_python_gives_the_same_hashes(python):
    interpreter = find(python)
    if interpreter is None:
        pytest.skip(f"no {python} here")
    assert run_alone(interpreter) == run_alone(sys.executable)


def find(python: str) -> str | None:
    """Return a Python that runs; a version manager's shim may lie in PATH and not run."""
    managed = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    number = python.removeprefix("python")
    for candidate in [shutil.which(python), *map(str, managed.glob(f"{number}.*/bin/python"))]:
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


def run_alone(interpreter: str, *options: str, **environment: str) -> str:
    """Return the hashes of every file of the project and of odd sources, as computed by `interpreter` alone."""
    program = (
        "import ast, json, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from stateatlas import canonical as c\n"
        "files = sorted(p for e in ('*.py', '*.[ch]') for p in c.PACKAGE.parent.rglob(e))\n"
        "found = {p.relative_to(c.ROOT).as_posix(): c.code_hash([p]) for p in files}\n"
        "found['odd'] = c.canonical(c._node(ast.parse(sys.stdin.buffer.read())))\n"
        "found['closures'] = {p.stem: [q.name for q in c.closure(p)] for p in c.PACKAGE.parent.glob('*.py')}\n"
        "print(json.dumps(found, sort_keys=True))\n"
    )
    command = [interpreter, "-s", "-P", *options, "-c", program, str(canonical.PACKAGE.parent)]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, input=ODD.encode(), capture_output=True, check=True, env=environment)
    assert len(json.loads(done.stdout)) > 40
    return done.stdout.decode()


def test_canonical_json_is_one_string_for_equal_values():
    assert canonical.canonical({"b": [1, 2.5], "a": {"ä": None}}) == '{"a":{"ä":null},"b":[1,2.5]}'
    assert canonical.canonical({"a": 1, "b": 2}) == canonical.canonical({"b": 2, "a": 1})
    assert canonical.canonical([0.9, 0.98]) != canonical.canonical([0.98, 0.9])
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical.canonical({"a": float("nan")})


def test_an_environment_is_its_pins(tmp_path):
    first, second, third = (tmp_path / name for name in ("a.yaml", "b.yaml", "c.yaml"))
    first.write_text("channels: [conda-forge]\ndependencies:\n  - pip:\n      - numpy==2.4.6\n      - Torch==2.13.0\n")
    second.write_text("# why\ndependencies:\n  - pip:\n      - torch==2.13.0  # cpu\n      - numpy==2.4.6\n")
    third.write_text("dependencies:\n  - pip:\n      - torch==2.13.0\n      - numpy==2.4.7\n")
    assert canonical.env_hash(first) == canonical.env_hash(second) != canonical.env_hash(third)


def test_a_closure_follows_every_way_to_import(package):
    for name, source in {
        "__init__.py": "",
        "a.py": "import stateatlas.b\n",
        "b.py": "def f():\n    from stateatlas import c\n",
        "c.py": "from stateatlas.sub import thing\nfrom stateatlas.sub.deep import other\n",
        "sub/__init__.py": "",
        "sub/deep.py": "import numpy, os.path\n",
        "sub/kernel.c": "",
        "sub/kernel.h": "",
        "unused.py": "",
    }.items():
        write(package, source, name)
    found = {path.relative_to(package).as_posix() for path in canonical.closure(package / "a.py")}
    wanted = {"__init__.py", "a.py", "b.py", "c.py"}
    assert found == wanted | {f"sub/{name}" for name in ("__init__.py", "deep.py", "kernel.c", "kernel.h")}


def test_a_relative_import_is_refused_with_its_place(package):
    write(package, "\nfrom . import b\n", "a.py")
    with pytest.raises(ValueError, match=r"a\.py, line 2: relative import"):
        canonical.closure(package / "a.py")
