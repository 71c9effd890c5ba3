"""An edit makes again exactly what depends on it: no more, no fewer."""

import json
import shutil
import subprocess
import sys

import pytest

from stateatlas import plan

RESULTS = "results/smoke/"
CELL = ["models", "states", "probes", "ablations", "refits", "erasures", "patches"]
# By what stands first in a result's folder, below `encoding/` where it is of the study.
AFTER_CELLS = {"tables", "claims", "figures", "report"}
ALL = {"sequences", "base", *CELL, *AFTER_CELLS}

MATRIX = """
import json, sys
sys.path.insert(0, sys.argv[1])
from stateatlas import backend, canonical, plan, settings

resolved = settings.resolve(settings.read(canonical.ROOT / "config.yaml")) | {"backend": "torch"}

def cfgs():
    plan._closure.cache_clear(), plan._hash.cache_clear()
    made = plan.Plan(resolved)
    jobs = {json.dumps([rule, w], sort_keys=True): (rule, w) for rule, w in made.jobs()}
    return made, jobs, {key: made.cfg(*job) for key, job in jobs.items()}

def above(rule, wildcards):
    return [json.dumps([r, w], sort_keys=True) for r, w in plan.Plan(resolved).upstream(rule, wildcards)]

made, jobs, before = cfgs()
names = {str(path.relative_to(canonical.ROOT)): path for suffix in ("py", "c", "h")
         for path in (canonical.ROOT / "scripts").rglob(f"*.{suffix}")}
result = {}
for name, path in sorted(names.items()):
    users = {key for key, job in jobs.items() if path in made.files(*job)}
    behind = None
    while behind is None or not behind <= users:
        users |= behind or set()
        behind = {key for key, job in jobs.items() if set(above(*job)) & users}
    content = path.read_bytes()
    path.write_bytes(content + (b"\\nEDITED = 1\\n" if name.endswith(".py") else b"\\n/* edited */\\n"))
    after = cfgs()[2]
    path.write_bytes(content)
    result[name] = [sorted(users), sorted(key for key in jobs if before[key] != after[key])]
assert cfgs()[2] == before
print(json.dumps(result))
"""


