"""The steps of a first call: that each is really paid, and what break-even says. No word about real times."""

import dataclasses
import json
import math
import warnings
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.layout import Format, Layout

from jitguide import Phases, _jax, phases, watch
from jitguide._callables import fresh_jit

STEPS = ("trace", "lower", "compile", "first_run", "steady")


def wave(x, n=1):
    return jnp.sin(x) * n


def by_hand(**changes):
    seconds = {"trace": 1.0, "lower": 1.0, "compile": 7.0, "first_run": 1.5, "steady": 0.5}
    return Phases(**{**seconds, **changes})


@pytest.mark.parametrize("make", [lambda: wave, lambda: jax.jit(wave), lambda: partial(wave, n=2)])
def test_plain_jitted_and_partial_functions_are_taken(make):
    cost = phases(make(), jnp.ones(3))
    assert all(getattr(cost, step) > 0 for step in STEPS)
    assert cost.notes == ()


def test_every_step_is_paid_again_for_a_function_that_has_been_called():
    jitted = jax.jit(wave)
    jitted(jnp.ones(3)).block_until_ready()
    for _ in range(2):
        with watch() as block:
            phases(jitted, jnp.ones(3))
        done = [event.phase for event in block.events if event.function == "wave"]
        assert done == ["trace", "lower", "compile"]


def test_on_a_gpu_a_long_compile_is_repeated_without_autotuning(monkeypatch):
    """The CPU's compiler takes the option too."""
    monkeypatch.setattr("jitguide._timing.first_call._LONG_COMPILE", 0)
    monkeypatch.setattr(jax, "default_backend", lambda: "cpu")
    assert phases(wave, jnp.ones(3)).notes == ()
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    (note,) = phases(wave, jnp.ones(3)).notes
    assert note.startswith("Compiled again without autotuning (`xla_gpu_autotune_level=0`): ")
    monkeypatch.setattr(jax.stages.Lowered, "compile", refuse_options(jax.stages.Lowered.compile))
    assert phases(wave, jnp.ones(3)).notes == ()


def refuse_options(original):
    def compile_without(self, compiler_options=None):
        if compiler_options:
            raise RuntimeError("No such compile option")
        return original(self)

    return compile_without


def test_static_arguments_of_a_jitted_function_stay_static():
    by_place = jax.jit(wave, static_argnums=1)
    by_name = jax.jit(lambda x, *, shape: x.reshape(shape), static_argnames="shape")
    assert phases(by_place, jnp.ones(3), 2).steady > 0
    assert phases(by_name, jnp.ones(6), shape=(2, 3)).steady > 0


def test_donated_arguments_of_the_reader_stay_alive():
    x = jnp.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where a backend cannot donate, JAX says so
        phases(jax.jit(lambda x: x + 1, donate_argnums=0), x)
    assert not x.is_deleted()


def test_an_option_of_compare_can_be_the_name_of_an_argument():
    assert phases(lambda x, *, budget: x * budget, jnp.ones(3), budget=2).steady > 0


def test_break_even_is_where_both_have_taken_the_same_time():
    cost = by_hand()
    n = cost.break_even(1.0)
    assert n == 20
    assert n * 1.0 == cost.first_call + (n - 1) * cost.steady


def test_break_even_is_never_below_the_first_call():
    assert by_hand().break_even(1000.0) == 1


@pytest.mark.parametrize("eager", [0.5, 0.1])
def test_without_a_gain_there_is_no_break_even(eager):
    assert by_hand().break_even(eager) == math.inf


@pytest.mark.parametrize(
    ("eager", "kind", "text"),
    [
        ("1", TypeError, "`eager` must be a number of seconds, got '1'."),
        (True, TypeError, "`eager` must be a number of seconds, got True."),
        (0, ValueError, "`eager` must be a positive number of seconds, got 0."),
        (math.nan, ValueError, "`eager` must be a positive number of seconds, got nan."),
        (wave, TypeError, "Time the function by `compare`, and pass `compare(...)[name].median`."),
    ],
)
def test_a_break_even_over_nonsense_is_refused(eager, kind, text):
    with pytest.raises(kind) as caught:
        by_hand().break_even(eager)
    assert text in str(caught.value)


def test_shardings_given_to_jit_are_kept():
    mesh = jax.make_mesh((1,), ("one",), devices=jax.devices()[:1])
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("one"))
    x = jnp.ones(4)
    for options in ({"out_shardings": {"y": split}}, {"in_shardings": (split,)}, {"in_shardings": split}):
        given = jax.jit(lambda x: {"y": x + 1}, **options)
        anew, notes = fresh_jit(given)
        assert notes == ()
        assert isinstance(anew(x)["y"].sharding, jax.sharding.NamedSharding)
        assert anew(x)["y"].sharding == given(x)["y"].sharding
        assert phases(given, x).notes == ()


def test_a_deprecated_option_is_kept_without_a_second_warning():
    with pytest.warns(DeprecationWarning, match="backend and device argument on jit is deprecated"):
        given = jax.jit(wave, backend="cpu")
    anew, notes = fresh_jit(given)
    assert (_jax.jit_options(anew)["backend"], notes) == ("cpu", ())
    assert phases(given, jnp.ones(3)).notes == ()


@pytest.mark.parametrize("side", ["in", "out"])
def test_layouts_given_to_jit_are_kept(side):
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    x, turned = jnp.ones((2, 3)), Format(Layout((1, 0)), device)
    given = jax.jit(lambda x: x + 1, **{f"{side}_shardings": turned})
    anew, notes = fresh_jit(given)
    assert (_jax.jit_options(anew)[f"{side}_shardings"], notes) == (turned, ())
    compiled = anew.lower(x).compile()
    formats = jax.tree.leaves(compiled.input_formats if side == "in" else compiled.output_formats)
    assert [f.layout.major_to_minor for f in formats] == [(1, 0)]


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="`fn` is 3 of type int, which cannot be called"):
        phases(3)
    compiled = jax.jit(wave).lower(jnp.ones(3)).compile()
    with pytest.raises(
        TypeError, match="`fn` is a Compiled object, which stands for one executable and never traces again"
    ):
        phases(compiled, jnp.ones(3))


