"""The scorecard: one page with everything inside, that says plainly what holds and what does not."""

import html
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest
import yaml
from fake_claims import fake_claims, fake_entries
from fake_runs import whole_run
from fake_tables import COLUMNS, FakeRun, fake_settings

from stateatlas import results, scorecard
from stateatlas.names import label, spelled
from stateatlas.settings import resolve

ROOT = Path(__file__).parents[2]
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415408d763f8ffff3f0005fe02fea735d2b80000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def published():
    return yaml.safe_load((ROOT / "data" / "published.yaml").read_text())


@pytest.fixture(scope="module")
def run_tables():
    return FakeRun().tables()


@pytest.fixture
def page(run_tables, published, tmp_path):
    """Render with some arguments replaced."""
    png, svg = tmp_path / "strips.png", tmp_path / "profiles.svg"
    png.write_bytes(PIXEL)
    svg.write_text('<svg xmlns="http://www.w3.org/2000/svg"><g id="figure_1"/></svg>')

    def render(**other):
        known = {
            "figures": {"strips": png, "profiles": svg},
            "captions": {"strips": "**Bold** & <b>not</b> ``code``.\n\nSecond.", "profiles": ""},
            "tables": run_tables,
            "reference": {},
            "settings": fake_settings(published=published, width=64, random_draws=5),
            "run": {"versions": {"torch": "2.13.0"}, "seconds": 1040},
            "assumptions": yaml.safe_load((ROOT / "data" / "assumptions.yaml").read_text()),
            "template": ROOT / "report" / "scorecard.html.j2",
        }
        claims, entries = other.pop("claims", fake_claims()), other.pop("entries", fake_entries())
        return scorecard.render(claims, entries, **{**known, **other})

    return render


class Page(HTMLParser):
    """Collects ids, link targets and image sources, and checks that elements are closed in order."""

    def __init__(self, text):
        super().__init__()
        self.ids, self.targets, self.sources, self.open = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.ids += [values["id"]] if "id" in values else []
        self.targets += [values["href"]] if "href" in values else []
        self.sources += [values["src"]] if "src" in values else []
        if tag not in ("meta", "img", "br", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def words(text: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text)).split())


def row_of(text: str, claim: str) -> str:
    start = text.index(f'<th scope="row"><a href="#claim-{claim}">')
    return words(text[start : text.index("</tr>", start)])


def test_the_page_is_whole_and_fetches_nothing(page):
    text = page()
    parsed = Page(text)
    assert parsed.open == []
    assert len(parsed.ids) == len(set(parsed.ids))
    assert all(source.startswith("data:image/") for source in parsed.sources)
    assert all(target[1:] in parsed.ids for target in parsed.targets)
    assert "<script" not in text
    assert not re.search(r"(src|href)=\"(https?:)?//", text)
    assert "url(" not in text


def test_the_same_input_gives_the_same_page(page):
    assert page() == page()


@pytest.mark.parametrize(
    ("claim", "symbol", "verdict"),
    [
        ("A1", "✓", "reproduced"),
        ("A4", "✗", "contradicted"),
        ("A5", "◐", "mixed (9 of 12)"),
        ("A2", "?", "inconclusive"),
        ("A13", "≡", "by construction"),
        ("A6", "–", "not evaluable (1 of 3 solved, needs 2)"),
    ],
)
def test_every_verdict_has_a_symbol_and_a_word(page, claim, symbol, verdict):
    assert f"{symbol} {verdict}" in row_of(page(), claim)


def test_a_claim_shows_paper_value_interval_and_the_word_descriptive(page):
    row = row_of(page(), "A2")
    assert "concentration .44" in row
    assert "0.550 [0.400, 0.700] descriptive" in row


def test_with_five_seeds_an_interval_is_not_descriptive(page):
    claims = fake_claims().assign(n=5)
    assert "descriptive" not in row_of(page(claims=claims), "A2")


def test_a_claim_of_few_atoms_lists_them_and_one_of_many_is_summed_up(page):
    text = page()
    assert "Parity, Mamba-2 −0.120 [−0.200, −0.040]" in row_of(text, "A4")
    assert "late rise margin > 0: 9 reproduced; 3 inconclusive 0.000 to 0.080" in row_of(text, "A5")


def test_the_control_from_the_revision_stands_beside_the_claim(page):
    text = page()
    assert "does a refitted probe recover A15 : ✓ reproduced" in row_of(text, "A9")
    assert "A20 : not part of this run" in row_of(text, "A1")


