from functools import cache

import numpy as np
import pandas as pd
import pytest

import pufferflow as pf
from pufferflow.datasets import Participant, Sample, ingest_electricity
from pufferflow.reporting import comparison
from pufferflow.reporting.style import save_figure
from pufferflow.studies.activity.claims import pattern_claims
from pufferflow.studies.electricity.claims import bin_claims
from pufferflow.studies.histograms import measure as histograms
from pufferflow.studies.histograms.claims import histogram_claims
from pufferflow.studies.real_data.chains import describe_chains, fit_chains, load_chains, save_chains
from pufferflow.studies.synthetic import measure as synthetic
from pufferflow.studies.synthetic.claims import growth_claims, ordinal_claims
from pufferflow.studies.synthetic.figures import growth as synthetic_growth
from pufferflow.studies.tidy import named_generator, read_table, write_table
from pufferflow.studies.worked_examples import measure as worked_examples
from pufferflow.studies.worked_examples import networks
from pufferflow.studies.worked_examples import quilts as drawn_quilts
from pufferflow.studies.worked_examples.figures import quilts as draw_quilts

OPTIONS = {"mqm-exact": {"convention": "exact"}, "mqm-approx": {"eigengap": "auto"}}


def person(name, group, path, rng):
    counts = np.zeros((3, 3), dtype=np.int64)
    np.add.at(counts, (path[:-1], path[1:]), 1)
    return Participant(name, group, (len(path),), np.bincount(path, minlength=3), counts)


@pytest.fixture
def sample():
    rng = np.random.default_rng(5)
    people = [person(f"p{i}", "a" if i < 3 else "b", rng.integers(0, 3, 200 + 20 * i), rng) for i in range(4)]
    return Sample("activity", "synthetic", "made up", 60, ("x", "y", "z"), tuple(people))


def test_tables_survive_a_round_trip(tmp_path):
    table = pd.DataFrame(
        {
            "group": ["a", ""],
            "scale": [0.1 + 0.2, None],
            "node": [3, None],
            "reason": ["", "no, not at all"],
        }
    )
    write_table(table, tmp_path / "t.csv")
    back = read_table(tmp_path / "t.csv")
    assert back["scale"][0] == 0.1 + 0.2
    assert list(back["group"]) == ["a", ""]
    assert list(back["reason"]) == ["", "no, not at all"]
    assert (tmp_path / "t.csv").read_text().splitlines()[1].split(",")[2] == "3"


def test_unreadable_table_is_one_sentence(tmp_path):
    with pytest.raises(pf.DataError, match=r"none\.csv cannot be read"):
        read_table(tmp_path / "none.csv")


def test_streams_are_keyed_by_name():
    assert named_generator(1, "a").random() == named_generator(1, "a").random()
    assert named_generator(1, "a").random() != named_generator(1, "b").random()
    assert named_generator(1, "a").random() != named_generator(2, "a").random()


@pytest.mark.parametrize(
    ("start", "stop", "step", "count"), [(0.1, 0.4, 0.01, 31), (0.1, 0.4, 0.05, 7), (0.3, 0.3, 1, 1)]
)
def test_alpha_grid(start, stop, step, count):
    grid = synthetic.alpha_grid(start, stop, step)
    assert len(grid) == count
    assert grid[0] == start
    assert grid[-1] == stop
    if count == 31:
        assert 0.3 in grid


def test_one_more_epsilon_changes_no_digit_of_the_others():
    few = synthetic.errors(synthetic.scales([0.2, 1], [0.2, 0.35], 60, list(OPTIONS), OPTIONS), 40, 7)
    more = synthetic.errors(synthetic.scales([0.2, 2, 1], [0.2, 0.35], 60, list(OPTIONS), OPTIONS), 40, 7)
    kept = more[more["epsilon"] != 2].reset_index(drop=True)
    pd.testing.assert_frame_equal(few, kept, check_exact=True)


