"""Releases: what is written, what is paid, what is refused, and that nothing exact leaves."""

import ast
import inspect
import json
import math
import re
import sqlite3
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cases import examples
from hypothesis import given
from hypothesis import strategies as st
from source_trees import tree

import pufferflow as pf
from pufferflow import _optional
from pufferflow._optional import EXTRAS, load
from pufferflow.errors import ParameterError
from pufferflow.ledger import Ledger
from pufferflow.models import write_model
from pufferflow.publishing import histogram
from pufferflow.publishing import release as releasing
from pufferflow.publishing.calibration import calibrate
from pufferflow.publishing.noise import DIGITS, count_scale, largest_scale

pytestmark = pytest.mark.usefixtures("scales_once")
CHAIN = pf.MarkovChain([[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]])
FORM = pf.RecordFormat(pf.StateSpace.categories(["sit", "stand", "walk"]), 60)
PUBLIC = pf.PublicModel(pf.ChainFamily([CHAIN]), FORM)
NAMES = np.array(FORM.states.names)


def series(count=5000, seed=1, start="2021-06-01"):
    from pufferflow.markov import simulate_chain

    values = NAMES[simulate_chain(CHAIN, count, np.random.default_rng(seed))]
    return pd.Series(values, index=pd.date_range(start, periods=count, freq="min"))


DATA = series()


@pytest.fixture
def files(tmp_path):
    """A table, and a public chain for it."""
    path = tmp_path / "data.csv"
    DATA.rename_axis("time").rename("value").to_csv(path)
    write_model(tmp_path / "public.json", PUBLIC.family, FORM)
    return path, tmp_path / "public.json"


def text_files(folder):
    """By name; what may leave, or of a simulation all there is."""
    part = folder / ("publish" if (folder / "publish").exists() else "internal")
    return {p.name: p.read_text() for p in part.iterdir() if p.suffix in (".json", ".csv", ".txt")}


