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


def names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


CALENDARS = {
    "en": Calendar(
        names("January February March April May June July August September October November December"),
        names("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec"),
        names("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
        names("Mon Tue Wed Thu Fri Sat Sun"),
    ),
    "fr": Calendar(
        names("janvier février mars avril mai juin juillet août septembre octobre novembre décembre"),
        names("janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc."),
        names("lundi mardi mercredi jeudi vendredi samedi dimanche"),
        names("lun. mar. mer. jeu. ven. sam. dim."),
    ),
    "de": Calendar(
        names("Januar Februar März April Mai Juni Juli August September Oktober November Dezember"),
        names("Jan. Feb. März Apr. Mai Juni Juli Aug. Sept. Okt. Nov. Dez."),
        names("Montag Dienstag Mittwoch Donnerstag Freitag Samstag Sonntag"),
        names("Mo. Di. Mi. Do. Fr. Sa. So."),
    ),
    "es": Calendar(
        names("enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre"),
        names("ene feb mar abr may jun jul ago sep oct nov dic"),
        names("lunes martes miércoles jueves viernes sábado domingo"),
        names("lun mar mié jue vie sáb dom"),
    ),
    "it": Calendar(
        names("gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre"),
        names("gen feb mar apr mag giu lug ago set ott nov dic"),
        names("lunedì martedì mercoledì giovedì venerdì sabato domenica"),
        names("lun mar mer gio ven sab dom"),
    ),
    "nl": Calendar(
        names("januari februari maart april mei juni juli augustus september oktober november december"),
        names("jan feb mrt apr mei jun jul aug sep okt nov dec"),
        names("maandag dinsdag woensdag donderdag vrijdag zaterdag zondag"),
        names("ma di wo do vr za zo"),
    ),
}
