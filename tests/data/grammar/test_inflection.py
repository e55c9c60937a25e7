"""English and German forms against tables as grammar books print them."""

from collections.abc import Callable

import pytest

from etude.data.grammar import english, german
from etude.data.grammar.german import CASES
from etude.data.grammar.lexicon import Lexicon
from etude.data.grammar.words import NounPhrase

Build = Callable[..., NounPhrase]

DECLENSIONS = """
the   Mann   old  | der alte Mann      | den alten Mann    | dem alten Mann
the   Frau   old  | die alte Frau      | die alte Frau     | der alten Frau
the   Kind   ill  | das kranke Kind    | das kranke Kind   | dem kranken Kind
a     Mann   old  | ein alter Mann     | einen alten Mann  | einem alten Mann
a     Frau   old  | eine alte Frau     | eine alte Frau    | einer alten Frau
a     Kind   ill  | ein krankes Kind   | ein krankes Kind  | einem kranken Kind
our   Hund   old  | unser alter Hund   | unseren alten Hund | unserem alten Hund
this  Buch   old  | dieses alte Buch   | dieses alte Buch  | diesem alten Buch
every Junge  ill  | jeder kranke Junge | jeden kranken Jungen | jedem kranken Jungen
-     Kaffee cold | kalter Kaffee      | kalten Kaffee     | kaltem Kaffee
-     Milch  cold | kalte Milch        | kalte Milch       | kalter Milch
-     Wasser cold | kaltes Wasser      | kaltes Wasser     | kaltem Wasser
""".strip().splitlines()

PLURALS = """
the   Mann  old | die alten Männer     | die alten Männer    | den alten Männern
-     Hund  old | alte Hunde           | alte Hunde          | alten Hunden
many  Kind  ill | viele kranke Kinder  | viele kranke Kinder | vielen kranken Kindern
my    Auto  old | meine alten Autos    | meine alten Autos   | meinen alten Autos
these Frau  old | diese alten Frauen   | diese alten Frauen  | diesen alten Frauen
""".strip().splitlines()

# ich, du, er, ihr | ich, du, wir, ihr | participle
VERBS = """
kaufen | kaufe kaufst kauft kauft | kaufte kauftest kauften kauftet | gekauft
arbeiten | arbeite arbeitest arbeitet arbeitet | arbeitete arbeitetest arbeiteten arbeitetet | gearbeitet
öffnen | öffne öffnest öffnet öffnet | öffnete öffnetest öffneten öffnetet | geöffnet
tanzen | tanze tanzt tanzt tanzt | tanzte tanztest tanzten tanztet | getanzt
füttern | füttere fütterst füttert füttert | fütterte füttertest fütterten füttertet | gefüttert
reparieren | repariere reparierst repariert repariert| reparierte repariertest reparierten repariertet | repariert
verkaufen | verkaufe verkaufst verkauft verkauft | verkaufte verkauftest verkauften verkauftet | verkauft
sehen sieht sah gesehen | sehe siehst sieht seht | sah sahst sahen saht | gesehen
fahren fährt fuhr gefahren | fahre fährst fährt fahrt | fuhr fuhrst fuhren fuhrt | gefahren
lesen liest las gelesen | lese liest liest lest | las lasest lasen last | gelesen
halten hält hielt gehalten | halte hältst hält haltet | hielt hieltest hielten hieltet | gehalten
finden findet fand gefunden | finde findest findet findet | fand fandest fanden fandet | gefunden
haben hat hatte gehabt | habe hast hat habt | hatte hattest hatten hattet | gehabt
wissen weiß wusste gewusst | weiß weißt weiß wisst | wusste wusstest wussten wusstet | gewusst
sein ist war gewesen | bin bist ist seid | war warst waren wart | gewesen
""".strip().splitlines()


@pytest.mark.parametrize(("row", "plural"), [(row, False) for row in DECLENSIONS] + [(row, True) for row in PLURALS])
def test_articles_adjectives_and_nouns_agree_in_gender_number_and_case(np: Build, row: str, plural: bool) -> None:
    given, *expected = (cell.strip() for cell in row.split("|"))
    determiner, noun, adjective = given.split()
    phrase = np(noun, determiner, adjective, plural)
    assert [phrase.german[case] for case in CASES] == expected


