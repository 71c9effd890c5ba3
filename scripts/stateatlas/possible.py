"""What settings of the right type can still get wrong: names without a file, and values that do not fit together.

What a check needs to know about a task or an architecture is read from the literals in its file: importing it
would import numpy or torch into the Snakefile.
"""

import difflib
from collections.abc import Iterator
from pathlib import Path

from stateatlas import experiments
from stateatlas.canonical import PACKAGE
from stateatlas.interventions import OF_STATE_SPACE
from stateatlas.literals import literal, modules
from stateatlas.sizes import CHANGE, FORMS, architecture, lengths, per_task, recipe, task_parts

LISTED = 20  # names in a message
WITHOUT_ESSAY = ("niah_single_1", "niah_multikey_2", "niah_multikey_3")  # tasks of RULER
REFERENCE = "transformer"  # what the others' parameters are matched to: it is its own stock form

Problem = tuple[list, str]  # the setting's path, and the remedy


def problems(settings: dict) -> Iterator[Problem]:
    """Yield what is wrong with complete settings of the right types; each check relies on those before it."""
    files = modules("tasks", "Task"), modules("blocks", "Mixer")
    yield from _corpora(settings)
    for experiment in ("", *settings["extras"]):
        if experiment == "language":
            yield from _language(settings, files[0])
        else:
            yield from _names(settings, experiment, *files)
    if "encoding" not in settings["studies"]:
        yield ["studies"], "encoding must be one of them: add it (`./reproduce sink` makes what study C measures alone)"
    if "sink" in settings["studies"]:
        yield from _sink(settings)
    if "response" in settings["studies"]:
        yield from _response(settings)
    for task in experiments.tasks(settings):
        yield from _lengths(settings, task, files)
        yield from _sequences(settings, task, files[0])
        yield from _recipe(settings, task)
    yield from _model(settings, files[1])


def nearest(name: object, known: list) -> str:
    """Return the remedy for a wrong name."""
    names = list(map(str, known))
    match = difflib.get_close_matches(str(name), names, n=1, cutoff=0.5)
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return f"did you mean {match[0]}?" if match else f"known are {', '.join(names[:LISTED])}{more}"


def _names(settings: dict, experiment: str, tasks: dict[str, Path], blocks: dict[str, Path]) -> Iterator[Problem]:
    """Check the tasks and architectures of an experiment, "" for those at the top."""
    part, place = (settings[experiment], [experiment]) if experiment else (settings, [])
    for key in ("tasks", "architectures", *(("embedding_std", "learning_rate") if experiment == "recipes" else ())):
        if key not in part:
            yield [experiment], f"{key} is not set: add it"
    known = _all_tasks(tasks)
    for task in part["tasks"]:
        if task not in known:
            yield [*place, "tasks"], f"there is no task {task}: {nearest(task, known)}"
    yield from _per_task(settings, part["tasks"], known)
    for name in part["architectures"]:
        yield from (([*place, "architectures"], remedy) for remedy in _architecture(name, blocks))


def _corpora(settings: dict) -> Iterator[Problem]:
    sources = modules("corpora", "documents")
    for name, corpus in settings["corpora"].items():
        if corpus["source"] not in sources:
            yield ["corpora", name, "source"], f"there is no such source: {nearest(corpus['source'], list(sources))}"
        elif missing := _missing(corpus, of_interpreter=literal(sources[corpus["source"]], "of_interpreter")):
            yield ["corpora", name], f"{' and '.join(missing)} is missing: name a data set and its commit, or files"
        for i, file in enumerate(corpus.get("files", ())):
            if not Path(file).is_file():
                yield ["corpora", name, "files", i], "there is no such file"


def _missing(corpus: dict, *, of_interpreter: bool) -> list[str]:
    """What a corpus lacks that is neither the interpreter's nor in files."""
    given = of_interpreter or "files" in corpus
    return [] if given else [key for key in ("name", "revision") if key not in corpus]


def _all_tasks(files: dict[str, Path]) -> list[str]:
    others = {name: literal(file, "other_targets") or () for name, file in files.items()}
    return [name for task, targets in others.items() for name in (task, *(f"{task}-{target}" for target in targets))]