def test_a_few_lines_of_python(tmp_path):
    released = pf.release_histogram(DATA, PUBLIC, 1.0, ledger=tmp_path / "ledger", output=tmp_path / "out")
    assert released.records == 5000
    assert len(released.counts) == 3
    assert all(isinstance(count, int) for count in released.counts)
    exact = DATA.value_counts(normalize=True)[list(NAMES)].to_numpy()
    assert np.abs(released.frequencies - exact).max() < 50 * released.noise_scale / 5000
    assert {str(p.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("*") if p.is_file()} == {
        *(f"internal/{name}.json" for name in ("certificate", "chain")),
        *(f"publish/histogram.{suffix}" for suffix in ("json", "csv", "svg", "pdf", "png")),
        "publish/statement.txt",
        "publish/statement.md",
    }
    read = json.loads((tmp_path / "out" / "publish" / "histogram.json").read_text())
    assert (read["private"], read["mechanism"], read["epsilon"]) == (True, released.mechanism, 1.0)
    assert [row["noisy_count"] for row in read["bins"]] == list(released.counts)
    table = pd.read_csv(tmp_path / "out" / "publish" / "histogram.csv")
    assert table["frequency"].tolist() == pytest.approx(released.frequencies.tolist())
    certificate = json.loads((tmp_path / "out" / "internal" / "certificate.json").read_text())
    proved = pf.verify_certificate(certificate)
    assert 2 * float(proved.scale) <= released.noise_scale <= 2.002 * float(proved.scale)
    shown = Ledger(tmp_path / "ledger").to_dict()
    assert [entry["released"] for entry in shown["releases"]] == [True]
    assert shown["limit"] == 1.0


def test_the_statement_says_what_to_whom_and_what_not(tmp_path):
    said = pf.release_histogram(DATA, PUBLIC, 0.5, ledger=None).statement
    for part in (
        "whoever believes that the records follow the chain of the model from its stationary start",
        "at any one step (60 s)",
        "epsilon = 0.5 nats",
        "e^epsilon = 1.649",
        "certificate.json proves",
        "the number of records (5000)",
        "lengths of the segments (1 of 1 participant(s)), which are taken to be independent",
        "Not guaranteed: anything about a participant's whole record",
        "how long the program ran",
        "that a release was refused, and at which line",
        "Warning: no account is kept of this release: whoever makes another has to add them.",
    ):
        assert part in said
    assert "fitted to these same data" not in said
    assert "\n" not in said


def test_the_least_certified_noise_is_taken():
    """Of this chain leakage asks for no more than mqm-exact does until it is certified, which costs its last digits."""
    chain = pf.MarkovChain([[0, 0.5, 0.5], [0, 0.99, 0.01], [0, 0.01, 0.99]], [1, 0, 0])
    found = calibrate(chain, 2, 1.0)
    assert (found.chosen.mechanism, found.scale) == ("mqm-exact", 1.0)
    assert 1.0 < float(pf.certify(chain, 2, 1.0, mechanism="leakage")["scale"]) < 1.0 + 1e-6
    # and a certificate is not given up for the last digits of a fixed point
    slow = pf.MarkovChain([[0.9938078303898569, 0.006192169610143189], [0.1114926467146376, 0.8885073532853625]])
    assert calibrate(slow, 5000, 0.5).scale == pytest.approx(pf.leakage(slow, 5000, 0.5).scale, rel=1e-4)


def test_a_refused_first_release_leaves_no_ledger(files, tmp_path):
    data, model = files
    book = tmp_path / "ledger"
    with pytest.raises(pf.BudgetError, match=r"limit of .*/ledger is 0\.5"):
        pf.release_histogram(data, model, 1.0, ledger=book, limit=0.5)
    assert pf.rehearse_release(data, model, 1.0, ledger=book, limit=1.5)["limit"] == 1.5
    assert not book.exists()
    # a limit that was set stays, though nothing was released
    kept = Ledger.create(tmp_path / "kept", 0.5)
    for use in (pf.rehearse_release, pf.release_histogram):
        with pytest.raises(pf.ParameterError, match=r"kept has the limit 0\.5, not 9"):
            use(data, model, 0.1, ledger=kept.path, limit=9.0)
    assert kept.limit == 0.5
    with pytest.raises(pf.DataError, match="there is no folder"):
        pf.rehearse_release(data, model, 1.0, ledger=tmp_path / "no" / "ledger")
    assert pf.release_histogram(data, model, 1.0, ledger=book, limit=1.5).epsilon == 1.0
    with pytest.raises(pf.ParameterError, match=r"has the limit 1\.5, not 2"):
        pf.release_histogram(data, model, 0.1, ledger=book, limit=2.0)


def test_other_steps_of_the_same_records_cannot_be_added_up(tmp_path):
    """Two chains of two states each, both true, whose outputs together tell more than the sum of their epsilon."""
    fair = pf.ChainFamily([pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]])])
    values = pd.DataFrame({"value": np.random.default_rng(1).integers(0, 3, 500)})
    one, two = (pf.PublicModel(fair, pf.RecordFormat(pf.StateSpace.numeric([edge]))) for edge in (1, 2))
    book = tmp_path / "ledger"
    for _ in range(2):
        pf.release_histogram(values, one, 0.5, ledger=book, limit=9.0)
    for source, model in ((values, two), (values.assign(other=values["value"]), one)):
        reading = pf.Reading(value=source.columns[-1], rows_are_steps=True)
        with pytest.raises(pf.LedgerError, match="made other steps of the records"):
            pf.release_histogram(source, model, 0.5, ledger=book, limit=9.0, reading=reading)
    assert len(Ledger(book).to_dict()["releases"]) == 2


