"""Certificates by hand: each refused one lacks one thing that an accepted one next to it has.

The last take too long to check: no document takes more than was allowed, whatever it says.
"""

import copy
import time
from decimal import Decimal, localcontext

import pytest
from certificate_truth import chain, claim, worst_loss

import pufferflow as pf
from pufferflow.cli import verify
from pufferflow.errors import CertificateError

NONE = {"prefix": []}


def table(k, entry):
    return [["0" if x == y else str(entry) for y in range(k)] for x in range(k)]


def program(forward, backward, witnesses=(), **more):
    return {"witnesses": list(witnesses), "forward": forward, "backward": backward} | more


def cycle(k, entry, *steps):
    return {"prefix": [], "start": table(k, entry), "cycle": list(steps)}


def trees_of(k, pairs):
    """Witnesses of some pairs of values, from 1."""
    return [[pairs.get((x, y)) for y in range(1, k + 1)] for x in range(1, k + 1)]


def accepted(document):
    assert str(pf.verify_certificate(document).scale) == document["scale"]


def rejected(document, reason):
    with pytest.raises(CertificateError, match=reason):
        pf.verify_certificate(document)


def excluded(document, loss):
    rejected(document, f"a loss of {loss}.* is not excluded")


def least(document, epsilon):
    accepted(document | {"epsilon": str(epsilon)})
    excluded(document | {"epsilon": str(0.99 * epsilon)}, int(epsilon))


BITS = chain([[0.5, 0.5], [0.5, 0.5]])
STICKY = chain([[0.9, 0.1], [0.1, 0.9]], "stationary")
TREES = [[None, [0, -1]], [[0, 1], None]]
OPEN = "does not end at or below its start"


# -- COUNT -----------------------------------------------------------------------------------------


def test_what_no_step_bounds_counts_all_records_of_that_side():
    """Of 4 records c = 1 each: 1 for the secret, 3 on a side without a bound, nothing on those of
    independent ones. Two of five records cost 2, the three on one side of them 3.
    """
    free = cycle(2, 0, {"power": 1})
    least(claim(BITS, 1, 4, 1, program(free, free)), 1)
    least(claim(BITS, 2, 5, 1, program(free, free), window=2), 2)
    for sides in ((free, NONE), (NONE, free), (NONE, NONE)):
        least(claim(BITS, 4, 4, 1, program(*sides)), 4)
        least(claim(BITS, 5, 5, 1, program(*sides), window=2), 5)
    excluded(claim(BITS, 3.99, 4, 1, {}), 4)


def test_the_first_and_the_last_value_of_a_window_are_two_pairs():
    """Read at one pair the loss of what lies ahead of one and behind another would be missed."""
    cyclic = pf.MarkovChain([[0.2, 0.8, 0], [0, 0.2, 0.8], [0.8, 0, 0.2]])
    document, single = (
        pf.certify(cyclic, 50, 0.2, mechanism="leakage", window=window) for window in (2, 1)
    )
    accepted(document)
    scales = float(document["scale"]), float(single["scale"])
    assert scales[0] > scales[1]
    for less in (0.9999 * scales[0], scales[1]):
        rejected(document | {"scale": repr(less)}, "not excluded|does not end at or below")
    short = pf.certify(cyclic, 4, 1.0, mechanism="leakage", window=2)
    assert worst_loss(short) <= float(pf.verify_certificate(short).loss) * (1 + 1e-6)


def test_windows_with_the_same_first_value_differ_in_the_last_ones():
    """The first record is certain; the second one tells the two after it."""
    family = chain([["0", "0.5", "0.5"], ["0", "1", "0"], ["0", "0", "1"]], ["1", "0", "0"])
    side = {"prefix": [{"power": 1}] * 2}
    least(claim(family, 4, 4, 1, program(side, side), window=2), 4)


