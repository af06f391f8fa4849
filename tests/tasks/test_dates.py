"""Dates: what is written is read again, fields are where they stand, and what is ambiguous is known."""

import datetime as dt
import random

import pytest
from hypothesis import given, strategies as st

from regard.tasks.calendars import CALENDARS
from regard.tasks.dates import (
    FIRST,
    FORMS,
    HELD_OUT,
    LAST,
    TRAINED,
    Form,
    drawn,
    mistyped,
    ordinal,
    read,
    readings,
    write,
)

days = st.dates(FIRST, LAST)


def test_there_are_forms_enough_and_none_twice() -> None:
    assert len(TRAINED) >= 40
    assert len(HELD_OUT) == 8
    assert len(set(FORMS)) == len(FORMS)
    assert len({form.language for form in TRAINED}) == len(CALENDARS) == 6


@pytest.mark.parametrize("language", CALENDARS)
def test_calendars_are_whole(language: str) -> None:
    calendar = CALENDARS[language]
    for names, count in ((calendar.months, 12), (calendar.short_months, 12), (calendar.weekdays, 7)):
        assert len(set(names)) == count
    assert len(set(calendar.short_weekdays)) == 7


@pytest.mark.parametrize("form", FORMS, ids=str)
@given(day=days)
def test_what_is_written_is_read(form: Form, day: dt.date) -> None:
    written = write(day, form)
    assert read(written.text, form) == day
    assert day in readings(written.text)
    assert "{" not in written.text


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("7 March 2009", Form("{d} {Month} {yyyy}")),
        ("07.03.2009", Form("{dd}.{mm}.{yyyy}")),
        ("20090307", Form("{yyyy}{mm}{dd}")),
        ("3/7/2009", Form("{m}/{d}/{yyyy}")),
        ("7 Mar '09", Form("{d} {Mon} '{yy}")),
        ("the 7th of March, 2009", Form("the {dth} of {Month}, {yyyy}")),
        ("Saturday, March 7, 2009", Form("{Weekday}, {Month} {d}, {yyyy}")),
        ("07-MAR-09", Form("{dd}-{MON}-{yy}")),
        ("le 7 mars 2009", Form("le {der} {Month} {yyyy}", "fr")),
        ("Samstag, den 7. März 2009", Form("{Weekday}, den {d}. {Month} {yyyy}", "de")),
        ("sábado, 7 de marzo de 2009", Form("{Weekday}, {d} de {Month} de {yyyy}", "es")),
        ("sabato 7 marzo 2009", Form("{Weekday} {d} {Month} {yyyy}", "it")),
        ("za 7 mrt 2009", Form("{Wkd} {d} {Mon} {yyyy}", "nl")),
    ],
)
def test_forms_as_people_write_them(text: str, form: Form) -> None:
    assert form in FORMS
    assert write(dt.date(2009, 3, 7), form).text == text
    assert readings(text) >= {dt.date(2009, 3, 7)}


def test_the_first_of_a_month_is_premier() -> None:
    assert write(dt.date(2009, 3, 1), Form("{der} {Month} {yyyy}", "fr")).text == "1er mars 2009"


@pytest.mark.parametrize(
    ("day", "wanted"), [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th"),
                        (21, "21st"), (22, "22nd"), (23, "23rd"), (30, "30th"), (31, "31st")],
)  # fmt: skip
def test_ordinals(day: int, wanted: str) -> None:
    assert ordinal(day) == wanted


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_fields_are_where_they_stand(form: Form) -> None:
    """A year whose digits are no day's and no month's; each field's characters say the field."""
    day = dt.date(1987, 10, 31)
    written = write(day, form)
    assert set(written.fields) == {"year", "month", "day"}
    parts = {name: written.text[start:stop] for name, (start, stop) in written.fields.items()}
    assert parts["year"] in ("1987", "87")
    assert parts["day"] in ("31", "31st")
    assert parts["month"].lower()[:2] in ("10", "oc", "ok", "ot")


def test_what_is_ambiguous() -> None:
    assert readings("03/04/2021") == {dt.date(2021, 3, 4), dt.date(2021, 4, 3)}
    assert readings("13/04/2021") == {dt.date(2021, 4, 13)}
    assert readings("04/04/2021") == {dt.date(2021, 4, 4)}
    assert readings("1.2.03") == {dt.date(2003, 2, 1)}
    assert readings("12-11-10") == {dt.date(2010, 11, 12)}
    assert readings("3 mar 2021") == {dt.date(2021, 3, 3)}, "in Spanish as in Italian"


@pytest.mark.parametrize(
    "text", ["", "yesterday", "31/02/2021", "30.02.2021", "2021-13-01", "0 March 2021", "1nd of May 2021"]
)
def test_what_is_no_date(text: str) -> None:
    assert readings(text) == set()


def test_a_weekday_that_is_not_the_day_s_is_no_date() -> None:
    assert readings("Saturday, March 7, 2009") == {dt.date(2009, 3, 7)}
    assert readings("Sunday, March 7, 2009") == set()


def test_two_digits_are_of_the_hundred_years() -> None:
    assert readings("1.2.49") == {dt.date(2049, 2, 1)}
    assert readings("1.2.50") == {dt.date(1950, 2, 1)}


def test_draws_repeat_and_reach_every_form() -> None:
    one, two = ([drawn(chance) for _ in range(2000)] for chance in (random.Random(7), random.Random(7)))
    assert one == two
    assert {written.form for written in one} == set(TRAINED)
    assert all(FIRST <= written.date <= LAST for written in one)
    assert {written.date.year for written in one} == set(range(1950, 2050))


@given(seed=st.integers(0, 2**32), day=days, form=st.sampled_from(FORMS))
def test_a_slip_leaves_digits_and_fields_in_place(seed: int, day: dt.date, form: Form) -> None:
    written = write(day, form)
    slipped = mistyped(written, random.Random(seed))
    assert [c for c in slipped.text if c.isdigit()] == [c for c in written.text if c.isdigit()]
    assert abs(len(slipped.text) - len(written.text)) <= 1
    assert (slipped.date, slipped.form) == (day, form)
    if not any(c.isalpha() for c in written.text):
        assert slipped == written
    for name, (start, stop) in written.fields.items():
        first, last = slipped.fields[name]
        assert 0 <= first < last <= len(slipped.text)
        before, after = written.text[start:stop], slipped.text[first:last]
        if before.isdigit():
            assert after == before
        else:
            assert abs(len(after) - len(before)) <= 1


def test_a_slip_is_of_three_kinds() -> None:
    written = write(dt.date(2009, 3, 7), Form("{d} {Month} {yyyy}"))
    found = {mistyped(written, random.Random(seed)).text for seed in range(200)}
    assert {"7 Mrch 2009", "7 Maarch 2009", "7 Mrach 2009", "7 Marhc 2009", "7 Marh 2009"} <= found
    assert all(text.startswith("7 M") and text.endswith(" 2009") for text in found)
    first = write(dt.date(2009, 3, 7), Form("{Month} {d}, {yyyy}"))
    assert "Mrch 7, 2009" in {mistyped(first, random.Random(seed)).text for seed in range(200)}
    assert mistyped(write(dt.date(2009, 3, 7), Form("{dth} of {Month} {yyyy}")), random.Random(3)).text[:4] == "7th "
