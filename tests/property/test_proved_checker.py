"""The checker that is proved in Coq and the one in Python agree, on certificates and mutants."""

import json
import subprocess
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from cases import counts
from certificate_truth import worst_loss
from test_forged_certificates import forge

import pufferflow as pf
from pufferflow.cli import main
from pufferflow.errors import CertificateError
from pufferflow.verify import ask_proved_checker, proved_checker

CHECKER = proved_checker()
pytestmark = pytest.mark.skipif(CHECKER is None, reason="the checker is not built: make proofs")


def made(seed):
    """A certificate of a small chain, with a period, any start, or zeros, or of all that mix."""
    rng = np.random.default_rng([5, seed])
    k = int(rng.integers(2, 5))
    shape = k if seed % 4 else (int(rng.integers(2, 4)), k)
    rows = 0.9 * rng.dirichlet(np.full(k, rng.choice([0.4, 1.0])), shape) + 0.1 / k
    if seed % 4 == 2:
        rows = rows * (rng.random((k, k)) < 0.7) + 0.001 * np.eye(k)
        rows += 0.2 * np.roll(np.eye(k), 1, 1)
        rows /= rows.sum(axis=1, keepdims=True)
    length = int(rng.choice([1, 2, 3, 4, 6, 30, 1000, 10**6]))
    epsilon, window = float(rng.choice([0.2, 1.0, 3.0])), int(rng.choice([1, 1, 1, 2, 3]))
    start = ["stationary", "any", np.eye(k)[0], np.full(k, 1 / k)][(seed // 2 + seed // 8) % 4]
    family = pf.MarkovChain(rows, start) if seed % 4 else pf.PeriodicChain(rows)
    if seed % 8 == 7:
        family = pf.MixingFamily(int(rng.integers(1, 5)), float(rng.choice([0.2, 0.6])))
        length = min(length, 1000)
    mechanism = "mqm-exact" if seed % 8 in (1, 3) else "leakage"
    return pf.certify(family, length, epsilon, mechanism=mechanism, window=window)


def answers(documents, folder):
    """What the proved checker says of each."""
    paths = [folder / f"{number}.json" for number in range(len(documents))]
    for path, document in zip(paths, documents, strict=True):
        path.write_text(json.dumps(document))
    found = subprocess.run([CHECKER, *paths], capture_output=True, text=True, check=False)
    lines = found.stdout.splitlines()
    assert len(lines) == len(documents), found.stderr
    return [line.split(": ", 1)[1] for line in lines]


def accepted(document):
    try:
        pf.verify_certificate(document)
    except CertificateError:
        return False
    return True


@pytest.mark.parametrize("wanted", counts(600, 20_000))
def test_neither_checker_accepts_what_the_other_refuses(wanted, tmp_path):
    """But for rules that no theorem covers; what is accepted is true by linear programs."""
    sound = [made(seed) for seed in range(wanted // 50)]
    forged = [
        forge(sound[number % len(sound)], np.random.default_rng([77, number]))
        for number in range(wanted)
    ]
    documents = json.loads(json.dumps(sound + forged))
    seen = Counter()
    for document, answer in zip(documents, answers(documents, tmp_path), strict=True):
        known = answer.split(":")[0]
        seen[known] += 1
        if known != "unproved rule":
            assert (known == "accepted") == accepted(document), (answer, json.dumps(document))
        if known == "accepted":
            most = Fraction(document["epsilon"]) * Fraction("1.000001") + Fraction("1e-9")
            assert worst_loss(document) <= most, json.dumps(document)
    assert seen["accepted"] >= wanted / 20
    assert seen["refused"] > wanted / 2


def test_what_is_not_covered_is_named():
    document = pf.certify(pf.BinaryInterval(0.2, 0.8), 100, 1.0, mechanism="leakage")
    answer = ask_proved_checker(json.dumps(document).encode())
    assert answer == "unproved rule: a family given by binary_interval"
    spent = {"delta": "1e-6", "event_delta": "0", "rho": "1e-9"}
    document = made(2) | {"approximate": spent}
    pf.verify_certificate(document)
    assert ask_proved_checker(json.dumps(document).encode()) == "unproved rule: a delta"


def test_the_command_asks_it(tmp_path, capsys):
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(made(0)))
    assert main(["verify", str(path), "--proved"]) == 0
    assert capsys.readouterr().out.endswith("proved checker: accepted\n")


def test_it_is_not_waited_for_without_end(monkeypatch):
    monkeypatch.setattr("pufferflow.verify.SECONDS", 1e-4)
    with pytest.raises(CertificateError, match="no answer within"):
        ask_proved_checker(json.dumps(made(0)).encode())
