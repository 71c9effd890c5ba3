"""The claims file is checked at the door, and all claims of the protocol are in it."""

import time

import pandas as pd
import pytest
import yaml
from claim_tables import DATA, SCHEMA, frame, judge, judge_own, published, run
from fake_tables import FakeRun

from stateatlas.claims import ClaimError, load_claims
from stateatlas.tables import SCHEMAS
from stateatlas.verdicts import evaluate

ATOM = {
    "table": "profiles",
    "metric": "centre",
    "where": {"task": "parity"},
    "each": {"architecture": ["lstm", "gru"]},
}
CLAIM = {
    "id": "A1",
    "study": "encoding",
    "title": "t",
    "statement": "s",
    "published": {"value": 0.5, "text": "p"},
    "bound": "> 0",
    "margin": None,
    "needs": "n",
    "figure": "f",
    "atoms": [ATOM],
}


def without(key):
    return {name: value for name, value in CLAIM.items() if name != key}


def with_atom(**more):
    return {**CLAIM, "atoms": [{**ATOM, **more}]}


@pytest.mark.parametrize(
    ("entries", "told"),
    [
        ([CLAIM, CLAIM], ["claim A1: id: 'A1' stands twice"]),
        ([without("margin")], ["claim A1: entry: 'margin' is a required property", "add the missing field"]),
        ([without("id")], ["entry 1: entry: 'id' is a required property"]),
        ([{**CLAIM, "id": "1A"}], ["id: '1A' does not match"]),
        ([{**CLAIM, "study": "encodings"}], ["study: 'encodings' is not one of", "did you mean 'encoding'?"]),
        ([{**CLAIM, "titel": "t"}], ["'titel' was unexpected", "did you mean 'title'?"]),
        ([{**CLAIM, "margin": "5 pp"}], ["margin: '5 pp' is not of type", "type number or null"]),
        ([{**CLAIM, "atoms": []}], ["atoms: [] should be non-empty", "list at least one"]),
        ([{**CLAIM, "revision": {"claim": "A21", "text": "t"}}], ["revision.claim: 'A21' is no claim"]),
        (
            [with_atom(table="profile")],
            ["atoms[0].table: 'profile' is not one of", "did you mean 'profiles'?"],
        ),
        ([with_atom(bound="> zero")], ["atoms[0].bound: not a bound: '> zero'", "write a bound such as"]),
        ([{**CLAIM, "bound": "positive"}], ["atoms[0].bound: not a bound: 'positive'"]),
        ([with_atom(bound=0)], ["atoms[0].bound: 0 is not of type 'string'"]),
        (
            [with_atom(where={"taks": "parity"})],
            ["atoms[0].where: table profiles has no column 'taks'", "'task'?"],
        ),
        ([with_atom(mean=["draw"])], ["atoms[0].mean: table profiles has no column 'draw'; known are study"]),
        ([with_atom(where={"architecture": "gru"})], ["atoms[0].each: ['architecture'] stands in where too"]),
        ([with_atom(where={"length": "trainig"})], ["where.length: unknown word 'trainig'", "'training'?"]),
        ([with_atom(each={"site": "longer"})], ["each.site: unknown word 'longer'"]),
        ([with_atom(each={"site": "block"})], ["atoms[0].each.site: 'block' does not match"]),
        ([with_atom(where={"site": "1e0"})], ["atoms[0].where.site: YAML reads '1e0' as text; write 1.0"]),
        ([with_atom(minus={"wher": {}})], ["atoms[0].minus", "did you mean 'where'?"]),
        ([with_atom(minus={"table": "probes"})], ["atoms[0].metric: missing"]),
        ([with_atom(minus={"where": {"k": 1}})], ["atoms[0].minus.where: table profiles has no column 'k'"]),
        ([with_atom(minus={"pairing": "seeds"})], ["atoms[0].minus.pairing: 'seeds' is not one of ['seed']"]),
        ([with_atom(given={"metric": "base"})], ["atoms[0].given: 'bound' is a required property"]),
        (
            [with_atom(nearer={"to": {"tusk": "s3"}, "than": "seeds"})],
            ["atoms[0].nearer.where: table profiles has"],
        ),
        (
            [with_atom(nearer={"to": {"task": "s3"}, "than": "runs"})],
            ["atoms[0].nearer.than: 'runs' does not match"],
        ),
        ([{**CLAIM, "atoms": [{"metric": "centre"}]}], ["atoms[0].table: missing"]),
        ({"A1": CLAIM}, ["is not of type 'array'"]),
        ([], ["[] should be non-empty"]),
        (["A1"], ["entry 1: entry: 'A1' is not of type 'object'"]),
    ],
)
def test_a_mistake_is_named_with_its_place_and_remedy(tmp_path, entries, told):
    path = tmp_path / "claims.yaml"
    path.write_text(yaml.safe_dump(entries))
    with pytest.raises(ClaimError) as caught:
        load_claims(path, SCHEMA, SCHEMAS)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert [part for part in told if part not in message] == []


@pytest.mark.parametrize("content", [b"- id: [", b"\xff\xfe\x00", None])
def test_what_is_no_yaml_is_refused(tmp_path, content):
    path = tmp_path / "claims.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ClaimError, match="not a readable YAML file"):
        load_claims(path, SCHEMA, SCHEMAS)


def test_every_claim_of_the_protocol_is_there_in_order():
    wanted = [f"{study}{k}" for study, count in (("A", 20), ("B", 10), ("C", 9)) for k in range(1, count + 1)]
    assert [claim["id"] for claim in published()] == wanted


def test_id_and_study_come_first():
    for claim in yaml.safe_load(DATA.read_text(encoding="utf-8")):
        assert list(claim)[:2] == ["id", "study"]
        assert list(claim)[-1] == "atoms"