def test_the_first_and_the_last_record_of_a_window_have_phases_of_their_own():
    """Each of 1 and 2 becomes 3 or 4 as it was, and reveals c ahead; 3 and 4 reveal c behind."""
    same, fair = [[0, 0, 1, 0], [0, 0, 0, 1], *[[0, 0, 0.5, 0.5]] * 2], [[0.5, 0.5, 0, 0]] * 4
    side = cycle(4, 1.001, {"power": 1}, {"power": 1})
    start = [["0" if x == y or max(x, y) < 2 else "9" for y in range(4)] for x in range(4)]
    proof = program(side, side | {"start": start})
    for window, loss in ((1, 2.01), (2, 4.01)):
        family = chain(same, "stationary", fair)
        least(claim(family, loss, 9, 1, proof, window=window), loss)


def test_segments_begin_at_any_phase_with_any_value():
    """State 3 occurs at the second phase only in a first record, and there reveals the next."""
    half, third = [[0.5, 0.5, 0]] * 3, [["1/3"] * 3] * 2
    family = chain(half, "any", [*third, [1, 0, 0]])
    forward, backward = (cycle(3, entry, *[{"power": 1}] * 2) for entry in (0.001, 9))
    excluded(claim(family, 1.9, 9, 1, program(forward, backward)), 9)


# -- STEP and CLOSE --------------------------------------------------------------------------------


ROW, NEARLY = ["0.5", "0.5"], ["0.5000001", "0.4999999"]
PHASES = chain([ROW, NEARLY], "stationary", [ROW, ROW])
[TWO] = PHASES["chains"]


def phases(trees):
    side = {"prefix": [], "start": table(2, 0.001), "cycle": [{"witnesses": 0}, {"witnesses": 0}]}
    return claim(PHASES, "1.01", 9, 1, program(side, side, [trees]))


def test_pairs_without_a_witness_have_no_bound():
    """Deleting entries of lists proves nothing."""
    accepted(phases(TREES))
    for some in ([[None] * 2] * 2, [TREES[0], [None] * 2], [[None] * 2, TREES[1]]):
        rejected(phases(some), f"{OPEN}|is not excluded")
    document = phases(TREES)
    proof = document["proofs"][0]
    proof["backward"] = NONE
    excluded(document, 9)
    proof["backward"] = proof["forward"] | {"cycle": [{}, {}]}
    rejected(document, OPEN)


@pytest.mark.parametrize(
    "parents", [[], [0], [0, 0], [0, 1, 1], [1, 1], [2, 1], [0, 3], [0, -3], [0, 2]]
)
def test_trees_have_one_root_and_reach_every_state(parents):
    rejected(phases([TREES[0], [parents, None]]), "a tree has")


def test_lists_of_witnesses():
    rejected(phases(TREES[:1]), "is not a square matrix")
    rejected(phases([]), "is not a square matrix")
    for size in (1, 3):
        rejected(phases([[None] * size] * size), "witnesses for 2 values that are not there")
    document = phases(TREES)
    powers = ({"power": power} for power in (0, -1, 10**7, "2"))
    sentences = (
        "for 2 values that are not there|Expected int.* at proofs.0..forward|steps away from step"
    )
    for step in ({"witnesses": 1}, {"witnesses": -1}, *powers):
        forged = copy.deepcopy(document)
        forged["proofs"][0]["forward"]["cycle"][0] = step
        rejected(forged, sentences)
    for steps in ([], [{}], [{}] * 3):
        forged = copy.deepcopy(document)
        forged["proofs"][0]["forward"]["cycle"] = steps
        rejected(forged, "a cycle has a start, and a step for each of the 2 phases")
    for fields, why in (({"prefix": [{}]}, "only if one"), ({"start": [["0"]]}, "one row per")):
        forged = copy.deepcopy(document)
        forged["proofs"][0]["forward"] |= fields
        rejected(forged, why)
    # segments begin at any phase
    begins = {"chains": [TWO | {"initial_distribution": ROW}]}
    rejected(document | {"family": begins}, "or is that of a period")


@pytest.mark.parametrize("start", ["1e30", "1e300", "1e999"])
def test_no_start_is_so_large_that_every_period_closes(start):
    """∞ ≤ ∞ proves nothing, and what lies above COUNT counts as that."""
    for family, trees in ((PHASES, TREES), (STICKY, TREES)):
        steps = [{"witnesses": 0}] * (2 if family is PHASES else 1)
        side = {"prefix": [], "start": table(2, start), "cycle": steps}
        document = claim(family, "1.01", 10**6, 1, program(side, side, [trees]))
        rejected(document, "is not excluded|no finite bound")