def test_a_given_start_is_that_of_the_first_row(tmp_path):
    """Of s0 → … → s2 → a or b, known in advance but for one fair coin, the law of the first observed row is another."""
    chain = pf.MarkovChain([[0, 0.5, 0.5], [0, 0.99, 0.01], [0, 0.01, 0.99]], [1, 0, 0])
    model = pf.PublicModel(pf.ChainFamily([chain]), pf.RecordFormat(pf.StateSpace.categories(["a", "b", "c"])))
    assert pf.release_histogram(pd.DataFrame({"value": ["a", "b", None]}), model, 1.0, ledger=None).records == 2
    with pytest.raises(pf.DataError, match="a given start, that of a participant's first row, but a first value is"):
        pf.release_histogram(pd.DataFrame({"value": [None, "b", "b"]}), model, 1.0, ledger=None)
    minutes = pd.Series(
        ["a", "b", "b"], index=pd.to_datetime(["2021-01-01 00:00", "2021-01-01 00:01", "2021-01-02 00:00"])
    )
    split = pf.PublicModel(
        model.family, pf.RecordFormat(model.records.states, 60, split_after_seconds=600, split_because="x")
    )
    with pytest.raises(pf.DataError, match="but a segment begins after a pause; say"):
        pf.release_histogram(minutes, split, 1.0, ledger=None)
    anywhere = pf.PublicModel(pf.ChainFamily([pf.MarkovChain(chain.transition_matrix, "any")]), split.records)
    assert pf.release_histogram(minutes, anywhere, 1.0, ledger=None).segments == 2


def test_the_choice_does_not_depend_on_the_data():
    first, second = (pf.release_histogram(series(seed=s), PUBLIC, 1.0, ledger=None) for s in (2, 3))
    assert (first.mechanism, first.noise_scale) == (second.mechanism, second.noise_scale)
    constant = pd.Series("sit", index=DATA.index)
    assert pf.release_histogram(constant, PUBLIC, 1.0, ledger=None).noise_scale == first.noise_scale
    assert first.calibration.scale <= pf.mqm_exact(CHAIN, 5000, 1.0).scale * (1 + 1e-9)


def test_a_mechanism_can_be_asked_for_but_not_one_that_hides_nothing():
    assert pf.release_histogram(DATA, PUBLIC, 1.0, ledger=None, mechanism="group-dp").calibration.scale == 5000
    for name, message in (("entry-dp", "hides nothing"), ("wasserstein", "single count"), ("gk17", "unknown")):
        with pytest.raises(pf.ParameterError, match=message):
            pf.release_histogram(DATA, PUBLIC, 1.0, ledger=None, mechanism=name)
    # records that are independent after all: the least scale is that of a single record, and still not entry-dp
    independent = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
    assert calibrate(independent, 50, 1.0).chosen.mechanism != "entry-dp"
    assert calibrate(independent, 50, 1.0).scale == pytest.approx(1.0)


@examples(8, 270)
@given(st.floats(1e-3, 1e3), st.floats(0.05, 0.95), st.floats(0.05, 0.95), st.integers(1, 200))
def test_a_limit_of_epsilon_pays_for_one_release(epsilon, stay, leave, length):
    chain = pf.MarkovChain([[stay, 1 - stay], [leave, 1 - leave]])
    scale = count_scale(calibrate(chain, length, epsilon).scale) / 2
    accountant = pf.Accountant(chain, length)
    accountant.add(scale)
    assert accountant.within(epsilon)


@given(st.floats(1e-30, 1e17))
def test_the_noise_is_rounded_up(scale):
    noise = count_scale(scale)
    assert 2 * scale * (1 + 2**-24) <= noise <= 2 * scale * (1 + 2**-24) * (1 + 2**-10)
    mantissa, _ = math.frexp(noise)
    assert (mantissa * 2**DIGITS).is_integer()


@given(st.floats(1e-30, 1e17))
def test_the_noise_is_a_coarse_number_and_a_smaller_one_is_found_again(noise):
    """So that a published scale tells little of the chain that it is computed from."""
    assert DIGITS <= 11
    largest = largest_scale(noise)
    assert count_scale(largest) <= noise
    assert count_scale(math.nextafter(largest, math.inf) * (1 + 1e-15)) > noise * (1 - 2**-10)


def test_noise_beyond_all_counts_is_refused():
    with pytest.raises(pf.ParameterError, match="hides every count"):
        pf.release_histogram(DATA, PUBLIC, 1e-20, ledger=None)


# -- the ledger ---------------------------------------------------------------------------------------------


