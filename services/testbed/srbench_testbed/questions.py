"""Small calculations with a known answer, by subject: raw material of the synthetic benchmarks. Pure; seeded."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import TypeAlias

# A question and its exact answer.
Made: TypeAlias = tuple[str, Fraction]
Maker: TypeAlias = Callable[[Random], Made]
MICRO = 10**6


@dataclass(frozen=True, slots=True)
class Question:
    """A question with its options.

    Attributes:
        key: position of the right option.
    """

    text: str
    options: tuple[str, ...]
    key: int


def decimal(value: Fraction) -> str:
    """`value` as a decimal without trailing zeros. Raises `ValueError` when six places do not hold it."""
    return _micro_text(_micro(value))


def _micro(value: Fraction) -> int:
    """`value` in millionths; everything below is counted in them, since fractions are slow."""
    whole, rest = divmod(value.numerator * MICRO, value.denominator)
    if rest:
        raise ValueError(f"{value} has more than six places")
    return whole


def _micro_text(value: int) -> str:
    whole, part = divmod(abs(value), MICRO)
    text = f"{whole}.{part:06d}".rstrip("0").rstrip(".")
    return f"-{text}" if value < 0 else text


def question(maker: Maker, rng: Random, option_count: int) -> Question:
    """One question of `maker` with `option_count` options, exactly one of which is right."""
    text, answer = maker(rng)
    options = [_micro_text(value) for value in _values(answer, rng, option_count)]
    order = list(range(option_count))
    rng.shuffle(order)
    return Question(text, tuple(options[place] for place in order), order.index(0))


def _values(answer: Fraction, rng: Random, count: int) -> list[int]:
    """The answer and distinct positive numbers near it that look like it, in millionths."""
    right = _micro(answer)
    step = MICRO if answer.denominator == 1 else _micro(Fraction(1, answer.denominator))
    pool = {right * 2, right * 10, right * 4, *(right + step * k for k in range(-12, 13))}
    return [right, *rng.sample(sorted(value for value in pool if value > 0 and value != right), count - 1)]


def _gcd(rng: Random) -> Made:
    common = rng.randint(2, 60)
    a, b = common * rng.randint(3, 90), common * rng.randint(3, 90)
    return f"What is the greatest common divisor of {a} and {b}?", Fraction(math.gcd(a, b))


def _power(rng: Random) -> Made:
    base, exponent, modulus = rng.randint(3, 40), rng.randint(5, 60), rng.randint(41, 997)
    left = pow(base, exponent, modulus) or modulus
    return (
        f"What is the smallest positive integer that leaves the same remainder as {base}^{exponent} "
        f"when divided by {modulus}?",
        Fraction(left),
    )


def _acceleration(rng: Random) -> Made:
    force, mass = rng.randint(6, 900), rng.choice([2, 4, 5, 8, 10, 20, 25])
    return (
        f"A net force of {force} N acts on a mass of {mass} kg. What is the acceleration in m/s^2?",
        Fraction(force, mass),
    )


def _work(rng: Random) -> Made:
    force, distance = rng.randint(3, 400), rng.randint(2, 120)
    return (
        f"A constant force of {force} N moves a body {distance} m along its own direction. How much work is done in J?",
        Fraction(force * distance),
    )


def _dilution(rng: Random) -> Made:
    volume, factor = rng.randint(2, 80), rng.choice([2, 4, 5, 8, 10, 20])
    return (
        f"To what final volume in mL must {volume} mL of a stock solution be diluted so that its concentration falls "
        f"to one part in {factor}?",
        Fraction(volume * factor),
    )


def _neutrons(rng: Random) -> Made:
    name, protons = rng.choice([("sodium", 11), ("iron", 26), ("silver", 47), ("iodine", 53), ("gold", 79)])
    mass = 2 * protons + rng.randint(1, 40)
    return f"How many neutrons are in an atom of {name} with mass number {mass}?", Fraction(mass - protons)


def _doubling(rng: Random) -> Made:
    start, minutes, times = rng.randint(20, 900), rng.choice([15, 20, 30, 40]), rng.randint(2, 8)
    return (
        f"A culture of {start} cells doubles every {minutes} minutes. How many cells are there after "
        f"{minutes * times} minutes?",
        Fraction(start * 2**times),
    )


def _codons(rng: Random) -> Made:
    acids = rng.randint(30, 2400)
    return (
        f"How many nucleotides does a coding sequence for {acids} amino acids have, the stop codon included?",
        Fraction(3 * (acids + 1)),
    )


def _hexadecimal(rng: Random) -> Made:
    value = rng.randint(300, 65000)
    return f"What is the hexadecimal number {value:X} in decimal?", Fraction(value)


def _xor(rng: Random) -> Made:
    a, b = rng.sample(range(20, 4000), 2)
    return f"What is the bitwise exclusive or of the integers {a} and {b}?", Fraction(a ^ b)


def _elasticity(rng: Random) -> Made:
    price, ratio = rng.choice([2, 4, 5, 8, 10]), rng.randint(1, 90)
    return (
        f"The price of a good rises by {price} percent and the quantity demanded falls by {ratio} percent. What is the "
        "absolute value of the price elasticity of demand?",
        Fraction(ratio, price),
    )


def _multiplier(rng: Random) -> Made:
    spending, saved = rng.randint(5, 900), rng.choice([10, 20, 25, 40, 50])
    return (
        f"Households save {saved} percent of every extra unit of income. By how much does output rise in a simple "
        f"closed economy when public spending rises by {spending}?",
        Fraction(spending * 100, saved),
    )


def _break_even(rng: Random) -> Made:
    margin, units, variable = rng.randint(2, 60), rng.randint(20, 900), rng.randint(3, 90)
    return (
        f"Fixed costs are {margin * units} dollars; a unit costs {variable} dollars to make and sells for "
        f"{variable + margin} dollars. How many units must be sold to break even?",
        Fraction(units),
    )


def _markup(rng: Random) -> Made:
    cost, percent = rng.randint(5, 400) * 20, rng.choice([5, 15, 25, 35, 45, 60, 75])
    return (
        f"An article costs {cost} dollars and is marked up by {percent} percent of cost. At what price in dollars is it "
        "sold?",
        Fraction(cost * (100 + percent), 100),
    )


def _series(rng: Random) -> Made:
    values = [rng.randint(2, 400) for _ in range(3)]
    return (
        f"Resistors of {values[0]}, {values[1]} and {values[2]} ohms are connected in series. What is the total "
        "resistance in ohms?",
        Fraction(sum(values)),
    )


def _gears(rng: Random) -> Made:
    driver, ratio, speed = rng.randint(10, 40), rng.randint(2, 6), rng.randint(5, 300)
    return (
        f"A gear of {driver} teeth drives one of {driver * ratio} teeth and turns at {speed * ratio} revolutions per "
        "minute. How fast does the driven gear turn, in revolutions per minute?",
        Fraction(speed),
    )


def _dose(rng: Random) -> Made:
    mass, dose = rng.randint(8, 110), rng.randint(2, 60)
    return (
        f"A drug is given at {dose} mg per kg of body mass. How many mg does a patient of {mass} kg receive?",
        Fraction(mass * dose),
    )


def _output(rng: Random) -> Made:
    rate, stroke = rng.randint(48, 150), rng.randint(50, 110)
    return (
        f"The heart beats {rate} times a minute and ejects {stroke} mL with each beat. What is the cardiac output in mL "
        "per minute?",
        Fraction(rate * stroke),
    )


def _elapsed(rng: Random) -> Made:
    start, length = rng.randint(900, 1890), rng.randint(7, 120)
    return (
        f"A dynasty came to power in the year {start} and fell in the year {start + length}. How many years lie between?",
        Fraction(length),
    )


def _across_zero(rng: Random) -> Made:
    before, after = rng.randint(2, 480), rng.randint(2, 480)
    return (
        f"How many years passed from the spring of {before} BCE to the spring of {after} CE? There is no year zero.",
        Fraction(before + after - 1),
    )


def _quorum(rng: Random) -> Made:
    members = rng.randint(9, 900)
    return (
        f"The by-laws of a body with {members} members call for a simple majority of all members. How many votes are the "
        "fewest that carry a motion?",
        Fraction(members // 2 + 1),
    )


def _fault(rng: Random) -> Made:
    damage, percent = rng.randint(4, 900) * 100, rng.randint(5, 45)
    return (
        f"Under pure comparative negligence a plaintiff with {damage} dollars of damage is {percent} percent at fault. "
        "How many dollars are awarded?",
        Fraction(damage * (100 - percent), 100),
    )


def _rows(rng: Random) -> Made:
    letters, premises = rng.randint(3, 10), rng.randint(2, 40)
    return (
        f"An argument with {premises} premises uses {letters} different sentence letters. How many rows does its full "
        "truth table have?",
        Fraction(2**letters),
    )


def _categorical(rng: Random) -> Made:
    first, both, neither = rng.randint(5, 300), rng.randint(3, 200), rng.randint(1, 90)
    second = rng.randint(5, 300)
    return (
        f"In a domain {first} things are F only, {second} are G only, {both} are both and {neither} are neither. Of how "
        "many things is the disjunction of F and G true?",
        Fraction(first + second + both),
    )


def _z_score(rng: Random) -> Made:
    mean, deviation, z = rng.randint(40, 120), rng.randint(2, 20), Fraction(rng.randint(2, 12), 4)
    raw = mean + deviation * z
    return (
        f"A test has mean {mean} and standard deviation {deviation}. What is the z score of the raw score {decimal(raw)}?",
        z,
    )


def _weber(rng: Random) -> Made:
    standard, part = rng.randint(4, 400) * 10, rng.choice([2, 5, 8, 10, 20])
    return (
        f"The Weber fraction for a weight is {part} percent. What is the just noticeable difference in grams for a "
        f"standard of {standard} grams?",
        Fraction(standard * part, 100),
    )


def _speed(rng: Random) -> Made:
    speed, hours = rng.randint(4, 240), rng.randint(2, 14)
    return (
        f"A train covers {speed * hours} km in {hours} hours. What is its mean speed in km per hour?",
        Fraction(speed),
    )


def _minutes(rng: Random) -> Made:
    hours, minutes = rng.randint(1, 60), rng.randint(1, 59)
    return f"How many minutes are {hours} hours and {minutes} minutes?", Fraction(60 * hours + minutes)


MAKERS: dict[str, tuple[Maker, ...]] = {
    "biology": (_doubling, _codons),
    "business": (_break_even, _markup),
    "chemistry": (_dilution, _neutrons),
    "computer science": (_hexadecimal, _xor),
    "economics": (_elasticity, _multiplier),
    "engineering": (_series, _gears),
    "health": (_dose, _output),
    "history": (_elapsed, _across_zero),
    "law": (_quorum, _fault),
    "math": (_gcd, _power),
    "other": (_speed, _minutes),
    "philosophy": (_rows, _categorical),
    "physics": (_acceleration, _work),
    "psychology": (_z_score, _weber),
}


def questions(subject: str, count: int, rng: Random, option_count: Callable[[Random], int]) -> list[Question]:
    """`count` different questions of a subject. Raises `ValueError` when its makers have not so many."""
    made: dict[str, Question] = {}
    makers = MAKERS[subject]
    for attempt in range(100 * count):
        if len(made) == count:
            break
        found = question(makers[attempt % len(makers)], rng, option_count(rng))
        made.setdefault(found.text, found)
    if len(made) < count:
        raise ValueError(f"{subject} has fewer than {count} different questions")
    return list(made.values())
