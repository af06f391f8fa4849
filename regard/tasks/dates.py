"""Dates as people write them, and as ISO 8601 has them: the form of each, its fields, and every way to read it.

A form is a pattern of pieces in braces and text in between, in one language: `{d}. {Month} {yyyy}`, German. A text may
be one of several forms and then of several dates (03/04/2021); `readings` finds them all, so what is ambiguous is
known and not guessed.
"""

from __future__ import annotations

import datetime as dt
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from regard.tasks.calendars import CALENDARS, Calendar

FIRST, LAST = dt.date(1950, 1, 1), dt.date(2049, 12, 31)
"""A hundred years, so that two digits name one of them."""


@dataclass(frozen=True)
class Form:
    """One way to write a date: a pattern, in a language."""

    pattern: str
    language: str = "en"

    def __str__(self) -> str:
        return f"{self.language} {self.pattern}"


@dataclass(frozen=True)
class Written:
    """A date, how it was written, and where: characters [start, stop) of its year, month and day."""

    text: str
    date: dt.date
    form: Form
    fields: Mapping[str, tuple[int, int]]


def ordinal(day: int) -> str:
    """1st, 2nd, 3rd, 4th, 11th, 21st"""
    ending = "th" if 10 < day < 14 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


@dataclass(frozen=True)
class Piece:
    """What stands in braces: the field that it says, how it is written, and how digits of it look."""

    field: str
    spell: Callable[[dt.date, Calendar], str]
    looks: str | None = None


PIECES = {
    "d": Piece("day", lambda date, _: str(date.day), r"[1-9]\d?"),
    "dd": Piece("day", lambda date, _: f"{date.day:02}", r"\d\d"),
    "dth": Piece("day", lambda date, _: ordinal(date.day), r"[1-9]\d?(?:st|nd|rd|th)"),
    "der": Piece("day", lambda date, _: "1er" if date.day == 1 else str(date.day), r"1er|[1-9]\d?"),
    "m": Piece("month", lambda date, _: str(date.month), r"[1-9]\d?"),
    "mm": Piece("month", lambda date, _: f"{date.month:02}", r"\d\d"),
    "yy": Piece("year", lambda date, _: f"{date.year % 100:02}", r"\d\d"),
    "yyyy": Piece("year", lambda date, _: str(date.year), r"\d{4}"),
    "Month": Piece("month", lambda date, names: names.months[date.month - 1]),
    "Mon": Piece("month", lambda date, names: names.short_months[date.month - 1]),
    "MON": Piece("month", lambda date, names: names.short_months[date.month - 1].upper()),
    "month": Piece("month", lambda date, names: names.months[date.month - 1].lower()),
    "Weekday": Piece("weekday", lambda date, names: names.weekdays[date.weekday()]),
    "Wkd": Piece("weekday", lambda date, names: names.short_weekdays[date.weekday()]),
}
IN_BRACES = re.compile(r"\{(\w+)\}")


def forms(language: str, *patterns: str) -> tuple[Form, ...]:
    return tuple(Form(pattern, language) for pattern in patterns)


TRAINED = (
    *forms(
        "en",
        "{yyyy}-{mm}-{dd}", "{yyyy}/{mm}/{dd}", "{yyyy}.{mm}.{dd}", "{yyyy}{mm}{dd}",
        "{mm}/{dd}/{yyyy}", "{m}/{d}/{yyyy}", "{mm}/{dd}/{yy}",
        "{dd}/{mm}/{yyyy}", "{d}/{m}/{yyyy}", "{dd}/{mm}/{yy}",
        "{dd}.{mm}.{yyyy}", "{d}.{m}.{yyyy}", "{d}.{m}.{yy}",
        "{dd}-{mm}-{yyyy}", "{d}-{m}-{yy}",
        "{Month} {d}, {yyyy}", "{Mon} {d}, {yyyy}", "{Month} {dth}, {yyyy}", "{Mon} {dd} {yyyy}", "{month} {d} {yyyy}",
        "{d} {Month} {yyyy}", "{d} {Mon} {yyyy}", "{dd} {MON} {yyyy}", "{d} {Mon} '{yy}",
        "{d}-{Mon}-{yyyy}", "{dd}-{MON}-{yy}", "{yyyy} {Mon} {dd}",
        "{dth} of {Month} {yyyy}", "the {dth} of {Month}, {yyyy}",
        "{Weekday}, {Month} {d}, {yyyy}", "{Weekday} {d} {Month} {yyyy}", "{Wkd}, {dd} {Mon} {yyyy}",
    ),
    *forms(
        "fr",
        "{der} {Month} {yyyy}", "le {der} {Month} {yyyy}", "{Weekday} {der} {Month} {yyyy}", "{d} {Mon} {yyyy}",
    ),
    *forms(
        "de",
        "{d}. {Month} {yyyy}", "{d}. {Mon} {yyyy}", "{Weekday}, {d}. {Month} {yyyy}",
        "{Weekday}, den {d}. {Month} {yyyy}",
    ),
    *forms("es", "{d} de {Month} de {yyyy}", "{d} {Mon} {yyyy}", "{Weekday}, {d} de {Month} de {yyyy}"),
    *forms("it", "{d} {Month} {yyyy}", "{d} {Mon} {yyyy}", "{Weekday} {d} {Month} {yyyy}"),
    *forms("nl", "{d} {Month} {yyyy}", "{Weekday} {d} {Month} {yyyy}"),
)  # fmt: skip