def test_the_budget_on_the_command_line(files, run, tmp_path):
    data, public = files
    asked = ("release", data, "--chain", public, "--epsilon", 1, "--no-figure", "--mechanism", "leakage")
    code, out, err = run(*asked)
    assert (code, err) == (0, "")
    assert "Guarantee:" in out
    ledger = f"{data}.ledger"
    before = Ledger(ledger).entries()
    code, out, err = run(*asked, "--output", tmp_path / "again")
    assert (code, out) == (2, "")
    assert "the limit of" in err
    assert not (tmp_path / "again").exists()
    assert Ledger(ledger).entries() == before
    assert run("ledger", "set-limit", ledger, 3)[0] == 0
    assert run(*asked, "--output", tmp_path / "again")[0] == 0
    code, out, _ = run("ledger", "show", ledger)
    assert code == 0
    assert out.count("histogram of 3 states over 5000 records") == 2
    assert json.loads(run("ledger", "show", ledger, "--json")[1])["limit"] == 3
    assert run("ledger", "verify", ledger)[1].startswith("verified: ")
    assert run("ledger", "verify", data)[0] == 2
    assert "has the limit 3, not 7" in run(*asked, "--output", tmp_path / "x", "--limit", 7)[2]


def test_a_release_is_never_overwritten_and_then_costs_nothing(files, run):
    data, public = files
    asked = ("release", data, "--chain", public, "--epsilon", 1, "--no-figure", "--limit", 5)
    assert run(*asked)[0] == 0
    spent = Ledger(f"{data}.ledger").entries()
    code, out, err = run(*asked)
    assert (code, out) == (2, "")
    assert "exists already" in err
    assert Ledger(f"{data}.ledger").entries() == spent


def test_without_a_ledger_only_if_said(files, run, tmp_path):
    data, public = files
    assert run("release", data, "--chain", public, "--epsilon", 1, "--no-figure", "--no-ledger")[0] == 0
    assert not (tmp_path / "data.csv.ledger").exists()
    assert "contradict" in run("release", data, "--chain", public, "--epsilon", 1, "--no-ledger", "--limit", 2)[2]
    signature = inspect.signature(pf.release_histogram).parameters["ledger"]
    assert signature.default is inspect.Parameter.empty


@pytest.mark.parametrize("stage", ["draw", "save"])
def test_killed_between_reservation_and_record(files, run, tmp_path, monkeypatch, stage):
    data, public = files

    def killed(*_, **__):
        raise KeyboardInterrupt

    asked = ("release", data, "--chain", public, "--epsilon", 1, "--no-figure", "--mechanism", "leakage")
    with monkeypatch.context() as patch:
        patch.setattr(*((releasing, "add_noise") if stage == "draw" else (Path, "rename")), killed)
        assert run(*asked)[0] == 130
    assert not (tmp_path / "data.csv.release").exists()
    assert [p.name for p in tmp_path.iterdir() if p.name.startswith(".")] == []
    (entry,) = Ledger(f"{data}.ledger").to_dict()["releases"]
    assert not entry["released"]
    assert run(*asked)[0] == 2  # what was reserved is spent
    assert run("ledger", "set-limit", f"{data}.ledger", 2.1)[0] == 0
    assert run(*asked)[0] == 0


# -- nothing exact leaves ----------------------------------------------------------------------------------


def numbers(thing):
    """All numbers where numbers stand; digits within words, as those of digests, are none."""
    if isinstance(thing, dict | list | tuple):
        parts = [*thing, *thing.values()] if isinstance(thing, dict) else thing
        return [number for part in parts for number in numbers(part)]
    if isinstance(thing, str):
        return [float(found) for found in re.findall(r"(?<![\w.])\d+(?:\.\d+)?(?![\w.]|\.\d)", thing)]
    return [] if thing is None else [float(thing)]


def test_numbers_are_found_where_they_stand():
    assert numbers({"a": ["12 of 1,345", 7, None, True, "f123ab", "3/4"]}) == [12, 1, 345, 7, 1, 3, 4]


