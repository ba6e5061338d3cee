"""Publishing tables with the αβ algorithm."""

from pufferflow.studies.related import related_study

CAPTION = (
    "Error of counting queries under the αβ algorithm over √n, against the attacker's prior d = k n/m, the number of "
    "tuples n and the size of the domain m, with the α and β of least error under (d, γ)-privacy; synthetic data. "
    "The trade-off ρ = √(k/γ) lies above the error of the largest query at small d. Towards the impossibility line a "
    "view moves an attacker's belief about a count less and less, and on it that error is no better than answering 0. "
    "Several views of the same data add up: made with the parameters of one view each, they settle a tuple."
)

ALPHA_BETA = related_study("alpha_beta", "Publishing tables with the αβ algorithm", CAPTION)
