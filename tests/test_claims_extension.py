"""The claims are read off their tests without importing them."""

from _ext import claims

SOURCE = '''
import nothing_of_that_name
import pytest

@pytest.mark.claim("snow-is-white", "Snow is white.", seeds="S000-01")
@pytest.mark.parametrize("x", [1])
def test_snow(x):
    assert x

@pytest.mark.wrong_twin("snow-is-white")
def test_wrong_twin():
    assert False
'''


def test_a_claim_has_id_sentence_topic_and_code(tmp_path):
    (tmp_path / "test_cold_things.py").write_text(SOURCE)
    ((name, claim),) = claims.load(tmp_path).items()
    assert (name, claim.sentence, claim.topic) == ("snow-is-white", "Snow is white.", "cold things")
    assert claim.code.startswith("def test_snow(x):")
    assert "wrong_twin" not in claim.code