def test_all_atoms_are_on_the_page(page):
    text = page()
    start = text.index('<details id="claim-A5">')
    assert text[start : text.index("</details>", start)].count('<th scope="row">') == 12


def test_what_the_run_cannot_judge_stands_with_what_it_needs(page, published):
    text = page(settings=fake_settings(published=published, extras=[]))
    later = words(text[text.index('<section id="later">') :])
    for claim, needs in (("A10", "Mamba without it"), ("A20", "the recipe grid"), ("C1", "language models")):
        assert claim in later
        assert needs in later
    assert 'href="#claim-A10"' not in text


def test_text_is_escaped(page):
    text = page()
    assert "&lt;Transformer&gt;" in text
    assert "<strong>Bold</strong> &amp; &lt;b&gt;not&lt;/b&gt; <code>code</code>." in text


def test_solve_rates_and_every_seed_are_shown(page):
    text = words(page())
    assert "2 of 3 [21, 94] %" in text
    assert "position + token" in text


def test_the_main_table_of_solve_rates_has_the_papers_own_cells_and_the_others_stand_apart():
    behaviour, profiles = (whole_run()[name] for name in ("behaviour", "profiles"))
    settings = fake_settings()
    own = results.solve_rates(behaviour, profiles, settings["tasks"], settings["architectures"])
    assert own["header"] == ["", "Parity", "S3", "Dyck"]
    assert [row[0] for row in own["rows"]] == ["Mamba", "Transformer", "Mamba-2", "LSTM", "GRU"]
    held_out, variants, recipes = results.more_solve_rates(behaviour, profiles, settings)
    assert held_out["header"] == ["", "Mod-3", "Z6", "Queue", "Dyck parity"]
    assert [row[0] for row in variants["rows"]] == ["Mamba conv-free"]
    assert variants["rows"][0][1]["main"] == "6 of 6"
    assert [row[0] for row in recipes["rows"]] == [
        f"{name} std {std}" for name in ("LSTM", "Mamba", "Transformer") for std in ("0.02", "1")
    ]
    assert recipes["rows"][1][1]["main"] == "2 of 3"


def test_a_run_of_the_papers_own_cells_has_one_table_of_solve_rates(page, run_tables):
    assert results.more_solve_rates(run_tables["behaviour"], run_tables["profiles"], fake_settings()) == []
    assert "what stands beside these" not in page()


def test_the_accuracy_tables_leave_out_what_stands_beside_the_papers_cells(page):
    text = page(tables=whole_run())
    Page(text)
    assert "held-out tasks, variants of an architecture, other recipes" in text
    titles = re.findall(r"<h3>(.*?)</h3>", text[text.index("</details>", text.index('id="accuracy"')) :])
    assert titles == 2 * ["Parity", "S3", "Dyck"]  # the models' own accuracy, then their probes'


@pytest.mark.parametrize(
    ("name", "printed"),
    [("mamba-noconv", "Mamba conv-free"), ("lstm-std0.02-lr2", "LSTM std 0.02 lr 2"), ("dyck-parity", "Dyck parity")],
)
def test_names_of_variants_are_printed_in_words(name, printed):
    assert label(name) == printed


def test_words_that_are_no_names_keep_their_hyphens():
    assert (
        spelled("conv-free - full, mamba-noconv, top_direction") == "conv-free - full, Mamba conv-free, top direction"
    )


def test_the_reference_run_stands_beside_the_paper(page):
    reference = FakeRun(length=40, tasks=("parity",), architectures=("mamba",)).tables()
    text = words(page(reference=reference))
    assert re.search(r"Parity Mamba 3 of 3 5[45]\.\d paper 55", text)
    assert "Not run: Transformer on Parity, Mamba on Dyck, Transformer on Dyck." in text
    assert "There is no reference run in this copy" in words(page())


def test_smaller_sizes_than_the_protocols_are_listed(published):
    settings = fake_settings(random_draws=5, width=128, steps={"default": 4000, "s3": 20_000}, length_factors=[1, 2])
    found = {row["name"]: (row["protocol"], row["ours"]) for row in results.sizes(settings)}
    assert found["random subspaces of each size"] == (20, "5")
    assert found["cap on training steps"] == (20_000, "Parity 4000, S3 20000, Dyck 4000")
    assert found["evaluation lengths"] == (5, "2")
    assert "width of the residual stream" not in found


