"""Put a tag into every equation of a jaxpr, so that the equation can be found again in every later text.

JAX prefixes the name of each operation that it lowers with the equation's name stack, and XLA keeps that
name as the `op_name` of an instruction. One more scope per equation in that stack therefore links the
texts operation by operation, where source locations link them only line by line.
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Sequence
from typing import Any

import jax

from jitguide._callables import jit_with
from jitguide._jax import is_tracer
from jitguide._jaxprs import (
    as_function,
    bodies,
    in_scope,
    liveness,
    open_jaxpr,
    rewritten,
    text_of,
    with_bodies,
)

# An unlikely word, because a user's `named_scope` of the same name would be taken for a tag.
_TAG = re.compile(r"(?<![A-Za-z0-9_])jgq(\d+)_(?![A-Za-z0-9_])")


def tags(name: str) -> tuple[int, ...]:
    """Return the tags in a name, outermost first: ``jit(f)/jgq4_/jit(g)/jgq6_/mul`` gives (4, 6)."""
    return tuple(int(number) for number in _TAG.findall(name))


def sites_of(jaxpr: Any) -> list[Any]:
    """Return each equation as it stands in the jaxpr text; a body that is called twice has its equations once."""
    opened = {id(one): one for one in map(open_jaxpr, with_bodies(jaxpr))}.values()
    return [equation for body in opened for equation in body.eqns]


def tagged(jaxpr: Any, sites: Sequence[Any]) -> Any:
    """Return a jaxpr whose equation `sites[i]` has tag i."""
    number = {id(equation): i for i, equation in enumerate(sites)}
    return rewritten(jaxpr, lambda e, params: [in_scope(e, f"jgq{number[id(e)]}_", params)])


def replay(fn: Callable[..., Any], traced: Any, jaxpr: Any, options: dict[str, Any]) -> Any:
    """Return a jitted function with the signature of `fn` whose body is `jaxpr`."""
    run, out_tree = as_function(jaxpr), traced.out_tree

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        # Static arguments arrive as they are; the jaxpr takes the others.
        leaves = [leaf for leaf in jax.tree.leaves((args, kwargs)) if is_tracer(leaf)]
        return jax.tree.unflatten(out_tree, run(*leaves))

    functools.update_wrapper(wrapper, fn)
    wrapper.__name__ = traced.fun_name  # names the module in the lowered text
    return jit_with(wrapper, options)


@functools.cache
def works() -> bool:
    """Return whether tags come out at the other end in this process, tried once on a small function.

    Tagging needs undocumented methods of JAX's objects. Without them, `stages` links by source line.
    """

    def probe(x: Any) -> Any:
        return x + 1

    try:
        traced = jax.jit(probe).trace(jax.ShapeDtypeStruct((), "float32"))
        jaxpr = tagged(traced.jaxpr, sites_of(traced.jaxpr))
        lowered = replay(probe, traced, jaxpr, {}).trace(jax.ShapeDtypeStruct((), "float32")).lower()
        texts = (lowered.as_text(debug_info=True), text_of(jaxpr) or "")
        return all(map(tags, texts))
    except Exception:  # with anything missing, the answer is "no"
        return False


@dataclasses.dataclass(frozen=True)
class Node:
    """One equation per place that it is called from, numbered in program order."""

    id: int
    equation: Any
    path: tuple[int, ...]  # sites from the outermost call to this equation
    ancestors: tuple[int, ...]  # numbers of the equations that contain it, outermost first
    live: bool
    body: Any  # the jaxpr it stands in


# A tree of nested calls doubles per level; beyond this many, equations are counted once per text line.
_MOST_NODES = 20_000


class Nodes:
    """All nodes of a jaxpr, with look-up by the tags that a name carries; `sites[i]` is the equation with tag i."""

    def __init__(self, jaxpr: Any, sites: Sequence[Any]) -> None:
        self.all: list[Node] = []
        self.sites = sites
        self.by_site: dict[int, list[int]] = {}
        self._number = {id(equation): i for i, equation in enumerate(sites)}
        self._expand(open_jaxpr(jaxpr), (), (), True)

    def _expand(self, jaxpr: Any, path: tuple[Any, ...], ancestors: tuple[Any, ...], used: Any) -> None:
        for equation, (live, inner_used) in zip(jaxpr.eqns, liveness(jaxpr, used)[0], strict=True):
            site = self._number[id(equation)]
            if len(self.all) >= _MOST_NODES and site in self.by_site:
                continue
            node = Node(len(self.all), equation, (*path, site), ancestors, live, jaxpr)
            self.all.append(node)
            self.by_site.setdefault(site, []).append(node.id)
            for body in map(open_jaxpr, bodies(equation)):
                self._expand(body, node.path, (*ancestors, node.id), inner_used)

    def find(self, path: Sequence[int]) -> frozenset[int]:
        """Return the nodes that a name's tags mean: those of the last tag, reached by way of the others."""
        if not path:
            return frozenset()
        found = self.by_site.get(path[-1], [])
        if len(found) > 1:
            found = [n for n in found if _is_subsequence(path, self.all[n].path)] or found
        return frozenset(found)

    def children(self) -> dict[int, list[int]]:
        """Return, for each node with a body, the nodes inside."""
        inside: dict[int, list[int]] = {}
        for node in self.all:
            for ancestor in node.ancestors:
                inside.setdefault(ancestor, []).append(node.id)
        return inside


def _is_subsequence(part: Sequence[int], whole: Sequence[int]) -> bool:
    rest = iter(whole)
    return all(item in rest for item in part)


def untag_names(hlo: str, nodes: Nodes) -> str:
    """Return an HLO text in which no instruction is named after a tag, which XLA sometimes does."""
    taken = set(re.findall(r"%[\w.\-]+", hlo))

    def rename(match: re.Match[str]) -> str:
        name = f"%{nodes.sites[int(match[1])].primitive.name}"
        return f"{name}{match[2]}" if f"{name}{match[2]}" not in taken else f"{name}_{match[2]}"

    return re.sub(r"%jgq(\d+)_([\w.\-]*)", rename, hlo)