def test_no_file_holds_an_exact_count(files, run, tmp_path, monkeypatch):
    data, public = files
    exact = DATA.value_counts()
    seen = []

    def record(counts, scale):
        seen.append((list(counts), scale))
        return [-7] * len(counts)

    monkeypatch.setattr(releasing, "add_noise", record)
    # nothing is random here: the test fails by chance with probability 0
    code, out, _ = run("release", data, "--chain", public, "--epsilon", 1, "--no-figure")
    assert code == 0
    assert seen[0][0] == [exact[name] for name in NAMES]
    with closing(sqlite3.connect(tmp_path / "data.csv.ledger")) as connection:
        written = [list(row) for row in connection.execute("SELECT * FROM entries")]
    documents = [json.loads(text) for _, _, _, text, _ in written]
    written += [[out], [Ledger(f"{data}.ledger").to_dict()], documents]
    for path in (tmp_path / "data.csv.release").rglob("*.*"):
        written.append([json.loads(path.read_text()) if path.suffix == ".json" else path.read_text()])
    assert not set(exact) & set(numbers(written))
    assert {p.name for p in tmp_path.iterdir()} == {"data.csv", "public.json", "data.csv.ledger", "data.csv.release"}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("time,value\n2021-06-01T00:00,CANARY\n", "line 2: the value is none of the public states"),
        ("time,value\n2021-06-01T00:00,sit\nCANARY,sit\n", "line 3: the time is neither"),
        ("time,value\n2021-06-01T00:01,sit\n2021-06-01T00:00,CANARY\n", "line 3: the time comes before"),
        ("time,value\n2021-06-01T00:00,sit\n2021-06-01T00:00,CANARY\n", "line 3: the time is that of the row before"),
        ("CANARY,value\n2021-06-01T00:00,sit\n", "name the time and the participant (--time, --participant)"),
        ("2021-06-01T00:00,CANARY\n2021-06-01T00:01,CANARY\n", "this seems to be data, not a header"),
        ("time,CANARY,x\n2021-06-01T00:00,sit,1\n", "not clear which column holds the values; name it"),
        ("time,value\n2021-06-01T00:00,sit\n2021-06-01T00:01,CANARY,CANARY\n", "line 3, saw 3"),
        ("time,value\n2021-06-01T00:00,\n", "no value was recorded"),
        ("time,value\n2021-06-01T00:00,sit\n2021-06-01T00:01:30,CANARY\n", "not a whole number of steps"),
        (
            "participant,group,time,value\np,a,2021-06-01T00:00,sit\np,CANARY,2021-06-01T00:01,sit\n",
            "line 3: the group",
        ),
    ],
)
def test_a_refusal_names_the_line_and_no_value(files, run, tmp_path, content, message):
    data, public = files
    data.write_text(content)
    code, out, err = run("release", data, "--chain", public, "--epsilon", 1)
    assert (code, out) == (2, "")
    assert message in err
    assert "CANARY" not in err
    assert err.count("\n") == 1
    assert {p.name for p in tmp_path.iterdir()} == {"data.csv", "public.json"}


def test_a_fault_of_the_program_quotes_nothing(files, run, monkeypatch):
    data, public = files

    def fault(*_):
        raise ValueError("could not convert CANARY")

    monkeypatch.setattr(releasing, "calibrate", fault)
    code, out, err = run("release", data, "--chain", public, "--epsilon", 1)
    assert (code, out) == (2, "")
    assert "ValueError" in err
    assert "CANARY" not in err


def test_values_outside_the_public_states(tmp_path):
    numeric = pf.PublicModel(pf.ChainFamily([CHAIN]), pf.RecordFormat(pf.StateSpace.numeric([0.0, 10.0]), 60))
    wild = pd.Series([-1e300, np.inf, -np.inf, 5.0, 1e9, np.nan], index=DATA.index[:6])
    counted = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(releasing, "add_noise", lambda counts, scale: counted.append(tuple(counts)) or list(counts))
        pf.release_histogram(wild, numeric, 1.0, ledger=None)
        other = pf.PublicModel(
            pf.ChainFamily([CHAIN]), pf.RecordFormat(pf.StateSpace.categories(["sit", "stand"], other=True), 60)
        )
        pf.release_histogram(DATA, other, 1.0, ledger=None)
    assert counted[0] == (2, 1, 2)
    exact = DATA.value_counts()
    assert counted[1] == (exact["sit"], exact["stand"], exact["walk"])


# -- the chain ----------------------------------------------------------------------------------------------