def test_assumptions_are_listed(page):
    entries = yaml.safe_load((ROOT / "data" / "assumptions.yaml").read_text())
    assert all(set(entry) == {"point", "choice"} for entry in entries)
    text = words(page())
    assert all(entry["point"] in text for entry in entries)


def test_every_claim_of_the_formal_half_can_be_judged_with_its_tables():
    path = ROOT / "data" / "claims.yaml"
    tables = dict.fromkeys(COLUMNS)
    judged = [c["id"] for c in yaml.safe_load(path.read_text()) if scorecard.in_run(c, tables, fake_settings())]
    formal = [f"A{n}" for n in range(1, 21) if n != 14]  # Code-Depth is not in these settings
    assert [name for name in judged if name[0] == "A"] == formal
    others = [*(f"B{n}" for n in range(1, 11)), *(f"C{n}" for n in range(1, 10))]
    assert [name for name in judged if name[0] != "A"] == others


def test_a_run_without_held_out_tasks_says_nothing_on_their_claims():
    entries = {c["id"]: c for c in yaml.safe_load((ROOT / "data" / "claims.yaml").read_text())}
    tables, few = dict.fromkeys(COLUMNS), fake_settings(held_out={"tasks": ["queue"], "architectures": ["lstm"]})
    assert scorecard.in_run(entries["A18"], tables, fake_settings())
    assert scorecard.in_run(entries["A18"], tables, few)
    assert not scorecard.in_run(entries["A18"], tables, fake_settings(extras=[]))
    assert not scorecard.in_run(entries["A10"], tables, fake_settings(extras=["held_out"]))


def test_an_unknown_verdict_is_refused(page):
    with pytest.raises(ValueError, match="unknown verdict 'confirmed'"):
        page(claims=fake_claims().replace({"verdict": {"reproduced": "confirmed"}}))


def test_a_claim_without_a_row_in_sum_is_refused(page):
    claims = fake_claims()
    with pytest.raises(ValueError, match="claim A2 has 0 rows with atom -1"):
        page(claims=claims[~((claims["claim"] == "A2") & (claims["atom"] == -1))])


@pytest.mark.parametrize(("seconds", "text"), [(50, "50 seconds"), (1040, "17 minutes"), (12600, "3.5 hours")])
def test_durations_are_read_at_a_glance(seconds, text):
    assert scorecard.duration(seconds) == text


def test_numbers_have_a_true_minus_and_no_negative_zero():
    assert [scorecard.number(x) for x in (-0.25, -0.0001, 1.0)] == ["−0.250", "0.000", "1.000"]


def test_minis_stand_beside_the_bigram_model_and_a_poor_one_is_marked():
    ends = {"test_nats": 3.5, "bigram_test_nats": 3.9, "gain": 0.4, "good_enough": 1.0}
    poor = ends | {"test_nats": 3.8, "gain": 0.1, "good_enough": 0.0}
    rows = [
        {"model": name, "step": 9, "metric": f"final_{key}", "value": value}
        for name, losses in (("mini-mamba", ends), ("mini-gpt-neox", poor))
        for key, value in losses.items()
    ]
    neox, mamba = results.minis(pd.DataFrame(rows))["rows"]
    assert [cell["main"] for cell in mamba[2:]] == ["3.50", "3.90", "0.40"] and not mamba[-1]["warn"]
    assert neox[0] == "mini GPT-NeoX" and neox[-1]["warn"] and "not good enough" in neox[-1]["small"]


def test_what_a_scale_leaves_out_of_the_other_experiments_is_said():
    said = {row["name"]: row["ours"] for row in results.narrower(fake_settings(extras=["held_out", "recipes"]))}
    assert said["architectures: held-out tasks and targets"] == "Mamba, Transformer, LSTM"
    assert said["erased from and patched"] == "no" and said["learning rates of the recipe grid"] == 1
    laptop = resolve(yaml.safe_load((ROOT / "config.yaml").read_text()))
    said = {row["name"]: row["ours"] for row in results.narrower(laptop)}
    assert said["held-out tasks and targets"] == "Mod-3, Queue, Dyck parity, Code-Depth"
    assert said["tasks that language models are tuned on"] == "Parity, Dyck"
    assert said["initial scales of the embedding of the recipe grid"] == 2
