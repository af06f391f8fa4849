"""Questions and toys: answers stand where it is said, and can be found by who reads."""

import random
import re

import pytest
from hypothesis import given, strategies as st

from regard.tasks import toys
from regard.tasks.questions import FILLERS, LIKED, NAMES, PRONOUNS, TAUGHT, WHAT, WHOM, Fact, drawn

seeds, counts = st.integers(0, 2**32), st.integers(1, 12)
FACT = re.compile(r"Professor (\w+) (\w+) (\w+) ([\w ]+?) \. (\w+) \w+ it \.")


def read(source: tuple[str, ...]) -> str:
    """The answer by reading: facts by their sentences, the question by its form."""
    text = " ".join(source)
    question = text.rsplit(" . ", 1)[1]
    facts = [found.groups() for found in FACT.finditer(text)]
    if asked := re.fullmatch(r"What did Professor (\w+) do \?", question):
        (answer,) = [f"{who} {verb} {whom} {what}" for name, verb, whom, what, who in facts if name == asked[1]]
    elif asked := re.fullmatch(r"What did Professor (\w+) \w+ (\w+) \?", question):
        (answer,) = [what for name, _, whom, what, _ in facts if (name, whom) == asked.groups()]
    elif asked := re.fullmatch(r"Who (\w+) (\w+) ([\w ]+) \?", question):
        (answer,) = [f"Professor {fact[0]}" for fact in facts if fact[1:4] == asked.groups()]
    else:
        asked = re.fullmatch(r"Whom did Professor (\w+) \w+ ([\w ]+) \?", question)
        assert asked is not None, question
        (answer,) = [whom for name, _, whom, what, _ in facts if (name, what) == asked.groups()]
    return answer


@given(seed=seeds, count=counts)
def test_an_answer_is_found_by_reading(seed: int, count: int) -> None:
    asked = drawn(random.Random(seed), count)
    assert " ".join(asked.answer) == read(asked.source)
    assert len(FACT.findall(" ".join(asked.source))) == count


@given(seed=seeds, count=counts)
def test_every_word_of_it_stands_where_it_is_said(seed: int, count: int) -> None:
    asked = drawn(random.Random(seed), count)
    assert tuple(asked.source[place] for place in asked.places) == asked.answer
    begin = asked.source.index("?") - len(asked.source)
    assert begin == -1, "the question comes last"
    assert max(asked.places) < len(asked.source) - 4, "the answer is in the context, not in the question"


def test_the_lecture_s_own() -> None:
    fact = Fact("Perry", "He", "taught", "them", ("Machine", "Learning"), "enjoyed")
    assert " ".join(fact.said()) == "Professor Perry taught them Machine Learning . He enjoyed it ."
    said = fact.said()
    parts = {name: [said[place] for place in places] for name, places in fact.places().items()}
    assert parts == {
        "name": ["Professor", "Perry"], "verb": ["taught"], "whom": ["them"], "what": ["Machine", "Learning"],
        "pronoun": ["He"],
    }  # fmt: skip


def test_all_kinds_of_questions_and_words_come() -> None:
    chance = random.Random(3)
    several = [drawn(chance, 5) for _ in range(2000)]
    begins = {asked.source[-asked.source[::-1].index(".") :][0] for asked in several}
    assert begins == {"What", "Who", "Whom"}
    assert {len(asked.answer) for asked in several} == {1, 2, 4, 5}
    words = {word for asked in several for word in asked.source}
    assert words >= {
        *NAMES,
        *TAUGHT,
        *TAUGHT.values(),
        *WHOM,
        *PRONOUNS,
        *LIKED,
        *(word for what in WHAT for word in what),
    }
    assert words >= {word for sentence in FILLERS for word in sentence}


def test_sentences_that_say_nothing() -> None:
    full, bare = (drawn(random.Random(7), 5, filler=filler) for filler in (1.0, 0.0))
    starts = {sentence[0] for sentence in FILLERS}
    assert sum(word in starts for word in full.source) >= 5
    assert not starts & set(bare.source)


def test_a_seed_repeats() -> None:
    assert drawn(random.Random(7), 5) == drawn(random.Random(7), 5)
    assert drawn(random.Random(7), 5) != drawn(random.Random(8), 5)


@pytest.mark.parametrize("count", [0, 1 + len(WHAT)])
def test_counts_are_checked(count: int) -> None:
    with pytest.raises(ValueError, match=rf"^count: came {count} facts, wanted 1 to {len(WHAT)}\. Remedy: count=4\.$"):
        drawn(random.Random(0), count)
    assert len(drawn(random.Random(0), len(WHAT)).source) > 400


@pytest.mark.parametrize("filler", [-0.1, 1.1])
def test_chances_are_checked(filler: float) -> None:
    with pytest.raises(
        ValueError, match=rf"^filler: came {filler}, wanted a chance from 0 to 1\. Remedy: filler=0\.5\.$"
    ):
        drawn(random.Random(0), 3, filler=filler)


@given(seed=seeds, length=st.integers(0, 40))
def test_toys(seed: int, length: int) -> None:
    copied, reversed_ = (toys.drawn(toy, random.Random(seed), length) for toy in ("copy", "reverse"))
    assert copied.source == copied.target == reversed_.source
    assert reversed_.target == copied.source[::-1]
    for row in (copied, reversed_):
        assert len(row.source) == length
        assert tuple(row.source[place] for place in row.places) == row.target


def test_toys_draw_from_their_letters() -> None:
    assert set(toys.drawn("copy", random.Random(0), 2000).source) == set("abcdefghijklmnopqrstuvwxyz")
    assert set(toys.drawn("copy", random.Random(0), 99, ["x", "yz"]).source) == {"x", "yz"}
    with pytest.raises(ValueError, match=r"^toy: came 'sort', wanted 'copy' or 'reverse'\. Remedy: one of the two\.$"):
        toys.drawn("sort", random.Random(0), 3)
    for length, letters in ((-1, "ab"), (3, "")):
        with pytest.raises(
            ValueError, match=rf"^length: came {length} of {len(letters)} letters, wanted letters to draw"
        ):
            toys.drawn("copy", random.Random(0), length, letters)
