"""Bad input of every command: exit code 2, one sentence, nothing else printed, nothing written."""

import pytest

from pufferflow.cli import COMMANDS
from pufferflow.cli._old_words import WORDS

VALUE = "77123"
ROWS = "".join(f"{who},2024-01-01T0{i}:00Z,{VALUE}.{i}\n" for who in "ab" for i in range(9))
TABLE = f"who,time,value\n{ROWS}"
FILES = {
    "m.json": '{"chains": [{"transition_matrix": [[0.9, 0.1], [0.4, 0.6]]}]}',
    "t.csv": TABLE,
    "word.csv": f"{TABLE}a,2024-01-01T09:00Z,x{VALUE}",
}
SCALE = "scale m.json --length 5"
RELEASE = "release t.csv --mixing 3 0.5 --participant who --accept-noise"
PLAN = "plan --mixing 1h 0.4 --step 30min --participants 5 --period 7d"
PRIVATE = "fit t.csv --private --participant who --step 1h --timezone UTC --edges 1"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


REFUSED = [
    ("", "the following arguments are required: COMMAND (see pufferflow --help)"),
    (f"{SCALE} --epsilon 1 --jsn", "unrecognized arguments: --jsn (see"),
    (f"{RELEASE} --time=--", "--time is '--'; give a value"),
    (f"{SCALE} --epsilon 1 --epsilon 2 --certificate c", "--certificate needs a single --epsilon"),
    (f"{SCALE} --epsilon 1 --most-work -1", "argument --most-work: invalid"),
    (f"{SCALE} --epsilon 1 --mechanism leakage --most-work 1", "or allow more (--most-work)"),
    ("audit m.json --length 5 --scale 1", "give either --count STATE or --histogram"),
    ("verify m.json", "certificate rejected: "),
    ("related network m.json --epsilon 1", "unknown key 'chains'"),
    ("release t.csv --participant who --edges 1", "give --mixing TIME OVERLAP"),
    ("release t.csv --mixing 1h x", "string to float: 'x'; give a time and an overlap: 1h 0.4"),
    (f"{RELEASE} --edges 1 --states a,b", "--states and --edges say different things; give one"),
    (f"{RELEASE} --edges 0:1:1e-300", "argument --edges: '0:1:1e-300' is no list"),
    (f"{RELEASE} --statistic mean", "mean needs --bounds; give it"),
    (f"{RELEASE} --edges 1 --no-ledger --ledger l", "--no-ledger keeps no account; leave --ledger"),
    (f"{RELEASE} --edges 1 --simulate 7 --limit 2", "--limit is of a ledger's promise"),
    (f"{RELEASE} --edges 1 --output t.csv", "t.csv exists already"),
    (f"{RELEASE} --edges 1 --ledger t.csv", "t.csv is read and would be overwritten"),
    ("release t.csv --mixing 3 0.5 --participant who --edges 1", "; --accept-noise publishes it"),
    (RELEASE.replace("t.csv", "word.csv") + " --edges 1", "word.csv, line 20"),
    (f"{PLAN} --statistic mean-by-month --bounds 0 3", "every month; give a longer --period"),
    (f"{RELEASE} --statistic median", "statistic 1 has no known name; choose from"),
    (f"{PRIVATE} --coverage 0.9", "--coverage goes without --private"),
    ("ledger show t.csv", "t.csv"),
]
REFUSED += [(f"{RELEASE} --edges 1 --{name} \udcff", "") for name in ("decimal", "time")]  # no text


@pytest.mark.parametrize(("words", "sentence"), REFUSED)
def test_bad_input_is_refused_in_one_sentence(folder, run, words, sentence):
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, err = run(*words.split())
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert err.startswith("pufferflow: error: ")
    assert sentence in err
    assert VALUE not in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("word", WORDS)
def test_old_words_are_refused_with_the_new_ones(folder, run, word):
    """A command says what takes its place, and so does an option of every command that lacks it."""
    option = word.startswith("-")
    lines = [f"{name} t.csv {word} 3" for name in COMMANDS] if option else [word]
    said = [run(*line.split()) for line in lines]
    told = [(code, out) for code, out, err in said if f"error: {word} {WORDS[word]}\n" in err]
    assert set(told) == {(2, "")}
    assert len(told) >= (4 if option else 1)


def test_a_fault_of_the_program_quotes_nothing(folder, run, monkeypatch):
    monkeypatch.setattr("pufferflow.publish.release.Prepared", lambda *_, **__: int(f"x{VALUE}"))
    code, out, err = run(*f"{RELEASE} --edges 1".split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "a fault of this program: ValueError (<lambda>, line" in err
    assert VALUE not in err