def test_synthetic_class_errors_to_four_digits():
    """theory.md: exact / approx / GK16 error of the class [α, 1 − α] at T = 100."""
    published = {
        (1.0, 0.1): (0.3363, 0.6864, None),
        (1.0, 0.2): (0.1422, 0.2963, None),
        (1.0, 0.3): (0.0722, 0.1772, None),
        (1.0, 0.36): (0.0475, 0.1405, 0.0748),
        (1.0, 0.4): (0.0395, 0.1211, 0.0389),
        (0.2, 0.1): (2.5905, 4.3555, None),
        (0.2, 0.3): (0.5966, 1.2097, None),
        (0.2, 0.4): (0.3261, 0.8490, 0.1944),
        (5.0, 0.1): (0.0210, 0.0987, None),
        (5.0, 0.3): (0.0041, 0.0216, None),
        (5.0, 0.4): (0.0026, 0.0135, 0.0078),
    }
    mechanisms = ["mqm-exact", "mqm-approx", "gk16"]
    alphas = sorted({alpha for _, alpha in published})
    table = synthetic.errors(synthetic.scales([0.2, 1, 5], alphas, 100, mechanisms, OPTIONS), 2, 1)
    for (epsilon, alpha), values in published.items():
        rows = table[(table["epsilon"] == epsilon) & (table["alpha"] == alpha)].set_index("mechanism")
        for mechanism, value in zip(mechanisms, values, strict=True):
            if value is None:
                assert rows.loc[mechanism, "status"] == "not applicable"
            else:
                assert round(rows.loc[mechanism, "expected_error"], 4) == value


def test_monte_carlo_mean_agrees_with_the_expected_error():
    table = synthetic.errors(synthetic.scales([1], [0.2, 0.3, 0.4], 100, list(OPTIONS), OPTIONS), 2000, 3)
    z = (table["mean_error"] - table["expected_error"]) / table["standard_error"]
    assert np.abs(z).max() < 4.5


def test_gk16_limits():
    """The Toeplitz value is theory.md's 0.32186; the first node of an arbitrary start moves it right."""
    limits = synthetic.gk16_limits(100)["alpha"].to_list()
    assert limits[1] == pytest.approx(0.32186, abs=5e-6)
    assert limits[1] < limits[0] < 0.33
    assert pf.gk16(pf.BinaryInterval(limits[0] + 1e-6, 1 - limits[0] - 1e-6), 100, 1).scale is not None
    assert pf.gk16(pf.BinaryInterval(limits[0] - 1e-6, 1 - limits[0] + 1e-6), 100, 1).scale is None


def test_bundled_electricity_scales():
    """theory.md: MQMExact on the bundled two years, maximum-likelihood P, stationary start."""
    electricity = ingest_electricity("bundled")
    chains = fit_chains(electricity, 0, "stationary")
    table = histograms.scales(electricity, chains, [0.2, 1, 5], ["mqm-exact", "mqm-approx", "gk16"], OPTIONS)
    exact = table[table["mechanism"] == "mqm-exact"]
    assert [round(scale, 3) for scale in exact["scale"]] == [4145.006, 595.126, 66.156]
    assert list(zip(exact["quilt_left"], exact["quilt_right"], strict=True)) == [(356, 354), (238, 237), (111, 109)]
    approx = table[table["mechanism"] == "mqm-approx"]["scale"]
    assert (approx.to_numpy() > exact["scale"].to_numpy()).all()
    assert set(table[table["mechanism"] == "gk16"]["status"]) == {"not applicable"}