@pytest.mark.parametrize("row", VERBS)
def test_german_verbs_agree_with_all_six_persons(row: str) -> None:
    entry, present, past, participle = (cell.strip() for cell in row.split("|"))
    verb = german.verb(entry)
    ich, du, er, wir, ihr, sie = verb.finite["present"]
    assert [ich, du, er, ihr] == present.split()
    assert wir == sie == ("sind" if ich == "bin" else verb.infinitive)
    ich, du, er, wir, ihr, sie = verb.finite["past"]
    assert [ich, du, wir, ihr] == past.split()
    assert (er, sie) == (ich, wir)
    assert verb.participle == participle


def test_a_separable_verb_has_its_prefix_in_infinitive_and_participle_only() -> None:
    verb = german.verb("an|rufen ruft rief gerufen")
    assert (verb.infinitive, verb.participle, verb.finite["present"][2]) == ("anrufen", "angerufen", "ruft")
    assert german.verb("auf|räumen").participle == "aufgeräumt"


def test_modals_have_no_ending_in_the_first_and_third_person() -> None:
    assert " ".join(german.present("können", "kann")) == "kann kannst kann können könnt können"
    assert " ".join(german.present("müssen", "muss")) == "muss musst muss müssen müsst müssen"
    assert " ".join(german.preterite("möchte")) == "möchte möchtest möchte möchten möchtet möchten"


@pytest.mark.parametrize(
    ("number", "ours", "theirs"),
    [
        (2, "two", "zwei"), (7, "seven", "sieben"), (12, "twelve", "zwölf"), (13, "thirteen", "dreizehn"),
        (16, "sixteen", "sechzehn"), (17, "seventeen", "siebzehn"), (20, "twenty", "zwanzig"),
        (21, "twenty-one", "einundzwanzig"), (30, "thirty", "dreißig"), (47, "forty-seven", "siebenundvierzig"),
        (66, "sixty-six", "sechsundsechzig"), (70, "seventy", "siebzig"), (99, "ninety-nine", "neunundneunzig"),
    ],
)  # fmt: skip
def test_numbers_are_said_in_words(number: int, ours: str, theirs: str) -> None:
    assert (english.numeral(number), german.numeral(number)) == (ours, theirs)


def test_no_two_numbers_share_a_word() -> None:
    assert len({english.numeral(number) for number in range(1, 100)}) == 99
    assert len({german.numeral(number) for number in range(1, 100)}) == 99


def test_a_number_takes_the_strong_plural(np: Build) -> None:
    phrase = np("Buch", "-", "old", plural=True, number=21)
    assert phrase.english["nominative"] == "twenty-one old books"
    assert [phrase.german[case] for case in ("nominative", "dative")] == [
        "einundzwanzig alte Bücher",
        "einundzwanzig alten Büchern",
    ]


@pytest.mark.parametrize(
    ("entry", "forms"),
    [
        ("buy/bought/bought", "buys bought bought buying"),
        ("carry", "carries carried carried carrying"),
        ("stop", "stops stopped stopped stopping"),
        ("visit", "visits visited visited visiting"),
        ("watch", "watches watched watched watching"),
        ("go/went/gone", "goes went gone going"),
        ("die", "dies died died dying"),
        ("have/had/had", "has had had having"),
        ("put/put/put", "puts put put putting"),
        ("play", "plays played played playing"),
        ("see/saw/seen", "sees saw seen seeing"),
    ],
)
def test_english_verbs_are_spelt_right(entry: str, forms: str) -> None:
    verb = english.verb(entry)
    assert [verb.third, verb.past, verb.participle, verb.gerund] == forms.split()


def test_plurals_are_formed_by_rule_or_given(lexicon: Lexicon) -> None:
    plurals = {noun.english: (noun.plural, noun.german.get((True, "nominative"))) for noun in lexicon.nouns}
    assert plurals["child"] == ("children", "Kinder")
    assert plurals["city"] == ("cities", "Städte")
    assert plurals["potato"] == ("potatoes", "Kartoffeln")
    assert plurals["wolf"] == ("wolves", "Wölfe")
    assert plurals["church"] == ("churches", "Kirchen")
    assert plurals["boy"] == ("boys", "Jungen")
    assert plurals["water"] == (None, None)


def test_an_stands_before_a_vowel(np: Build) -> None:
    assert np("Haus", "a", "old").english["nominative"] == "an old house"
    assert np("Haus", "a").english["nominative"] == "a house"
    assert np("Wasser", "a").english["nominative"] == "water"