def _sink(settings: dict) -> Iterator[Problem]:
    chosen, models, units = settings["sink"], settings["language_models"], list(modules("units", "observe"))
    for i, name in enumerate(chosen["models"]):
        if name not in models:
            yield ["sink", "models", i], f"there is no language model {name}: {nearest(name, list(models))}"
        yield from _brought(name, models[name])
        if (family := models[name]["family"]) not in units:
            yield ["sink", "models", i], f"there are no units of {family}: choose a model of {', '.join(units)}"
    for i, name in enumerate(chosen["corpora"]):
        if name not in settings["corpora"]:
            yield ["sink", "corpora", i], f"there is no corpus {name}: {nearest(name, list(settings['corpora']))}"
    yield from _needles(settings)
    if chosen["observed"] < chosen["groups"]:
        yield ["sink", "observed"], "there must be a window for every one of sink.groups: raise it"


def _response(settings: dict) -> Iterator[Problem]:
    chosen, models = settings["response"], settings["language_models"]
    for i, name in enumerate(chosen["models"]):
        if name not in models:
            yield ["response", "models", i], f"there is no language model {name}: {nearest(name, list(models))}"
        yield from _brought(name, models[name])
    for i, pair in enumerate(chosen["transfers"]):
        for name in pair:
            if name not in chosen["models"]:
                known = nearest(name, chosen["models"])
                yield ["response", "transfers", i], f"{name} must be one of response.models: {known}"
        if len({models[name]["family"] for name in pair}) > 1:
            yield ["response", "transfers", i], "both must be of one family: they have to read the same tokens"
        if pair[1] in [other[1] for other in chosen["transfers"][:i]]:
            yield ["response", "transfers", i], f"{pair[1]} is predicted twice: take one out"
    if max(chosen["anchors"]) > chosen["length"]:
        yield ["response", "anchors"], f"at most response.length, {chosen['length']}: the other sites are predicted"


def _needles(settings: dict) -> Iterator[Problem]:
    chosen, teaching, models = settings["sink"]["needles"], settings["sink"]["teaching"], settings["language_models"]
    for i, name in enumerate(chosen["models"]):
        if name not in settings["sink"]["models"]:
            known = settings["sink"]["models"]
            yield ["sink", "needles", "models", i], f"it must be one of sink.models: {nearest(name, known)}"
        elif chosen["intervention"] in OF_STATE_SPACE and not models[name]["family"].startswith("mamba"):
            yield ["sink", "needles", "models", i], f"{chosen['intervention']} has no meaning for it: take output_zero"
    if chosen["corpus"] not in settings["sink"]["corpora"]:
        yield ["sink", "needles", "corpus"], f"it must be one of sink.corpora: {', '.join(settings['sink']['corpora'])}"
    if chosen["variant"] not in WITHOUT_ESSAY and not Path(chosen["essay"]).is_file():
        yield ["sink", "needles", "essay"], f"{chosen['variant']} needs a text file: give its path"
    if teaching["stages"] != sorted(teaching["stages"]):
        yield ["sink", "teaching", "stages"], "every stage must be at least as long as the one before: sort them"
    if teaching["cooldown"] > teaching["steps"]:
        yield ["sink", "teaching", "cooldown"], f"at most the steps, {teaching['steps']}"


def _language(settings: dict, tasks: dict[str, Path]) -> Iterator[Problem]:
    models, known = settings["language_models"], _all_tasks(tasks)
    for name, chosen in settings["language"]["cells"].items():
        place = ["language", "cells", name]
        if name not in models:
            yield place, f"there is no language model {name}: {nearest(name, list(models))}"
        for task in chosen:
            if task not in known:
                yield place, f"there is no task {task}: {nearest(task, known)}"
        yield from _brought(name, models[name])
    for name in settings["pretraining_corpora"]:
        if name not in settings["corpora"]:
            yield ["pretraining_corpora"], f"there is no corpus {name}: {nearest(name, list(settings['corpora']))}"


def _brought(name: str, model: dict) -> Iterator[Problem]:
    """Check where a language model comes from."""
    if ("mini" in model) == ("place" in model):
        yield ["language_models", name], "it needs either mini, to be trained here, or place, to be fetched"
    if "place" in model and "revision" not in model and not Path(model["place"]).is_dir():
        yield ["language_models", name, "place"], "no such directory; a hub id needs a revision, its commit"