def test_claims_without_their_tables_are_not_evaluable():
    table = evaluate(published(), {}, "laptop")
    whole = table[table["atom"] == -1]
    assert len(whole) == 39
    assert whole["verdict"].str.fullmatch(r"not evaluable \(table \w+ not computed.*\)").all()


def test_atoms_take_from_their_claim_what_they_leave_out(tmp_path):
    rows = [{**run("s3", name, seed), "site": -1, "length": 16, "metric": "centre", "value": 0.5 + seed / 100}
            for name in ("lstm", "gru") for seed in (0, 1)]  # fmt: skip
    tables = {"profiles": frame("profiles", rows)}
    common = {"table": "profiles", "metric": "centre", "where": {"task": "s3"}, "bound": "> 0"}
    atoms = [{"where": {"architecture": "lstm"}}, {"where": {"architecture": "gru"}, "bound": "> 1"}]
    verdict, _, found = judge_own(tmp_path, tables, atoms=atoms, **common)
    assert verdict == "mixed (1 of 2)"
    assert found["bound"].tolist() == ["> 0", "> 1"]
    own_cells = [{"each": {"task": ["s3", "parity"]}, "where": {"architecture": "lstm"}}]
    _, _, found = judge_own(tmp_path, tables, atoms=own_cells, **common)
    assert found.loc["s3, lstm", "verdict"] == "reproduced"
    assert found.loc["parity, lstm", "verdict"] == "not evaluable (no centre in profiles for lstm, parity)"


def test_only_single_seeds_count_unless_asked_for(tmp_path):
    rows = [
        {**run("s3", "lstm", seed), "site": -1, "length": 16, "metric": "centre", "value": float(seed)}
        for seed in (-1, 0, 1)
    ]
    atom = {"table": "profiles", "metric": "centre", "where": {"task": "s3", "architecture": "lstm"}}
    found = judge_own(tmp_path, {"profiles": frame("profiles", rows)}, atoms=[atom])[2]
    assert (found["n"].item(), found["value"].item()) == (2, 0.5)


def test_a_column_that_nobody_named_is_not_averaged_over(tmp_path):
    rows = [{**run("s3", "lstm", seed), "site": site, "length": 16, "metric": "r", "value": 0.5}
            for seed in (0, 1) for site in (1, 2)]  # fmt: skip
    atom = {"table": "profiles", "metric": "r", "where": {"task": "s3", "architecture": "lstm"}}
    with pytest.raises(ClaimError, match="claim A1: table profiles, metric r: site takes several values in one cell"):
        judge_own(tmp_path, {"profiles": frame("profiles", rows)}, atoms=[atom])
    twice = {"profiles": frame("profiles", [row for row in rows if row["site"] == 1] * 2)}
    with pytest.raises(ClaimError, match="rows stand twice"):
        judge_own(tmp_path, twice, atoms=[atom])


def sink(specialist, top_activation, **more):
    common = {**run("-", "mamba2-lm", 0), "study": "sink", "family": "mamba2", "class": "bos", "span": "all"}
    common |= {"corpus": "code", "n": 9, **more}
    rows = [
        {
            **common,
            "intervention": name,
            "metric": metric,
            "value": value,
            "low": value - 0.02,
            "high": value + 0.02,
        }
        for name, metric, value in [
            *((name, "specialist", specialist) for name in ("output_zero", "gate_zero")),
            ("output_zero", "top_activation_minus_four_fifths_specialist", top_activation),
            *((name, "specialist", 0.05) for name in ("delta_zero", "delta_mean", "delta_shift")),
        ]
    ]
    return {"interventions": pd.DataFrame(rows)}


def test_a_claim_about_an_effect_needs_one():
    assert judge("C7", sink(0.05, 0.2))[0] == "not evaluable (no effect)"
    assert judge("C7", sink(2.0, 0.2))[0] == "reproduced"
    assert judge("C7", sink(2.0, -0.2))[0] == "contradicted"


def test_both_surfaces_are_needed_to_compare_them():
    tables = sink(2.0, 0.2)
    assert judge("C8", tables)[0] == "reproduced"
    rows = tables["interventions"]
    only_delta = {"interventions": rows[rows["intervention"] != "output_zero"]}
    assert judge("C8", only_delta)[0].startswith("not evaluable (counts only with")


def test_cells_that_the_table_holds_are_atoms():
    tables = sink(2.0, 0.2)
    two = pd.concat([tables["interventions"], sink(2.0, 0.2, corpus="text")["interventions"]])
    assert list(judge("C7", {"interventions": two})[2].index) == ["mamba2-lm, code", "mamba2-lm, text"]


def test_another_target_another_profile_is_paired_by_seed():
    rows = []
    for task, shift in (("dyck", 0.0), ("dyck-parity", 0.4)):
        for seed in range(3):
            for site in range(1, 5):
                value = 0.1 + 0.01 * seed + shift
                rows.append({**run(task, "gru", seed), "site": site, "length": 16, "metric": "r", "value": value})
            whole = {"site": -1, "length": 16, "metric": "solved", "value": 1.0}
            rows.append({**run(task, "gru", seed), **whole})
    verdict, _, atoms = judge("A19", {"profiles": frame("profiles", rows)})
    assert verdict == "reproduced"
    # Between seeds: pairs .01, .02, .01 apart in both targets.
    assert atoms.loc["dyck, gru", "value"] == pytest.approx(0.4 - 0.04 / 3)
    assert atoms.loc["dyck, lstm", "verdict"] == "not evaluable (dyck, lstm not run)"


def test_all_claims_are_judged_in_seconds():
    tables = FakeRun().tables()
    start = time.process_time()
    table = evaluate(published(), tables, "laptop")
    assert time.process_time() - start < 3
    assert table["verdict"].notna().all()
