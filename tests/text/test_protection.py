"""What no perturbation may touch, and by which rule."""

import pytest

from noisyhealth.text.protection import PROTECTIONS, is_unit
from noisyhealth.text.words import spans


def kinds(text: str, protect: frozenset[str] = PROTECTIONS) -> dict[str, str]:
    """Return what protects each protected word."""
    return {s.text: s.protection for s in spans(text, protect) if s.protection}


def parted(text: str) -> tuple[list[str], list[str]]:
    """Return the free and the protected words."""
    found = spans(text)
    return [s.text for s in found if not s.protection], [s.text for s in found if s.protection]


@pytest.mark.parametrize(
    ("text", "free", "protected"),
    [
        # numbers and their units
        ("took 2.5 mg today", ["took", "today"], ["2.5", "mg"]),
        ("took 2.5mg today", ["took", "today"], ["2.5mg"]),
        ("500 MG daily", ["daily"], ["500", "MG"]),
        ("20mg tablets twice", ["twice"], ["20mg", "tablets"]),
        ("dopamine 5 µg/kg/min", ["dopamine"], ["5", "µg/kg/min"]),
        ("potassium 3.4 mmol/L, low", ["potassium", "low"], ["3.4", "mmol/L"]),
        ("lipase 900 IU/L", ["lipase"], ["900", "IU/L"]),
        ("thyroxine 75 micrograms nightly", ["thyroxine", "nightly"], ["75", "micrograms"]),
        ("lost 4 kilos", ["lost"], ["4", "kilos"]),
        ("T 38.5 °C", ["T"], ["38.5", "C"]),
        ("BP 120/80", ["BP"], ["120/80"]),
        ("BP 120/80 mmHg, HR 96 bpm", ["BP", "HR"], ["120/80", "mmHg", "96", "bpm"]),
        ("½ tablet", [], ["½", "tablet"]),
        ("38% (p<0.001)", [], ["38", "p<0.001"]),
        ("1.5×10^9/L", [], ["1.5×10^9/L"]),
        ("3 weeks", [], ["3", "weeks"]),
        ("three weeks", ["three", "weeks"], []),
        ("weeks later", ["weeks", "later"], []),
        ("a 45 year-old man", ["a", "man"], ["45", "year-old"]),
        ("HbA1c SpO2 B12 T1D", [], ["HbA1c", "SpO2", "B12", "T1D"]),
        ("10mg/day for days", ["for", "days"], ["10mg/day"]),
        ("5 mL/second or 2 mg/second", ["or"], ["5", "mL/second", "2", "mg/second"]),
        ("2 moles, 1 mole", [], ["2", "moles", "1", "mole"]),
        ("moles and pills", ["moles", "and", "pills"], []),
        ("90 calorie 5 cals 2 kilocalories", [], ["90", "calorie", "5", "cals", "2", "kilocalories"]),
        ("3 units--were", ["were"], ["3", "units"]),
        ("A 9 cm-lesion", ["A"], ["9", "cm-lesion"]),
        ("35 mcg/1 mg/mestranol", [], ["35", "mcg/1", "mg/mestranol"]),
        ("2 mg/kg.h, 10 pmol.h/L", [], ["2", "mg/kg.h", "10", "pmol.h/L"]),
        ("9 cells/ml, cells/ml", ["cells/ml"], ["9", "cells/ml"]),
        ("5 male/female mg/mestranol", ["male/female", "mg/mestranol"], ["5"]),
        ("10(-9) mol/L, 23.7 (1.9) mmol/l", [], ["10(-9", "mol/L", "23.7", "1.9", "mmol/l"]),
        ("10(-6) M; 0.6 (44 IU)/kg", [], ["10(-6", "M", "0.6", "44", "IU)/kg"]),
        ("3 microM, 60 microV", [], ["3", "microM", "60", "microV"]),
        ("320 kilobases, 80 milliseconds", [], ["320", "kilobases", "80", "milliseconds"]),
        ("1.4 mSv in 214 patient-years", ["in"], ["1.4", "mSv", "214", "patient-years"]),
        # doses
        ("metformin b.i.d. with food", ["metformin", "with", "food"], ["b.i.d"]),
        (
            "BID tid QID qd qhs prn p.r.n. po p.o. IV im sc",
            [],
            ["BID", "tid", "QID", "qd", "qhs", "prn", "p.r.n", "po", "p.o", "IV", "im", "sc"],
        ),
        ("q6h q8", [], ["q6h", "q8"]),
        (
            "apixaban 5 bd, tds, qds, od, nocte, mane, stat",
            ["apixaban"],
            ["5", "bd", "tds", "qds", "od", "nocte", "mane", "stat"],
        ),
        ("bidding on a stative model", ["bidding", "on", "a", "stative", "model"], []),
        # times
        ("at 8:30", ["at"], ["8:30"]),
        ("at 8:30 am, not 10 p.m.", ["at", "not"], ["8:30", "am", "10", "p.m"]),
        ("by 10.30pm", ["by"], ["10.30pm"]),
        ("at 8 o'clock or 9 o’clock", ["at", "or"], ["8", "o'clock", "9", "o’clock"]),
        ("am I ill", ["am", "I", "ill"], []),
        # dates
        ("on 12/03/2024", ["on"], ["12/03/2024"]),
        ("since 2024-03-12.", ["since"], ["2024-03-12"]),
        ("14 March", [], ["14", "March"]),
        ("the 14th March", ["the"], ["14th", "March"]),
        ("March 14, Sept. 3rd", [], ["March", "14", "Sept", "3rd"]),
        ("it may help in march", ["it", "may", "help", "in", "march"], []),
        # links and addresses
        ("see https://example.org/a?b=c#d, www.nhs.uk", ["see"], ["https://example.org/a?b=c#d", "www.nhs.uk"]),
        ("(http://t.co/abc)", [], ["http://t.co/abc"]),
        ("bit.ly/abc example.org nhs.uk", [], ["bit.ly/abc", "example.org", "nhs.uk"]),
        ("mail dr.lee+clinic@mail.example.org!", ["mail"], ["dr.lee+clinic@mail.example.org"]),
        ("sore.Then better", ["sore.Then", "better"], []),  # a missing space is no link
        # names and tags
        ("@nurse_jo thanks", ["thanks"], ["nurse_jo"]),
        (".@nurse (@doc) “@ward”", [], ["nurse", "doc", "ward"]),
        ("#type1 #hope (#tag)", [], ["type1", "hope", "tag"]),
        ("relief @ last", ["relief", "last"], []),
        # words
        ("Heel, (heel) “heel” heel… heel!", ["Heel", "heel", "heel", "heel", "heel"], []),
        ("can't I’m well-being O'Brien and/or", ["can't", "I’m", "well-being", "O'Brien", "and/or"], []),
        ("*sore* _sore_ ~sore~", ["sore", "sore", "sore"], []),
        ("😩 — … & ! \t\r\n", [], []),
        ("pain😩 😩pain", ["pain", "pain"], []),
        ("頭痛 боль άλγος दवा", ["頭痛", "боль", "άλγος", "दवा"], []),
        ("", [], []),
        ("HEADING:,  text", ["HEADING", "text"], []),
        ("one\u00a0two\u2003three\nfour", ["one", "two", "three", "four"], []),
    ],
)
def test_numbers_units_doses_times_dates_links_and_names_are_protected(
    text: str, free: list[str], protected: list[str]
) -> None:
    assert parted(text) == (free, protected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("HbA1c ½ 10³ 5 mg/kg", {"HbA1c": "number", "½": "number", "10³": "number", "5": "number", "mg/kg": "number"}),
        ("90 mm Hg, 38 degrees C", dict.fromkeys(("90", "mm", "Hg", "38", "degrees", "C"), "number")),
        ("64 per cent", {"64": "number", "cent": "number"}),
        ("68 in.", {"68": "number", "in": "number"}),
        ("b.i.d. prn q6h q.4h.", {"b.i.d": "dose", "prn": "dose", "q6h": "dose", "q.4h": "dose"}),
        ("at 8:30", {"8:30": "time"}),
        ("8 am, 10 p.m., 12 noon", dict.fromkeys(("8", "am", "10", "p.m", "12", "noon"), "time")),
        ("by 9pm, ten o'clock", {"9pm": "time", "o'clock": "time"}),
        ("12 May", {"12": "date", "May": "date"}),
        ("may 3rd, 2nd june", {"may": "date", "3rd": "date", "2nd": "date", "june": "date"}),
        ("May 3, 2024", {"May": "date", "3": "date", "2024": "date"}),
        ("the 9th of June", {"9th": "date", "of": "date", "June": "date"}),
        ("on 9th of may 2021", {"9th": "date", "of": "date", "may": "date", "2021": "date"}),
        ("July of 1989", {"July": "date", "of": "date", "1989": "date"}),
        (
            "January 2003-December 2004",
            {"January": "date", "2003-December": "date", "2004": "date"},
        ),
        ("20 June-14 August", {"20": "date", "June-14": "date", "August": "date"}),
        ("May-June 2019, 3 Jan.-Feb.", {"May-June": "date", "2019": "date", "3": "date", "Jan.-Feb": "date"}),
        ("Jan/Feb 2020", {"Jan/Feb": "date", "2020": "date"}),
        ("5/6 AM, 5-6am", {"5/6": "time", "AM": "time", "5-6am": "time"}),
        ("on weekdays(5/6 AM here)", {"weekdays(5/6": "time", "AM": "time"}),
        ("(5/6 AM)", {"5/6": "time", "AM": "time"}),
        ("2026-11-30 or 3/12/24", {"2026-11-30": "date", "3/12/24": "date"}),
        ("http://t.co/a1 nhs.uk", {"http://t.co/a1": "link", "nhs.uk": "link"}),
        ("a.b@c.org", {"a.b@c.org": "email"}),
        ("@jo_1 hi@jo_2", {"jo_1": "name", "hi@jo_2": "name"}),
        ("w/@jo cc:@jo .@_jo w/@_jo", {"w/@jo": "name", "cc:@jo": "name", "jo": "name", "w/@_jo": "name"}),
        ("#type1 #1", {"type1": "tag", "1": "number"}),
        ("so😀good", {"so😀good": "emoji"}),
        (":D :P =P xD XD :-D :o :'D o.O", dict.fromkeys(("D", "P", "xD", "XD", "o", "o.O"), "emoji")),
        ("I <3 you &lt;333", {"3": "emoji", "333": "emoji"}),
        ("<3 months", {"3": "number", "months": "number"}),
    ],
)
def test_each_protected_word_has_the_kind_that_protects_it(text: str, expected: dict[str, str]) -> None:
    assert kinds(text) == expected


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("im tired", ["im", "tired"]),
        ("Off at 8 im done", ["Off", "at", "im", "done"]),
        ("IM SO TIRED", ["IM", "SO", "TIRED"]),
        ("in 3 hours im off", ["in", "im", "off"]),
        ("use it prn. Im ok", ["use", "it", "Im", "ok"]),
        ("500 mg. im better", ["im", "better"]),
        ("iv been in a bid to od on fun", ["iv", "been", "in", "a", "bid", "to", "od", "on", "fun"]),
        ("the mane, stat clamps", ["the", "mane", "stat", "clamps"]),
        ("2 c u 4 in luck", ["c", "u", "in", "luck"]),
        ("aged 45. Days later (7) hours", ["aged", "Days", "later", "hours"]),
        ("type 2 may march in group 3 march", ["type", "may", "march", "in", "group", "march"]),
        ("june/july; end of may; 2 of may", ["june/july", "end", "of", "may", "of", "may"]),
        ("it may 3-fold, may 5-HT", ["it", "may", "may"]),
        ("one of 9 of us", ["one", "of", "of", "us"]),
        ("on (7) hours", ["on", "hours"]),  # a list's number
        ("relief w/@ last", ["relief", "w", "last"]),
        ("at noon I am 300 pM", ["at", "noon", "I", "am", "pM"]),
        ("pain; D: plan", ["pain", "D", "plan"]),
        ("ratio A:P male:female", ["ratio", "A:P", "male:female"]),
        ("Tylenol® 38", ["Tylenol"]),
        ("cafï¿½", ["cafï¿½"]),  # a mangled letter is no half
    ],
)
def test_everyday_words_that_look_like_a_protected_one_are_free(text: str, free: list[str]) -> None:
    assert parted(text)[0] == free


