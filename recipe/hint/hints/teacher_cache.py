"""A teacher's responses on disk, so that each is paid for once.

One SQLite file: several processes may share it, and one that is killed leaves either the whole
response or none. Its rollback journal works on network file systems too where these have locks. A
connection lives for one operation, so that a process may fork at any time.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from recipe.run.errors import ConfigError

FILE = "answers.sqlite"  # and its table: names of files that users have
_LOCK_TIMEOUT_S = 30.0
_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT PRIMARY KEY, text TEXT NOT NULL, tokens INTEGER NOT NULL,
    paid_tokens INTEGER NOT NULL, is_cut INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS paid (id INTEGER PRIMARY KEY CHECK (id = 0), tokens INTEGER NOT NULL);
INSERT OR IGNORE INTO paid VALUES (0, 0);
"""


@dataclass(frozen=True, slots=True)
class CachedResponse:
    """One response: its text, its length, and what it cost with the prompt."""

    text: str
    tokens: int
    paid_tokens: int
    is_cut: bool = False

    @property
    def is_unwritten(self) -> bool:
        """Whether it was cut before its text began: its tokens are thoughts, told apart or hidden.

        A text of spaces alone has at least a character for each token.
        """
        is_blank = not self.text.strip()
        return self.is_cut and is_blank and (not self.text or self.tokens > len(self.text))


class ResponseCache:
    """Responses by the key of their request, and the sum of all that was paid."""

    def __init__(self, folder: str | Path) -> None:
        """Make the file if there is none.

        Raises:
            ConfigError: If the folder cannot be written or the file is something else.
        """
        self.path = Path(folder) / FILE
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._open() as connection:
                connection.executescript(_TABLES)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(
                f"hint.teacher.cache_dir={folder}: {self.path.name} cannot be used: {error}; "
                "give a folder that can be written, or delete the file if it is damaged"
            ) from error

    @staticmethod
    def has_responses(folder: str | Path) -> bool:
        """Return whether a folder has a cache with a response in it; nothing is made."""
        path = Path(folder) / FILE
        if not path.is_file():
            return False
        try:
            with contextlib.closing(
                sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
            ) as one:
                return one.execute("SELECT 1 FROM answers LIMIT 1").fetchone() is not None
        except sqlite3.Error:
            return False

    @contextlib.contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, timeout=_LOCK_TIMEOUT_S)
        with contextlib.closing(connection), connection:
            yield connection

    def get(self, key: str) -> CachedResponse | None:
        """Return the response to a request, if there is one."""
        with self._open() as connection:
            columns = "text, tokens, paid_tokens, is_cut"
            query = f"SELECT {columns} FROM answers WHERE key = ?"
            row = connection.execute(query, (key,)).fetchone()
        return CachedResponse(row[0], row[1], row[2], bool(row[3])) if row else None

    def add(self, key: str, response: CachedResponse) -> None:
        """Keep a response and count its price; both or neither. The first one of a key stays."""
        with self._open() as connection:
            row = (key, *astuple(response))
            connection.execute("INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?)", row)
            connection.execute("UPDATE paid SET tokens = tokens + ?", (response.paid_tokens,))

    def pay(self, tokens: int) -> None:
        """Count what was paid for a response that is not kept."""
        with self._open() as connection:
            connection.execute("UPDATE paid SET tokens = tokens + ?", (tokens,))

    def paid_tokens(self) -> int:
        """Return all that was ever paid by those who share this file."""
        with self._open() as connection:
            return int(connection.execute("SELECT tokens FROM paid").fetchone()[0])


class _Entry(NamedTuple):
    paid_tokens: int
    write: Callable[[], None]
    key: str = ""
    response: CachedResponse | None = None


class Ledger:
    """What was paid for on its way into the cache; what the cache does not take waits here."""

    def __init__(self, cache: ResponseCache) -> None:
        self._cache = cache
        self._waiting: list[_Entry] = []
        self._writing: asyncio.Task[None] | None = None
        self._error = ""

    @property
    def waiting_tokens(self) -> int:
        """Paid, and not counted by the cache yet."""
        return sum(each.paid_tokens for each in self._waiting)

    def get(self, key: str) -> CachedResponse | None:
        """Return the response to a request, if it waits."""
        return next((each.response for each in self._waiting if each.key == key), None)

    async def add(self, key: str, response: CachedResponse) -> str:
        """Have the cache keep and count a response, now or later; return why not now."""
        write = partial(self._cache.add, key, response)
        return await self._write(_Entry(response.paid_tokens, write, key, response))

    async def pay(self, tokens: int) -> str:
        """Have the cache count what was paid for a response that is not kept."""
        return await self._write(_Entry(tokens, partial(self._cache.pay, tokens)))

    async def catch_up(self) -> str:
        """Write what waits; return why nothing may be paid for until that succeeds.

        Who comes meanwhile waits for the same attempt: a file that is locked is slow to say so.
        """
        if self._waiting:
            if self._writing is None or self._writing.done():
                self._writing = asyncio.create_task(self._write_waiting())
            await asyncio.shield(self._writing)
        return self._fault()

    async def _write(self, entry: _Entry) -> str:
        try:
            await asyncio.to_thread(entry.write)
        except sqlite3.Error as error:
            self._waiting.append(entry)
            self._error = str(error)
            return self._fault()
        return ""

    async def _write_waiting(self) -> None:
        try:
            while self._waiting:
                await asyncio.to_thread(self._waiting[0].write)
                self._waiting.pop(0)
        except sqlite3.Error as error:
            self._error = str(error)

    def _fault(self) -> str:
        if not self._waiting:
            return ""
        return (
            f"{self._cache.path} cannot be written: {self._error}; {len(self._waiting)} paid "
            f"responses ({self.waiting_tokens} tokens) are not in it, and nothing more is asked "
            f"until they are: make room on its disk, make it writable, or end what locks it"
        )
