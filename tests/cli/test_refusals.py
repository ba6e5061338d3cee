"""Bad input of every command: exit code 2, one sentence, nothing else printed, nothing written."""

import pytest

from pufferflow.cli import COMMANDS
from pufferflow.cli._old_words import WORDS
from pufferflow.cli.printing import as_options

VALUE = "77123"
ROWS = "".join(f"{who},2024-01-01T0{i}:00Z,{VALUE}.{i}\n" for who in "ab" for i in range(9))
TABLE = f"who,time,value\n{ROWS}"
FILES = {
    "m.json": '{"chains": [{"transition_matrix": [[0.9, 0.1], [0.4, 0.6]]}]}',
    "t.csv": TABLE,
    "bare.csv": ROWS,
    "word.csv": f"{TABLE}a,2024-01-01T09:00Z,x{VALUE}",
    "twice.csv": f"{TABLE}b,2024-01-01T08:00Z,{VALUE}",
    "time.csv": f"{TABLE}a,{VALUE}-13-45,1",
}
SCALE = "scale m.json --length 5"
AUDIT = "audit m.json --length 5"
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
    ("scales", "invalid choice: 'scales'"),
    (f"{SCALE} --epsilon 1 --jsn", "unrecognized arguments: --jsn; --json may be meant (see"),
    ("scale", "the following arguments are required: MODEL.json, --epsilon, --length (see"),
    ("related", "the following arguments are required: ACTION"),
    (f"{RELEASE} --time=--", "--time is '--'; give a value"),
    (f"{SCALE} --epsilon 1 --epsilon 2 --certificate c", "--certificate needs a single --epsilon"),
    (f"{SCALE} --epsilon 1 --mechanism gk16 --mechanism leakage --certificate c", "single --mech"),
    (f"{SCALE} --epsilon 1 --most-work -1", "argument --most-work: invalid"),
    (f"{SCALE} --epsilon 1 --mechanism leakage --most-work 1", "or allow more (--most-work)"),
    (f"{AUDIT} --scale 1", "give either --count STATE or --histogram"),
    (f"{AUDIT} --count 1 --scale 1 --protect participant", "--protect is participant; the exact"),
    ("verify m.json", "certificate rejected: "),
    ("example t.csv", "t.csv exists already"),
    ("related noisymax m.json", "the counts must be a list, not an object"),
    ("related check m.json --factor 2", "m.json"),
    ("related network m.json --epsilon 1", "unknown key 'chains'"),
    ("release t.csv --participant who --edges 1", "give --mixing TIME OVERLAP"),
    ("release t.csv --mixing 1h x", "string to float: 'x'; give a time and an overlap: 1h 0.4"),
    ("release t.csv --mixing 1h 0.4 --chain m.json", "not allowed with argument --mixing"),
    (f"{RELEASE} --edges 1 --states a,b", "--states and --edges say different things; give one"),
    (f"{RELEASE} --edges 1,x", "argument --edges: '1,x' is no list; give numbers with commas"),
    (f"{RELEASE} --edges 0:1:1e-300", "argument --edges: '0:1:1e-300' is no list"),
    (f"{RELEASE} --statistic mean", "mean needs --bounds; give it"),
    (f"{RELEASE} --edges 1 --alone --no-ledger", "--alone is for a ledger, and none is kept"),
    (f"{RELEASE} --edges 1 --no-ledger --ledger l", "--no-ledger keeps no account; leave --ledger"),
    (f"{RELEASE} --edges 1 --simulate 7 --limit 2", "--limit is for a ledger, and"),
    (f"{RELEASE} --edges 1 --side-information all", "side_information is 'all'; choose from"),
    (f"{RELEASE} --edges 1 --rows-are-steps --time time", "contradict each other"),
    (f"{RELEASE} --edges 1 --output t.csv", "t.csv exists already"),
    (f"{RELEASE} --edges 1 --ledger t.csv", "t.csv is read and would be overwritten"),
    ("release t.csv --mixing 3 0.5 --participant who --edges 1", "; --accept-noise publishes it"),
    (RELEASE.replace("t.csv", "bare.csv") + " --edges 1", "bare.csv"),
    (RELEASE.replace("t.csv", "word.csv") + " --edges 1", "word.csv, line 20"),
    (RELEASE.replace("t.csv", "twice.csv") + " --edges 1", "twice.csv, line 20"),
    (RELEASE.replace("t.csv", "time.csv") + " --edges 1", "time.csv, line 20"),
    (PLAN, "histogram needs the number of states; give --states"),
    ("plan --mixing 1h 0.4", "the following arguments are required: --step, --period, --part"),
    (f"{PLAN} --statistic mean-by-month --bounds 0 3", "every month; give a longer --period"),
    (f"{AUDIT} --histogram --scale 1 --protect 5", "or of several in a row for --count STATE"),
    (f"{RELEASE} --statistic median", "statistic 1 has no known name; choose from"),
    ("fit t.csv --epsilon 1", "--epsilon goes with --private"),
    (f"{PRIVATE} --coverage 0.9", "--coverage goes without --private"),
    (PRIVATE, "give --step, --timezone (UTC where times have offsets), first and"),
    ("ledger show t.csv", "t.csv"),
    ("ledger show l", "ledger l: "),
]
NAMES = ("decimal", "separator", "time", "value", "participant")
REFUSED += [(f"{RELEASE} --edges 1 --{name} \udcff", "") for name in NAMES]  # no text


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


def test_messages_name_options_as_the_shell_does():
    shown = "name it (--value), leave --states and --edges out, or --from and --yes of `x/y.csv`"
    said = "name it (value), leave states and edges out, or `first` and `new_values` of `x/y.csv`"
    assert as_options(said) == shown


def test_a_fault_of_the_program_quotes_nothing(folder, run, monkeypatch):
    monkeypatch.setattr("pufferflow.publish.release.Prepared", lambda *_, **__: int(f"x{VALUE}"))
    code, out, err = run(*f"{RELEASE} --edges 1".split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "a fault of this program: ValueError (<lambda>, line" in err
    assert VALUE not in err
