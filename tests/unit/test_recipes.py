"""The recipes of CONTRIBUTING.md, followed in a copy of the package: what they add works, and few files are touched."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("recipes")  # what its tests share is made once

ROOT = Path(__file__).parents[2]
RECIPES = {
    title: text
    for title, _, text in (
        part.partition("\n") for part in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## ")
    )
}
MECHANISM = '''
"""Twice the noise of group-dp."""

from dataclasses import replace

from pufferflow.mechanisms.base import Mechanism
from pufferflow.mechanisms.whole_segment import group_dp


def twice_group(family, length, epsilon, *, window=1, knows="nothing"):
    """Scale 2 M/ε."""
    once = group_dp(family, length, epsilon, window=window, knows=knows)
    return replace(once, mechanism="twice-group", scale=2 * once.scale)


TWICE_GROUP = Mechanism("twice-group", twice_group, lambda question: iter(()))
'''
FAMILY = '''
"""Records that do not depend on each other."""

from pufferflow.markov.families import FamilyWithoutMatrix


class IndependentFamily(FamilyWithoutMatrix):
    """Independent records, on any states."""

    _no_chains = "independent records have no transition matrix; use leakage"
    sizes = ()

    def text(self, public):
        """Say so."""
        return "independent records"

    def document(self):
        """Return the model as plain JSON types."""
        return {"independent": {}}
'''
BOUND = '''
"""What an entry tells of records that do not depend on each other: itself."""

from pufferflow.coupling.calibration import Loss


class IndependentLoss:
    """w c, at whichever node."""

    def __init__(self, window):
        self._window = window

    def loss(self, cost):
        """At c."""
        return Loss(self._window * cost, 1)

    def scale(self, epsilon, upper):
        """w/ε."""
        scale = self._window / epsilon
        return (scale, 1) if scale < upper else None
'''
CHECK = """
import json, sys
import pandas as pd, yaml
import pufferflow as pf
from pufferflow import cli
from pufferflow.drawing.style import mechanism_style

sys.path.insert(0, "workflow")
from reproduction.settings import complete

done = {"where": pf.__file__}
chain = pf.MarkovChain([[0.5, 0.5], [0.5, 0.5]])
with open("model.json", "w") as file:
    json.dump({"chains": [chain.document()]}, file)

config = yaml.safe_load(open("config/config.yaml"))
assert "twice-group" in config["synthetic"]["mechanisms"]
config["datasets"]["activity"]["mechanisms"].append("twice-group")
config["timings"]["mechanisms"].append("twice-group")
complete(config)
(planned,) = pf.plan_release(chain, 0.1, length=100, mechanisms=["twice-group"])
commanded = cli.main(["scale", "model.json", "--length", "10", "--epsilon", "1", "--mechanism", "twice-group"])
label = mechanism_style("twice-group").label
theta = pf.IndependentFamily()
with open("independent.json", "w") as file:
    json.dump(theta.document(), file)

asked = ["scale", "independent.json", "--length", "10", "--epsilon", "1", "--mechanism", "leakage"]
scale = pf.leakage(theta, 100, 0.5, window=3).scale
loss = pf.leakage_loss(theta, 100, scale, window=3)
done["family"] = [scale, loss, cli.main(asked), cli.main([*asked[:-1], "mqm-exact"])]
done["mechanism"] = [pf.twice_group(chain, 10, 1.0).scale, planned.epsilon, commanded, label]

values = pd.Series(["a", "b"] * 20)
form = pf.RecordFormat(pf.StateSpace.categories(["a", "b"]))
done["family"].append(pf.simulate_release(values, theta, 1.0, seed=1, form=form).scale)
values.to_csv("records.csv", index=False, header=["value"])
said = []
for most in (1, 2):
    try:
        options = {"form": form, "mechanism": "group-dp", "most_states": most}
        said.append(pf.simulate_release(values, chain, 1.0, seed=1, **options).records)
    except pf.ParameterError as error:
        said.append(str(error))