def test_histogram_scales_and_errors(sample):
    chains = fit_chains(sample, 0, "stationary")
    mechanisms = ["dp", "group-dp", "mqm-exact"]
    scales = histograms.scales(sample, chains, [0.5, 1], mechanisms, OPTIONS)
    aggregate = scales[(scales["group"] == "a") & (scales["task"] == "aggregate") & (scales["epsilon"] == 1)]
    by_mechanism = aggregate.set_index("mechanism")
    total = 200 + 220 + 240
    assert by_mechanism.loc["group-dp", "scale"] == 240
    assert by_mechanism.loc["dp", "scale"] == 240
    assert by_mechanism.loc["dp", "lipschitz"] == 2 / total
    assert by_mechanism.loc["mqm-exact", "scale"] == pf.mqm_exact(chains["a"], [200, 220, 240], 1).scale
    # group b is one person: no aggregate task, and no "dp"
    assert set(scales[scales["group"] == "b"]["task"]) == {"individual"}
    assert "dp" not in set(scales[scales["task"] == "individual"]["mechanism"])

    errors = histograms.errors(scales, 300, 11)
    row = errors[(errors["group"] == "a") & (errors["task"] == "individual") & (errors["mechanism"] == "group-dp")]
    expected = np.mean([3 * 2 / n * n / 0.5 for n in (200, 220, 240)])
    assert row[row["epsilon"] == 0.5]["expected_error"].item() == pytest.approx(expected)
    assert row["participants"].to_list() == [3, 3]
    z = (errors["mean_error"] - errors["expected_error"]) / errors["standard_error"]
    assert np.abs(z).max() < 4.5

    releases = histograms.releases(sample, scales, 5, 11)
    exact = releases[releases["group"] == "a"].drop_duplicates("state")["exact_frequency"]
    assert exact.sum() == pytest.approx(1)
    assert len(releases[(releases["group"] == "b")]) == 2 * 2 * 5 * 3


def test_one_participant_without_a_scale_makes_the_row_not_applicable(sample):
    chains = fit_chains(sample, 0, "stationary")
    scales = histograms.scales(sample, chains, [1], ["group-dp"], OPTIONS)
    scales.loc[scales["participant"] == "p1", ["scale", "status", "reason"]] = [np.nan, "not applicable", "because"]
    row = histograms.errors(scales, 10, 1).query("group == 'a' and task == 'individual'").iloc[0]
    assert row["status"] == "not applicable"
    assert row["reason"] == "because"
    assert np.isnan(row["expected_error"])


def test_chains_are_saved_as_model_files(sample, tmp_path):
    chains = fit_chains(sample, 0.5, "any")
    save_chains(chains, tmp_path)
    back = load_chains(tmp_path)
    assert set(back) == {"a", "b"}
    for group, chain in chains.items():
        np.testing.assert_array_equal(back[group].transition_matrix, chain.transition_matrix)
        assert back[group].start == "any"
    table = describe_chains(sample, chains).set_index("group")
    assert table.loc["a", "observations"] == 660
    assert table.loc["b", "longest_segment"] == 260
    with pytest.raises(pf.DataError, match="cannot name a file"):
        save_chains({"../up": chains["a"]}, tmp_path)


# -- comparison ----------------------------------------------------------------------------------


@cache
def worked():
    return worked_examples.worked_examples()[0]


def test_all_worked_examples_agree_with_the_restored_values():
    table = comparison.compare(comparison.stated_numbers(worked()))
    printed = comparison.reported_values()
    assert len(table) == (printed["dataset"] == "worked").sum() > 20
    derived = table["source"] == "derived here"
    assert set(table.loc[~derived, "verdict"]) == {"agrees with the restored value"}
    assert set(table.loc[derived, "verdict"]) == {"no verdict"}


def test_a_wrong_worked_value_differs():
    for key, wrong in (("running/θ1/published/scale", 13.03), ("running/θ1/published/node", "X9")):
        broken = worked().copy()
        broken["computed"] = broken["computed"].astype(object)
        broken.loc[broken["key"] == key, "computed"] = wrong
        assert list(comparison.compare(comparison.stated_numbers(broken))["verdict"]).count("differs") == 1


