"""Which words are left alone by rule, and why: numbers and their units, doses, times, dates, addresses, emoji.

Some words are protected wherever they stand ("2.5mg", "@name"); others have a role, and the words around decide
("mg" after a number, "May" beside a day, "bid" by a drug).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from noisyhealth.text.medical import MedicalTerms

PROTECTIONS = frozenset({"number", "dose", "time", "date", "link", "email", "name", "tag", "emoji"})


@dataclass(frozen=True, slots=True)
class Part:
    """A word of a run of characters: `offset` counts from the run's start, `kinds` protect it wherever it stands.

    `role`: number, unit, compound (mg/mestranol, cm-lesion, cells/ml), month (with a day or year in it too), of,
    clock (pm), dose (an abbreviation that is another word too) or heart (<3), where the words around decide; "" for
    others.
    """

    text: str
    offset: int
    kinds: tuple[str, ...]
    role: str


Words = Sequence[tuple[Part, int]]  # in order, each with where it starts in the text


def judge(run: str, left: int, start: int, end: int, form: str) -> Part:
    """Return run[start:end] as a word, judged alone; the marks since `left` are its own.

    `form` is the kind that its shape has settled (link, email, emoji), or "".
    """
    word = run[start:end]
    number = has_number(word)
    kinds = [form] if form else []
    if not word.isalnum() and not form:
        kinds += ["link"] * bool(_BARE_LINK.search(word)) + ["name"] * bool(_NAME.search(word))
        kinds += ["emoji"] * bool(_EMOJI.search(word))
    before = run[left:start].rstrip("_")
    kinds += ["name"] * before.endswith("@") + ["tag"] * (before.endswith("#") and bool(re.match(r"\d*[^\W\d_]", word)))
    role = "heart" if form == "emoji" and number else _role(word, number=number)
    if number:
        kinds += ["date"] * bool(role == "month" or _DATE.fullmatch(word)) + ["time"] * bool(_TIME.fullmatch(word))
    kinds += ["time"] * (word.lower().replace("’", "'") == "o'clock")
    kinds += ["dose"] * bool(_DOSE.fullmatch(word)) + ["number"] * number
    return Part(word, start, tuple(kinds), role)


def protections(text: str, words: Words, protect: frozenset[str]) -> list[str]:
    """Return the first kind in `protect` that protects each word of a text, "" where none does."""
    found = [""] * len(words)
    for i, (part, _) in enumerate(words):
        if part.kinds or part.role:
            dosed = i > 0 and found[i - 1] == "dose"
            kinds = (*_in_context(text, words, i, dosed=dosed), *part.kinds) if part.role else part.kinds
            found[i] = next((kind for kind in kinds if kind in protect), "")
    return found


def is_unit(word: str) -> bool:
    """Tell whether a word names a unit of measurement even where no number stands before it.

    >>> [is_unit(word) for word in ("mg/kg", "Hours", "year-old", "in")]
    [True, True, True, False]
    """
    return all(piece in UNITS for piece in _pieces_of_unit(word))


def has_number(word: str) -> bool:
    """Tell whether a word holds a digit or a fraction; 十 is a letter, and ï¿½ a mangled character, no half."""
    if word.isalpha():
        return False
    return any(char.isnumeric() and not char.isalpha() for char in word.replace("ï¿½", ""))


def _listed(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Units that are nothing else, then words and letters that are units only after a number.
UNITS = _listed(
    """milligramme milligrammes mcl tsp tsps tbsp tbsps teaspoon teaspoons tablespoon tablespoons
    ampoule ampoules vial vials sachet sachets
    mg mgs mcg µg μg ug ng pg kg kgs gm gms lb lbs oz ml mls dl cc mmol µmol μmol umol mumol nmol pmol fmol mol
    meq mosm iu miu mm cm nm km ft mmhg cmh2o kpa bpm hz khz mhz gy cgy mci kcal kj joule joules volt volts watt
    watts mv kda hr hrs hour hours min mins minute minutes sec secs msec seconds day days wk wks week weeks month
    months yr yrs year years tab tablet tablets puff puffs dose doses degrees percent gram grams
    microgram micrograms milligram milligrams kilogram kilograms kilo kilos pound pounds ounce ounces liter liters
    litre litres milliliter milliliters millilitre millilitres meters metre metres centimeter centimeters centimetre
    centimetres millimeter millimeters millimetre millimetres micron microns inch inches mile miles units
    calorie calories kilocalorie kilocalories microm microv microl microa microsecond microseconds microliter
    microliters microlitre microlitres millisecond milliseconds kilobase kilobases megabase megabases kilodalton
    kilodaltons msv gbq mbq mgm kilometer kilometers kilometre kilometres rpm ppm mph"""
)
_LOOSE_UNITS = _listed(
    """fl g l m s d h y f c u w j v k x ms bp mo mos yo y/o tabs caps cap drop drops spray sprays pill pills times beat
    beats breath breaths cent rad rads torr gauge french hundred thousand million billion in
    foot feet unit mu hg cal cals kb db kd mw night nights meter metre degree capsule capsules mole moles centigrade
    gb mb mths person-years patient-years"""
)
_OFTEN_ELSE = _listed("u c f")  # "2 c u": units in capitals alone
_DOSING = _listed(
    """mg mgs mcg µg μg ug ng g gm gms kg ml mls cc l iu unit units meq mmol tab tabs tablet tablets cap caps capsule
    capsules puff puffs drop drops dose doses given give gave injected infused administered injection bolus"""
)
_DOSE = re.compile(
    r"tid|qid|q\.?d|q\.?h\.?s|q\.?o\.?d|prn|tds|qds|nocte|[bt]\.i\.d|q\.i\.d|p\.r\.n|[bo]\.d"
    r"|[tq]\.d\.s|p\.o|i\.[vm]|s\.c|q\.?\d+(?:-\d+)?\.?h",
    re.IGNORECASE,
)
_LOOSE_DOSES = _listed("bid bd od mane stat po iv im sc")  # also: a bid, I'm, I've, birthday, overdose
_MONTH = re.compile(
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?",
    re.IGNORECASE,
)
_DAY_OR_YEAR = re.compile(r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?|(?:1[6-9]|20)\d\d|['’]?\d\d", re.IGNORECASE)
_SEAM = re.compile(r"\.?[-–/]")
_CALENDAR = re.compile(  # May, January-March, Jan/Feb, 2003-December, 14-16
    rf"(?:{_MONTH.pattern}|{_DAY_OR_YEAR.pattern})(?:{_SEAM.pattern}(?:{_MONTH.pattern}|{_DAY_OR_YEAR.pattern}))*",
    re.IGNORECASE,
)
_DATE = re.compile(
    rf"\d{{4}}([-/.])\d\d?\1\d\d?|\d\d?([-/.])\d\d?\2(?:\d\d|\d{{4}})|\d\d?-?(?:{_MONTH.pattern})-?(?:\d\d|\d{{4}})",
    re.IGNORECASE,
)
_UNTIL = r"(?:[-–/]\d\d?(?:[.:]\d\d)?)?"
_TIME = re.compile(
    rf"(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?(?:[ap]\.?m)?|\d\d?(?:[.:]\d\d)?{_UNTIL}[ap]\.?m", re.IGNORECASE
)
_HOUR = re.compile(rf"(?:.*\()?(?:[01]?\d|2[0-4])(?:[:.]?[0-5]\d)?{_UNTIL}")  # "weekdays(5/6 AM"
_CLOCK = _listed("am pm a.m p.m noon midnight")
_BARE_LINK = re.compile(r"(?<![\w-])[\w-]+\.(?:(?:com|org|net|gov|edu|io|uk)\b|[a-z]{2,}/\w)", re.IGNORECASE)
_NAME = re.compile(r"@_*[^\W\d_]")  # behind other marks: w/@name
_EMOJI = re.compile("[\u2300-\u23ff\u2600-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]")
_STOPS = re.compile(r"[.,;:!?…()\[\]\n]")  # no unit or month belongs to the number before these
_ENDS_LENGTH = re.compile(r"[^\w\s]|$")
_ENDS = re.compile(r"[!?…\n]|\.[\s.]")


def _role(word: str, *, number: bool) -> str:
    lowered = word.lower()
    if any(map(_MONTH.fullmatch, _calendar(word))):
        return "month"
    if number:
        return "number"
    if lowered in _CLOCK and word != "pM":
        return "clock"
    if lowered in _LOOSE_DOSES:
        return "dose"
    if lowered == "of":
        return "of"
    return _unit_role(word)


def _unit_role(word: str) -> str:
    lowered = word.lower()
    if lowered in _OFTEN_ELSE and word.islower():
        return ""
    parts = _pieces_of_unit(word)
    if all(p in UNITS or p in _LOOSE_UNITS for p in parts):
        return "unit"
    head, tail = re.split(r"[./-]", lowered)[0], parts[-1]
    return "compound" if (head != lowered and head in UNITS) or (len(parts) > 1 and tail in UNITS) else ""


def _calendar(word: str) -> list[str]:
    """Return the months, days and years that a word is made of; none where something else is in it."""
    return _SEAM.split(word) if _CALENDAR.fullmatch(word) else []


def _pieces_of_unit(word: str) -> list[str]:
    word = word.lower().replace(".", "").replace(")", "").removesuffix("-old").removesuffix("/second")
    return [word] if word == "y/o" else word.split("/")


def _in_context(text: str, words: Words, i: int, *, dosed: bool) -> list[str]:
    """Return the kinds that protect a word with a role because of the words around it.

    `dosed`: the word before is a dose.
    """
    part = words[i][0]
    match part.role:
        case "number":
            timed = _is_role(_near(text, words, i, 1), "clock") and _HOUR.fullmatch(part.text)
            return ["date"] * _is_dated(text, words, i) + ["time"] * bool(timed)
        case "of" | "month":
            return ["date"] * _is_dated(text, words, i)
        case "clock":
            before = _near(text, words, i, -1)
            return ["time"] * bool(before and _HOUR.fullmatch(before.text))
        case "dose":
            return ["dose"] * _is_dose(text, words, i, dosed=dosed)
    return ["number"] * _is_measured(text, words, i)


def _near(text: str, words: Words, i: int, step: int) -> Part | None:
    """Return the word before or after; None where a sentence mark, a bracket or a line end stands between."""
    if not 0 <= i + step < len(words):
        return None
    first = min(i, i + step)
    (left, start), (right, end) = words[first : first + 2]
    gap = text[start + len(left.text) : end]
    if left.role == "month":
        gap = gap.lstrip(".,")  # "Sept. 3rd", "May, 2024"
    if "(" in left.text or "/" in right.text:
        gap = gap.lstrip(")")  # "10(-9) mol", "23.7 (1.9) mmol/l"
    return None if _STOPS.search(gap) else words[i + step][0]


def _is_role(part: Part | None, role: str) -> bool:
    return part is not None and part.role == role


def _is_measured(text: str, words: Words, i: int) -> bool:
    """Tell whether a number stands before a unit, with two units or "per" at most between ("90 mm Hg").

    Before a compound it stands at once, and a heart is a number before a unit ("<3 months").
    """
    if words[i][0].role == "heart":
        return _is_role(_near(text, words, i, 1), "unit")
    if words[i][0].role == "compound":
        return _is_role(_near(text, words, i, -1), "number")
    if words[i][0].text.lower() == "in" and not _ENDS_LENGTH.match(text, words[i][1] + 2):
        return False  # "7 in." is a length, "7 in ten" is none
    for place in range(i, max(0, i - 3), -1):
        part = _near(text, words, place, -1)
        if part is None or (part.role not in ("number", "heart", "unit") and part.text.lower() != "per"):
            return False
        if part.role != "unit" and part.text.lower() != "per":
            return True
    return False


def _is_dated(text: str, words: Words, i: int) -> bool:
    """Tell whether a word is part of a date: a day or a year beside a month, over "of" too ("9th of June")."""
    around = [word.role for word, _ in words[max(0, i - 2) : i + 3]]
    if "month" not in around:
        return False
    part = words[i][0]
    before, after = _over_of(text, words, i, -1), _over_of(text, words, i, 1)
    if part.role == "of":
        return _meet(before, after)
    late = around[:2] == ["month", "number"] and i > 1 and re.fullmatch(r"(?:19|20)\d\d", part.text)  # "May 3, 2024"
    return bool(late) or _meet(before, part) or _meet(part, after)


def _over_of(text: str, words: Words, i: int, step: int) -> Part | None:
    part = _near(text, words, i, step)
    return _near(text, words, i + step, step) if _is_role(part, "of") else part


def _meet(left: Part | None, right: Part | None) -> bool:
    """Tell whether a month meets a day or a year; "2 may" and "2 march" are none without "2nd"."""
    if left is None or right is None or not (_is_role(left, "month") or _is_role(right, "month")):
        return False
    last, first = (_calendar(left.text) or [""])[-1], (_calendar(right.text) or [""])[0]
    if _MONTH.fullmatch(last):
        return bool(_DAY_OR_YEAR.fullmatch(first))
    day = _DAY_OR_YEAR.fullmatch(last) and _MONTH.fullmatch(first)
    return bool(day) and (first not in ("may", "march", "mar") or last[-1].isalpha())


def _is_dose(text: str, words: Words, i: int, *, dosed: bool) -> bool:
    """Tell whether "bid", "od" and the like stand in capitals, behind a number or a dosing word, or by a drug.

    "IM" and "im" are "I'm" far more often, behind a number too ("at 8 im off"): these need the dosing word or the drug.
    """
    part, start = words[i]
    before, since = words[i - 1] if i else (_NOTHING, 0)
    gap = text[since + len(before.text) : start]
    if _ENDS.search(gap.removeprefix(".") if "." in before.text else gap):  # the stop of "p.r.n." ends no sentence
        before = _NOTHING
    after = _near(text, words, i, 1) or _NOTHING
    is_drug = MedicalTerms.load().is_drug
    if dosed and before is not _NOTHING:
        return True
    if before.text.lower().lstrip("0123456789.,-") in _DOSING or is_drug(before.text) or is_drug(after.text):
        return True
    plain = part.text.lower() in ("im", "iv")
    return (part.text.isupper() and part.text != "IM") or (before.role == "number" and not plain)


_NOTHING = Part("", 0, (), "")
