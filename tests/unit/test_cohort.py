import csv
import json
import tracemalloc
import weakref

import numpy as np
import pandas as pd
import pytest
from cases import counts

import pufferflow as pf
from pufferflow.datasets import Participant, Sample
from pufferflow.reporting import tables
from pufferflow.studies.cohort import measure as cohort
from pufferflow.studies.cohort.figures import figure
from pufferflow.studies.cohort.tables import cohort as cohort_table
from pufferflow.studies.tidy import read_table

SIMULATED = {"participants": 23, "states": 3, "shortest": 20, "longest": 200, "persistence": 0.8}
FIT = {"smoothing": 0, "initial_distribution": "stationary"}
MECHANISMS = ["group-dp", "gk16", "mqm-approx", "mqm-exact"]


def run(
    folder, chunks, *, samples=(), simulated=SIMULATED, epsilons=(0.5, 2), mechanisms=MECHANISMS, seed=3, least=False
):
    """Index, all chunks and the gathered files of a cohort."""
    folder.mkdir()
    index = folder / "index.csv"
    cohort.index_cohort(samples, simulated, index)
    parts = []
    for chunk in range(1, chunks + 1):
        people = cohort.members(index, chunk, chunks, simulated, FIT, seed)
        rows = cohort.measure(index, people, epsilons, mechanisms, {}, least, seed)
        cohort.write_rows(rows, cohort.COLUMNS, folder / f"{chunk}.csv")
        parts.append(folder / f"{chunk}.csv")
    out = [folder / name for name in ("cohort.csv", "summary.csv", "distribution.csv")]
    cohort.gather(parts, *out)
    return [path.read_bytes() for path in out]


def sample(names, *, dataset="walks", label="file", states=("a", "b"), seed=0):
    rng = np.random.default_rng(seed)
    people = []
    for name in names:
        counts = rng.integers(1, 50, (len(states), len(states)))
        total = int(counts.sum())
        seen = counts.sum(axis=1)
        seen[0] += 1
        people.append(Participant(name, "all", (total, 3), seen, counts))
    return Sample(dataset, label, "walks of people", 60, states, tuple(people))


def test_bytes_do_not_depend_on_the_number_of_chunks(tmp_path):
    whole = run(tmp_path / "one", 1)
    assert run(tmp_path / "four", 4) == whole
    assert run(tmp_path / "many", 40) == whole  # some chunks are empty


def test_chunks_partition_the_participants():
    for participants in (0, 1, 7, 100):
        for chunks in (1, 3, 7, 12):
            ranges = [cohort.chunk_range(participants, chunk, chunks) for chunk in range(1, chunks + 1)]
            assert [i for first, last in ranges for i in range(first, last)] == list(range(participants))
            assert max(b - a for a, b in ranges) - min(b - a for a, b in ranges) <= 1


def test_more_participants_epsilons_or_mechanisms_change_no_other_row(tmp_path):
    small = run(tmp_path / "small", 2)[0].decode().splitlines()
    large = (
        run(
            tmp_path / "large",
            3,
            simulated=SIMULATED | {"participants": 30},
            epsilons=(0.5, 1, 2),
            mechanisms=[*MECHANISMS, "entry-dp"],
        )[0]
        .decode()
        .splitlines()
    )
    assert set(small) < set(large)


def test_rows_are_the_scales_of_the_participants_chains(tmp_path):
    run(tmp_path / "run", 2)
    table = read_table(tmp_path / "run/cohort.csv")
    assert list(table.columns) == cohort.COLUMNS
    for number in (1, 12, 23):
        person = cohort.simulated_member(number, SIMULATED, "stationary", 3)
        for row in table[table["participant"].astype(str) == str(number)].itertuples():
            found = pf.MECHANISMS[row.mechanism](person.chain, person.lengths, row.epsilon)
            assert row.status == found.status
            assert row.length == person.observations
            if found.scale is None:
                assert np.isnan(row.scale)
                assert row.reason == found.reason
            else:
                assert row.scale == found.scale
                assert row.expected_error == pytest.approx(3 * found.scale * 2 / person.observations)