def electricity_errors(factor):
    rows = [
        ("group-dp", 1.0, "ok", 100.0),
        ("gk16", 1.0, "not applicable", np.nan),
        ("mqm-approx", 1.0, "ok", 0.06 * factor),
        ("mqm-exact", 1.0, "ok", 0.02 * factor),
    ]
    table = pd.DataFrame(rows, columns=["mechanism", "epsilon", "status", "expected_error"])
    return table.assign(
        dataset="electricity",
        label="bundled",
        group="household",
        task="individual",
        bins=51,
        mean_error=table["expected_error"],
        standard_error=0.001,
    )


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_other_data_are_never_reproduced_nor_judged_by_how_close_they_are(factor):
    table = comparison.compare(histogram_claims(electricity_errors(factor), "electricity", "Table 3"))
    assert "reproduced" not in set(table["verdict"])
    claims = table[table["kind"] == "claim"]
    assert set(claims["verdict"]) == {comparison.SAME}
    ours = table[(table["kind"] == "number") & table["claim"].str.contains("MQMExact")]
    assert ours["verdict"].item() == "not comparable"
    assert ours["reason"].item()
    assert table[table["reported"] == "N/A"]["verdict"].to_list()[-1] == "not applicable"
    # claims come first
    assert list(table["kind"]) == sorted(table["kind"])


@pytest.mark.parametrize(("error", "verdict"), [(102.0, "reproduced"), (130.0, "differs")])
def test_what_needs_no_data_is_judged(error, verdict):
    table = electricity_errors(1.0)
    table.loc[table["mechanism"] == "group-dp", ["expected_error", "mean_error"]] = error
    rows = comparison.compare(histogram_claims(table, "electricity", "Table 3", ["group-dp"]))
    number = rows[(rows["kind"] == "number") & rows["claim"].str.contains("GroupDP")]
    assert number["verdict"].item() == verdict
    assert "51 bins" in number["reason"].item()


def test_rows_without_reason_or_with_a_claim_too_large_are_refused():
    row = next(iter(histogram_claims(electricity_errors(1.0), "electricity", "Table 3")))
    for other, message in (
        ({"verdict": "differs"}, "without a reason"),
        ({"verdict": "not comparable"}, "without a reason"),
        ({"verdict": "reproduced", "source": "restored"}, "its value is restored"),
        ({"verdict": "reproduced", "source": "derived here"}, "its value is derived here"),
    ):
        with pytest.raises(pf.ParameterError, match=message):
            comparison.compare([row._replace(**{"reason": ""} | other)])


def test_every_reported_value_says_where_it_comes_from():
    reported = comparison.reported_values()
    assert set(reported["source"]) <= set(comparison.ORIGINS)
    assert set(reported["kind"]) <= {"", *comparison.UNJUDGED_KINDS}
    assert set(reported["disagreement"]) <= {"", *comparison.VERDICTS}
    assert reported.loc[reported["key"] != "", "key"].is_unique
    assert (reported["value"] != "").eq(reported["source"] != "derived here").all()


def test_verdicts_are_counted_source_by_source():
    rows = [*comparison.stated_numbers(worked())]
    rows += histogram_claims(electricity_errors(1.0), "electricity", "Table 3")
    counts = comparison.verdicts_of(comparison.compare(rows))
    assert list(counts) == ["Song, Wang and Chaudhuri 2017"]
    assert sum(counts["Song, Wang and Chaudhuri 2017"].values()) == len(rows)
    by_origin = comparison.verdicts_of(comparison.compare(rows), "source")
    assert list(by_origin) == ["printed", "restored", "derived here"]
    assert "reproduced" not in by_origin["restored"] | by_origin["derived here"]
    assert sum(map(sum, (own.values() for own in by_origin.values()))) == len(rows)


def test_a_broken_order_differs():
    table = electricity_errors(1.0)
    table.loc[table["mechanism"] == "mqm-exact", "expected_error"] = 0.5
    claims = comparison.compare(histogram_claims(table, "electricity", "Table 3")).query("kind == 'claim'")
    assert claims["verdict"].iloc[0] == "differs"


