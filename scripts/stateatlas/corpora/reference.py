"""The language reference of the running interpreter: the topics of `pydoc`, split by topic."""

from collections import Counter
from collections.abc import Iterator

from stateatlas.corpora import Document, split

SHARES = (0.8, 0.1)


def documents(skipped: Counter) -> Iterator[Document]:
    """Yield every topic once; some stand under two names."""
    yield from split(_topics(skipped), lambda topic: topic.name, *SHARES)


def _topics(skipped: Counter) -> Iterator[Document]:
    from pydoc_data.topics import topics

    seen: set[str] = set()
    for name, text in sorted(topics.items()):
        if text in seen:
            skipped["duplicate"] += 1
        else:
            seen.add(text)
            yield Document("", "pydoc_data.topics", name, text)
