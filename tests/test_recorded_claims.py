"""A claim that is recorded on this JAX is left out of a plain run, until its experiment changes."""

import json
import sys
import types
from pathlib import Path

import jax
import pytest

sys.path.append(str(Path(__file__).parent / "claims"))
import recorded

DIGESTS = {"snow": "aaaaaaaa-1", "rain": "bbbbbbbb-1", "ice": "cccccccc-1", "fog": "dddddddd-1"}


@pytest.fixture(autouse=True)
def document(tmp_path, monkeypatch):
    """Snow holds, rain does not, the experiment of ice has changed, and fog is not recorded."""
    found = {
        "releases": [{"jax": "0.4.30"}, {"jax": jax.__version__}],
        "claims": {
            "snow": {"verdicts": "-+", "digest": "aaaaaaaa"},
            "rain": {"verdicts": "+-", "digest": "bbbbbbbb"},
            "ice": {"verdicts": "++", "digest": "c0c0c0c0"},
        },
    }
    monkeypatch.setattr(recorded, "_DATA", tmp_path / "claims.json")
    monkeypatch.setattr(recorded, "digests_of_all", lambda: DIGESTS)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    recorded._DATA.write_text(json.dumps(found), "utf-8")


def test_only_what_holds_on_this_jax_and_has_not_changed_is_left_out():
    assert recorded.current() == {"snow"}


def test_on_another_jax_or_backend_all_run(monkeypatch):
    with monkeypatch.context() as other:
        other.setattr(jax, "__version__", "99.0")
        assert recorded.current() == set()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert recorded.current() == set()


def item(marker=None, *args):
    found = types.SimpleNamespace(args=args)
    return types.SimpleNamespace(get_closest_marker=lambda name: found if name == marker else None)


def test_a_wrong_twin_goes_with_its_claim_and_other_tests_stay():
    snow, twin, rain, plain = (
        item("claim", "snow", "S."),
        item("wrong_twin", "snow"),
        item("claim", "rain"),
        item(),
    )
    assert recorded.split([snow, plain, twin, rain]) == ([plain, rain], [snow, twin])
