"""Sentences of the corpus against the word order and the forms that a grammar book asks for."""

import pytest

from etude.data.corpus import Pair

SENTENCES = {
    "the verb is second, also after an adverbial; a prefix ends the clause": """
        You picked up the sisters last week. | Du holtest letzte Woche die Schwestern ab.
        Yesterday David got up. | Gestern stand David auf.
        On Monday he wants to sing. | Am Montag will er singen.""",
    "the verb is last in a subordinate clause, its prefix joined, and the main verb follows one that is first": """
        He says that he dances. | Er sagt, dass er tanzt.
        We ask whether it snowed. | Wir fragen, ob es schneite.
        Our house was old because he did not know me. | Unser Haus war alt, weil er mich nicht kannte.
        This old woman sings because a young friend gets up at seven o'clock. \
            | Diese alte Frau singt, weil ein junger Freund um sieben Uhr aufsteht.
        Because she worked, Anna rode my horse. | Weil sie arbeitete, ritt Anna mein Pferd.""",
    "two main clauses both have the verb second": """
        We sleep, but he laughs. | Wir schlafen, aber er lacht.
        You laugh, but the man goes into the room. | Du lachst, aber der Mann geht ins Zimmer.""",
    "the perfect has haben or sein, and its participle ends the clause": """
        He has seen me. | Er hat mich gesehen.
        We have not arrived. | Wir sind nicht angekommen.
        They have driven to the small city. | Sie sind in die kleine Stadt gefahren.
        We are important because he has invited him. | Wir sind wichtig, weil er ihn eingeladen hat.""",
    "of the future and of modals the infinitive ends the clause": """
        A car will stop. | Ein Auto wird anhalten.
        I can wait for you. | Ich kann auf dich warten.
        She could see the man. | Sie konnte den Mann sehen.
        She wants to open the window today. | Sie will heute das Fenster öffnen.
        Anna often had to get up. | Anna musste oft aufstehen.
        The girl would like to laugh. | Das Mädchen möchte lachen.""",
    "a question begins with the verb or a question word": """
        Does a car stop? | Hält ein Auto an?
        Why could he help you? | Warum konnte er dir helfen?
        Where do these girls dance? | Wo tanzen diese Mädchen?
        Where will I go? | Wohin werde ich gehen?""",
    "nicht follows what is known and precedes the place and the end of the verb; kein negates what is indefinite": """
        I did not buy the car. | Ich kaufte das Auto nicht.
        He cannot see the happy boy. | Er kann den glücklichen Jungen nicht sehen.
        I did not fly to the city. | Ich flog nicht in die Stadt.
        The man does not buy a bat. | Der Mann kauft keinen Schläger.
        They do not have old coats. | Sie haben keine alten Mäntel.""",
    "a relative pronoun has the gender of its noun and the case that its own verb asks for": """
        He has the hat that he can look for. | Er hat den Hut, den er suchen kann.
        The short woman that the man helps did not close these doors. \
            | Die kleine Frau, der der Mann hilft, machte diese Türen nicht zu.
        Her friend that the child helps will sing. | Ihr Freund, dem das Kind hilft, wird singen.
        Emma visits the woman that he waited for. | Emma besucht die Frau, auf die er wartete.
        I drank expensive tea that the girls did not dream of. \
            | Ich trank teuren Tee, von dem die Mädchen nicht träumten.""",
    "a relative clause stands after its noun or, about the object, at the end": """
        The women who fell asleep sing. | Die Frauen, die einschliefen, singen.
        He has answered the letter that he could not see. | Er hat den Brief beantwortet, den er nicht sehen konnte.""",
    "pronouns come first in the middle, and in English before a particle": """
        She gives them a new bed. | Sie gibt ihnen ein neues Bett.
        He picks me up. | Er holt mich ab.
        The girl has picked me up today. | Das Mädchen hat mich heute abgeholt.
        I will pick up the doctor. | Ich werde den Arzt abholen.""",
    "prepositions contract with the definite article": """
        He lives in the hotel. | Er wohnt im Hotel.
        I run into the room. | Ich laufe ins Zimmer.
        I went to the school. | Ich ging zur Schule.
        He came to the concert. | Er kam zum Konzert.
        David's small cat is in a pen. | Davids kleine Katze ist in einem Gehege.
        I stay in the city. | Ich bleibe in der Stadt.""",
    "es gibt never agrees and takes the accusative": """
        There is an old man in the field. | Es gibt einen alten Mann auf dem Feld.
        In the garden there were children. | Im Garten gab es Kinder.""",
    "it has the gender of what it stands for": """
        The apple will be hard because it is good. | Der Apfel wird hart sein, weil er gut ist.
        A city is old because it has been very old. | Eine Stadt ist alt, weil sie sehr alt gewesen ist.""",
}


@pytest.fixture(scope="module")
def drawn(configured: dict[str, list[Pair]]) -> dict[str, str]:
    return dict(configured["train"])


@pytest.mark.parametrize("claim", SENTENCES)
def test_german_follows_its_grammar(claim: str, drawn: dict[str, str]) -> None:
    for line in SENTENCES[claim].strip().splitlines():
        english, german = (" ".join(side.split()) for side in line.split("|"))
        assert drawn[english] == german