def test_a_deleted_argument_is_refused():
    gone = jnp.ones(3)
    gone.delete()
    with pytest.raises(ValueError, match=r"The argument args\[0\] was deleted before the measurement began"):
        phases(wave, gone)


def test_calling_it_inside_a_trace_is_refused():
    with pytest.raises(RuntimeError, match="`phases` was called inside a function that JAX is tracing"):
        jax.jit(lambda x: phases(wave, x))(jnp.ones(3))


def test_without_private_options_the_function_itself_is_timed_with_a_note(monkeypatch):
    class Opaque:
        def __init__(self, fn):
            self.fn = jax.jit(fn)

        def __call__(self, *args):
            return self.fn(*args)

        def trace(self, *args):
            return self.fn.trace(*args)

        def lower(self, *args):
            return self.fn.lower(*args)

        def eval_shape(self, *args):
            return self.fn.eval_shape(*args)

        def clear_cache(self):
            self.fn.clear_cache()

    monkeypatch.setattr(jax.stages, "Wrapped", Opaque)
    cost = phases(Opaque(wave), jnp.ones(3))
    assert cost.notes == (f"{_jax.NO_OPTIONS}, so steps that are cached already show as free.",)


def test_the_views_show_every_step():
    text = repr(by_hand())
    assert text.splitlines() == [
        "step          time  share",
        "trace        1.0 s    10%",
        "lower        1.0 s    10%",
        "compile      7.0 s    67%",
        "first run    1.5 s    14%",
        "first call    10 s",
        "later call  500 ms",
    ]
    assert "first run" in by_hand()._repr_html_()
    assert json.loads(json.dumps(by_hand().to_dict()))["first_call"] == 10.5


class Scale:
    factor = 2.0

    @partial(jax.jit, static_argnums=0, donate_argnums=1)
    def times(self, x):
        return x * self.factor

    @watch
    @partial(jax.jit, static_argnames="self")
    def watched(self, x):
        return x * self.factor

    def plain(self, x):
        return x * self.factor


@jax.tree_util.register_dataclass
@dataclasses.dataclass(eq=False)
class Total:
    sum: jax.Array

    @partial(jax.jit, donate_argnums=0)
    def add(self, x):
        return Total(self.sum + x)

    @partial(jax.jit, static_argnums=0, donate_argnums=1)
    def of_static(self, x):
        return x + 1


@pytest.mark.filterwarnings("ignore:Some donated buffers")  # where a backend cannot donate, JAX says so
def test_a_method_that_donates_its_object_leaves_the_readers_alone():
    total, x = Total(jnp.ones(3)), jnp.ones(3)
    cost = phases(total.add, x)
    assert cost.steady > 0
    assert not total.sum.is_deleted()


@pytest.mark.filterwarnings("ignore:Some donated buffers")  # where a backend cannot donate, JAX says so
def test_a_static_object_is_the_same_one_in_every_call():
    with watch() as block:
        phases(Total(jnp.ones(3)).of_static, jnp.ones(3))
    assert [event.phase for event in block.events if event.function == "of_static"] == [
        "trace",
        "lower",
        "compile",
    ]


@pytest.mark.filterwarnings("ignore:Some donated buffers")  # where a backend cannot donate, JAX says so
@pytest.mark.parametrize("name", ["times", "watched", "plain"])
def test_every_step_of_a_method_is_paid_again(name):
    method, x = getattr(Scale(), name), jnp.ones(3)
    method(x + 0)
    with watch() as block:
        phases(method, x)
    done = [event.phase for event in block.events if event.function == name]
    assert done == ["trace", "lower", "compile"]
    assert not x.is_deleted()


def test_a_jitted_bound_method_is_taken():
    assert phases(jax.jit(Scale().plain), jnp.ones(3)).notes == ()


def test_without_jit_a_note_says_what_was_not_run():
    with jax.disable_jit():
        cost = phases(wave, jnp.ones(3))
    assert cost.notes == (
        "`jax_disable_jit` is on: first run and later call ran one operation at a time, without the program "
        "that was compiled.",
    )


def test_checking_for_leaks_changes_nothing():
    with jax.checking_leaks():
        assert phases(jax.jit(wave), jnp.ones(3)).notes == ()


def test_break_even_is_a_whole_number():
    assert by_hand(compile=7.3).break_even(1.0) == 21.0


def test_the_steps_of_a_librarys_jit_are_timed_though_the_function_was_called_before():
    nnx = pytest.importorskip("flax.nnx")
    model = nnx.Linear(3, 3, rngs=nnx.Rngs(0))
    step = nnx.jit(lambda model, x: model(x))
    step(model, jnp.ones(3))
    cost = phases(step, model, jnp.ones(3))
    assert cost.compile > cost.steady
    eqx = pytest.importorskip("equinox")
    mlp = eqx.nn.MLP(3, 1, 4, 1, key=jax.random.key(0))
    step = eqx.filter_jit(lambda model, x: model(x))
    step(mlp, jnp.ones(3))
    assert phases(step, mlp, jnp.ones(3)).compile > 1e-3


def test_a_function_without_weak_references_is_refused():
    with pytest.raises(TypeError, match=r"`sin`: a ufunc has no weak references.*Write it with `jnp\.sin`\."):
        phases(np.sin, jnp.ones(3))