def _per_task(settings: dict, tasks: list[str], known: list[str]) -> Iterator[Problem]:
    for key in ("train_length", "steps", "training_by_task"):
        names = known if key == "training_by_task" else ["default", *known]
        for name in settings[key]:
            if name not in names:
                yield [key, name], f"there is no task {name}: {nearest(name, names)}"
    for key in ("train_length", "steps"):
        for task in tasks:
            if per_task(settings[key], task) is None:
                yield [key], f"it names neither {task} nor default: add one"


def _architecture(name: str, known: dict[str, Path]) -> Iterator[str]:
    """Yield what is wrong with an architecture's name."""
    module, *suffixes = name.split("-")
    if module not in known or any(suffix not in FORMS and not CHANGE.fullmatch(suffix) for suffix in suffixes):
        names = [*known, *(f"{block}-{suffix}" for block in known for suffix in FORMS)]
        yield f"there is no architecture {name}: {nearest(name, names)}"
    elif "nope" in suffixes and not literal(known[module], "positions"):
        yield f"{module} has no positions that {name} could leave out: write {module}"
    elif "noconv" in suffixes and not literal(known[module], "conv_size"):
        yield f"{module} has no convolution that {name} could leave out: write {module}"
    elif "stock" in suffixes and module == REFERENCE:
        yield f"{module} is its own stock form: write {module}"


def _lengths(settings: dict, task: str, files: tuple[dict[str, Path], dict[str, Path]]) -> Iterator[Problem]:
    length = per_task(settings["train_length"], task)
    least = literal(files[0][task_parts(task)[0]], "min_length") or 1
    if length < least:
        yield _of_task("train_length", settings, task), f"{task} needs at least {least} tokens"
    if len({round(length * factor) for factor in settings["length_factors"]}) < len(settings["length_factors"]):
        yield ["length_factors"], f"two of them give {task} the same length: take one out"
    positions, longest = literal(PACKAGE / "residual.py", "POSITIONS"), lengths(settings, task)[-1]
    for name in experiments.architectures(settings, "train"):
        module, form = architecture(name)
        if form.get("positions", literal(files[1][module], "positions")) and longest > positions:
            reason = f"{task} would be {longest} tokens long, but {name} has {positions} positions"
            yield ["length_factors"], f"{reason}: lower them or train_length"


def _sequences(settings: dict, task: str, files: dict[str, Path]) -> Iterator[Problem]:
    """Half of all strings at least must be left: training draws what is in no held-out set."""
    vocabulary = literal(files[task_parts(task)[0]], "vocabulary")
    trained = per_task(settings["train_length"], task)
    for length in lengths(settings, task) if vocabulary else []:
        splits = ("validation", "fit", "test") if length == trained else ("fit", "test")
        asked, most = sum(settings[split] for split in splits), vocabulary**length // 2
        if asked > most:
            largest = max(splits, key=settings.get)
            reason = f"{', '.join(splits)} are {asked} sequences in all; {task} at length {length} has room for {most}"
            yield [largest], f"{reason}: lower them or raise train_length"


def _recipe(settings: dict, task: str) -> Iterator[Problem]:
    chosen, steps = recipe(settings, task, ""), per_task(settings["steps"], task)
    bounds = {
        "curriculum": (per_task(settings["train_length"], task), "train_length"),
        "evaluate_every": (steps, "steps"),
        "warmup": (steps, "steps"),
    }
    for key, (most, name) in bounds.items():
        if chosen[key] > most:
            own = key in settings["training_by_task"].get(task, {})
            path = ["training_by_task", task, key] if own else ["training", key]
            yield path, f"at most the {name} of {task}, {most}"


def _model(settings: dict, blocks: dict[str, Path]) -> Iterator[Problem]:
    width = settings["width"]
    for name in experiments.architectures(settings, "train"):
        heads = literal(blocks[architecture(name)[0]], "heads")
        if isinstance(heads, int) and width % heads:
            yield ["width"], f"a multiple of the {heads} heads of {name} is needed"
    if settings["layers"] > width:
        yield ["layers"], f"at most the width, {width}: more leave no parameters to match architectures with"
    if all(size > width / 2 for size in settings["subspace_sizes"]):
        yield ["subspace_sizes"], f"at least one of at most half the width, {width // 2}, is needed"


def _of_task(key: str, settings: dict, task: str) -> list:
    return [key, next(name for name in (task, task_parts(task)[0], "default") if name in settings[key])]
