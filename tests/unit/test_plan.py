"""The plan: which job depends on what, and so which jobs an edit makes again."""

import ast
import copy
import json
import subprocess
import sys

import pytest

from stateatlas import canonical, plan, settings

HEAVY = {"torch", "pandas", "numpy", "sklearn", "scipy", "matplotlib", "pyarrow", "safetensors", "snakemake"}
TRAINING = {"tasks", "blocks", "kernels", "training", "seeds", "sequences", "residual", "weights", "checkpoint", "cell"}
TRAINING |= {"compiler", "coverage", "descent", "memory", "loop", "gpus", "job", "manifest", "canonical", "__init__"}
# What a rule's results may hang on beside what every rule needs. A rule that grows must be allowed to, here.
COMMON = {"__init__", "canonical", "gpus", "job", "manifest"}
MODEL = {"blocks", "kernels", "compiler", "residual", "weights", "sequences", "seeds"}
LANGUAGE = {"adapters", "finetuned", "pretrained", "mamba_ssm_format"}
PRETRAINING = TRAINING | LANGUAGE | {"mini_job", "minis", "packing", "pretraining", "bigram", "loop"}
PROBING = {"probing", "probes", "states", "resampling", "seeds", "sequences", "tables"}
EDITING = {"ablation", "subspaces", "probes", "states"}
UNITS = {"checkpoint", "units", "interventions", "annotation", "token_classes", "packing", "corpora", "loop"}
UNITS |= LANGUAGE | MODEL
PROMPTED = {"prompted", "prompts", "field", "response", "annotation", "token_classes", "packing", "loop", "checkpoint"}
PROMPTED |= {"over_prompts", "resampling", "tables"} | LANGUAGE | MODEL
SHOWN = {"reporting", "shown", "names", "tables", "sizes", "figures", "profiles", "experiments", "drops"}
SHOWN |= {"interventions"}
JUDGING = {"claims", "bounds", "evidence", "verdicts", "selection", "statistics", "tables", "resampling", "seeds"}
CLOSURES = {
    "corpus": {"corpora", "code_depth"},
    "train_tokenizer": {"tokenization", "packing", "corpora", "seeds"},
    "pretrain": PRETRAINING,
    "fetch": {"pretrained", "mamba_ssm_format"},
    "finetune": TRAINING | LANGUAGE,
    "sample": {"tasks", "sequences", "seeds"},
    "check_backend": {"kernels", "compiler", "kernel_check", "loop", "checkpoint"},
    "train": TRAINING,
    "record": LANGUAGE | MODEL | {"recording", "states", "behaviour", "balance", "resampling", "tables"},
    "base_probe": PROBING | {"balance"},
    "probe": PROBING,
    "ablate": LANGUAGE | MODEL | EDITING | {"drops", "profiles", "resampling", "tables"},
    "refit": {"refit", "subspaces"} | PROBING - {"probing"},
    "erase": LANGUAGE | {"erasure", "necessity", "profiles", "ablation", "subspaces"} | PROBING - {"probing"} | MODEL,
    "patch": LANGUAGE | {"patching", "tables"} | MODEL,
    "observe": UNITS | {"activity"},
    "find_sets": UNITS | {"activity", "signatures", "unit_sets", "complements", "tables"},
    "intervene": UNITS
    | {"activity", "signatures", "complements", "effects", "effects_job", "unit_cells", "spans", "tables"},
    "teach": UNITS | {"needles", "teaching", "teach_job", "minis", "pretraining", "descent", "memory"},
    "find_needles": UNITS
    | {"activity", "signatures", "complements", "tables", "needles", "teaching", "pretraining", "descent", "memory"}
    | {"retrieval", "retrieval_job", "generation", "statistics"},
    "respond": PROMPTED | {"respond_job", "linearity", "superposition", "propagation", "concentration", "displacement"},
    "invert": PROMPTED | {"invert_job", "inversion"},
    "transfer": PROMPTED | {"transfer_job", "transferring", "linearity"},
    "collect": {"collection", "tables"},
    "derive": {"profiles", "recipes", "tables", "sizes"},
    "judge": JUDGING,
    "plot": SHOWN | JUDGING,
    "scorecard": SHOWN | JUDGING | {"scorecard", "results"},
}