def test_a_table_must_lead_below_itself():
    """Sticky bits at c = 0.1 reveal .7 ahead, and as much behind; half of it leads above itself."""
    side, low = (cycle(2, entry, {"witnesses": 0}) for entry in (0.75, 0.35))
    accepted(claim(STICKY, 1.6, 10**6, 10, program(side, side, [TREES])))
    for sides in ((low, side), (side, low)):
        rejected(claim(STICKY, 1.6, 10**6, 10, program(*sides, [TREES])), OPEN)
    excluded(claim(STICKY, 1.3, 10**6, 10, program(side, side, [TREES])), 1)


# the last two of independent fair bits: what comes after two steps is independent
PAIRS = chain([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]] * 2)


def test_the_nodes_of_a_block_may_reveal_more_than_what_it_lets_through():
    """Two steps let nothing through, but the node between reveals c: else 3 would pass for 2."""
    ahead = [[[0, -1, -1, -1]] * 4] * 4
    forward = cycle(4, 1.001, {"witnesses": 0, "power": 2})

    def document(epsilon, backward):
        return claim(PAIRS, epsilon, 50, 1, program(forward, backward, [ahead]))

    backward = cycle(4, 1.001, {"power": 2})
    accepted(document("3.01", backward))
    excluded(document("2.99", backward), 3)
    rejected(document("3.01", cycle(4, 0.5, {"power": 2})), OPEN)
    rejected(document("3.01", backward | {"prefix": [{"power": 2}]}), "no node is 2 steps away")


def test_a_table_of_all_nodes_is_no_lower_than_those_of_the_early_ones():
    """Node 2 reveals c of node 1, whatever later nodes do; so does each that COUNT alone bounds."""
    free, late = cycle(2, 0, {"power": 1}), cycle(2, 0, {"power": 1}) | {"prefix": [{}]}
    accepted(claim(BITS, 2.001, 9, 1, program(free, late)))
    excluded(claim(BITS, 1.99, 9, 1, program(free, late)), 2)
    late = cycle(2, 0, {"power": 2}) | {"prefix": [{}, {}]}
    excluded(claim(BITS, 2.99, 9, 1, program(free, late)), 3)


def test_distributions_that_are_not_stationary_reveal_more():
    """What trees prove of the reversed chain is exceeded by as much as node 3 may be off; node 1
    may be off anyhow.
    """
    matrix = [[0.9, 0.1], [0.4, 0.6]]
    stationary = pf.certify(pf.MarkovChain(matrix), 10**6, 1.0, mechanism="leakage")
    rejected(stationary | {"family": chain(matrix)}, f"{OPEN}|is not excluded")


def test_no_tree_bounds_what_is_revealed_of_the_first_node_of_any_start():
    """Its distribution may be any, though those of node 2 are nearly stationary."""
    nearly, tree = chain([[0.51, 0.49], [0.49, 0.51]]), {"witnesses": 0}
    proof = program({"prefix": [{"power": 1}]}, {"prefix": [tree]}, [TREES])
    accepted(claim(nearly, 2, 2, 1, proof))
    excluded(claim(nearly, 1.9, 2, 1, proof), 2)
    ahead, late = (cycle(2, 0.09, step) for step in ({"power": 1}, tree))
    document = claim(nearly, 2, 9, 1, program(ahead, late | {"prefix": [{"power": 1}]}, [TREES]))
    rejected(document, OPEN)  # .02 by the tree, .08 as the distribution of node 2 may be off
    late["start"] = table(2, 0.12)
    accepted(document | {"proofs": [program(ahead, late | {"prefix": [{"power": 1}]}, [TREES])]})


def test_no_tree_passes_through_a_state_that_does_not_occur():
    """Two states seldom change. The third never occurs, and would join them for 2c."""
    rows = [["0.9", "0.1", "0"], ["0.1", "0.9", "0"], ["0.5", "0.5", "0"]]
    trees = trees_of(3, {(1, 2): [0, -3, -1], (2, 1): [-3, 0, -2]})
    for start in ("stationary", ["0.5", "0.5", "0"]):
        ahead, side = {"prefix": [{"witnesses": 1}] * 19}, {"prefix": [{"witnesses": 0}] * 19}
        plain = trees_of(3, {(1, 2): [0, -1, -1], (2, 1): [-2, 0, -2]})
        document = claim(chain(rows, start), 0.65, 20, 10, program(ahead, side, [trees, plain]))
        rejected(document, "is not excluded")  # a middle node reveals .79
        accepted(document | {"epsilon": "0.8"})


