"""Claims that seem to say the opposite of each other: found by their words, and reconciled one by one.

A pair is suspect when one sentence has an outcome and the other its opposite, and half of the shorter one's words are
in the other too. The check is coarse: it finds about half of the contradictions that a reader found, and it asks for
a reason where two sentences only look alike.
"""

import itertools
import re

from _ext.claims import experiments

# An outcome and its opposite.
OPPOSITES = [
    (
        r"\b(raises?|refused?|refuses|fails?)\b",
        r"\b(without an error|accepted|works?|silently|taken|unified)\b",
    ),
    (r"\bwarns?\b|`UserWarning`", r"without a warning|silent"),
    (
        r"traces? (and compiles? )?again|retraces",
        r"(does|do) not trace|keeps? the trace|one trace|is not part of the key|traces? once",
    ),
]
STOP = set(
    re.findall(
        r"\w+",
        "a an the of is are it its that which and or not in to by with for on under be as at one two if same than from",
    )
)

GRAD = "`grad` alone knows the value, jit and `vmap` and `pmap` do not"
KEY = "what is in the key, and what has a lower program of its own"
RECONCILED = {
    (
        "python-number-carry-is-promoted",
        "python-carry-is-promoted",
    ): "an integer becomes a float, not the reverse",
    ("int-branch-is-not-unified-with-float", "unlike-branch-numbers-are-unified"): "an integer, and a float",
    ("float64-request-warns-and-gives-float32", "seeds-above-32-bits-are-truncated"): "a dtype, and a seed",
    (
        "float64-request-warns-and-gives-float32",
        "unsigned-plus-signed-needs-64-bits",
    ): "a request, and a promotion",
    ("if-on-a-traced-value-raises", "broad-except-hides-a-tracer-error"): "the second catches what is raised",
    ("clear-caches-forgets-all", "outer-jit-reuses-the-inner-trace"): "after clearing, and without",
    ("clear-cache-reads-the-new-global", "make-jaxpr-and-call-share-a-trace"): "after clearing, and without",
    (
        "in-shardings-over-several-devices-must-match",
        "in-shardings-move-silently",
    ): "several devices, and one",
    (
        "compiled-moves-uncommitted-arrays",
        "in-shardings-move-silently",
    ): "a compiled function has no `in_shardings` to follow",
    ("committed-devices-must-agree", "in-shardings-move-silently"): "the first says: without `in_shardings`",
    (
        "committed-devices-must-agree",
        "work-follows-the-committed-argument",
    ): "two committed arguments, and one",
    (
        "unusable-donation-warns",
        "split-array-is-refused-for-donation-without-a-warning",
    ): "the first is of one device, and says itself that JAX does not warn of a split array",
    **dict.fromkeys(
        [
            (no, "grad-lets-python-branch")
            for no in (
                "if-on-a-traced-value-raises",
                "vmap-has-no-single-value",
                "pmap-branch-on-value-raises",
            )
        ],
        GRAD,
    ),
    **dict.fromkeys(
        itertools.product(
            ["tree-structure-retraces", "new-dtype-retraces", "sharded-argument-retraces"],
            [
                "layout-recompiles",
                "other-device-compiles-only",
                "outer-jit-reuses-the-inner-trace",
                "replicated-argument-keeps-the-mesh-trace",
                "same-device-commitment-recompiles",
            ],
        ),
        KEY,
    ),
}


def words(sentence):
    """Return the words of a sentence that carry its meaning, in the singular; code counts as one word."""
    plain = re.sub(r"`([^`]*)`", lambda code: " C" + re.sub(r"\W", "", code.group(1)) + " ", sentence)
    return {word.rstrip("s") for word in re.findall(r"\w+", plain.lower()) if word not in STOP}


def suspects(sentences):
    """Return the pairs of ids whose sentences have opposite outcomes and half of their words in common."""
    meant, found = {name: words(sentence) for name, sentence in sentences.items()}, set()
    for yes, no in OPPOSITES:
        sides = {
            name: (bool(re.search(yes, text)), bool(re.search(no, text))) for name, text in sentences.items()
        }
        for one, other in itertools.product(sentences, repeat=2):
            alike = 2 * len(meant[one] & meant[other]) >= min(len(meant[one]), len(meant[other]))
            if alike and sides[one] == (True, False) and sides[other] == (False, True):
                found.add((one, other))
    return found


def test_no_two_claims_say_the_opposite_of_each_other():
    found = suspects({claim.id: claim.sentence for claim in experiments.load().values()})
    new = sorted(found - set(RECONCILED))
    assert not new, f"do these contradict each other? Correct one, or say in RECONCILED why not: {new}"


def test_the_check_finds_what_contradicted_before():
    before = {
        "moves": "`in_shardings` moves an argument that is committed to another device, without an error.",
        "raises": "An argument that is committed to another device raises `ValueError` in `in_shardings`.",
        "other": "A donated array is deleted.",
    }
    assert suspects(before) == {("raises", "moves")}
