"""Certificates written by hand: each refused one lacks one thing, and the one beside it that has it is accepted."""

import math

import pytest

import pufferflow as pf
from pufferflow import verify
from pufferflow.verify.balls import PRECISIONS


def claim(family, mechanism, epsilon, length, scale, **fields):
    head = {"certificate": "pufferflow", "version": 1, "mechanism": mechanism, "family": family}
    return head | {"epsilon": str(epsilon), "length": length, "scale": str(scale)} | fields


def chain(matrix, start="any"):
    rows = [[str(p) for p in row] for row in matrix]
    return {"chains": [{"transition_matrix": rows, "initial_distribution": start}]}


def accepted(document):
    assert str(pf.verify_certificate(document).scale) == document["scale"]


def rejected(document, reason):
    with pytest.raises(pf.CertificateError, match=reason):
        pf.verify_certificate(document)


# -- couplings, node by node -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["ahead", "past"])
@pytest.mark.parametrize("start", [[1, 0], [0.2, 0.8]])
def test_every_bound_of_a_node_needs_its_proof(name, start):
    document = pf.certify(pf.MarkovChain([[0.8, 0.2], [0.3, 0.7]], start), 4, 1.0, mechanism="leakage")
    accepted(document)
    side = document["steps"][0][name]
    for number, bound in enumerate(side, 1):
        whole = bound["leakages"]
        if max(float(told) for row in whole for told in row) < 1e-6:  # the value before it is known
            continue
        bound["leakages"] = [["0", "0"], ["0", "0"]]
        rejected(document, f"{name}, bound {number}|the last bound of a side is below the one before it")
        bound["leakages"] = whole


# the last two of independent fair bits: what comes after two steps is independent
BITS = [[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]] * 2


