"""Questions whose answer is a template with places to fill: what fills them is looked up in the context.

    Professor Perry taught them Machine Learning . He enjoyed it . ... What did Professor Perry do ?
    He taught them Machine Learning

A context states some facts between sentences that say nothing; a question asks for one of them. Each word of the answer
stands in the context, and where is known: so it can be told whether attention looked there, and how much a single
vector can hold is a curve over the number of facts.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from regard.tasks.calendars import words

NAMES = words("""
    Abel Adler Baker Barnes Bell Bohr Brandt Bruno Carter Castro Chen Clark Cohen Costa Curie Dahl Davis Diaz Dubois
    Eriksen Evans Fischer Fontana Fox Garcia Gauss Gray Green Haas Hall Hansen Hughes Ito Jensen Kahn Keller Kim Klein
    Kumar Lang Lopez Marx Meyer Moreau Nash Novak Olsen Park Perry Petrov Ramos Reed Rossi Sato Silva Singh Stein Tanaka
    Vogel Wolf
""")
TAUGHT = {"taught": "teach", "showed": "show", "gave": "give", "sold": "sell", "told": "tell", "lent": "lend"}
WHOM = ("them", "us", "me", "you", "everybody", "nobody")
THINGS = words("""
    Machine_Learning Algebra Geometry Chemistry Physics Botany Latin Greek Roman_History Modern_Art Logic Optics
    Number_Theory Graph_Theory Statistics Economics Rhetoric Poetry Music Chess Astronomy Cell_Biology Genetics
    Game_Theory Data_Mining Law Ethics Medieval_Art Topology Mechanics Fluid_Dynamics Acoustics Linguistics Phonetics
    Grammar Public_Finance Accounting Marketing Robotics Computer_Vision Cryptography Set_Theory
""")
WHAT = tuple(tuple(thing.split("_")) for thing in THINGS)
PRONOUNS = ("He", "She", "They")
LIKED = ("enjoyed", "finished", "repeated", "liked")
FILLERS = (
    words("The department offers many classes in spring ."),
    words("The students are going to take them ."),
    words("It rained all day ."),
    words("The library was closed for a week ."),
    words("Nobody knew what would come next ."),
    words("The room was too small ."),
    words("Some of the students came late ."),
    words("There was coffee in the hall ."),
)


@dataclass(frozen=True)
class Asked:
    """A context with a question, the answer, and where in the source each word of the answer stands."""

    source: tuple[str, ...]
    answer: tuple[str, ...]
    places: tuple[int, ...]


@dataclass(frozen=True)
class Fact:
    """Who did what, in two sentences that name each part once."""

    name: str
    pronoun: str
    verb: str
    whom: str
    what: tuple[str, ...]
    liked: str

    def said(self) -> list[str]:
        return ["Professor", self.name, self.verb, self.whom, *self.what, ".", self.pronoun, self.liked, "it", "."]

    def places(self) -> dict[str, range]:
        """Where its parts stand in what is said."""
        end = 4 + len(self.what)
        return {
            "name": range(2),
            "verb": range(2, 3),
            "whom": range(3, 4),
            "what": range(4, end),
            "pronoun": range(end + 1, end + 2),
        }


def facts(chance: random.Random, count: int) -> list[Fact]:
    """So many facts, no two about one person or one thing."""
    names, things = chance.sample(NAMES, count), chance.sample(WHAT, count)
    return [
        Fact(
            name, chance.choice(PRONOUNS), chance.choice(list(TAUGHT)), chance.choice(WHOM), what, chance.choice(LIKED)
        )
        for name, what in zip(names, things, strict=True)
    ]


def question(fact: Fact, chance: random.Random) -> tuple[list[str], list[str]]:
    """A question about a fact, and the parts that its answer names, in order."""
    verb = TAUGHT[fact.verb]
    return chance.choice(
        [
            (["What", "did", "Professor", fact.name, "do", "?"], ["pronoun", "verb", "whom", "what"]),
            (["What", "did", "Professor", fact.name, verb, fact.whom, "?"], ["what"]),
            (["Who", fact.verb, fact.whom, *fact.what, "?"], ["name"]),
            (["Whom", "did", "Professor", fact.name, verb, *fact.what, "?"], ["whom"]),
        ]
    )


def drawn(chance: random.Random, count: int, *, filler: float = 0.5) -> Asked:
    """A context of `count` facts, with a sentence that says nothing before each by this chance, and one question."""
    if not 1 <= count <= len(WHAT):
        raise ValueError(f"count: came {count} facts, wanted 1 to {len(WHAT)}. Remedy: count=4.")
    if not 0 <= filler <= 1:
        raise ValueError(f"filler: came {filler}, wanted a chance from 0 to 1. Remedy: filler=0.5.")
    stated = facts(chance, count)
    asked = chance.randrange(count)
    source: list[str] = []
    begins = 0
    for place, fact in enumerate(stated):
        if chance.random() < filler:
            source += chance.choice(FILLERS)
        if place == asked:
            begins = len(source)
        source += fact.said()
    text, parts = question(stated[asked], chance)
    where = stated[asked].places()
    places = tuple(begins + place for part in parts for place in where[part])
    return Asked((*source, *text), tuple(source[place] for place in places), places)