# 1, 2 lead to 3, 4, these seldom to 5, 6; from 5 to 7 anything may come
LEVELS = [["0", "0", "1", "0"], ["0", "0", "0", "1"]]
LEVELS += [["0"] * 4 + ["0.01", "0", "0.99"], ["0"] * 4 + ["0", "0.01", "0.99"]]
LEVELS = [row + ["0"] * (7 - len(row)) for row in LEVELS] + [["0"] * 4 + ["0.3", "0.3", "0.4"]] * 3
RETURN = [["0.5", "0.5", *["0"] * 5]] * 7


@pytest.mark.parametrize("period", [1, 3])
def test_several_steps_away_are_the_values_of_that_node(period):
    """Node 3 tells which of 1 and 2 node 1 was: it reveals 3c. Two steps after 3 and 4 anything may
    come, so these, the values of node 2, would prove 2c.
    """
    pairs = {(1, 2): [4, 4, 4, 0, 4, 4, 4], (2, 1): [3, 3, 0, 3, 3, 3, 3]}
    trees = trees_of(7, pairs | {(3, 4): [7, 7, 7, 7, 7, -7, 0], (4, 3): [7, 7, 7, 7, -7, 7, 0]})
    family, ends = chain(LEVELS, RETURN[0]), {"prefix": [{"witnesses": 0}] * 2}
    past = {"prefix": [{}, {"power": 2}]}
    if period > 1:
        family = chain(LEVELS, "stationary")
        family["chains"][0]["transition_matrices"] = [LEVELS, LEVELS, RETURN]
        ends = cycle(7, 2, {"power": 1}, *[{"witnesses": 0}] * 2)
        past = cycle(7, 2, {"power": 1}, {"power": 2}, {"power": 1})
        past["start"][0][1] = past["start"][1][0] = "0.001"
    document = claim(family, "2.1", 3, 1, program(ends, past, [trees]))
    assert worst_loss(document) > 2.9
    excluded(document, 3)


def test_the_first_record_counts_where_its_values_never_return():
    """States 1 and 2 occur at node 1 alone, and reveal c there besides their own."""
    rows = [[0, 0, 0.9, 0.1], [0, 0, 0.1, 0.9], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]]
    start = ["0.5", "0.5", "0", "0"]
    least(claim(chain(rows, start), 2, 2, 1, program(NONE, {"prefix": [{"power": 1}]})), 2)


def test_late_nodes_have_the_values_of_all_of_them():
    """Nodes 1, 2, 5, 6, … are certain; the two after them reveal each other."""
    rows = [[0, 1, 0, 0, 0, 0], [0, 0, 0.5, 0.5, 0, 0], [0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1]]
    side = cycle(6, 9, {"power": 1})
    family = chain([*rows, *[[1, 0, 0, 0, 0, 0]] * 2], [*"100000"])
    excluded(claim(family, 1.9, 5, 1, program(side, side)), 5)


# -- READ ------------------------------------------------------------------------------------------


def test_observations_without_a_tree_are_as_their_worst_values():
    """Each tree bounds less than the worst two; any two observations count, listed or not."""
    matrix = [[0.6, 0.2, 0.2], [0.1, 0.6, 0.3], [0.3, 0.1, 0.6]]
    family = pf.HiddenChain(pf.MarkovChain(matrix), [0, 1, 1])
    document = pf.certify(family, 10**6, 1.0, mechanism="leakage")
    accepted(document)
    [proof] = document["proofs"]
    listed = proof["witnesses"][proof["observations"]]
    assert sum(tree is not None for row in listed for tree in row) == 2
    forged = copy.deepcopy(document)
    forged["proofs"][0]["witnesses"][proof["observations"]] = [[None] * 2] * 2
    excluded(forged, 1)
    accepted(forged | {"epsilon": "1.2"})
    del forged["proofs"][0]["observations"]
    excluded(forged, 1)
    chain = document["family"]["chains"][0] | {"initial_distribution": "any"}
    forged = copy.deepcopy(document) | {"family": {"chains": [chain]}}
    forged["proofs"][0]["observations"] = proof["observations"] = 0
    rejected(forged, "does not end")


