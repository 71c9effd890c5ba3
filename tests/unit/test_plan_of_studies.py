"""A study more adds its own jobs and changes no other."""

import json

import test_plan
from test_plan import DOWNSTREAM, cfgs, changed, rules_of

from stateatlas import plan

base = test_plan.base  # a fixture


def test_the_study_of_units_adds_its_own_jobs_and_trains_no_formal_model(base):
    jobs = changed(cfgs(base), cfgs(base | {"studies": ["encoding", "sink"]}))
    own = {"pretrain", "teach", "observe", "find_sets", "intervene", "find_needles"}
    assert rules_of(jobs) == own | DOWNSTREAM - {"derive"}
    assert {dict(job[1:])["model"] for job in jobs if job[0] == "pretrain"} == {"mini-mamba2"}


def test_the_study_of_sources_adds_its_own_jobs_and_trains_no_formal_model(base):
    jobs = changed(cfgs(base), cfgs(base | {"studies": ["encoding", "response"]}))
    assert rules_of(jobs) == {"pretrain", "respond", "invert", "transfer"} | DOWNSTREAM - {"derive"}
    assert {dict(job[1:])["model"] for job in jobs if job[0] == "pretrain"} == set(base["response"]["models"])


def test_a_hub_model_of_study_b_is_fetched_and_asked_on_templates(base):
    chosen = base["response"] | {"models": ["gpt2"], "transfers": []}
    made = plan.Plan(base | {"studies": ["encoding", "response"], "response": chosen})
    assert ("fetch", {"model": "gpt2"}) in made.jobs() and "transfer" not in rules_of(made.jobs())
    assert not {"prompts", "length"} & set(json.loads(made.cfg("respond", {"model": "gpt2"})))


def test_every_cell_that_is_patched_has_pairs_and_only_the_papers_own_are_edited(base):
    tuned = {"cells": {"mini-mamba": ["parity", "dyck"]}, "seeds": 1}
    edited = {"tasks": ["parity", "s3"], "architectures": ["mamba", "gru"]}
    settings = base | {"tasks": ["parity"], "language": tuned, "edited": edited, "extras": ["edited", "language"]}
    made = plan.Plan(settings)
    patched = {(w["task"], w["architecture"]) for rule, w in made.jobs() if rule == "patch"}
    assert patched == {("parity", "mamba"), ("parity", "mini-mamba"), ("dyck", "mini-mamba")}
    for task, _ in patched:
        assert json.loads(made.cfg("sample", {"task": task}))["pairs"] == settings["test"]