def test_a_chain_fitted_to_the_same_data_is_refused_without_a_way_round(files, run, tmp_path):
    data, _ = files
    assert run("fit", data)[0] == 0
    chain = f"{data}.chain.json"
    code, _, err = run("release", data, "--chain", chain, "--epsilon", 1, "--no-figure")
    assert code == 2
    assert "fitted to records of the same time" in err
    assert "chain_from_this_data" not in err
    assert not (tmp_path / "data.csv.ledger").exists()
    for command in (("release", data), ("simulate", data, "--seed", 1)):
        refused = run(*command, "--chain", chain, "--epsilon", 1, "--no-figure", "--chain-from-this-data")
        assert refused[0] == 2
        assert "unrecognized arguments: --chain-from-this-data" in refused[2]
    later = tmp_path / "later.csv"
    series(seed=9, start="2022-06-01").rename_axis("time").rename("value").to_csv(later)
    assert run("release", later, "--chain", chain, "--epsilon", 1, "--no-figure")[0] == 0


def test_the_same_number_of_rows_without_times_is_no_evidence(tmp_path):
    old, new = (pd.Series(np.random.default_rng(seed).integers(0, 2, 300)) for seed in (1, 2))
    fit = pf.fit_records(old)
    assert pf.release_histogram(new, fit, 1.0, ledger=None).records == 300  # the fit itself stands for its model
    timed = old.set_axis(pd.date_range("2020-01-01", periods=300, freq="min"))
    with pytest.raises(pf.DataError, match="fitted to records of the same time"):
        pf.release_histogram(timed, pf.fit_records(timed), 1.0, ledger=None)


@pytest.mark.xdist_group("sources")
def test_messages_of_the_library_name_arguments_not_options():
    """What Python users read; the options of the shell have the same names."""
    package = Path(pf.__file__).parent
    for path in (*(package / "publishing").glob("*.py"), *(package / "records").glob("*.py")):
        texts = [node.value for node in ast.walk(tree(path)) if isinstance(node, ast.Constant)]
        options = [text for text in texts if isinstance(text, str) and re.search(r"(?<![\w-])--[a-z]", text)]
        assert not options, path


def test_interval_families_and_bare_models(tmp_path, run, files):
    data, _ = files
    family = pf.IntervalFamily(CHAIN.transition_matrix - 0.01, CHAIN.transition_matrix + 0.01)
    released = pf.release_histogram(DATA, pf.PublicModel(family, FORM), 1.0, ledger=tmp_path / "i.ledger")
    assert released.mechanism == "mqm-exact" or released.calibration.certificate is not None
    assert "between the bounds of the model" in released.statement
    bare = write_model(tmp_path / "bare.json", CHAIN)
    asked = ("release", data, "--chain", bare, "--epsilon", 1, "--no-figure")
    assert "the model does not say what its states are" in run(*asked)[2]
    assert run(*asked, "--states", "sit,stand,walk", "--step", 60)[0] == 0
    assert (
        "4 states are given, the chain has 3"
        in run(*asked, "--states", "a,b,c,d", "--step", 60, "--output", tmp_path / "x")[2]
    )


def test_models_with_a_record_format_are_closed(tmp_path):
    path = write_model(tmp_path / "m.json", CHAIN, FORM)
    assert pf.read_public_model(path).records == FORM
    document = json.loads(path.read_text())
    for change in (
        {"states": {"names": ["a", "b"]}},
        {"states": {"edges": [2, 1]}},
        {"states": {"edges": [1, 2], "names": []}},
        {"states": 3},
        {"step_seconds": 0},
        {"step_seconds": True},
        {"split_after_seconds": -1},
        {"fitted": {"first": 1}},
        {"colour": "red"},
        {"reading": {"colour": "red"}},
        {"reading": {"time": 3}},
        {"reading": {"rows_are_steps": "yes"}},
        {"reading": None},
    ):
        path.write_text(json.dumps(document | {"records": document["records"] | change}))
        with pytest.raises(pf.ModelError, match="records"):
            pf.read_public_model(path)


# -- post-processing and simulation --------------------------------------------------------------------------