@pytest.mark.parametrize("participants", counts(4, 8))
def test_no_scale_is_below_the_lower_bound(tmp_path, participants):
    few = SIMULATED | {"participants": participants}
    run(tmp_path / "run", 2, simulated=few, mechanisms=["group-dp", "mqm-exact", "leakage"], least=True)
    table = read_table(tmp_path / "run/cohort.csv")
    assert (table["scale"] >= table["lower_bound"]).all()
    for row in table.sample(6, random_state=1).itertuples():
        person = cohort.simulated_member(int(row.participant), few, "stationary", 3)
        assert row.lower_bound == pf.lower_bound(person.chain, person.lengths, row.epsilon).scale
        assert row.least_error == pytest.approx(row.expected_error * row.lower_bound / row.scale)
    summary = read_table(tmp_path / "run/summary.csv")
    bounds = summary[summary["mechanism"] == "lower-bound"]
    assert bounds["participants"].tolist() == [participants] * 2
    least = table.drop_duplicates(["participant", "epsilon"]).groupby("epsilon")["least_error"]
    assert bounds["mean_error"].tolist() == pytest.approx(least.mean().tolist())
    gaps = table.assign(gap=table["scale"] / table["lower_bound"]).groupby(["epsilon", "mechanism"])["gap"].max()
    for row in summary[summary["mechanism"] != "lower-bound"].itertuples():
        assert 1 <= row.gap_q50 <= row.gap_q95 <= gaps[row.epsilon, row.mechanism]
    drawn = figure(read_table(tmp_path / "run/distribution.csv"))
    errors, gaps = drawn.axes
    assert len(errors.lines) == 4
    assert len(gaps.lines) == 4  # three mechanisms and the line at 1
    assert "lower bound" in tables.render(cohort_table(summary))["md"]


@pytest.mark.parametrize("participants", counts(600, 2000))
def test_released_errors_have_the_expected_mean(tmp_path, participants):
    run(
        tmp_path / "run",
        1,
        simulated=SIMULATED | {"participants": participants},
        mechanisms=["group-dp"],
        epsilons=(1,),
    )
    summary = read_table(tmp_path / "run/summary.csv").iloc[0]
    # group-dp: scale T, Lipschitz 2/T, so every participant's error is 2 k in the mean
    assert summary["mean_error"] == pytest.approx(6)
    assert abs(summary["mean_released_error"] - 6) < 4 * summary["standard_error"]
    assert summary["standard_error"] == pytest.approx(2 * np.sqrt(3 / participants), rel=0.2)


def test_simulated_participants_cover_their_settings():
    people = [cohort.simulated_member(i, SIMULATED, "stationary", 1) for i in range(1, 1001)]
    lengths = [person.observations for person in people]
    assert min(lengths) >= 20
    assert max(lengths) <= 200
    assert abs(np.mean(np.log(lengths)) - np.mean(np.log([20, 201]))) < 0.1
    assert len({person.chain.transition_matrix.tobytes() for person in people}) == 1000
    same = cohort.simulated_member(5, SIMULATED | {"shortest": 7, "longest": 7}, "stationary", 1)
    assert same.observations == 7


@pytest.mark.parametrize("participants", counts(80, 300))
def test_quantiles_are_rounded_up_by_less_than_the_grid(tmp_path, participants):
    run(
        tmp_path / "run",
        1,
        simulated=SIMULATED | {"participants": participants},
        mechanisms=["mqm-exact"],
        epsilons=(1,),
    )
    errors = np.sort(read_table(tmp_path / "run/cohort.csv")["expected_error"])
    summary = read_table(tmp_path / "run/summary.csv").iloc[0]
    for name, share in (("error_q05", 0.05), ("error_q50", 0.5), ("error_q95", 0.95)):
        exact = errors[int(np.ceil(share * participants)) - 1]
        assert exact <= summary[name] <= exact * 10 ** (1 / cohort.PER_DECADE) * (1 + 1e-12)
    assert summary["largest_error"] == errors[-1]
    assert summary["mean_error"] == pytest.approx(errors.mean())
    distribution = read_table(tmp_path / "run/distribution.csv")
    assert distribution["participants"].sum() == participants


