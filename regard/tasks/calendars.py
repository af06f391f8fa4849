"""The names of months and weekdays in six languages, as people write them in dates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Calendar:
    """One language's names: twelve months, twelve short ones, seven weekdays from Monday, seven short ones."""

    months: tuple[str, ...]
    short_months: tuple[str, ...]
    weekdays: tuple[str, ...]
    short_weekdays: tuple[str, ...]


def words(text: str) -> tuple[str, ...]:
    """The words of a text, as a list that is short to write."""
    return tuple(text.split())


CALENDARS = {
    "en": Calendar(
        words("January February March April May June July August September October November December"),
        words("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"),
        words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
        words("Mon Tue Wed Thu Fri Sat Sun"),
    ),
    "fr": Calendar(
        words("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
        words("janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc."),
        words("lundi mardi mercredi jeudi vendredi samedi dimanche"),
        words("lun. mar. mer. jeu. ven. sam. dim."),
    ),
    "de": Calendar(
        words("Januar Februar März April Mai Juni Juli August September Oktober November Dezember"),
        words("Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez."),
        words("Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag"),
        words("Mo. Di. Mi. Do. Fr. Sa. So."),
    ),
    "es": Calendar(
        words("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
        words("ene feb mar abr may jun jul ago sep oct nov dic"),
        words("lunes martes miércoles jueves viernes sábado domingo"),
        words("lun mar mié jue vie sáb dom"),
    ),
    "it": Calendar(
        words("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"),
        words("gen feb mar apr mag giu lug ago set ott nov dic"),
        words("lunedì martedì mercoledì giovedì venerdì sabato domenica"),
        words("lun mar mer gio ven sab dom"),
    ),
    "nl": Calendar(
        words("januari februari maart april mei juni juli augustus september oktober november december"),
        words("jan feb mrt apr mei jun jul aug sep okt nov dec"),
        words("maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"),
        words("ma di wo do vr za zo"),
    ),
}