@pytest.mark.parametrize(
    ("text", "doses"),
    [
        ("5 mg im", ["im"]),
        ("250mg im stat", ["im", "stat"]),
        ("warfarin od", ["od"]),
        ("im morphine", ["im"]),
        ("one tablet po bid", ["po", "bid"]),
        ("2 od", ["od"]),
        ("STAT IV fluids", ["STAT", "IV"]),
        ("given iv", ["iv"]),
    ],
)
def test_an_abbreviation_that_is_an_everyday_word_is_a_dose_in_capitals_or_by_a_dose_or_drug(
    text: str, doses: list[str]
) -> None:
    assert [word for word, kind in kinds(text).items() if kind == "dose"] == doses


@pytest.mark.parametrize(
    ("text", "off", "expected"),
    [
        ("8:30", "time", {"8:30": "number"}),
        ("<3", "emoji", {"3": "number"}),
        ("12 May", "date", {"12": "number"}),
        ("#type1 #hope", "tag", {"type1": "number"}),
        ("5 mg bid", "number", {"bid": "dose"}),
        ("5 mg bid", "dose", {"5": "number", "mg": "number"}),
    ],
)
def test_a_kind_that_is_off_protects_nothing_and_leaves_the_word_to_the_others(
    text: str, off: str, expected: dict[str, str]
) -> None:
    assert kinds(text, PROTECTIONS - {off}) == expected


@pytest.mark.parametrize(
    "word", ["mg", "mL", "µg/kg/min", "ng./ml", "mL/second", "calories", "hours", "year-old", "percent"]
)
def test_a_unit_is_known_without_its_number(word: str) -> None:
    assert is_unit(word)


@pytest.mark.parametrize("word", ["", "in", "foot", "times", "s", "and/or", "second", "moles", "mg/mestranol"])
def test_a_unit_that_is_an_everyday_word_or_a_letter_is_none_without_its_number(word: str) -> None:
    assert not is_unit(word)