def test_a_known_observation_does_not_end_what_leaks_through_it():
    side = {"prefix": [], "start": table(2, 2), "cycle": [{"power": 2}]}
    sticky = {"chains": [STICKY["chains"][0] | {"observations": [0, 1]}]}
    document = claim(sticky, 9, 10**6, 10, program(side, side), side_information="any")
    rejected(document, "with side information the power of these hidden states is at most 1, not 2")


def test_a_tree_of_observations_costs_what_their_distribution_may_be_off():
    rows = [[0.4, 0.3, 0.3], [0.3, 0.4, 0.3], [0.4, 0.3, 0.3]]
    side, trees = cycle(3, 2, {"power": 1}), [[[0, -1, -1]] * 2] * 2
    proof = program(side, side, [trees], observations=0)
    for start, loss in (("stationary", 1.56), ("any", 1.73)):
        [hidden] = chain(rows, start)["chains"]
        family = {"chains": [hidden | {"observations": [0, 1, 1]}]}
        least(claim(family, loss, 9, 1, proof), loss)


def test_observations_have_trees_only_where_their_distribution_is_known():
    hidden = {"observations": [0, 1]}
    for family, names, asked in (
        (TWO, hidden, "none"),
        (BITS["chains"][0], hidden, "any"),
        (BITS["chains"][0], {}, "none"),
    ):
        seen = {"chains": [family | names]}
        side = cycle(2, 1, *[{"power": 1}] * len(family["transition_matrices"]))
        proof = program(side, side, [TREES])
        document = claim(seen, 9, 9, 1, proof, side_information=asked)
        accepted(document)
        proof["observations"] = 0
        rejected(document, "observations of hidden states have trees")


def test_one_state_hides_a_record_for_c():
    one = chain([["1"]], "stationary")
    side = cycle(1, 0, {})
    least(claim(one, 1, 100, 1, program(side, side)), 1)
    alike = {"chains": [BITS["chains"][0] | {"observations": [0, 0]}]}
    free = cycle(2, 0.001, {"power": 1})
    excluded(claim(alike, "0.99", 100, 1, program(free, free)), 1)


def test_what_is_proved_with_side_information():
    sticky = chain([["0.6", "0.4"], ["0.4", "0.6"]], "stationary")
    trees = cycle(2, 0.5, {"witnesses": 0})
    document = claim(sticky, 2, 9, 1, program(trees, trees, [TREES]))
    accepted(document)
    rejected(document | {"side_information": "any"}, OPEN)
    any_ = cycle(2, 0.9, {"power": 1})
    accepted(claim(sticky, "2.8", 9, 1, program(any_, any_), side_information="any"))
    accepted(claim(sticky, 1, 9, 9, {}, window=4, side_information="any"))


# -- other readings --------------------------------------------------------------------------------


def test_shares_of_what_is_free_sum_to_at_most_1():
    """With over 1 at two states and below 0 where it stays, free mass would be in two places."""
    family = {"interval": {"low": [["0.2"] * 3] * 3, "high": [["0.5"] * 3] * 3}}

    none = [["0"] * 3] * 3
    stays = [["1", "0", "0"], ["0", "1", "0"], ["0", "0", "1"]]

    def document(surplus, flow=none):
        flows = {"flow": flow, "surplus": [surplus], "reserve": [stays]}
        side = {"prefix": [], "start": table(3, 2), "cycle": [{"witnesses": 0}]}
        trees = trees_of(3, {(1, 2): flows})
        return claim(family, "3", 3, "1", program(side, NONE, [trees]))

    accepted(document([["0", "0.5", "0.5"], *stays[1:]]) | {"epsilon": "9"})
    rejected(document([["0", "0.5", "0.501"], *stays[1:]]), "does not sum to 1 exactly")
    few = [["0.5", "0.5"]] * 2
    for forged in (document(few), document(stays, few)):
        rejected(forged, "flows are between all 3 states")
    forged = document(stays)
    for shares in ([], [stays, stays]):
        forged["proofs"][0]["witnesses"][0][0][1]["surplus"] = shares
        rejected(forged, "with shares for each of 1 parts")


