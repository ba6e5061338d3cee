"""Figure of the classical mechanisms: error and exact privacy loss against ε."""

import pandas as pd
from matplotlib.figure import Figure

from pufferflow.drawing.style import MUTED, TEXT_WIDTH, check, footer, styled
from reproduction.panels import LOOKS, curve, panels_of, plain_log_ticks

# title, y axis, its lowest value (errors of 0 are drawn on it), and the name of a bound
PANELS = {
    "counting": ("Releasing a count", "root-mean-square error (people)", 5e-3, ""),
    "choosing": ("Choosing an outcome", "expected shortfall (people)", 1e-2, "bound (2Δ/ε) ln k"),
    "learning": ("Following experts", "regret a round", None, ""),
    "privacy": ("Exact privacy loss", "exact loss / declared ε", None, ""),
    "differencing": ("Differencing attack", "Pr[it succeeds]", 0.48, "bound of 2ε-DP"),
    "smoking": ("An ill smoker's risk, to his insurer", "mean probability of illness", 0.0, ""),
}
NAMES = {
    "pure": "pure ε",
    "published": "(ε, δ), as published",
    "zcdp": "(ε, δ), by bounded range",
    "worst utilities": "worst utilities (exact)",
}
LOOK_OF = dict.fromkeys(("Laplace", "published", "two noisy counts", "before the study"), 0)
LOOK_OF |= dict.fromkeys(("randomised response", "pure", "with it, all others known"), 1)
LOOK_OF |= dict.fromkeys(("exponential", "zcdp", "with his record"), 2)
COLUMNS = ("epsilon", "expected_error", "mean_error", "standard_error")


@styled
def figure(curves: pd.DataFrame) -> Figure:
    """Draw the curves of :func:`reproduction.related.classical.measure`, two panels a row."""
    check(curves)
    present = [panel for panel in PANELS if panel in set(curves["panel"])]
    columns = min(len(present), 2)
    drawn, panels = panels_of(len(present), height=2.35, width=TEXT_WIDTH, columns=columns)
    for axes, panel in zip(panels, present, strict=True):
        rows = curves[curves["panel"] == panel]
        title, label, floor, bound = PANELS[panel]
        axes.set(title=title, xlabel="ε", ylabel=label, xscale="log")
        plain_log_ticks(axes.xaxis)
        linear = panel in ("differencing", "smoking")
        if not linear:
            axes.set_yscale("log")
            plain_log_ticks(axes.yaxis, (1,) if floor else (1, 2, 5))
        if panel == "privacy":
            axes.axhline(1, color=MUTED, linewidth=0.8)
        for name, of in rows.groupby("mechanism", sort=False):
            plain, _, halved = str(name).partition(", noise")
            index = LOOK_OF.get(plain, 3)
            look = LOOKS[index] | {"label": "_" if halved else NAMES.get(plain, plain)}
            if panel == "privacy":  # side by side around each ε
                look |= {"linestyle": "none", "markerfacecolor": "white" if halved else None}
                beside, ratio = 1.11 ** (index - 1.5), of["expected_error"] / of["epsilon"]
                axes.plot(of["epsilon"] * beside, ratio, **look)
                continue
            curve(axes, of, COLUMNS, look)
            none = of.loc[of["mean_error"] == 0, "epsilon"]
            look |= {"linestyle": "none", "label": "_", "clip_on": False, "zorder": 3}
            axes.plot(none, 0 * none + (floor or 0.0), in_layout=False, **look)
        if bound:
            once = rows.drop_duplicates("epsilon").sort_values("epsilon")
            axes.plot(once["epsilon"], once["bound"], color=MUTED, label=bound)
        axes.set_ylim(bottom=floor, top=1.02 if linear else None)
        axes.legend(handlelength=2.6, labelspacing=0.3)
    note = (
        f"Lines: exact; points with bars: {curves['repetitions'].max()} draws, ± 1 standard error. "
        "Filled points on the bottom line: none of these draws had an error. Privacy: filled, as "
        "declared; hollow, with the noise halved. Synthetic data."
    )
    footer(drawn, note)
    return drawn
