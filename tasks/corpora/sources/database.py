"""The rows of a query to a database, as a file of JSON lines that a reader takes as any other."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tasks.corpora.text_lines import write_lines
from tasks.errors import CorpusError

_URL = re.compile(r"[a-z][a-z0-9+]*://")


@contextmanager
def given_text(text: str, query: str | None) -> Iterator[Path]:
    """The path of a text; for the URL of a database, that of a private file with the rows, as long as the block.

    Raises ``CorpusError`` if there is no query, or the database refuses it. Nothing is written to the database.
    """
    if not _URL.match(text):
        if query is not None:
            raise CorpusError("--query is for a database; give its URL, such as sqlite:///FILE, or leave --query out")
        yield Path(text).expanduser()
        return
    if query is None:
        raise CorpusError("a database needs --query, such as --query 'SELECT body AS text FROM mail'")
    with TemporaryDirectory(prefix="palimpsest-") as folder:
        path = Path(folder) / "query.jsonl"
        write_lines(path, _rows(text, query), private=True)
        yield path


def _rows(url: str, query: str) -> Iterator[str]:
    from sqlalchemy import create_engine, text
    from sqlalchemy.engine import make_url
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

    try:
        where = make_url(url)
        if where.get_backend_name() == "sqlite":
            if not Path(where.database or "").is_file():
                raise CorpusError(f"database {where.database!r} does not exist; give sqlite:///FILE of an existing one")
            file = f"file:{Path(where.database or '').resolve()}"
            where = where.set(database=file, query={"mode": "ro", "uri": "true"})
        engine = create_engine(where)
        with engine.connect().execution_options(stream_results=True) as connection:
            if where.get_backend_name() != "sqlite":
                connection.execute(text("SET TRANSACTION READ ONLY"))
            for row in connection.execute(text(query)).mappings():
                yield json.dumps(dict(row), default=str, ensure_ascii=False)
    except ModuleNotFoundError as error:
        raise CorpusError(f"the driver {error.name!r} of the database is not installed; install it with pip") from None
    except (ArgumentError, NoSuchModuleError):
        raise CorpusError("the URL is of no known database; give sqlite:///FILE or postgresql://HOST/NAME") from None
    except SQLAlchemyError as error:
        # The library's message may quote values, or the password.
        raise CorpusError(f"the database refuses URL or query ({type(error).__name__}); correct them") from None