def test_flows_and_ratios_of_columns_bound_different_tables():
    """A flow may pass through values that cannot occur, of which ratios say nothing."""
    bounds = {"low": [["0.4", "0.4"]] * 2, "high": [["0.6", "0.6"]] * 2}
    family = {"interval": bounds | {"backward": bounds}}
    stays = [["1", "0"], ["0", "1"]]
    flows = {"flow": [["0", "0"]] * 2, "surplus": [stays], "reserve": [stays]}

    def document(*steps):
        side = {"prefix": list(steps[:-1]), "start": table(2, 3), "cycle": [steps[-1]]}
        return claim(family, 4, 4, 1, program(side, side, [[[flows] * 2] * 2]))

    accepted(document({"power": 1}, {"power": 1}))
    accepted(document({"witnesses": 0}, {"witnesses": 0}))
    for steps in (({"power": 1}, {"witnesses": 0}), ({"witnesses": 0, "power": 1},)):
        rejected(document(*steps) | {"epsilon": "3.9"}, "flows and ratios bound different tables")
    whole = {"interval": {"low": [["0", "0"]] * 2, "high": [["1", "1"]] * 2}}
    whole["interval"]["backward"] = dict(whole["interval"])
    least(document({"witnesses": 0}, {"witnesses": 0}) | {"family": whole}, 4)


@pytest.mark.parametrize(("length", "window"), [(5, 1), (100, 1), (1000, 3), (10**7, 1)])
def test_a_mixing_family_has_its_claim_alone(length, window):
    document = pf.certify(pf.MixingFamily(60, 0.4), length, 1.0, mechanism="leakage", window=window)
    accepted(document)
    assert document["proofs"] == [{}]
    excluded(document | {"scale": repr(float(document["scale"]) * (1 - 1e-9))}, 1)
    if length > 200:
        rejected(document | {"side_information": "any"}, "is not excluded")
        for family in ({"steps": 61, "overlap": "0.4"}, {"steps": 60, "overlap": "0.399"}):
            excluded(document | {"family": {"mixing": family}}, 1)


@pytest.mark.parametrize("digits", [36, 38, 40, 60, 75])
def test_a_ball_around_1_may_hold_more(digits):
    """Next to where a block gains what it loses, E is known only to ± 2^112: the loss is 11.7."""
    with localcontext(prec=90):
        scale = str(1 / (Decimal(2).ln() * (1 - Decimal(10) ** -digits)))
    mixing = {"mixing": {"steps": 1, "overlap": "0.5"}}
    excluded(claim(mixing, "0.7", 1001, scale, {}), 11.7441)


def test_slack_of_plans_costs_epsilon():
    """Plans with enough slack move nothing: W = 0 for any chain, were they for nothing."""
    family = chain([["0.9", "0.1"], ["0.4", "0.6"]])
    count = {"weights": [0, 1], "lengths": [4], "W": 3, "slack": "0"}

    def document(**fields):
        return claim(family, 3, 4, 1, {"count": count | fields}, mechanism="wasserstein")

    accepted(document())
    excluded(document(W=1, slack="1e6"), 14)
    rejected(document(W=0, slack="0.01"), "are not within W = 0")


def test_a_count_is_within_w_at_each_of_its_lengths():
    """An even number of records that alternate has the same count, an odd one has not."""
    family = chain([[0, 1], [1, 0]], ["0.5", "0.5"])

    def document(lengths):
        proof = {"count": {"weights": [0, 1], "lengths": lengths, "W": 0, "slack": "0"}}
        return claim(family, 1, 4, 0, proof, mechanism="wasserstein")

    accepted(document([2, 4]))
    rejected(document([3, 4]), "3 records, node 1")