def test_post_processing_is_labelled_and_costs_nothing(tmp_path):
    raw = pf.simulate_release(DATA[:200], PUBLIC, 0.05, seed=4)
    assert raw.frequencies.min() < 0
    clipped, projected = raw.post_processed("clip"), raw.post_processed("simplex")
    assert clipped.frequencies.tolist() == np.clip(raw.frequencies, 0, 1).tolist()
    assert projected.frequencies.min() >= 0
    assert projected.frequencies.sum() == pytest.approx(1)
    assert clipped.counts == projected.counts == raw.counts
    for made, label in ((clipped, "clipped to [0, 1]"), (projected, "projected to the probability simplex")):
        assert label in made.statement
        assert set(made.to_frame()["post_processing"]) == {made.post_processing}
    with pytest.raises(pf.ParameterError, match="choose from clip, simplex"):
        raw.post_processed("round")


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8))
def test_the_projection_is_the_nearest_point(raw):
    point = histogram.to_simplex(np.array(raw))
    assert point.min() >= 0
    assert point.sum() == pytest.approx(1)
    # optimality: moving mass from a used state to any other does not come nearer
    slope = point - np.array(raw)
    assert slope[point > 1e-12].max() <= slope.min() + 1e-9


def test_a_simulation_is_repeatable_and_says_on_everything_that_it_is_not_private(files, run, tmp_path, only_svg):
    data, public = files
    for i in range(2):
        asked = ("simulate", data, "--chain", public, "--epsilon", 1, "--seed", 7, "--output", tmp_path / f"s{i}")
        assert "NOT PRIVATE" in run(*asked)[1]
    first, second = (text_files(tmp_path / f"s{i}") for i in range(2))
    assert first == second
    for name in ("histogram.json", "histogram.csv", "statement.txt"):
        assert "NOT PRIVATE" in first[name]
    assert not (tmp_path / "data.csv.ledger").exists()
    alone = ("simulate", "--chain", public, "--length", 500, "--epsilon", 1, "--seed", 7, "--no-figure", "--json")
    code, out, _ = run(*alone)
    assert (code, json.loads(out)["records"]) == (0, 500)
    assert json.loads(out)["private"] is False
    assert (
        "give either a table or a length"
        in run("simulate", "--chain", public, "--epsilon", 1, "--seed", 7, "--output", tmp_path / "x")[2]
    )
    assert "unrecognized arguments: --seed" in run("release", data, "--chain", public, "--epsilon", 1, "--seed", 7)[2]


def test_without_matplotlib_only_the_figure_is_missing(files, run, monkeypatch, tmp_path):
    data, public = files
    monkeypatch.setattr(_optional, "find_spec", lambda name: None if name == "matplotlib" else find_spec(name))
    code, out, err = run("release", data, "--chain", public, "--epsilon", 1)
    assert code == 0, err
    assert "matplotlib is not installed; install pufferflow[figures]" in " ".join(out.split())
    assert {p.name for p in (tmp_path / "data.csv.release/publish").iterdir()} == {
        "histogram.json", "histogram.csv", "statement.txt", "statement.md",
    }  # fmt: skip
    code, _, err = run("plan", "--chain", public, "--length", 9, "--accuracy", 0.5, "--figure", tmp_path / "errors")
    assert code == 2
    assert err.endswith("--figure cannot be had: matplotlib is not installed; install pufferflow[figures]\n")


def test_without_exact_samplers_nothing_is_spent(files, run, monkeypatch, tmp_path):
    data, public = files
    monkeypatch.setattr(_optional, "find_spec", lambda name: None if name == "opendp" else find_spec(name))
    for more in ((), ("--dry-run",)):
        code, _, err = run("release", data, "--chain", public, "--epsilon", 1, *more)
        assert code == 2
        assert "exact noise cannot be had: opendp is not installed; install pufferflow[publish]" in err
    assert {p.name for p in tmp_path.iterdir()} == {"data.csv", "public.json"}


@pytest.mark.parametrize("module", EXTRAS)
def test_what_is_missing_is_named_with_the_extra_that_brings_it(module, monkeypatch):
    monkeypatch.setattr(_optional, "find_spec", lambda name: None)
    with pytest.raises(
        ParameterError, match=rf"this cannot be had: {module} is .*; install pufferflow\[{EXTRAS[module]}\]"
    ):
        load(module, "this")
