"""The claims are read off their tests without importing them, and a build refuses what they cannot carry."""

import json
from pathlib import Path

import jax
import pytest
from _ext import DATA
from _ext.claims import experiments, recording

ROOT = Path(__file__).parents[1]
SOURCE = """
'''Cold things, and how cold.

And more.'''
import nothing_of_that_name
import pytest

@pytest.mark.claim("snow-is-white", "Snow is white.", seeds="S000-01 S001-02")
@pytest.mark.parametrize("x", [1])
@pytest.mark.measured("the weather")
def test_snow(x):
    assert x

@pytest.mark.wrong_twin("snow-is-white")
def test_wrong_twin():
    assert False
"""


def test_a_claim_has_id_sentence_topic_rows_and_code(tmp_path):
    (tmp_path / "test_cold_things.py").write_text(SOURCE)
    ((name, claim),) = experiments.load(tmp_path).items()
    assert (name, claim.sentence, claim.topic) == ("snow-is-white", "Snow is white.", "cold things")
    assert claim.seeds == ("S000-01", "S001-02")
    assert claim.code.startswith(
        '@pytest.mark.parametrize("x", [1])\n@pytest.mark.measured("the weather")\ndef test'
    )
    assert claim.rests_on == "Depends on the machine: the weather."
    assert "wrong_twin" not in claim.code


CONF = """
import sys
from pathlib import Path
sys.path.insert(0, {docs!r})
guide_claims = {folder!r} + "/tests"
guide_claims_data = {folder!r}
project = "small"
extensions = ["myst_nb", "_ext.claims"]
html_theme = "basic"
"""
ROW = {"id": "S000-01", "verdict": "holds", "restated": "Snow is white.", "evidence": "Seen."}
ROW |= {"claims": ["snow-is-white"], "page": "index", "heading": "Its colour"}
PAGES = {
    "index": "# Snow\n\n## Its colour\n\nSnow is white {claim}`snow-is-white`.\n\n"
    "```{toctree}\nabout/claims\nabout/five-tutorials\nabout/what-changed\n```\n",
    "about/claims": "# Claims\n\n```{claims-table}\n```\n",
    "about/five-tutorials": "# Five\n\n```{five-tutorials}\n```\n",
    "about/what-changed": "# Changed\n\n```{recorded} snow-is-white\n```\n\n```{changes}\n```\n",
}


@pytest.fixture
def build(tmp_path, sphinx):
    """Build a small site with one claim; return exit code, what was printed, and the folder of the pages."""

    def run(verdicts="-+", row=ROW, devices=(), **pages):
        (tmp_path / "tests").mkdir()
        (tmp_path / "tests" / "test_cold_things.py").write_text(SOURCE)
        releases = [{"jax": "0.0.1"}, {"jax": jax.__version__}]
        claim = {"verdicts": verdicts, "reasons": {"0.0.1": "assert snow == 'white' – here: 'grey'"}}
        document = {"releases": releases, "claims": {"snow-is-white": claim}}
        if devices:
            document["devices"] = [{**one, "jax": jax.__version__} for one in devices]
            claim["devices"] = "+" * len(devices)
        (tmp_path / "claims.json").write_text(json.dumps(document))
        (tmp_path / "sources.json").write_text(json.dumps([row]))
        source = tmp_path / "docs"
        for name, text in {**PAGES, **pages}.items():
            path = source / f"{name}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (source / "conf.py").write_text(CONF.format(docs=str(ROOT / "docs"), folder=str(tmp_path)))
        code, printed = sphinx("-n", "-W", "--keep-going", "-q", source, tmp_path / "out")
        return code, printed, tmp_path / "out"

    return run


def test_each_file_of_claims_has_a_short_title_of_its_own():
    titles = [experiments.title_of(path) for path in sorted(experiments.FOLDER.glob("test_*.py"))]
    assert len(titles) == len(set(titles)) > 80
    assert max(map(len, titles)) <= 70


@pytest.mark.slow
def test_a_good_site_shows_the_claim_its_releases_and_its_citations(build):
    code, printed, out = build()
    assert code == 0, printed
    index, page = (out / "index.html").read_text(), (out / "about" / "claims.html").read_text()
    topic = (out / "about" / "claims-cold-things.html").read_text()
    assert 'href="about/claims-cold-things.html#claim-snow-is-white"' in index
    assert f"Proved: Snow is white. Seen to hold on JAX {jax.__version__} (1 of 2 releases tried)." in index
    assert "Snow is white<a" in index  # no space at which the mark could begin a line
    assert 'id="claim-snow-is-white" data-verdicts="-+"' in page
    assert 'id="claim-snow-is-white" data-verdicts="-+"' in topic
    assert 'href="claims-cold-things.html#claim-snow-is-white"' in page  # the list leads to the experiments
    assert "<h2>Cold things, and how cold<" in page
    assert "Cold things, and how cold: claims and their experiments" in topic
    assert "assert x" not in page
    assert "✗ does not hold" in topic
    assert "Cited in" in topic
    assert 'href="five-tutorials.html#row-S000-01"' in topic
    assert "GuideProofs.take" in (out / "_static" / "claims" / "snow-is-white.js").read_text()
    assert 'href="../index.html#its-colour"' in (out / "about" / "five-tutorials.html").read_text()
    assert "compared with 0.0.1" in (out / "about" / "what-changed.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdicts": "+-"}, f"the claim 'snow-is-white' was recorded to fail on JAX {jax.__version__}."),
        ({"index": PAGES["index"].replace("snow-is-white", "no-such")}, "index.md:5: WARNING: unknown claim 'no-such'"),
        ({"row": {**ROW, "heading": "Rain"}}, "row S000-01 of sources.json: there is no heading 'Rain' in 'index'."),
        (
            {"row": {**ROW, "claims": []}, "index": PAGES["index"].replace(" {claim}`snow-is-white`", ""),
             "about/what-changed": "# Changed\n"},
            "no page cites the claim 'snow-is-white' of test_cold_things.py",
        ),
    ],
    ids=["fails on this JAX", "unknown", "dead heading", "cited nowhere"],
)  # fmt: skip
def test_a_claim_that_cannot_stand_fails_the_build(build, change, message):
    code, printed, _ = build(**change)
    assert code != 0
    assert message in printed


@pytest.mark.slow
def test_the_mark_of_a_claim_that_was_only_compiled_for_a_tpu_says_so(build):
    code, printed, out = build("00", devices=[{"device": "the TPU v5e compiler, nothing run", "count": 1}])
    assert code == 0, printed
    said = f"Seen to hold on the TPU v5e compiler, nothing run (JAX {jax.__version__})."
    for page in ("index.html", "about/claims.html", "_static/claims/snow-is-white.js"):
        assert said in (out / page).read_text(), page
    assert "Not applicable on the 2 releases tried" in (out / "index.html").read_text()


def test_the_recording_of_the_project_knows_every_claim():
    missing = set(experiments.load()) - set(recording.load(DATA / recording.CLAIMS).verdicts)
    assert not missing, f"not recorded: {sorted(missing)}; run `nox -s versions`"
