"""Hostile command lines, so many, from a seed: ``fuzz_cli.py 2000 7``.

A case takes a line that works, adds options of its command with usual or hostile values, damages a
file or puts something else in its place, and runs in a fork. ``check`` says what must hold.
"""

import json
import os
import random
import resource
import shutil
import signal
import stat
import sys
import tempfile
from pathlib import Path

import pufferflow as pf
from pufferflow import cli

MAX_SECONDS, MAX_BYTES = 60, 2**30
CANARY = "77123"  # part of every value of the tables
ODD = "nan inf -1 0 1e400 5e-324 1,2 -- 1_000 ٣ ½ 1:2:1e-300 0:1e400:1 a,a %Q 1h -1e3 m.json l"
HOSTILE = (*ODD.split(), "", " ", "1" * 5000, "9" * 30, "\udcff", "x" * 300, "a\nb", "\x1b[31m")
LINES = """
release t.csv --mixing 3 0.5 --edges 77123.2,77123.5 --participant who --accept-noise
release t.csv --chain m.json --participant who --accept-noise
release t.csv --mixing 3 0.5 --statistic mean --bounds 0 3 --participant who --ledger l
plan --mixing 1h 0.5 --statistic mean --bounds 0 3 --step 30min --participants 50 --period 7d
fit t.csv --edges 77123.2,77123.5 --participant who
fit t.csv --private --edges 1,2 --participant who --step 60 --timezone UTC \
--from 2024-01-01 --to 2024-01-02
ledger show l
ledger verify l
ledger add l words --cost 0.001 --whole 0.01 --participant who --value value
ledger set-limit l reading 9 --yes
verify c.json
scale m.json --length 20 --epsilon 1
audit m.json --length 10 --epsilon 1 --count 1
example new.csv --minutes 10
related noisymax n.json
related network b.json --epsilon 1""".strip().splitlines()
OTHERS = "2 5 60 0.05 time 1d sum-by-hour 0:9:3 mean,sum"
USUAL = " ".join([*LINES, OTHERS]).split()
JUNK = (b"\xff", b"\0", b'"', b",", b"\n", b"1e999", b"null", b"[", b"-")
INSTEAD = (os.mkfifo, os.mkdir, Path.touch, Path, "t.csv", "nowhere", "/dev/null")


def sound_files(folder):
    """Write what the lines name."""
    dice, times = random.Random(1), [f"2024-01-01T0{i // 60}:{i % 60:02}Z" for i in range(90)]
    rows = [f"{who},{t},{CANARY}.{dice.randrange(10)}\n" for who in range(60) for t in times]
    (folder / "t.csv").write_text("who,time,value\n" + "".join(rows))
    chain, records = [[0.7, 0.3], [0.4, 0.6]], {"states": {"edges": [1.5]}, "step_seconds": 60}
    documents = {"m.json": {"chains": [{"transition_matrix": chain}], "records": records}}
    documents["c.json"] = pf.certify(pf.BinaryInterval(0.3, 0.7), 5, 1.0)
    documents["n.json"] = [0, 2, 1]
    documents["b.json"] = {"variables": [{"name": "a", "table": [0.5, 0.5]}]}
    for name, document in documents.items():
        (folder / name).write_text(json.dumps(document))
    asked = {"statistics": ["mean"], "bounds": (0, 3), "participant": "who", "accept_noise": True}
    pf.release(folder / "t.csv", pf.mixing(3, 0.5), ledger=folder / "l", limit=5, **asked)


def case(dice, folder):
    """Return a command line, and damage its files, as the dice say."""
    words = dice.choice(LINES).split()
    for _ in range(dice.choice((0, 1, 1, 2, 2, 3))):
        change = dice.choice(("option", "option", "word", "damage", "damage"))
        if change == "word":
            words[dice.randrange(1, len(words))] = dice.choice((*HOSTILE, *words))
        else:
            option(dice, words) if change == "option" else damage(dice, folder)
    return [os.fsdecode(os.fsencode(word)) for word in words]


