"""Repeated words as numbers: model names, reasons, decisions, segments."""

from __future__ import annotations

from collections.abc import Iterable

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Dialect

from srbench_accounting import schema
from srbench_accounting.statements import Statement, insert_once
from srbench_accounting.words import clip

_LOCK = 0x5352_574F_5244


class Vocabulary:
    """The words of a store, kept in memory. Numbers and words only ever come to it, so any thread may read it."""

    def __init__(self, dialect: Dialect) -> None:
        table = schema.vocabulary
        self._numbers: dict[str, int] = {}
        self._words: dict[int, str] = {}
        self.find = Statement(sa.select(table.c.word_no).where(table.c.word == sa.bindparam("w")), dialect)
        self.look_up = Statement(sa.select(table.c.word).where(table.c.word_no == sa.bindparam("n")), dialect)
        self.add = Statement(insert_once(table, dialect).values(word=sa.bindparam("w")), dialect)
        # Words are added by one transaction at a time, so that two of them never wait for each other's.
        self.lock = Statement(sa.select(sa.func.pg_advisory_xact_lock(sa.literal_column(str(_LOCK)))), dialect)
        self.shared = dialect.name == "postgresql"
        self._after = Statement(
            sa.select(table.c.word_no, table.c.word).where(table.c.word_no > sa.bindparam("n")), dialect
        )

    def number(self, word: str) -> int | None:
        """The number of a committed word; `None` when this process has not seen it."""
        return self._numbers.get(word)

    def number_of(self, connection: Connection, word: str) -> int | None:
        """The number of a word that the connection sees; `None` when no row has it."""
        known = self._numbers.get(word)
        if known is None:
            rows = self.find.rows(connection, clip(word))
            known = int(rows[0][0]) if rows else None
        return known

    def word(self, number: int) -> str | None:
        """The committed word of `number`; `None` when this process has not seen it."""
        return self._words.get(number)

    def learn(self, words: dict[str, int]) -> None:
        """Takes in words whose rows are committed."""
        self._numbers.update(words)
        self._words.update({number: word for word, number in words.items()})

    def words(self, connection: Connection, numbers: Iterable[int | None]) -> dict[int | None, str]:
        """The words of `numbers`, NULL as the empty text. Reads those that another process added."""
        wanted = set(numbers) - {None}
        if not wanted <= self._words.keys():
            self.learn({word: number for number, word in self._after.rows(connection, 0)})
        found: dict[int | None, str] = {number: self._words[number] for number in wanted if number is not None}
        found[None] = ""
        return found


class JobWords:
    """The vocabulary inside one transaction: new words are written there, and shared only after its commit."""

    def __init__(self, vocabulary: Vocabulary, connection: Connection) -> None:
        self._vocabulary = vocabulary
        self._connection = connection
        self.new: dict[str, int] = {}
        self._locked = not vocabulary.shared

    def number(self, text: str) -> int | None:
        """The number of `text`, clipped; `None` for the empty text."""
        if not text:
            return None
        number = self._vocabulary.number(text)
        return number if number is not None else self._seek(clip(text))

    def _seek(self, word: str) -> int:
        known = self._vocabulary.number(word)
        if known is None:
            known = self.new.get(word)
        if known is None:
            found = self._vocabulary.find.rows(self._connection, word)
            if not found:
                self._lock()
                self._vocabulary.add.run(self._connection, word)
                found = self._vocabulary.find.rows(self._connection, word)
            known = self.new[word] = int(found[0][0])
        return known

    def _lock(self) -> None:
        if not self._locked:
            self._vocabulary.lock.rows(self._connection)
            self._locked = True

    def word(self, number: int | None) -> str:
        """The word of `number`; the empty text for NULL."""
        if number is None:
            return ""
        for word, found in self.new.items():
            if found == number:
                return word
        return self._vocabulary.word(number) or str(self._vocabulary.look_up.rows(self._connection, number)[0][0])