def test_synthetic_claims():
    mechanisms = ["gk16", "mqm-approx", "mqm-exact"]
    scales = synthetic.scales([1], [0.1, 0.25, 0.35, 0.4], 100, mechanisms, OPTIONS)
    errors = synthetic.errors(scales, 5, 1)
    limits = synthetic.gk16_limits(100)
    table = comparison.compare(ordinal_claims(errors, limits))
    by_claim = table.set_index("claim")["verdict"]
    assert set(by_claim[table.set_index("claim")["kind"] == "claim"]) == {"reproduced"}
    assert by_claim.filter(like="dashed").item() == "agrees with the restored value"
    assert by_claim.filter(like="own entry").item() == "no verdict"
    # under other settings than the paper's nothing is reproduced
    for other in (errors.assign(epsilon=0.5), errors.assign(length=50), errors[errors["alpha"] > 0.3]):
        verdicts = comparison.compare(ordinal_claims(other, limits)).set_index("claim")["verdict"]
        assert set(verdicts.filter(like="MQM")) == {comparison.SAME}
    broken = errors.copy()
    broken.loc[(errors["mechanism"] == "mqm-exact") & (errors["alpha"] == 0.25), "expected_error"] = 99.0
    verdicts = comparison.compare(ordinal_claims(broken, limits))["verdict"].to_list()
    assert verdicts.count("differs") == 2
    # MQMExact better than GK16 wherever that applies is another thing than "somewhat worse beyond"
    better = errors.copy()
    better.loc[(errors["mechanism"] == "mqm-exact") & (errors["alpha"] == 0.4), "expected_error"] = 1e-9
    differing = comparison.compare(ordinal_claims(better, limits)).query("verdict == 'differs'")
    assert differing["claim"].to_list() == ["MQMExact against GK16 where that applies, ε = 1"]
    assert differing["ours"].item() == "better at all 2 values of α"


def test_claims_about_longer_chains():
    mechanisms = ["group-dp", "mqm-approx", "mqm-exact"]
    table = synthetic.growth([0.2, 1.0], 0.2, [5, 100, 1000, 10000], mechanisms, {})
    rows = comparison.compare(growth_claims(table)).set_index("claim")
    group = rows[rows.index.str.contains("GroupDP")]
    assert group["reported"].to_list() == group["ours"].to_list() == ["5", "1"]
    assert set(group["verdict"]) == {"agrees with the restored value"}
    longer = rows[rows.index.str.startswith("longer chains")]
    assert set(longer["verdict"]) == {comparison.SAME}
    (bounded,) = rows[rows.index.str.contains("MQMExact does not grow.*ε = 1$")].to_dict("records")
    assert bounded["verdict"] == "no verdict"
    assert bounded["ours"] == f"{pf.mqm_exact(pf.BinaryInterval(0.2, 0.8), 100, 1).scale:.4g} from T = 100 on"
    # an error that rose with the length would be seen
    wrong = table.assign(expected_error=table["expected_error"] * table["length"].astype(float) ** 2)
    assert "differs" in set(comparison.compare(growth_claims(wrong))["verdict"])
    assert len(synthetic_growth(table).axes) == 2


def releases_table(shares):
    """Two groups, one state; shares by mechanism: released frequencies of both in each release."""
    rows = [
        ("activity", "bundled", group, mechanism, 1.0, i + 1, "sedentary", exact, value)
        for mechanism, pairs in shares.items()
        for i, pair in enumerate(pairs)
        for group, exact, value in zip(("men_18_54", "overweight_women_18_54"), (0.5, 0.6), pair, strict=True)
    ]
    names = [
        "dataset",
        "label",
        "group",
        "mechanism",
        "epsilon",
        "release",
        "state",
        "exact_frequency",
        "released_frequency",
    ]
    return pd.DataFrame(rows, columns=names)


