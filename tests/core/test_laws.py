"""Every named law, over random cases, on every road that takes them."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from tests.cases import Case, Kinds, draw
from tests.laws import LAWS, ROADS, TABLE, Law, check, kinds_on

EXAMPLES = 24  # of each law on each road; fewer of the slow ones
PAIRS = [(law, road) for law in TABLE for road in ROADS if kinds_on(law, road)]


def cases(kinds: Kinds) -> st.SearchStrategy[Case]:
    """The parts are drawn by name, so that an example shrinks to the plainest; sizes and numbers come from a seed."""
    names = {
        name: st.sampled_from(getattr(kinds, name)) for name in ("scores", "normalisers", "masks", "biases", "dtypes")
    }
    seeds = st.integers(0, 2**32 - 1)
    return st.builds(
        lambda seed, parts: draw(seed, replace(kinds, **{name: (part,) for name, part in parts.items()})),
        seeds,
        st.fixed_dictionaries(names),
    )


@pytest.mark.parametrize(("law", "road"), PAIRS, ids=[f"{law.name}-{road}" for law, road in PAIRS])
def test_law(law: Law, road: str) -> None:
    kinds = kinds_on(law, road)
    assert kinds is not None
    taken = 0

    @settings(max_examples=max(2, EXAMPLES // law.cost))
    @given(cases(kinds))
    def holds(case: Case) -> None:
        nonlocal taken
        taken += check(law, road, case)

    holds()
    assert taken, f"{road} took none of the cases, so the law was not looked at"


def test_there_are_enough_laws_with_names_of_their_own() -> None:
    assert len(LAWS) == len(TABLE) >= 24
    assert all(law.sentence.endswith(".") for law in TABLE)
    assert len({law.sentence for law in TABLE}) == len(TABLE)


PAGE = Path(__file__).resolve().parents[2] / "docs" / "laws.md"


def test_the_page_lists_the_laws() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == [(law.name, law.sentence) for law in TABLE], "`python -m tests.laws` prints the rows"