@pytest.mark.parametrize("other", [{"weights": [0, 0], "W": 0}, {"lengths": [4]}])
def test_all_chains_have_the_same_count(other):
    """The claim has one; a count that adds nothing proves any scale of the second chain."""
    count = {"weights": [0, 1], "lengths": [3, 4], "W": 4, "slack": "0"}
    document = claim(BITS, 4, 4, 1, {"count": count}, mechanism="wasserstein")
    document["family"] = {"chains": [*BITS["chains"], *STICKY["chains"]]}
    accepted(document | {"proofs": [{"count": count}] * 2})
    proofs = [{"count": count}, {"count": count | other}]
    rejected(document | {"proofs": proofs}, "different counts")


def test_a_scale_next_to_the_least_is_decided_with_more_bits():
    """Of two nodes the last reveals log 3.5 through the first: the least scale is irrational."""
    quilts = {"quilts": [[1, 1, None, 1], [2, 2, 1, None]]}
    document = claim(chain([["0.6", "0.4"], ["0.3", "0.7"]]), 3, 2, "9", quilts)
    with localcontext(prec=80):
        least = 1 / (3 - Decimal("3.5").ln())
        for digits, bits in ((15, 128), (36, 128), (60, 256)):
            more, less = (str(least * (1 + sign * Decimal(10) ** -digits)) for sign in (1, -1))
            assert pf.verify_certificate(document | {"scale": more}).precision == bits
            excluded(document | {"scale": less}, 3)


def test_a_range_of_quilts_holds_the_distributions_of_all_its_nodes():
    """Up to log 1.5 for what they do not have in common, and as much on either side."""
    quilts = {"quilts": [[1, 1, None, 1], [2, 5, 1, 1], [6, 6, 1, None]]}
    family = chain([["0.6", "0.4"], ["0.4", "0.6"]], ["0.1", "0.9"])
    least(claim(family, 2.2164, 6, 1, quilts, mechanism="mqm-exact"), 2.2164)


def test_chains_of_a_family_have_the_same_records():
    """The words are of the first; a chain that shows nothing of its states hides them for c."""
    hidden = STICKY["chains"][0] | {"observations": [0, 0]}
    two = claim(BITS, 9, 4, 1, {}) | {"proofs": [{}, {}]}
    accepted(two | {"family": {"chains": [*BITS["chains"], *STICKY["chains"]]}})
    for other in (hidden, TWO, chain([["1"]])["chains"][0]):
        rejected(two | {"family": {"chains": [*BITS["chains"], other]}}, "the chains of a family")


def test_words_claim_no_more_than_is_proved():
    """Numbers of more than 17 digits are rounded to the side of the weaker claim."""
    more, less = "0.4" + 20 * "0" + "1", "0.5" + 20 * "9"
    spent = {"delta": more, "event_delta": "0", "rho": "0"}
    for family in ({"binary_interval": [more, less]}, {"mixing": {"steps": 2, "overlap": more}}):
        document = claim(family, more, 2, 9, {}, approximate=spent)
        words = pf.verify_certificate(document).subject
        assert words.count("0.40000000000000001") == 3
        assert "binary" not in words or "to 0.59999999999999999" in words


# -- work ------------------------------------------------------------------------------------------


def uniform(k, start, period=1):
    rows = [[f"1/{k}"] * k] * k
    return chain(rows, start, *[rows] * (period - 1))


def repeated(k, length, start="any", trees=(), many=0, period=1, **step):
    """A program with the same step for many nodes or phases."""
    side = {"prefix": [step] * many, "start": [["1"] * k] * k, "cycle": [step] * period}
    return claim(uniform(k, start, period), 1, length, "1e300", program(side, side, trees))


def all_trees(k):
    return [[[[0, *[1] * (k - 1)]] * k] * k]


def single_nodes(distances, length):
    """A quilt of its own for every one of many nodes."""
    begin = 10**9
    nodes = [[1, begin - 1, None, None]]
    nodes += [[begin + i, begin + i, 2 * i + 1, 3 * i + 1] for i in range(distances)]
    proof = {"quilts": [*nodes, [begin + distances, length, None, None]]}
    return claim(uniform(20, "any"), 1, length, "1e300", proof, mechanism="mqm-exact")


