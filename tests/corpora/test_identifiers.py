import pytest

from tasks.corpora.identifiers import identifiers_in


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("iban de89370400440532013000 please", ["de89370400440532013000"]),
        ("pay gb82west12345698765432 now", ["gb82west12345698765432"]),
        ("from fr1420041010050500013m02606", ["fr1420041010050500013m02606"]),
        ("to nl91 abna 0417 1643 00 now", ["nl91 abna 0417 1643 00"]),
        ("to GB82-WEST-1234-5698-7654-32.", ["GB82-WEST-1234-5698-7654-32"]),
        ("iban de89370400440532013001 is wrong", []),
        ("mac de:ad:be:ef:ca:fe and 00:1b:44:11:3a:b7", ["de:ad:be:ef:ca:fe", "00:1b:44:11:3a:b7"]),
        ("ip 2001:db8::1, fe80::1%eth0", ["2001:db8::1", "fe80::1%eth0"]),
        ("call 5555-1234-5678 in 2018-2019-2020", []),
        ("application no. 8374/03 and 45288/1999.", ["8374/03", "45288/1999"]),
        ("on 3/10/2003, in 2018/19, 9/10, 24/7, 1001/02/03, a 120/80.5", []),
        ("std::vector at 10:30:45 in a[1::2]", []),
    ],
)  # fmt: skip
def test_what_is_an_identifier_by_its_form(text, found):
    assert [text[start:end] for start, end in identifiers_in(text)] == found