@pytest.mark.parametrize("value", [1e-300, 3.7e-9, 0.1, 1.0, np.nextafter(1, 2), 10.0, 123.456, 8.1e200])
def test_grid_point_is_the_next_one(value):
    point = cohort.grid_point(value)
    assert value <= point <= value * 10 ** (1 / cohort.PER_DECADE) * (1 + 1e-12)


def test_grid_point_of_nothing():
    assert cohort.grid_point(0) == 0


def test_folder_of_samples(tmp_path):
    files = []
    for i, names in enumerate((["a", "b", "c"], ["d"], ["e", "f"])):
        files.append(tmp_path / f"{i}.json")
        sample(names, seed=i).save(files[-1])
    whole = run(tmp_path / "one", 1, samples=files)
    assert run(tmp_path / "four", 4, samples=files) == whole
    table = read_table(tmp_path / "one/cohort.csv")
    assert list(dict.fromkeys(table["participant"])) == ["a", "b", "c", "d", "e", "f"]
    assert set(table["label"]) == {"file"}
    person = sample(["d"], seed=1).participants[0]
    chain = pf.fit_chain(person.transition_counts)[0]
    row = table[(table["participant"] == "d") & (table["mechanism"] == "mqm-exact") & (table["epsilon"] == 2)].iloc[0]
    assert row["scale"] == pf.mqm_exact(chain, person.segment_lengths, 2).scale
    assert row["lipschitz"] == 2 / person.observations


def test_participant_whose_chain_cannot_be_fitted_has_rows_that_say_why(tmp_path):
    people = sample(["a", "b"])
    stuck = Participant("stuck", "all", (2,), np.array([1, 1]), np.array([[0, 1], [0, 0]]))
    silent = Participant("silent", "all", (), np.array([0, 0]), np.zeros((2, 2), dtype=np.int64))
    split = Participant("split", "all", (40, 40), np.array([40, 40]), np.array([[39, 0], [0, 39]]))
    Sample("walks", "file", "", 60, ("a", "b"), (*people.participants, stuck, silent, split)).save(tmp_path / "s.json")
    run(tmp_path / "run", 2, samples=[tmp_path / "s.json"], epsilons=(1,))
    table = read_table(tmp_path / "run/cohort.csv")
    assert len(table) == 5 * len(MECHANISMS)
    for name, word in (("stuck", "never left"), ("silent", "no transition"), ("split", "closed classes")):
        rows = table[table["participant"] == name]
        assert set(rows["status"]) == {"not applicable"}
        assert rows["reason"].str.contains(word).all()
    summary = read_table(tmp_path / "run/summary.csv").set_index("mechanism")
    assert summary.loc["mqm-exact", "participants"] == 5
    assert summary.loc["mqm-exact", "applicable"] == 2


@pytest.mark.parametrize("other", [{"dataset": "runs"}, {"label": "bundled"}, {"states": ("a", "b", "c")}])
def test_samples_of_different_data_are_refused(tmp_path, other):
    sample(["a"]).save(tmp_path / "1.json")
    sample(["b"], **other).save(tmp_path / "2.json")
    with pytest.raises(pf.DataError, match=rf"2\.json has {next(iter(other))}.*one data set"):
        cohort.index_cohort([tmp_path / "1.json", tmp_path / "2.json"], SIMULATED, tmp_path / "index.csv")
    assert not (tmp_path / "index.csv").exists()