def turning(*lengths):
    """Several cycles: the values of the nodes repeat only after all of their lengths."""
    states = [(n, i) for n in lengths for i in range(n)]
    rows = [[int(after == (n, (i + 1) % n)) for after in states] for n, i in states]
    start = [f"{int(i == 0)}/{len(lengths)}" for _, i in states]
    return claim(chain(rows, start), 1, 9, "1e300", program(NONE, NONE))


def long_count(length, weight, start):
    count = {"weights": [0, weight], "lengths": [length], "W": 3, "slack": "0"}
    proof = {"count": count}
    return claim(uniform(2, start), 1, length, "1e300", proof, mechanism="wasserstein")


BOUNDS = {"interval": {"low": [["0.3", "0.3"]] * 2, "high": [["0.6", "0.6"]] * 2}}
HOSTILE = {
    "quilts": single_nodes(3000, 10**12),
    "any distribution": repeated(70, 10**6, power=1),
    "many steps": repeated(20, 10**6, many=1000, power=1),
    "one state": repeated(1, 10**6, many=3000),
    "many trees": repeated(30, 10**6, "stationary", all_trees(30), many=1000, witnesses=0),
    "period": repeated(4, 9, "stationary", all_trees(4), period=20_000, witnesses=0),
    "power of rows": repeated(2, 10**18, power=10**15) | {"family": BOUNDS},
    "power of phases": repeated(2, 10**18, period=2, power=10**15),
    "values of nodes": turning(2, 3, 5, 7, 11, 13),
    "wasserstein": long_count(2000, 1, "stationary"),
    "wasserstein, weights": long_count(10, 10**9, "any"),
}


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_documents_are_refused_in_one_sentence(hostile):
    begun = time.process_time()
    reason = r"^[^\n]*(over 2.0e\+04 operations; allow|away from step 1 of)[^\n]*$"
    with pytest.raises(CertificateError, match=reason):
        pf.verify_certificate(hostile, most_work=20_000)
    assert time.process_time() - begun < 5


def nested(depth):
    bounds = {"low": [["0"]], "high": [["1"]]}
    found = bounds
    for _ in range(depth):
        found = bounds | {"backward": found}
    return claim({"interval": found}, 1, 5, "1e300", {}, mechanism="group-dp")


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        (nested(10**5), "nested too deeply"),
        ({"k\x1b[2J\n" * 10**5: 1}, "unknown field"),
        ({"\ud800": 1}, "surrogates"),
        ({"scale": "\x1b\ud800\n" * 10**5}, "numbers are strings"),
        ({"proofs": [[[]] * 10**6]}, "Expected object, got array at proofs.0."),
    ],
    ids=["deep", "key", "surrogate", "number", "long"],
)
def test_hostile_text_is_shown_as_one_short_printable_line(fields, reason):
    with pytest.raises(CertificateError, match=reason) as refused:
        pf.verify_certificate(nested(2) | fields)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 450


@pytest.mark.parametrize("digits", [1200, 700])
def test_denominators_that_multiply_up_are_refused(digits):
    """The exact sum of such a row takes time and memory by the square of its length."""
    numbers = [f"1/{10**digits - 1 - 2 * i}" for i in range(20)]
    bounds = {"low": [numbers] * 20, "high": [["1"] * 20] * 20}
    for family in (chain([numbers] * 20), {"interval": bounds}):
        document = claim(family, 1, 5, "1e300", {}, mechanism="group-dp")
        rejected(document, "the common denominator has over 8000 bits")


@pytest.mark.parametrize(
    ("code", "answer"),
    [(0, "accepted"), (2, "unproved rule: a delta"), (1, "refused: a step"), (0, "")],
)
def test_answers_of_the_proved_checker(tmp_path, monkeypatch, code, answer):
    """Of any checker that is there; ``test_forged_certificates.py`` asks the real one."""
    checker = tmp_path / "checker"
    checker.write_text(f"#!/bin/sh\ncat > /dev/null\necho '{answer}'\nexit {code}\n")
    checker.chmod(0o700)
    monkeypatch.setattr(verify, "BUILT", checker)
    if answer and code != 1:
        assert verify.ask_proved_checker({}) == answer
    else:
        with pytest.raises(CertificateError, match=answer or "ended without an answer"):
            verify.ask_proved_checker({})
