"""What the scales of every kind of family obey, whatever bounds them."""

import pytest
from cases import SLACK
from frozen_families import BUILDERS, built

import pufferflow as pf

LONG = ("fifty_one", "twenty", "intervals_of_four")
LARGER = ("periodic_day", "seventy", "intervals_of_seven", "intervals_of_fourteen")
"""Of more states than are certified, or certified in minutes."""
NAMES = [name for name in BUILDERS if not name.startswith(LARGER)]
HAVE_CHAINS = (pf.MarkovChain, pf.ChainFamily, pf.BinaryInterval)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.long] * name.startswith(LONG)) for name in NAMES]
)
@pytest.mark.parametrize("epsilon", [0.3, 2.0])
def test_more_is_never_cheaper_and_the_scale_is_proved(name, epsilon):
    family = built(name)

    def scale(length, window=1, side_information="none"):
        return pf.leakage(family, length, epsilon, window=window, side_information=side_information).scale

    one = scale(20)
    assert (1 - 1e-9) / epsilon <= one <= 20 / epsilon * (1 + 1e-9)
    assert pf.leakage_loss(family, 20, one) <= epsilon * (1 + 1e-5)
    for more in (scale(40), scale(20, window=2), scale(20, side_information="any")):
        assert more >= one * (1 - SLACK)
    if isinstance(family, HAVE_CHAINS):
        assert pf.lower_bound(family, 20, epsilon).scale <= one
        assert one <= pf.mqm_exact(family, 20, epsilon).scale * (1 + 1e-9)
    document = pf.certify(family, 20, epsilon, mechanism="leakage")
    assert pf.verify_certificate(document, most_work=10**10).scale == document["scale"]
    assert float(document["scale"]) >= one * (1 - SLACK)