def by_steps(past, epsilon, blocks, **fields):
    """All nodes of long segments, c = 1: states whose last bits differ tell c ahead, those whose first differ, past."""
    ahead = [["1.0001" if x % 2 != y % 2 else "0" for y in range(4)] for x in range(4)]
    flows = [
        {"value": x + 1, "other": y + 1, "flow": [[2 * (x % 2) + b + 1, 2 * (y % 2) + b + 1, "0.5"] for b in (0, 1)]}
        for x in range(4)
        for y in range(4)
        if x % 2 != y % 2
    ]
    bounds = [[past if x // 2 != y // 2 else "0" for y in range(4)] for x in range(4)]
    side = {"leakages": bounds, "flows": [], "blocks": blocks}
    steps = [{"ahead": [{"leakages": ahead, "flows": flows}], "past": [side]}]
    return claim(chain(BITS), "leakage", epsilon, 50, 1, cost="1", steps=steps, **fields)


def pairs(steps, far=True):
    """Blocks for all pairs of states, or only those whose first bits differ."""
    return [[x + 1, y + 1, steps] for x in range(4) for y in range(4) if x != y and (far or x // 2 != y // 2)]


def test_the_nodes_of_a_block_may_tell_more_than_what_it_lets_through():
    """Two steps let nothing through, but the node between tells c: without it the loss of 3 would pass for one of 2."""
    accepted(by_steps("1", "3.001", pairs(2, far=False)))
    rejected(by_steps("0", "2.001", pairs(2)), "the nodes between, less than 2 steps, may tell more alone")
    rejected(by_steps("0.999", "3.001", pairs(2, far=False)), "the nodes between, less than 2 steps, may tell more")
    rejected(by_steps("1", "2.999", pairs(2, far=False)), "a loss of 3.0001 is not excluded")
    document = by_steps("1", "3.001", pairs(2, far=False))
    document["steps"][0]["past"] *= 2  # the first is now for node 2 alone
    rejected(document, "past, bound 1: there is no node 2 steps before")


@pytest.mark.parametrize(
    "block", [[1, 3, 0], [1, 3, -1], [0, 3, 2], [1, 5, 2], [1, 3, 10**6 + 1], [1, 3], [1, 3, 2, 2]]
)
def test_blocks_are_two_states_and_steps(block):
    rejected(by_steps("1", "3.001", [*pairs(2, far=False), block]), "a block is two states and 1 to 1000000 steps")


def test_bounds_node_by_node_are_for_single_records_and_no_knowledge():
    blocks = pairs(2, far=False)
    accepted(by_steps("1", "3.001", blocks, window=1, knows="nothing"))
    rejected(by_steps("1", "3.001", blocks, window=2), "leakage has no proof for windows of several records")
    rejected(by_steps("1", "3.001", blocks, knows="any records"), "has no proof against those who know records")


@pytest.mark.parametrize("part", [[1, 2], [1, 2, "0.1", "0.1"], [1, 1, "0.1"], [1, 5, "0.1"], [0, 1, "0.1"]])
def test_flows_have_two_states_and_an_amount(part):
    document = by_steps("1", "3.001", pairs(2, far=False))
    document["steps"][0]["ahead"][0]["flows"][0]["flow"].append(part)
    rejected(document, "a flow has [24] parts; it is|a flow leads from state 1 to itself|is not between 1 and 4")


@pytest.mark.parametrize(("bound", "proved"), [("2.28", True), ("2.25", False), ("0.75", False)])
def test_laws_that_are_not_stationary_tell_more(bound, proved):
    """What flows prove of the reversed chain, log 2.105, is exceeded by as much as any law of node 3 may be off."""

    def bounds(c):
        return {"leakages": [["0", c], [c, "0"]], "flows": []}

    flows = [{"value": 1, "other": 2, "flow": [[1, 2, "0.055"]]}]
    third = {"leakages": [["0", bound], ["3", "0"]], "flows": flows}
    past, ahead = [bounds("1"), bounds("2"), third], [bounds("1"), bounds("2"), bounds("3")]
    fields = {"cost": "1", "steps": [{"ahead": ahead, "past": past}]}
    document = claim(chain([["0.9", "0.1"], ["0.4", "0.6"]]), "leakage", 4, 4, 1, **fields)
    if proved:
        accepted(document)
    else:
        rejected(document, "past, bound 3, values 1 and 2: the flows do not prove the bound")


def told(growth):
    """Log (p·h)/(q·h), rounded up, of the laws (0.9, 0.1) and (0.1, 0.9) for h that grows so much."""
    return math.log((0.9 * growth + 0.1) / (0.9 + 0.1 * growth)) + 1e-9


@pytest.mark.parametrize("through", [False, True])
def test_no_flow_passes_through_a_state_that_does_not_occur(through):
    """Two states seldom change. Of what the third tells at a node nothing is checked: it would join them for 2c."""
    cost, length = 0.1, 20
    ahead, past, before = [], [], 0.0
    for node in range(1, length):
        sides = {}
        before = told(math.exp(cost + before))
        for name in ("ahead", "past"):
            leaks, third, flows = before, repr(round(node * cost, 6)), []
            if short := through and name == "past":
                leaks, third = min(told(math.exp(2 * cost)), node * cost), "0"
            for x in (1, 2):
                flow = 0.9 - 0.1 * math.exp(leaks)
                arcs = [[x, 3 - x, repr(flow)]]
                if short:
                    arcs = [[x, 3, repr(flow)], [3, 3 - x, repr(flow * math.exp(cost) * (1 - 1e-9))]]
                flows.append({"value": x, "other": 3 - x, "flow": arcs})
            rows = [["0", repr(leaks), third], [repr(leaks), "0", third], [third, third, "0"]]
            sides[name] = {"leakages": rows, "flows": flows}
        ahead.append(sides["ahead"])
        past.append(sides["past"])
    family = chain([[0.9, 0.1, 0], [0.1, 0.9, 0], [0.5, 0.5, 0]], ["0.5", "0.5", "0"])
    fields = {"cost": "0.1", "steps": [{"ahead": ahead, "past": past}]}
    document = claim(family, "leakage", 0.65 if through else 0.8, length, "10.0", **fields)
    if through:  # a middle node tells .79
        rejected(document, "past, bound 2: a flow passes through a state that the node cannot have")
    else:
        accepted(document)


@pytest.mark.parametrize("fields", [{}, {"window": 2, "length": 5}])
def test_both_sides_of_a_record_count(fields):
    """Bounds of (T - 1) c need no proof; no more is proved than that every record tells c."""

    def document(ahead, past, epsilon):
        sides = {
            name: {"leakages": [["0", a], [a, "0"]], "flows": []} for name, a in (("ahead", ahead), ("past", past))
        }
        bits = chain([[0.5, 0.5], [0.5, 0.5]])
        return claim(bits, "leakage", epsilon, 4, 1, cost="1", couplings=[sides]) | fields

    window, length = fields.get("window", 1), fields.get("length", 4)
    accepted(document("0", "0", window))
    accepted(document("0", "3", length))
    accepted(document("3", "0", length))
    rejected(document("0", "3", length - 0.1), "a loss of [45] is not excluded")
    rejected(document("3", "0", length - 0.1), "a loss of [45] is not excluded")
    rejected(document("0", "0", window - 0.1), "a loss of [12] is not excluded")


def test_the_first_record_counts_where_its_values_never_return():
    """States 1 and 2 occur at node 1 alone, and tell c there besides their own."""
    rows = [[0, 0, 0.9, 0.1], [0, 0, 0.1, 0.9], [0, 0, 0.5, 0.5], [0, 0, 0.5, 0.5]]
    ahead = [["0" if x == y or min(x, y) > 1 else "1" for y in range(4)] for x in range(4)]
    past = [["0.8" if {x, y} == {2, 3} else "0" for y in range(4)] for x in range(4)]
    sides = {"ahead": {"leakages": ahead, "flows": []}, "past": {"leakages": past, "flows": []}}
    document = claim(chain(rows, ["0.5", "0.5", "0", "0"]), "leakage", 2, 2, 1, cost="1", couplings=[sides])
    accepted(document)
    rejected(document | {"epsilon": "1.9"}, "values 1 and 2: a loss of 2 is not excluded")
    past[2][3] = "0.79"
    rejected(document, "past, values 3 and 4: under some law of the node beside them they tell more")


# -- other kinds of proofs ---------------------------------------------------------------------------


def test_what_is_proved_against_those_who_know_records():
    family, nodes = chain([[0.5, 0.5], [0.25, 0.75]]), [[{"first": 1, "last": 9, "left": None, "right": None}]]
    quilts = claim(family, "mqm-exact", 1, 9, 9, convention="exact", nodes=nodes)
    accepted(quilts)
    rejected(quilts | {"knows": "any records"}, "mqm-exact has no proof against those who know records; use leakage")
    accepted(claim(family, "group-dp", 1, 9, 9, window=4, knows="any records"))


def test_slack_of_plans_costs_epsilon():
    """Plans with enough slack move nothing: W = 0 for any chain, were they for nothing."""
    document = claim(chain([[0.9, 0.1], [0.4, 0.6]]), "wasserstein", 3, 4, 0, weights=[0, 1], lengths=[4])
    fields = {"W": 0, "slack": "1e6"}
    rejected(document | fields, "the slack alone costs epsilon or more")
    rejected(document | {"W": 0, "slack": "0.01"}, "the laws of the count are not within W = 0")
    trivial = document | {"W": 3, "slack": "0"}
    accepted(trivial | {"scale": "1"})


def test_mechanisms_for_lists_of_chains_prove_nothing_for_intervals():
    family = {"interval": {"low": [["0.5", "0.2"], ["0.3", "0.5"]], "high": [["0.8", "0.5"], ["0.5", "0.7"]]}}
    nodes = {"convention": "exact", "nodes": []}
    reason = "mqm-exact has no proof for an interval family; use leakage"
    rejected(claim(family, "mqm-exact", 1, 1, 2, **nodes), reason)
    rejected(claim(family, "leakage", 1, 5, 5, cost="0.2", couplings=[]), "couplings has 0 entries; a family between")


def test_shares_of_what_is_free_sum_to_at_most_1():
    """With more than 1 at two states and less than nothing where it stays, free mass would be in two places."""
    away = [["0" if x == y else "0.4" for y in range(3)] for x in range(3)]
    family = {"interval": {"low": [["0.2"] * 3] * 3, "high": [["0.5"] * 3] * 3}}

    def document(shares):
        flows = [{"value": 1, "other": 2, "flow": [], "surplus": [shares], "reserve": [[]]}]
        side = {"leakages": away, "flows": []}
        return claim(
            family, "leakage", 1, 3, 5, cost="0.2", couplings=[{"ahead": side | {"flows": flows}, "past": side}]
        )

    accepted(document([[1, 2, "0.5"], [1, 3, "0.5"]]))
    rejected(document([[1, 2, "0.5"], [1, 3, "0.501"]]), "ahead: the shares of state 1 sum to more than 1")


# -- a clock, and labels -----------------------------------------------------------------------------


def independent(trees, **family):
    """Independent fair bits that a clock or labels are put to; c = 1, with the loss of the secret alone."""
    side = {"start": [["0", "0.001"], ["0.001", "0"]], "trees": [trees]}
    return claim(family, "leakage", "1.01", 9, 1, cost="1", ahead=side, past=side)


ROW = ["0.5", "0.5"]
LABELLED = {"labelled": {"transition_matrix": [ROW, ROW], "initial_distribution": "stationary", "labels": [0, 1]}}
CLOCK = {
    "periodic": {
        "transition_matrices": [[ROW, ROW]],
        "repeat": 1,
        "initial_distribution": "stationary",
    }
}
TREES = [[1, 2, [0, 1]], [2, 1, [0, 1]]]


def test_every_pair_of_labels_needs_a_tree():
    document = independent(TREES, **LABELLED)
    nodes = [[1, 2, [0, -1]], [2, 1, [0, 1]]]
    accepted(document | {"nodes": nodes})
    for some in ([], nodes[:1], nodes[1:]):
        rejected(document | {"nodes": some}, "nodes: labels [12] and [12] have no tree")


@pytest.mark.parametrize("parents", [[], [0], [0, 0], [0, 1, 1], [1, 1], [2, 1], [0, 3], [0, -3], [0, 2]])
def test_trees_have_one_root_and_reach_every_state(parents):
    accepted(independent(TREES, **CLOCK) | {"nodes": []})
    wrong = [TREES[0], [2, 1, parents]]
    rejected(
        independent(wrong, **CLOCK) | {"nodes": []}, "needs one parent a state, and 0 for its root|go round in a c"
    )


def test_lists_of_trees():
    rejected(independent([[1, 2]], **CLOCK) | {"nodes": []}, r"a tree has 2 parts; it is \[value, other, parents\]")
    rejected(independent(TREES * 2, **CLOCK) | {"nodes": []}, "the tree of 1 and 2 is given twice")
    rejected(independent(TREES[:1], **CLOCK) | {"nodes": []}, "states 2 and 1 have no tree")
    begins = {"periodic": CLOCK["periodic"] | {"first_phase": 0}}  # segments begin at any phase
    rejected(independent(TREES, **begins) | {"nodes": []}, "periodic has the unknown key 'first_phase'")
    empty = {"periodic": CLOCK["periodic"] | {"transition_matrices": []}}
    rejected(independent(TREES, **empty) | {"nodes": []}, "periodic has no matrix")


@pytest.mark.parametrize("start", ["1e30", "1e300", "1e999"])
@pytest.mark.parametrize("family", [LABELLED, CLOCK])
def test_no_start_is_so_large_that_every_round_closes(family, start):
    """Leakages that no ball holds are not at or below where they started: ∞ ≤ ∞ proves nothing."""
    nodes = {"nodes": [[1, 2, [0, -1]], [2, 1, [0, 1]]] if family is LABELLED else []}
    document = independent(TREES, **family) | nodes
    accepted(document)
    kind, fields = next(iter(family.items()))
    sticky = [["0.9999999", "0.0000001"], ["0.0000001", "0.9999999"]]
    key, matrix = ("transition_matrix", sticky) if family is LABELLED else ("transition_matrices", [sticky])
    document["family"] = {kind: fields | {key: matrix}}
    side = document["ahead"] | {"start": [["0", start], [start, "0"]]}
    rejected(document | {"ahead": side, "past": side}, "a round does not end at or below where it starts")


# -- the ends of an enclosure ------------------------------------------------------------------------


def test_a_scale_within_the_first_enclosure_is_decided_with_more_bits():
    """The smallest scale is irrational, so both ends are on their side of it."""
    nodes = [[{"first": 1, "last": 1, "left": None, "right": 1}, {"first": 2, "last": 2, "left": 1, "right": None}]]
    document = claim(chain([[0.6, 0.4], [0.3, 0.7]]), "mqm-exact", 2, 2, "9", convention="exact", nodes=nodes)
    precision, bound = next(verify.parse(document).bounds())
    assert precision == PRECISIONS[0]
    assert bound.lower < bound.upper
    accepted(document | {"scale": str(bound.upper)})
    rejected(document | {"scale": str(bound.lower)}, "more than the scale")
    found = pf.verify_certificate(document | {"scale": str((3 * bound.upper + bound.lower) / 4)})
    assert precision < found.precision


def test_a_clock_of_one_state_hides_a_record_for_c():
    """There is no pair of states to tell apart; c counts as where there are labels."""

    def document(cost, scale):
        side = {"start": [["0"]], "trees": [[]]}
        matrices = {"transition_matrices": [[["1"]]], "repeat": 1}
        family = {"periodic": matrices | {"initial_distribution": "stationary"}}
        return claim(family, "leakage", 1.001, 100, scale, cost=cost, ahead=side, past=side, nodes=[])

    accepted(document("1", "1"))
    rejected(document("1.002", "1"), "one state: a loss above epsilon is not excluded")
