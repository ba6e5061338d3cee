"""Which columns of a table to read, and how."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from zoneinfo import ZoneInfo

from pufferflow._checks import check_type, shown
from pufferflow._display import displayed
from pufferflow._texts import check_unicode
from pufferflow.errors import ParameterError
from pufferflow.records.format import READING_OPTIONS

GUESSES = {
    "time": (
        *("time", "timestamp", "datetime", "date_time", "tstp", "ts", "utc", "unix_time", "unix_ts", "date"),
        *("zeit", "zeitstempel", "zeitpunkt", "uhrzeit", "datum", "datum_zeit", "datum_uhrzeit"),
        *("temps", "horodatage", "heure", "date_heure", "tiempo", "fecha", "hora", "fecha_hora", "marca_de_tiempo"),
    ),
    "participant": (
        *("participant", "participant_id", "person", "person_id", "subject", "subject_id", "patient", "patient_id"),
        *("household", "household_id", "user", "user_id", "customer", "customer_id", "meter_id", "lclid"),
        *("teilnehmer", "teilnehmerin", "haushalt", "kunde", "nutzer", "proband", "zählernummer"),
        *("sujet", "foyer", "ménage", "client", "utilisateur"),
        *("participante", "sujeto", "hogar", "cliente", "usuario", "paciente"),
    ),
    "group": ("group", "cohort", "gruppe", "groupe", "grupo"),
    "value": (
        *("value", "state", "activity", "category", "watts", "power", "kw", "load", "demand"),
        *("usage", "consumption", "energy", "kwh", "wh", "reading", "measurement"),
        *("wert", "messwert", "zustand", "aktivität", "leistung", "verbrauch", "energie", "zählerstand"),
        *("valeur", "état", "activité", "puissance", "consommation", "énergie", "mesure"),
        *("valor", "estado", "actividad", "potencia", "consumo", "energía", "medida"),
    ),
}
"""Names by which the column of each role is known, in any case; those of times and values with a unit ("Power (W)").
English first, then German, French and Spanish."""


@displayed()
@dataclass(frozen=True)
class Reading:
    """Which columns to read, and how.

    Attributes
    ----------
    time, value, participant, group : str or None
        Names of columns; None guesses by name (:data:`GUESSES`). Times in two columns are named with a comma, the date
        first: "Date,Time".
    rows_are_steps : bool
        Every row is the step after its participant's row before, whatever times and other columns say. Needed only
        where there are columns that are not used and none of times: rows of several participants taken for one
        record would get too little noise.
    timezone : str or None
        Zone of a local clock, for example "Europe/Paris"; "UTC" for one that never jumps.
    time_format : str or None
        Of ``datetime.strptime``; None is ISO 8601.
    separator : str
        Between the fields of a CSV file.
    decimal : str
        Decimal sign of numbers that are written as texts.
    thousands : str or None
        Sign between groups of three digits of such numbers.
    show_values : bool
        Whether complaints may show what stands in a row.
    """

    time: str | None = None
    value: str | None = None
    participant: str | None = None
    group: str | None = None
    timezone: str | None = None
    time_format: str | None = None
    separator: str = ","
    decimal: str = "."
    thousands: str | None = None
    show_values: bool = True
    rows_are_steps: bool = False

    def __post_init__(self) -> None:
        for name in (*GUESSES, "timezone", "time_format", "thousands", "separator", "decimal"):
            if getattr(self, name) is not None or name in ("separator", "decimal"):
                check_type(getattr(self, name), name, str)
                check_unicode(getattr(self, name), name)
        check_type(self.rows_are_steps, "rows_are_steps", bool)
        roles = [role for role in GUESSES if getattr(self, role) is not None]
        for one, other in combinations(roles, 2):
            if getattr(self, one) == getattr(self, other):
                raise ParameterError(
                    f"{one} and {other} both name the column {getattr(self, one)!r}; give each a column of its own"
                )
        if self.rows_are_steps and self.time is not None:
            raise ParameterError("rows_are_steps and time contradict each other; give one of them")
        for name in ("separator", "decimal", "thousands"):
            sign = getattr(self, name)
            if sign is not None and (len(sign) != 1 or sign in '\r\n"'):
                raise ParameterError(f"{name} is {shown(sign)}; it must be one character")
            if sign is not None and name == "separator" and not sign.isascii():
                raise ParameterError(f"separator is {shown(sign)}; it must be an ASCII character")
            if sign is not None and name != "separator" and (sign.isdigit() or sign in "+-eE"):
                raise ParameterError(f"{name} is {shown(sign)}, which is a part of numbers; give another character")
        if self.thousands == self.decimal:
            raise ParameterError(f"thousands and decimal are both {self.decimal!r}; give different ones")
        if self.timezone is not None:
            try:
                ZoneInfo(self.timezone)
            except (ValueError, OSError, KeyError):  # KeyError: there is no such zone
                raise ParameterError(
                    f"timezone {shown(self.timezone)} is unknown; give a name such as Europe/Paris or UTC"
                ) from None

    def given(self) -> dict[str, str | bool]:
        """Options of the data that are not the default."""
        options = {name: getattr(self, name) for name in READING_OPTIONS}
        return {name: value for name, value in options.items() if value != getattr(Reading, name)}
