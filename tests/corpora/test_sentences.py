from tasks.corpora.sources.document import split_sentences


def test_sentences():
    for text, sentences in [
        ("He came. She went! Why? 1999 was late.", ["He came.", "She went!", "Why?", "1999 was late."]),
        (
            "Mr. Smith met Dr. Jones in St. Louis. They talked.",
            ["Mr. Smith met Dr. Jones in St. Louis.", "They talked."],
        ),
        ("J. K. Rowling and the U.S. Army. Then more.", ["J. K. Rowling and the U.S. Army.", "Then more."]),
        ("So did I. You did not.", ["So did I.", "You did not."]),
        ("It costs 3.50 dollars. Really.", ["It costs 3.50 dollars.", "Really."]),
        ("See no. 5 on p. 12. It is there.", ["See no. 5 on p. 12.", "It is there."]),
        ('He said "Go." Then he left.', ['He said "Go."', "Then he left."]),
        ("One line\nanother line", ["One line", "another line"]),
        ("Known since 1900.[12] It grew.", ["Known since 1900.[12]", "It grew."]),
        ("Wait... what? no. and on", ["Wait... what? no. and on"]),
        ("", []),
        ("  \n ", []),
    ]:
        assert split_sentences(text) == sentences
