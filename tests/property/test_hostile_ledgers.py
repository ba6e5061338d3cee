"""Ledgers that anybody may have written: each is refused in one sentence, or costs no less than its rows say.

The rows are changed and their digests made anew, as somebody would who wants more budget; the bytes at random.
"""

import json
import random
import shutil
from contextlib import suppress

import pytest
from cases import seeds
from forged_ledgers import digest, mutate_content, mutate_rows, rewrite, rows_of

import pufferflow as pf
from pufferflow import cli
from pufferflow.models import parse_model

pytestmark = pytest.mark.usefixtures("scales_once")
LENGTH = 40
CHAINS = [pf.MarkovChain([[0.9, 0.1], [0.4, 0.6]]), pf.MarkovChain([[0.7, 0.3], [0.2, 0.8]])]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A ledger of three releases under two chains, one of them recorded."""
    ledger = pf.Ledger.create(tmp_path_factory.mktemp("ledger") / "whole", 50.0)
    for i, chain in enumerate((*CHAINS, CHAINS[0])):
        scale = pf.mqm_exact(chain, LENGTH, 1.0 + i).scale
        made = ledger.reserve(chain, LENGTH, mechanism="mqm-exact", epsilon=1.0 + i, scale=scale, query="a count")
    ledger.record(made)
    return ledger


def said_by_the_rows(path):
    """What the releases in the rows cost together, by a second way of adding up."""
    rows = [(kind, json.loads(content)) for _, _, kind, content in rows_of(path)]
    reserved = [content for kind, content in rows if kind == "reserved"]
    models = [content["model"] for kind, content in rows if kind == "family"]
    used = [m for m in models if digest(m) in {r["family"] for r in reserved}]
    assert len({digest(m) for m in used}) == len({r["family"] for r in reserved})
    total = 0.0
    for model in used:
        accountant = pf.Accountant(parse_model(model), max(r["length"] for r in reserved))
        for r in reserved:
            accountant.add(r["scale"])
        total = max(total, accountant.cost().epsilon)
    # the bound of one release may differ from its own ε in the last digits, never more
    return (
        min(total, reserved[0]["epsilon"]) if len(reserved) == 1 and total < 1.001 * reserved[0]["epsilon"] else total
    )


def use(path, rng, capsys):
    """One of the things that read a ledger: it says one sentence or does its work."""
    words = rng.choice((["show"], ["show", "--json"], ["verify"], ["set-limit", "1e80"], None))
    if words is not None:
        code = cli.main(["ledger", words[0], str(path), *words[1:]])
        captured = capsys.readouterr()
        assert (code, captured.err.count("\n")) in ((0, 0), (2, 1))
        assert "\x1b" not in captured.out + captured.err
        return
    with suppress(pf.LedgerError, pf.BudgetError):
        book = pf.Ledger(path)
        book.record(book.reserve(CHAINS[0], 3, mechanism="x", epsilon=1.0, scale=1e6, query="x"))


@pytest.mark.parametrize("seed", seeds(1, 20))
@pytest.mark.parametrize("mutate", [mutate_content, mutate_rows])
def test_crafted_rows_are_refused_or_cost_what_they_say(whole, tmp_path, capsys, seed, mutate):
    rng = random.Random(f"{mutate.__name__} {seed}")
    usable = 0
    for turn in range(25):
        path = tmp_path / str(turn)
        shutil.copyfile(whole.path, path)
        rows = rows_of(path)
        mutate(rows, rng)
        rewrite(path, rows)
        before = path.read_bytes()
        try:
            spent = pf.Ledger(path).spent
        except pf.LedgerError:
            spent = None
        assert path.read_bytes() == before
        if spent is not None:
            usable += 1
            assert spent >= said_by_the_rows(path) * (1 - 1e-9)
        use(path, rng, capsys)
    assert usable < 25


@pytest.mark.parametrize("seed", seeds(1, 20))
def test_changed_bytes_are_refused_or_change_nothing(whole, tmp_path, capsys, seed):
    rng = random.Random(f"bytes {seed}")
    original = whole.path.read_bytes()
    spent, limit = whole.spent, whole.limit
    for turn in range(30):
        content = bytearray(original)
        for _ in range(rng.choice((1, 1, 3, 30))):
            at = rng.randrange(120) if rng.random() < 0.3 else rng.randrange(len(content))
            content[at] = rng.randrange(256)
        if rng.random() < 0.1:
            del content[rng.randrange(len(content)) :]
        path = tmp_path / str(turn)
        path.write_bytes(content)
        try:
            book = pf.Ledger(path)
            assert (book.spent, book.limit) == (spent, limit)
        except pf.LedgerError:
            pass
        use(path, rng, capsys)