@pytest.fixture(scope="module")
def base(root) -> dict:
    config = settings.read(root / "config.yaml") | {"scale": "smoke", "seeds": 2, "backend": "torch"}
    config["studies"] = ["encoding"]
    language = {"cells": {"mini-mamba": ["parity"], "mamba-130m": ["parity"]}, "seeds": 1}
    edited = {"tasks": ["parity", "dyck"], "architectures": ["mamba"]}
    chosen = {"tasks": ["parity", "s3"], "architectures": ["transformer", "mamba"], "language": language}
    chosen |= {"edited": edited, "extras": config["defaults"]["extras"]}
    return settings.resolve(config) | chosen


def cfgs(configured: dict) -> dict[tuple, str]:
    made = plan.Plan(configured)
    return {(rule, *sorted(w.items())): made.cfg(rule, w) for rule, w in made.jobs()}


def changed(before: dict, after: dict) -> set[tuple]:
    return {job for job in before.keys() | after.keys() if before.get(job) != after.get(job)}


def rules_of(jobs) -> set[str]:
    return {job[0] for job in jobs}


def test_the_snakefile_imports_nothing_heavy():
    modules = imports(canonical.PACKAGE.parents[1] / "rules" / "common.smk")
    assert {"stateatlas.plan", "stateatlas.settings"} <= set(modules)
    program = f"import sys, {', '.join(modules)}; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=canonical.PACKAGE.parent, capture_output=True, check=True)
    assert not HEAVY & set(done.stdout.decode().split())


@pytest.mark.parametrize("rule", plan.RULES)
def test_a_rule_hangs_on_no_more_code_than_it_may(rule, base):
    made = plan.Plan(base | {"studies": ["encoding", "response", "sink"], "backend": "mamba_ssm"})
    jobs = [w for name, w in made.jobs() if name == rule]
    files = {path.relative_to(canonical.PACKAGE.parent).as_posix() for w in jobs for path in made.files(rule, w)}
    print(f"{rule}: {' '.join(sorted(files))}")
    assert f"{rule}.py" in files
    inside = {name.removeprefix("stateatlas/") for name in files if name.startswith("stateatlas/")}
    assert {name.split("/")[0].removesuffix(".py") for name in inside} <= CLOSURES[rule] | COMMON
    assert len(files) - len(inside) == 1


def test_a_task_and_an_architecture_hang_on_their_own_file_alone(base):
    made = plan.Plan(base)
    cell = {"task": "s3", "architecture": "mamba-stock", "seed": "0"}
    names = {path.name for path in made.files("train", cell)}
    assert {"s3.py", "mamba.py"} <= names and not {"parity.py", "dyck.py", "transformer.py", "lstm.py"} & names
    assert not {"s3.py", "parity.py"} & {path.name for path in made.files("ablate", cell)}


def test_no_module_that_a_job_imports_is_missing_from_its_closure(base):
    """Imports every rule's modules for real and asks Python what came in."""
    program = """
import importlib, json, sys
sys.path.insert(0, sys.argv[1])
found = {}
for rule, modules in json.load(sys.stdin).items():
    for name in [name for name in sys.modules if name.split(".")[0] == "stateatlas"]:
        del sys.modules[name]
    for module in modules:
        importlib.import_module(module)
    ours = [m for name, m in sys.modules.items() if name.split(".")[0] == "stateatlas"]
    found[rule] = sorted(m.__file__ for m in ours if m)
print(json.dumps(found))
"""
    made, asked, closures = plan.Plan(base), {}, {}
    for rule, w in made.jobs():
        loaded = [name.removesuffix(".py").replace("/", ".") for name in plan.RULES[rule].modules(base, w)]
        asked[rule] = [*imports(canonical.PACKAGE.parent / f"{rule}.py"), *(f"stateatlas.{name}" for name in loaded)]
        closures[rule] = set(map(str, made.files(rule, w)))
    command = [sys.executable, "-c", program, str(canonical.PACKAGE.parent)]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=True)
    for rule, files in json.loads(done.stdout).items():
        assert set(files) <= closures[rule], rule


