"""Comments in the form of Pushshift's dumps: JSON lines with their fields, compressed as the dumps are."""

import bz2
import json
import tracemalloc
from random import Random

import pytest
import zstandard

from tasks.corpora.sources.pushshift import PushshiftCorpus, plain_text
from tasks.errors import CorpusError


def opened(source, **settings):
    return PushshiftCorpus(kind="pushshift", source=source, **settings).open()


def comment(body, thread="t3_aaaaaa", author="somebody", subreddit="AskReddit", score=3):
    return {
        "archived": False,
        "author": author,
        "author_flair_text": None,
        "body": body,
        "controversiality": 0,
        "created_utc": 1546300800,
        "distinguished": None,
        "edited": False,
        "gilded": 0,
        "id": "ed0r3xa",
        "link_id": thread,
        "parent_id": thread,
        "score": score,
        "stickied": False,
        "subreddit": subreddit,
        "subreddit_id": "t5_2qh1i",
    }


def write(path, *comments, window_log=None):
    lines = "".join(json.dumps(value, separators=(",", ":")) + "\n" for value in comments).encode()
    if path.suffix == ".bz2":
        path.write_bytes(bz2.compress(lines))
        return
    parameters = zstandard.ZstdCompressionParameters.from_level(3, window_log=window_log or 20)
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    path.write_bytes(compressor.compress(lines) + compressor.flush())


def read(path, **options):
    found = list(opened(str(path), **options).documents())
    left_out = {}
    for document in found:
        for reason, count in document.left_out.items():
            left_out[reason] = left_out.get(reason, 0) + count
    return [document.texts for document in found if document.texts], left_out


def test_comments_become_sentences_and_the_rest_is_counted(tmp_path):
    write(
        tmp_path / "RC_2019-01.zst",
        comment("I live in Leeds. It rains a lot there, but I like it!"),
        comment("[deleted]", author="[deleted]"),
        comment("[removed]"),
        comment("Your post was removed.", author="AutoModerator"),
        comment("Here is a picture of a cat for you", author="cat_picture_bot"),
        comment("Beep. I am a bot, and this comment was made by me."),
        comment("Das ist leider nicht so einfach, wie du denkst, mein Freund."),
        comment("&gt; somebody else wrote this\n\n"),
        window_log=31,
    )
    texts, left_out = read(tmp_path / "RC_2019-01.zst")
    assert texts == [["I live in Leeds.", "It rains a lot there, but I like it!"]]
    assert next(opened(str(tmp_path)).documents()).name == "t3_aaaaaa"
    assert left_out == {"removed": 2, "bot": 3, "not_english": 1, "no_text": 1}


def test_score_subreddit_language_and_bots_are_settings(tmp_path):
    write(
        tmp_path / "RC_2019-01.zst",
        comment("one is from here", subreddit="Leeds", score=5),
        comment("two is from there", subreddit="York", score=5),
        comment("three has a low score", subreddit="leeds", score=-2),
        comment("vier ist von hier und das ist gut", subreddit="LEEDS"),
        comment("five is mine", subreddit="Leeds", author="TrainBot"),
    )
    texts, left_out = read(tmp_path / "RC_2019-01.zst", subreddits=["r/Leeds"], minimum_score=1)
    assert texts == [["one is from here"]]
    assert left_out == {"other_subreddit": 1, "low_score": 1, "not_english": 1, "bot": 1}
    texts, _ = read(tmp_path / "RC_2019-01.zst", minimum_english_share=0.0, bots=True)
    assert len(texts) == 5


def test_a_folder_of_months_is_read_in_their_order(tmp_path):
    write(tmp_path / "RC_2019-02.zst", comment("second month"))
    write(tmp_path / "RC_2011-01.bz2", comment("first month"))
    write(tmp_path / "RS_2019-02.zst", {"title": "a submission"})
    texts, _ = read(tmp_path)
    assert texts == [["first month"], ["second month"]]


def test_a_sample_takes_whole_threads_and_the_seed_says_which(tmp_path):
    write(
        tmp_path / "RC_2019-01.zst",
        *(comment(f"comment {number} of this thread", thread=f"t3_{number % 200}") for number in range(600)),
    )
    found = {seed: read(tmp_path, sample_share=0.25, cleaning={"seed": seed}) for seed in (1, 2)}
    for texts, left_out in found.values():
        threads = {int(text.split()[1]) % 200 for (text,) in texts}
        assert len(texts) == 3 * len(threads)
        # 200 threads at 25 %: 50, standard deviation 6.
        assert 26 <= len(threads) <= 74
        assert left_out == {"beyond_sample": 600 - len(texts)}
    assert found[1] != found[2]
    assert found[1] == read(tmp_path, sample_share=0.25, cleaning={"seed": 1})


def test_memory_does_not_grow_with_the_dump(tmp_path):
    random = Random(1)
    peaks = []
    for count in (1_000, 10_000):
        path = tmp_path / f"RC_2019-01-{10 + len(peaks)}.zst"
        bodies = (
            f"This is comment number {number} and it is here {random.randbytes(20).hex()}" for number in range(count)
        )
        write(path, *(comment(body, f"t3_{random.randbytes(4).hex()}") for body in bodies))
        source = opened(str(path))
        sum(1 for _ in source.documents())
        tracemalloc.start()
        sum(1 for _ in source.documents())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # The larger dump is 4 MB of JSON: a reader that held it, or its comments, would show more.
    assert peaks[1] < peaks[0] + 1_000_000


def test_markdown_and_entities_become_text():
    for body, text in [
        ("Tom &amp; Ann: 1 &lt; 2 &amp;gt; 0", "Tom & Ann: 1 < 2 > 0"),
        ("&gt; quoted\n\nmy answer", "my answer"),
        ("see [this page](https://example.com/a_(b)) now", "see this page now"),
        ("**very** *nice* ~~bad~~ __word__ `code`", "very nice bad word code"),
        ("snake_case_name and 3 * 4 * 5", "snake_case_name and 3 * 4 * 5"),
        ("# Title\n\n* first\n* second\n\n1. third", "Title\n\nfirst\nsecond\n\nthird"),
        ("before\n\n    code here\n\nafter", "before\n\n\n\nafter"),
        ("before\n```\ncode\n```\nafter", "before\n\nafter"),
        ("a | b | c\n-|-|-\n1 | 2 | 3\nend", "end"),
        ("&gt;!the butler!&lt; did it\\_", "the butler did it_"),
        ("x^2 and y^(n + 1)", "x 2 and y n + 1"),
        ("ask u/somebody on https://example.com", "ask u/somebody on https://example.com"),
    ]:
        assert plain_text(body) == text


def test_what_is_no_dump_of_comments_is_said_without_its_text(tmp_path):
    with pytest.raises(CorpusError, match=r"put one or more RC_YYYY-MM\.zst there"):
        opened(str(tmp_path / "nothing"))
    with pytest.raises(CorpusError, match=r"holds no dump of comments such as RC_2019-01\.zst"):
        opened(str(tmp_path))
    path = tmp_path / "RC_2019-01.zst"
    write(path, comment("fine"), {"title": "secret", "selftext": "secret"})
    with pytest.raises(CorpusError, match=r"line 2 has no field 'body'; .* not of submissions") as caught:
        read(path)
    assert "secret" not in str(caught.value)
    path.write_bytes(zstandard.compress(b'{"body": "fine"}\n{"body": "secret\n'))
    with pytest.raises(CorpusError, match=r"line 2, column \d+ is not JSON") as caught:
        read(path)
    assert "secret" not in str(caught.value)