HELD_OUT = (
    *forms("en", "{yyyy}, {Month} {d}", "{Month} the {dth}, {yyyy}", "{Weekday} the {dth} of {Month} {yyyy}"),
    *forms("fr", "le {Weekday} {der} {Month} {yyyy}"),
    *forms("de", "{Wkd} {d}. {Mon} {yyyy}"),
    *forms("es", "el {Weekday} {d} de {Month} de {yyyy}"),
    *forms("it", "il {d} {Month} {yyyy}"),
    *forms("nl", "{Wkd} {d} {Mon} {yyyy}"),
)
"""Never trained on. Each says what a reader of the others knows, in another order or between other words."""

FORMS = TRAINED + HELD_OUT


def write(date: dt.date, form: Form) -> Written:
    """The date in this form."""
    names, text, fields, done = CALENDARS[form.language], "", {}, 0
    for found in IN_BRACES.finditer(form.pattern):
        piece = PIECES[found[1]]
        text += form.pattern[done : found.start()]
        start = len(text)
        text += piece.spell(date, names)
        if piece.field != "weekday":
            fields[piece.field] = (start, len(text))
        done = found.end()
    return Written(text + form.pattern[done:], date, form, fields)


def spelled(piece: Piece, names: Calendar) -> list[str]:
    """Every name that a piece can be."""
    if piece.field == "month":
        return [piece.spell(dt.date(2000, month, 1), names) for month in range(1, 13)]
    return [piece.spell(dt.date(2001, 1, day), names) for day in range(1, 8)]  # the first was a Monday


@cache
def reader(form: Form) -> re.Pattern[str]:
    """What a text of this form looks like, with a group for each piece."""
    names, look, done = CALENDARS[form.language], "", 0
    for found in IN_BRACES.finditer(form.pattern):
        piece = PIECES[found[1]]
        looks = piece.looks or "|".join(map(re.escape, spelled(piece, names)))
        look += re.escape(form.pattern[done : found.start()]) + f"(?P<{found[1]}>{looks})"
        done = found.end()
    return re.compile(look + re.escape(form.pattern[done:]))


def read(text: str, form: Form) -> dt.date | None:
    """The date that a text says in this form, if it is of this form and there is such a day."""
    found = reader(form).fullmatch(text)
    if found is None:
        return None
    said = {}
    for name, part in found.groupdict().items():
        piece = PIECES[name]
        if piece.looks is None:
            said[piece.field] = spelled(piece, CALENDARS[form.language]).index(part) + 1
        else:
            said[piece.field] = int(re.sub(r"\D", "", part))
    year = said["year"] + (0 if said["year"] > 99 else 2000 if said["year"] < 50 else 1900)
    try:
        date = dt.date(year, said["month"], said["day"])
    except ValueError:
        return None
    return date if write(date, form).text == text else None  # its weekday and its ending are right, too


def readings(text: str, known: Sequence[Form] = FORMS) -> set[dt.date]:
    """Every date that a text may say."""
    return {date for form in known if (date := read(text, form)) is not None}


def drawn(chance: random.Random, known: Sequence[Form] = TRAINED) -> Written:
    """A day of the hundred years, in one of the forms."""
    day = dt.date.fromordinal(chance.randint(FIRST.toordinal(), LAST.toordinal()))
    return write(day, chance.choice(known))


def mistyped(written: Written, chance: random.Random) -> Written:
    """The same with one slip of the fingers in a word: a letter left out, doubled, or changed with the next.

    Words keep their first letter. A text of digits stays as it is: a slip there would be another date.
    """
    letters = [place for place in range(1, len(written.text) - 1) if written.text[place - 1 : place + 2].isalpha()]
    if not letters:
        return written
    place, text = chance.choice(letters), written.text
    pair = text[place : place + 2]
    slip = chance.choice([pair[1], pair[0] + pair, pair[::-1]])
    longer = len(slip) - 2
    moved = {
        name: (start + longer * (start > place), stop + longer * (stop > place))
        for name, (start, stop) in written.fields.items()
    }
    return Written(text[:place] + slip + text[place + 2 :], written.date, written.form, moved)