words = ["simulate", "records.csv", "--chain", "model.json", "--epsilon", "1", "--seed", "1", "--states", "a,b"]
said.append(cli.main([*words, "--most-states", "1"]))
done["option"] = [*said, "most_states : int, optional" in pf.release_histogram.__doc__]
print("\\n" + json.dumps(done))
"""


class House:
    """A copy of the project, and which of its files were touched."""

    def __init__(self, root):
        self.root, self.touched = root, {}
        for part in ("pufferflow", "config", "workflow"):
            shutil.copytree(ROOT / part, root / part, ignore=shutil.ignore_patterns("__pycache__", "*.xz"))

    def follow(self, recipe, new=(), changed=()):
        for path, text in new:
            assert not (self.root / path).exists()
            (self.root / path).write_text(text.lstrip(), encoding="utf-8")
        for path, old, put in changed:
            text = (self.root / path).read_text(encoding="utf-8")
            assert text.count(old) == 1, (path, old)
            (self.root / path).write_text(text.replace(old, put), encoding="utf-8")
        self.touched[recipe] = sorted({path for path, *_ in (*new, *changed)})

    def run(self, code):
        environment = os.environ | {"PYTHONPATH": str(self.root)}
        ran = subprocess.run(
            [sys.executable, "-c", code], cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def house(tmp_path_factory):
    """All recipes followed, one after the other."""
    house = House(tmp_path_factory.mktemp("house"))
    mechanisms = "pufferflow/mechanisms/__init__.py"
    house.follow(
        "Add a mechanism",
        [("pufferflow/mechanisms/twice_whole_segment.py", MECHANISM)],
        [
            (
                mechanisms,
                "\nfor _record in (",
                "from pufferflow.mechanisms.twice_whole_segment import TWICE_GROUP, twice_group\n\nfor _record in (",
            ),
            (mechanisms, "GROUP_DP, ENTRY_DP):", "GROUP_DP, ENTRY_DP, TWICE_GROUP):"),
            (mechanisms, '    "wasserstein",\n', '    "twice_group",\n    "wasserstein",\n'),
            (
                "pufferflow/__init__.pyi",
                "from .mechanisms import wasserstein as",
                "from .mechanisms import twice_group as twice_group\nfrom .mechanisms import wasserstein as",
            ),
            (
                "config/config.yaml",
                "mechanisms: [gk16, mqm-approx, mqm-exact, wass",
                "mechanisms: [twice-group, gk16, wass",
            ),
        ],
    )
    bounds, models = "pufferflow/coupling/bounds.py", "pufferflow/models.py"
    house.follow(
        "Add a kind of family Θ",
        [("pufferflow/independent_family.py", FAMILY), ("pufferflow/coupling/independent.py", BOUND)],
        [
            (
                bounds,
                "from pufferflow.coupling.labelled",
                "from pufferflow.coupling.independent import IndependentLoss\nfrom pufferflow.coupling.labelled",
            ),
            (
                bounds,
                "from pufferflow.markov.families",
                "from pufferflow.independent_family import IndependentFamily\nfrom pufferflow.markov.families",
            ),
            (
                bounds,
                "@loss_bounds.register\ndef _(family: LabelledChain",
                "@loss_bounds.register\ndef _(family: IndependentFamily, length, protection, max_states):\n"
                "    return [Part(family, IndependentLoss(protection.window))]\n\n\n"
                "@loss_bounds.register\ndef _(family: LabelledChain",
            ),
            (
                models,
                "from pufferflow.interval_family",
                "from pufferflow.independent_family import IndependentFamily\nfrom pufferflow.interval_family",
            ),
            (models, '"labelled", "periodic")\n', '"labelled", "periodic", "independent")\n'),
            (
                models,
                '    interval = document["binary_interval"]',
                '    if "independent" in document:\n        return IndependentFamily()\n'
                '    interval = document["binary_interval"]',
            ),
            (
                "pufferflow/__init__.pyi",
                "from .interval_family import IntervalFamily as",
                "from .independent_family import IndependentFamily as IndependentFamily\n"
                "from .interval_family import IntervalFamily as",
            ),
        ],
    )
    request, releases = "pufferflow/publishing/request.py", "pufferflow/cli/_releases.py"
    house.follow(
        "Add an option of a release",
        changed=[
            (
                request,
                "\n    fitted_to_others: Annotated[",
                '\n    most_states: Annotated[int | None, "int, optional", "States at most."]'
                "\n    fitted_to_others: Annotated[",
            ),
            (
                request,
                "    fitted_to_others: bool = False\n",
                "    fitted_to_others: bool = False\n    most_states: int | None = None\n",
            ),
            (
                "pufferflow/publishing/exact.py",
                "    reading = Reading(**form.reading)",
                "    if request.most_states is not None and form.states.count > request.most_states:\n"
                '        raise ParameterError(f"{form.states.count} states are too many; join some")\n'
                "    reading = Reading(**form.reading)",
            ),
            (
                releases,
                '    form = parser.add_argument_group("states,',
                '    parser.add_argument("--most-states", type=int)\n    form = parser.add_argument_group("states,',
            ),
            (
                releases,
                "        fitted_to_others=",
                "        most_states=arguments.most_states,\n        fitted_to_others=",
            ),
        ],
    )
    return house


@pytest.fixture(scope="module")
def done(house):
    done = house.run(CHECK)
    assert Path(done["where"]).is_relative_to(house.root)
    return done


@pytest.mark.parametrize(
    ("recipe", "most"),
    [
        ("Add a mechanism", 4),
        ("Add a kind of family Θ", 5),
        ("Add an option of a release", 3),
    ],
)
def test_a_recipe_names_the_few_files_that_are_touched(house, recipe, most):
    touched = house.touched[recipe]
    assert 1 < len(touched) <= most
    named = [re.escape(name) for name in re.findall(r"`((?:pufferflow|config|workflow)/[^`]+)`", RECIPES[recipe])]
    patterns = [re.sub(r"<\w+>", r"\\w+", name) for name in named]
    for path in touched:
        assert any(re.fullmatch(pattern, path) for pattern in patterns), (path, patterns)


def test_an_added_mechanism_runs_in_python_in_the_shell_and_in_the_settings(done):
    scale, epsilon, commanded, label = done["mechanism"]
    assert (scale, commanded, label) == (20.0, 0, "twice-group")
    assert epsilon > 0


def test_an_added_family_has_its_noise_in_python_and_in_the_shell(done):
    scale, loss, leakage, quilts, released = done["family"]
    assert scale == 6.0
    assert 1.0 <= released < 1.01  # a multiple of the unit
    assert loss == pytest.approx(0.5)
    assert (leakage, quilts) == (0, 2)  # a mechanism that needs a matrix is refused


def test_an_added_option_of_a_release_works_in_python_and_in_the_shell(done):
    refused, records, code, told = done["option"]
    assert refused == "2 states are too many; join some"
    assert (records, code, told) == (40, 2, True)
