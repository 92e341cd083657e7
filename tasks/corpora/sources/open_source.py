"""From the settings of a corpus to the reader of its source."""

from typing import Any

from tasks.corpora.sources.document import Source


def open_source(settings: Any) -> Source:
    """The reader of a corpus; ``CorpusError`` where its files are not there. Nothing is read yet.

    ``settings`` is one of ``tasks.corpora.settings.CorpusSettings``. Only the reader that is needed is imported.
    """
    match settings.kind:
        case "chitchat":
            from tasks.corpora.sources.chitchat import Chitchat

            return Chitchat()
        case "encyclopedia":
            from tasks.corpora.sources.encyclopedia import Encyclopedia

            return Encyclopedia(settings.questions)
        case "drawn_words":
            from tasks.corpora.sources.drawn_words import DrawnWords

            return DrawnWords(
                settings.rows, settings.words, settings.shortest, settings.longest, settings.exponent, settings.seed
            )
        case "wikitext":
            from tasks.corpora.sources.wikitext import WikiText

            return WikiText(settings.source, settings.unknown_words)
        case "fisher":
            from tasks.corpora.sources.fisher import Fisher

            return Fisher(settings.source, settings.unclear)
        case "pushshift":
            from tasks.corpora.sources.pushshift import Pushshift

            return Pushshift(
                settings.source,
                sample_share=settings.sample_share,
                sample_seed=settings.cleaning.seed,
                subreddits=settings.subreddits,
                minimum_score=settings.minimum_score,
                minimum_english_share=settings.minimum_english_share,
                bots=settings.bots,
            )
        case "wsj":
            from tasks.corpora.sources.wsj import WallStreetJournal

            return WallStreetJournal(settings.source, settings.text)
        case "mixture":
            from tasks.corpora.sources.mixture import Mixture

            return Mixture([open_source(part) for part in settings.of])
        case _:
            from tasks.corpora.sources.text_files import TextFiles

            return TextFiles(
                settings.source, settings.format, settings.text_field, settings.document_field, settings.parts
            )