def imports(script) -> list[str]:
    """Return what a script imports from the package, inside functions and blocks too."""
    names = []
    for node in ast.walk(ast.parse(script.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module == "stateatlas":
            names += [f"stateatlas.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module.startswith("stateatlas."):
            names.append(node.module)
    return names


def test_the_order_of_keys_changes_nothing(base):
    turned = {key: dict(reversed(value.items())) if isinstance(value, dict) else value for key, value in base.items()}
    assert cfgs(dict(reversed(turned.items()))) == cfgs(base)


def test_a_cfg_is_canonical_json_that_names_its_job(base):
    for (rule, *wildcards), cfg in cfgs(base).items():
        parsed = json.loads(cfg)
        assert canonical.canonical(parsed) == cfg and parsed["rule"] == rule
        assert all(str(parsed[key]) == value for key, value in wildcards)


MADE = {"train", "finetune", "pretrain"}
DOWNSTREAM = {"collect", "derive", "judge", "plot", "scorecard"}
MEASURED = {"record", "probe", "ablate", "refit", "erase", "patch"} | DOWNSTREAM
VALUES = {
    # a change of the settings -> the rules that it makes again
    "bootstrap": ({"bootstrap": 300}, {"base_probe"} | MEASURED),
    "random_draws": ({"random_draws": 3}, {"ablate", "refit", "erase"} | DOWNSTREAM - {"derive"}),
    "subspace_sizes": ({"subspace_sizes": [1, 2]}, {"ablate"} | DOWNSTREAM - {"derive"}),
    "a size that no model has": ({"subspace_sizes": [1, 2, 4, 8, 16, 32, 64], "extras": []}, {"plot", "scorecard"}),
    "threads": ({"threads": 2}, MADE | MEASURED),
    "backend": ({"backend": "compiled"}, MADE | MEASURED),
    "layers": ({"layers": 3}, {"train"} | MEASURED),
    "root_seed": ({"root_seed": 1}, {"sample", "base_probe"} | MADE | MEASURED),
    "length_factors": ({"length_factors": [1, 3]}, {"sample", "train", "finetune", "base_probe"} | MEASURED),
    "gpu": ({"gpu": True}, {"plot", "scorecard"}),
}


@pytest.mark.parametrize(("change", "rules"), VALUES.values(), ids=VALUES)
def test_a_config_value_makes_again_what_needs_it(base, change, rules):
    before = base | {"extras": change.get("extras", base["extras"])}
    assert rules_of(changed(cfgs(before), cfgs(base | change))) == rules


def swapped_betas(s: dict) -> None:
    s["training"]["betas"].reverse()


def swapped_sets(s: dict) -> None:
    s["fit"], s["test"] = s["test"], s["fit"]


def swapped_numbers(s: dict) -> None:
    s["training"]["warmup"], s["training"]["evaluate_every"] = s["training"]["evaluate_every"], s["training"]["warmup"]


@pytest.mark.parametrize(
    ("swap", "rules"),
    [
        (swapped_betas, {"train", "finetune"} | MEASURED),
        (swapped_numbers, {"train"} | MEASURED),
        (swapped_sets, {"sample", "train", "finetune", "base_probe"} | MEASURED),
    ],
)
def test_swapped_values_are_noticed(base, swap, rules):
    start = base | {"fit": 64, "test": 32}
    other = copy.deepcopy(start)
    swap(other)
    assert rules_of(changed(cfgs(start), cfgs(other))) == rules


def test_a_tasks_own_recipe_trains_that_task_alone(base):
    other = base | {"training_by_task": {**base["training_by_task"], "s3": {"learning_rate": 5e-4}}}
    jobs = changed(cfgs(base), cfgs(other))
    assert {dict(job[1:]).get("task") for job in jobs if "train" in job} == {"s3"}


def test_a_seed_more_trains_only_that_seed(base):
    jobs = changed(cfgs(base), cfgs(base | {"seeds": 3}))
    assert rules_of(jobs) == {"train"} | MEASURED
    assert all(("seed", "2") in job for job in jobs if job[0] not in DOWNSTREAM)


def test_a_task_more_trains_only_that_task(base):
    jobs = changed(cfgs(base), cfgs(base | {"tasks": ["parity", "s3", "dyck"]}))
    assert rules_of(jobs) == {"sample", "base_probe", "train"} | MEASURED
    assert all(("task", "dyck") in job for job in jobs if job[0] not in DOWNSTREAM)


def test_an_experiment_more_trains_only_its_own_cells(base):
    jobs = changed(cfgs(base | {"extras": []}), cfgs(base | {"extras": ["attribution"]}))
    assert rules_of(jobs) == {"train", "record"} | DOWNSTREAM
    trained = {(dict(job[1:])["task"], dict(job[1:])["architecture"]) for job in jobs if job[0] == "train"}
    assert trained == {(task, "mamba-noconv") for task in base["attribution"]["tasks"]} | {
        (task, "mamba") for task in base["attribution"]["tasks"] if task not in base["tasks"]
    }


def test_only_the_papers_own_cells_go_on_to_the_cap(base):
    made = plan.Plan(base | {"capped_seeds": 1})
    jobs = {(w["task"], w["architecture"]): json.loads(made.cfg(rule, w)) for rule, w in made.jobs() if rule == "train"}
    to_cap = {cell for cell, cfg in jobs.items() if cfg["to_cap"]}
    assert to_cap == {(task, name) for task in base["tasks"] for name in base["architectures"]}


def test_tasks_on_the_same_strings_draw_them_from_the_same_stream(base):
    made = plan.Plan(base)
    depth, parity = (json.loads(made.cfg("sample", {"task": task})) for task in ("dyck", "dyck-parity"))
    assert depth["strings"] == parity["strings"] == "dyck" and (depth["target"], parity["target"]) == ("", "parity")
    assert {**depth, "task": "", "target": ""} == {**parity, "task": "", "target": ""}


def test_an_architecture_more_trains_only_that_architecture(base):
    jobs = changed(cfgs(base), cfgs(base | {"architectures": ["transformer", "mamba", "mamba-stock"]}))
    assert all(("architecture", "mamba-stock") in job for job in jobs if job[0] not in DOWNSTREAM)


@pytest.mark.parametrize("name", sorted({name for rule in plan.RULES.values() for name in rule.data}))
def test_committed_data_makes_again_what_reads_it(base, name, monkeypatch):
    base = base | {"studies": ["encoding", "response"]}
    known = plan._data_hash
    monkeypatch.setattr(plan, "_data_hash", lambda path: "edited" if path == canonical.ROOT / name else known(path))
    after = cfgs(base)
    monkeypatch.undo()
    readers = {rule for rule, spec in plan.RULES.items() if name in spec.data}
    found = rules_of(changed(cfgs(base), after))
    behind = {"plot", "scorecard"} | ({"collect", "judge"} if name == "data/prompts.yaml" else set())
    assert readers <= found <= readers | behind


def test_what_a_data_folder_holds_counts_and_its_place_does_not(tmp_path):
    for place in ("one", "two"):
        (tmp_path / place / "data" / "deep").mkdir(parents=True)
        (tmp_path / place / "data" / "deep" / "a.csv").write_text("1")
        (tmp_path / place / "data" / ".hidden").write_text(place)
    one, two = tmp_path / "one" / "data", tmp_path / "two" / "data"
    assert (before := plan._data_hash(one)) == plan._data_hash(two)
    (two / "deep" / "a.csv").rename(two / "deep" / "b.csv")
    plan._data_hash.cache_clear()
    assert before != plan._data_hash(two)


def test_every_figure_names_the_tables_that_it_reads():
    for figure in plan.FIGURES:
        assert set(plan.figure_tables(figure)) <= {*plan.TABLES, *plan.DERIVED, "claims"}


def test_no_two_jobs_write_to_one_folder(base):
    folders = [path.parent for _, _, path in plan.Plan(base).expected()]
    assert len(folders) == len(set(folders)) > 40