def test_foreign_chunk_is_refused_and_leaves_nothing(tmp_path):
    (tmp_path / "chunk.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    out = [tmp_path / name for name in ("t.csv", "s.csv", "d.csv")]
    with pytest.raises(pf.DataError, match=r"chunk\.csv is not a table of a cohort"):
        cohort.gather([tmp_path / "chunk.csv"], *out)
    with pytest.raises(pf.DataError, match=r"none\.csv: No such file"):
        cohort.gather([tmp_path / "none.csv"], *out)
    assert not any(path.exists() for path in out)


@pytest.mark.parametrize("participants", counts(40, 300))
def test_participants_are_held_one_at_a_time(tmp_path, participants):
    many = SIMULATED | {"participants": participants}
    index = tmp_path / "index.csv"
    cohort.index_cohort([], many, index)
    alive, most = weakref.WeakSet(), 0

    def watched():
        nonlocal most
        for person in cohort.members(index, 1, 1, many, FIT, 3):
            alive.add(person)
            most = max(most, len(alive))
            yield person

    rows = cohort.measure(index, watched(), (1,), ["group-dp", "mqm-exact"], {}, False, 3)
    cohort.write_rows(rows, cohort.COLUMNS, tmp_path / "chunk.csv")
    assert most == 2  # the one that is done is let go when the next one is there


def test_gathering_takes_no_more_memory_for_more_rows(tmp_path):
    run(tmp_path / "run", 1, simulated=SIMULATED | {"participants": 200}, mechanisms=["group-dp"], epsilons=(1,))
    chunk, out = tmp_path / "run/1.csv", [tmp_path / name for name in ("t.csv", "s.csv", "d.csv")]

    def peak(times):
        tracemalloc.start()
        cohort.gather([chunk] * times, *out)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    peak(1)
    once = peak(1)
    assert peak(10) < once + chunk.stat().st_size / 2


def test_written_rows_are_what_pandas_reads(tmp_path):
    rows = [["a, b", 'quo"te', 0.1 + 0.2, 1e-300, None], ["line\nbreak", "ε", 1.0, 2, ""]]
    cohort.write_rows(rows, list("abcde"), tmp_path / "rows.csv")
    table = pd.read_csv(tmp_path / "rows.csv")
    assert table["a"].tolist() == ["a, b", "line\nbreak"]
    assert table["c"].tolist() == [0.1 + 0.2, 1.0]
    assert [list(row.values()) for row in cohort.read_rows(tmp_path / "rows.csv", list("abcde"))] == [
        ["a, b", 'quo"te', "0.30000000000000004", "1e-300", ""],
        ["line\nbreak", "ε", "1.0", "2", ""],
    ]


def test_exception_while_writing_keeps_the_old_file(tmp_path):
    def rows():
        yield [1]
        raise pf.DataError("stop")

    cohort.write_rows([[0]], ["a"], tmp_path / "rows.csv")
    with pytest.raises(pf.DataError):
        cohort.write_rows(rows(), ["a"], tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8") == "a\n0\n"
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_table_and_figure(tmp_path):
    run(tmp_path / "run", 1, mechanisms=["gk16", "group-dp", "mqm-exact"])
    shown = tables.render(cohort_table(read_table(tmp_path / "run/summary.csv")))
    assert "| 0.5 |" in shown["md"]
    assert "MQMExact" in shown["tex"]
    assert len(list(csv.reader(shown["csv"].splitlines()))) == 1 + 6
    drawn = figure(read_table(tmp_path / "run/distribution.csv"))
    (axes,) = drawn.axes
    for line in axes.lines:
        heights = line.get_ydata()
        assert heights[0] == 0
        assert heights[-1] == pytest.approx(1)
        assert (np.diff(heights) >= 0).all()
    assert json.dumps([text.get_text() for text in drawn.legends[0].get_texts()])
    with pytest.raises(pf.DataError):
        figure(pd.DataFrame(columns=cohort.DISTRIBUTION_COLUMNS))


def test_a_sample_that_changed_after_the_index_is_refused(tmp_path):
    sample(["a", "b"]).save(tmp_path / "s.json")
    index = tmp_path / "index.csv"
    cohort.index_cohort([tmp_path / "s.json"], SIMULATED, index)
    before = index.read_bytes()
    sample(["a", "b"], seed=1).save(tmp_path / "s.json")
    with pytest.raises(pf.DataError, match=r"s\.json has changed since .*index\.csv was made; run snakemake again"):
        list(cohort.members(index, 1, 1, SIMULATED, FIT, 3))
    cohort.index_cohort([tmp_path / "s.json"], SIMULATED, index)
    # so Snakemake measures again, even where a run ended after the index
    assert index.read_bytes() != before