@pytest.fixture(scope="module")
def matrix(finished, tmp_path_factory):
    """For every source file: the jobs whose closure holds it and those behind them, and the jobs whose cfg changes."""
    root = tmp_path_factory.mktemp("matrix")
    for name in ("scripts", "rules", "data", "docs", "envs", "report", "config.yaml"):
        source = finished.root / name
        if source.exists():
            (shutil.copytree if source.is_dir() else shutil.copy)(source, root / name)
    command = [sys.executable, "-c", MATRIX, str(root / "scripts")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_edit_of_any_source_file_touches_its_importers_and_what_is_behind_them(matrix):
    assert len(matrix) > 50
    for name, (expected, found) in matrix.items():
        assert found == expected, name


def test_no_source_file_is_left_out_by_mistake(matrix):
    """What runs before any job or beside the workflow is in no result; everything else is."""
    unused = {name.removeprefix("scripts/stateatlas/") for name, (expected, _) in matrix.items() if not expected}
    of_other_cells = {"tasks/s3.py", "tasks/dyck.py", "blocks/lstm.py", "blocks/gru.py", "blocks/mamba2.py"}
    of_other_cells |= {name for name in unused if name.startswith(("tasks/", "adapters/", "corpora/"))}
    of_language = {"bigram", "finetuned", "llama2c", "mamba_ssm_format", "mini_job", "minis", "packing", "pretrained"}
    of_language |= {"pretraining", "tokenization", "code_depth", "recipes"}
    of_other_cells |= {f"{name}.py" for name in of_language}
    of_other_cells |= {"figures/language.py", "figures/recipes.py"}
    of_units = {"activity", "annotation", "complements", "effects", "effects_job", "signatures", "spans", "unit_sets"}
    of_units |= {"unit_cells", "generation", "needles", "retrieval", "retrieval_job", "teach_job", "teaching"}
    of_other_cells |= {f"{name}.py" for name in (*of_units, "token_classes", "interventions")}
    of_other_cells |= {f"figures/{name}.py" for name in ("interventions", "needles", "scans", "sets", "surfaces")}
    of_other_cells |= {"figures/units.py", "figures/writes.py"}
    of_sources = {"concentration", "displacement", "field", "inversion", "invert_job", "linearity", "over_prompts"}
    of_sources |= {"prompted", "prompts", "propagation", "respond_job", "response", "superposition", "transfer_job"}
    of_other_cells |= {f"{name}.py" for name in (*of_sources, "transferring")}
    of_other_cells |= {f"scripts/{name}.py" for name in ("respond", "invert", "transfer")}
    of_other_cells |= {f"figures/{name}.py" for name in ("linearity", "superposition", "prediction", "propagation")}
    of_other_cells |= {f"figures/{name}.py" for name in ("composition", "concentration", "green", "displacement")}
    of_other_cells |= {"figures/inverse.py", "figures/transfer.py"}
    of_other_cells |= {"kernel_check.py", "scripts/check_backend.py"}
    of_other_cells |= {name for name in unused if name.startswith("units/")}
    of_other_cells |= {f"scripts/{name}.py" for name in ("observe", "find_sets", "intervene", "teach", "find_needles")}
    of_other_cells |= {f"scripts/{name}.py" for name in ("corpus", "fetch", "finetune", "pretrain", "train_tokenizer")}
    driver = {"bootstrap.py", "driver.py", "install.py", "runlock.py", "verify.py"}
    before_jobs = {"adoption.py", "backend.py", "literals.py", "needs.py", "plan.py", "possible.py", "rulebook.py"}
    before_jobs |= {"settings.py", "sizing.py", "upstream.py"}
    assert unused <= of_other_cells | driver | before_jobs


def made_again(project, *arguments) -> set[str]:
    """Return the results to be made, as seen from `results/smoke`, without `encoding/`."""
    return {name.removeprefix(RESULTS).removeprefix("encoding/") for name in project.planned(*arguments)}


def kinds(folders: set[str]) -> set[str]:
    return {folder.split("/")[0] for folder in folders}


def everything(finished) -> set[str]:
    results = finished.work / RESULTS
    found = (path.parent.relative_to(results) for path in results.rglob("manifest.json"))
    return {folder.as_posix().removeprefix("encoding/") for folder in found}


# Figures that show verdicts, if there are any.
WITH_CLAIMS = {"figures" for name in plan.FIGURES if "claims" in plan.figure_tables(name)}

EDITED = [
    ("scripts/stateatlas/training.py", ALL - {"sequences", "base"}),
    ("scripts/stateatlas/tasks/parity.py", ALL),
    ("scripts/stateatlas/probes.py", ALL - {"sequences", "models", "states", "patches"}),
    ("data/claims.yaml", {"claims", "report"} | WITH_CLAIMS),
]


@pytest.mark.parametrize(("name", "again"), EDITED, ids=lambda part: part if isinstance(part, str) else "")
def test_an_edit_makes_again_what_depends_on_it(project, finished, name, again):
    project.append(name, "\nEDITED = 1\n" if name.endswith(".py") else "\n# edited\n")
    found = made_again(project)
    assert kinds(found) == again
    cells = {folder for folder in everything(finished) if folder.split("/")[0] in again - {"tables", "figures"}}
    assert found >= cells


def test_an_edit_of_what_is_in_no_result_makes_nothing_again(project):
    for name in ("Snakefile", "rules/models.smk", "README.md", "config.yaml"):
        project.append(name, "\n# edited\n")
    for name in ("tasks/dyck.py", "blocks/mamba2.py", "plan.py", "driver.py"):
        project.append(f"scripts/stateatlas/{name}", "\nEDITED = 1\n")
    assert project.planned() == set()


def test_an_edit_of_an_architecture_leaves_the_others_alone(project):
    project.append("scripts/stateatlas/blocks/mamba.py", "\nEDITED = 1\n")
    found = made_again(project)
    assert kinds(found) == {*CELL, *AFTER_CELLS}
    assert {f"{kind}/parity/mamba/seed0" for kind in CELL} <= found
    assert not [folder for folder in found if "/transformer/" in folder]


def test_an_edit_of_a_figure_makes_that_figure_and_the_page_again_until_it_is_taken_back(project):
    path = project.root / "scripts/stateatlas/figures/strips.py"
    before = path.read_text()
    path.write_text(before + "\nEDITED = 1\n")
    assert made_again(project) == {"figures/strips", "report"}
    path.write_text(before)
    assert made_again(project) == set()


def test_another_version_of_a_package_makes_again_what_ran_with_it(project):
    project.edit("envs/figures.yaml", "==", "==9")
    assert kinds(made_again(project)) == {"figures", "report"}


def swap_sets(config):
    config["fit"], config["test"] = config["test"], config["fit"]


def swap_betas(config):
    config["defaults"]["training"]["betas"].reverse()


def another_recipe_for_another_task(config):
    config["defaults"]["training_by_task"]["dyck"] = {"clip": 0.5}


CONFIGURED = [
    (swap_sets, ALL),
    (swap_betas, ALL - {"sequences", "base"}),
    (another_recipe_for_another_task, {"figures", "report"}),
]


@pytest.mark.parametrize(("change", "again"), CONFIGURED)
def test_a_changed_config_value_makes_again_what_needs_it(project, change, again):
    config = project.config
    change(config)
    project.config = config
    assert kinds(made_again(project)) == again


def test_a_seed_more_trains_only_that_seed(project):
    found = made_again(project, "--config", "seeds=2")
    assert kinds(found) == {*CELL, *AFTER_CELLS}
    assert all(folder.endswith("/seed1") for folder in found if folder.split("/")[0] in CELL)


@pytest.fixture
def with_a_new_task(project):
    """The project with a task more, and nothing done yet: one file, one word in the config."""
    source = (project.root / "scripts/stateatlas/tasks/parity.py").read_text()
    assert "vocabulary = 2" in source
    (project.root / "scripts/stateatlas/tasks/triple.py").write_text(source.replace("vocabulary = 2", "vocabulary = 3"))
    config = project.config
    config["tasks"].append("triple")
    project.config = config
    return project


def test_a_new_task_trains_only_that_task(with_a_new_task):
    found = made_again(with_a_new_task)
    assert kinds(found) == ALL - {"erasures", "patches"}, "which edit what they are told to"
    assert all("/triple" in folder for folder in found if folder.split("/")[0] not in AFTER_CELLS)


@pytest.mark.slow
def test_a_new_task_works(with_a_new_task):
    done = with_a_new_task.snakemake("--quiet", "rules")
    assert done.returncode == 0, done.stdout
    assert with_a_new_task.planned() == set()