def test_claims_about_patterns_of_the_groups():
    table = releases_table({"group-dp": [(0.9, 0.1), (0.1, 0.9)], "mqm-exact": [(0.5, 0.6), (0.4, 0.5)]})
    longest, visible = comparison.compare(pattern_claims(table)).to_dict("records")
    assert longest["verdict"] == comparison.SAME
    assert longest["ours"] == "women 18–54, BMI ≥ 25 0.600, men 18–54 0.500"
    assert visible["verdict"] == comparison.SAME
    assert "GroupDP 50%, MQMExact 100%" in visible["ours"]
    swapped = table.assign(exact_frequency=1 - table["exact_frequency"])
    contradicted = comparison.compare(pattern_claims(swapped)).iloc[0]
    assert contradicted["verdict"] == "differs"
    assert "among ours it is men 18–54" in contradicted["reason"]
    clear = releases_table({"group-dp": [(0.1, 0.9)] * 2, "mqm-exact": [(0.5, 0.6)] * 2})
    assert comparison.compare(pattern_claims(clear)).iloc[1]["verdict"] == "differs"
    # states and groups of other people make no claim
    assert not list(pattern_claims(table.assign(state="walking")))
    assert not list(pattern_claims(table[table["group"] == "men_18_54"]))


def test_claim_about_the_error_of_a_bin():
    household = electricity_errors(1.0)
    people = household.assign(task="individual", bins=4, dataset="activity")
    (row,) = bin_claims(household, people)
    assert row.verdict == comparison.SAME
    assert row.ours == f"{0.02 / 51:.2g} against {0.02 / 4:.2g} to {0.02 / 4:.2g}"
    (row,) = bin_claims(household, people.assign(bins=1000))
    assert row.verdict == "differs"
    assert row.reason
    assert not list(bin_claims(household, people.assign(epsilon=2.0)))


def test_quilts_are_drawn_as_the_library_finds_them(tmp_path, only_svg):
    write_table(drawn_quilts.quilts(), tmp_path / "quilts.csv")
    table = read_table(tmp_path / "quilts.csv")
    roles = {
        line: "".join({"node": "i", "nearby": "n", "quilt": "q", "remote": "r"}[role] for role in of_line["role"])
        for line, of_line in table.groupby("line", sort=False)
    }
    assert list(roles.values()) == ["rqninqr", "rqninnn", "nnninqr", "nnninnn", "rrqnnnninnnnqrrr"]
    network = table[table["panel"] == "a quilt in a network"].set_index("variable")
    # parents, children and other parents of children: nothing else is next to B2 in the moral graph
    assert set(network.index[network["role"] == "quilt"]) == {"A2", "B1", "C2", "B3", "A3", "C1"}
    first, second = (draw_quilts(table) for _ in range(2))
    paths = [save_figure(figure, tmp_path / name)[0] for figure, name in ((first, "a"), (second, "b"))]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    assert len(first.axes) == 3


# -- flu networks --------------------------------------------------------------------------------


def test_flu_network_by_hand():
    """Its table is the framework; the other cliques do not move one clique's people further apart than its own law."""
    found = {value.key: value.computed for value in networks.network_values()}
    table = networks.flu_table()
    assert list(table.columns) == ["scenario", *networks.PEOPLE, "value", "probability"]
    assert len(table) == 2 * 2**9
    framework = pf.PufferfishFramework.from_table(table)
    assert framework.wasserstein().W == found["flu/network/wasserstein"] == 2
    group = framework.group_sensitivity(networks.GROUPS)
    assert (group.sensitivity, group.independent) == (4, True) == (found["flu/network/group"], True)
    assert not framework.group_sensitivity([("ann", "bob")]).independent
    alone = [
        pf.PufferfishFramework.from_databases({"a": networks.clique_law(law)}, sum).wasserstein().W
        for laws in networks.SEASONS.values()
        for law in laws
    ]
    assert found["flu/network/wasserstein"] <= max(alone)
    assert found["flu/network/quilts"] == pytest.approx(4)
    assert found["flu/network/loss"] < 1
    assert found["theorem-2.4/lost"] <= found["theorem-2.4/guaranteed"]
    assert found["theorem-2.4/delta"] == pytest.approx(np.log(2))
    assert found["theorem-3.3/larger"] == 0 < found["theorem-3.3/ratio"] < 1
    assert found["composition/network/quilts"] < found["composition/network/theorem"]
    assert found["composition/network/theorem"] == pytest.approx(9)