def option(dice, words):
    """Add an option that the command declares, with usual or hostile values."""
    parser = cli._parser(words)
    for word in words[:2]:
        if parser._subparsers is not None:
            parser = parser._subparsers._group_actions[0].choices.get(word, parser)
    action = dice.choice([one for one in parser._actions if one.option_strings])
    words.append(action.option_strings[-1])
    for _ in range(0 if action.nargs == 0 else action.nargs or 1):
        words.append(dice.choice([*(action.choices or USUAL)] if dice.random() < 0.7 else HOSTILE))


def damage(dice, folder):
    """Change a file, or put something else in its place or in that of one to be written."""
    path = folder / dice.choice(sorted([*os.listdir(folder), "t.csv.release", "t.csv.chain.json"]))
    if path.is_file() and dice.random() < 0.5:
        content = path.read_bytes()
        begin, end = sorted(dice.randrange(len(content) + 1) for _ in range(2))
        new = dice.choice((b"", content[begin:end] * 2, *JUNK))
        path.write_bytes(content[:begin] + new + content[end:])
        return
    shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink(True)
    what = dice.choice(INSTEAD)
    path.symlink_to(what) if isinstance(what, str) else what(path)


def content_of(folder):
    """Everything in a folder: the content of files, the mode of anything else."""
    modes = {path: path.lstat().st_mode for path in folder.rglob("*")}
    return {p: p.read_bytes() if stat.S_ISREG(mode) else mode for p, mode in modes.items()}


def forked(words, folder, out):
    """Run the command line in a fork; its exit code, what it used, and what it printed."""
    texts = [out.with_suffix(end) for end in (".out", ".err")]
    if (child := os.fork()) == 0:
        code = 1
        try:
            signal.alarm(90)
            space = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (space + 4 * MAX_BYTES,) * 2)
            os.chdir(folder)
            for number, path in enumerate(("/dev/null", *texts)):
                os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), number)
            sys.argv = ["pufferflow", *words]
            code = cli.main()
            sys.stdout.flush()
        finally:
            os._exit(code)  # 1 after an error that main did not catch
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    return code, used, *(path.read_text(errors="replace") for path in texts)


def check(words, code, used, out, err, changed):
    """Assert what must hold of a run; ``changed`` are the names of files made or changed."""
    said, lines = f"{words!a}\n{err[-300:]!a}", err.splitlines()
    assert code in (0, 2, 130, 141), f"{code}: {said}"
    assert all(line.startswith("pufferflow: ") for line in lines), said
    assert code != 2 or lines[-1].startswith("pufferflow: error: "), said
    assert "a fault of this program" not in err, said
    if words[0] != "fit" and not any(CANARY in word for word in words):  # or declared as public
        assert CANARY not in out + err, said
    assert used.ru_utime + used.ru_stime < MAX_SECONDS, said
    assert used.ru_maxrss * 1024 < MAX_BYTES, said
    assert code == 0 or not changed, f"{changed}: {said}"
    assert not any(name.startswith((".", "tmp")) for name in changed), f"{changed}: {said}"


def main(runs, seed):
    """Run the cases; the first of which something does not hold ends it."""
    cli._parser(cli.COMMANDS)  # which loads all commands
    with tempfile.TemporaryDirectory() as home:
        place, sound = Path(home) / "case", Path(home) / "sound"
        sound.mkdir()
        sound_files(sound)
        for number in range(runs):
            shutil.rmtree(place, ignore_errors=True)
            shutil.copytree(sound, place)
            words = case(random.Random(seed * 10**6 + number), place)
            before = content_of(place)
            ran = forked(words, place, Path(home) / "printed")
            after = content_of(place)
            changed = [p.name for p in {**after, **before} if after.get(p) != before.get(p)]
            check(words, *ran, changed)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
