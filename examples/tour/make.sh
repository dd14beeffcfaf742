#!/usr/bin/env bash
# Generates the data of the README's tour: English sentences and their German translations from a small grammar, no
# sentence twice, and the word alignment of the test set. A model has to learn German grammar: articles and
# the endings of adjectives depend on the gender and the case of a noun, the finite verb is second, and participles and
# infinitives come last.
#
#   examples/tour/make.sh [FOLDER]        writes train.en train.de test.en test.de test.links (default: the folder of this file)
set -euo pipefail
LC_ALL=C awk -v folder="${1:-$(dirname "$0")}" '
# Lehmer random numbers, 0 .. n-1: the same in every awk.
function random(n) { state = state * 48271 % 2147483647; return int(state / 2147483647 * n) }
# choose(LIST, PARTS): one entry of the list, such as "man/Mann/m", split at its slashes.
function choose(list, parts,    entries) { split(entries[1 + random(split(list, entries, " "))], parts, "/") }

# Appends a word to its side; returns its index, from 0.
function english(word) { source = source (sources ? " " : "") word; return sources++ }
function german(word) { target = target (targets ? " " : "") word; return targets++ }
# "-" marks a sure link, "?" a possible one.
function link(from, to, mark) { links = links (links == "" ? "" : " ") from mark to }
function pair(english_word, german_word) { link(english(english_word), german(german_word), "-") }

# The English words of a noun phrase; the German ones wait in words[] for write_german().
function noun_phrase(nouns, adjectives, accusative, words, from,    noun, adjective, definite, masculine, feminine) {
    choose(nouns, noun)
    masculine = noun[3] == "m"
    feminine = noun[3] == "f"
    definite = random(2)
    adjective[1] = ""
    if (random(2))
        choose(adjectives, adjective)
    from[1] = english(definite ? "the" : (adjective[1] noun[1]) ~ /^[aeio]/ ? "an" : "a")
    if (adjective[1] != "")
        from[2] = english(adjective[1])
    from[3] = english(noun[1])
    if (definite)
        words[1] = masculine ? (accusative ? "den" : "der") : feminine ? "die" : "das"
    else
        words[1] = masculine && accusative ? "einen" : feminine ? "eine" : "ein"
    words[2] = masculine && accusative ? "en" : definite || feminine ? "e" : masculine ? "er" : "es"
    words[2] = adjective[1] == "" ? "" : adjective[2] words[2]
    words[3] = noun[2]
}
function write_german(words, from,    i) {
    for (i = 1; i <= 3; i++)
        if (words[i] != "")
            link(from[i], german(words[i]), "-")
}

function sentence(    adverb, verb, form, last, last_from, to_from, place, words, from) {
    source = target = links = ""
    sources = targets = 0
    adverb = !random(3)
    if (adverb) {
        choose("today/heute now/jetzt here/hier sometimes/manchmal", words)
        pair(words[1], words[2])
    }
    noun_phrase(people, of_people, 0, words, from)
    if (!adverb) # else the verb comes before the subject
        write_german(words, from)
    choose(verbs, verb)
    choose("present perfect wants/will must/muss can/kann", form)
    last = ""
    to_from = -1
    if (form[1] == "present")
        pair(verb[2], verb[5])
    else if (form[1] == "perfect") {
        pair("has", "hat")
        last_from = english(verb[3])
        last = verb[6]
    } else {
        pair(form[1], form[2])
        if (form[1] == "wants")
            to_from = english("to")
        last_from = english(verb[1])
        last = verb[4]
    }
    if (adverb)
        write_german(words, from)
    noun_phrase(things, of_things, 1, words, from)
    write_german(words, from)
    if (!random(3)) {
        choose("in/garden/im//Garten in/kitchen/in/der/Küche at/station/am//Bahnhof in/city/in/der/Stadt on/beach/am//Strand", place)
        pair(place[1], place[3])
        if (place[4] == "")
            link(english("the"), targets - 1, "?")
        else
            pair("the", place[4])
        pair(place[2], place[5])
    }
    if (last != "")
        link(last_from, german(last), "-")
    if (to_from >= 0)
        link(to_from, targets - 1, "?")
}

BEGIN {
    state = 1729
    people = "man/Mann/m woman/Frau/f child/Kind/n teacher/Lehrer/m neighbour/Nachbarin/f girl/Mädchen/n " \
             "grandmother/Großmutter/f doctor/Arzt/m"
    of_people = "old/alt young/jung small/klein big/groß friendly/freundlich tired/müd happy/glücklich"
    things = "car/Auto/n house/Haus/n book/Buch/n apple/Apfel/m dog/Hund/m cat/Katze/f letter/Brief/m lamp/Lampe/f " \
             "table/Tisch/m picture/Bild/n flower/Blume/f hat/Hut/m"
    of_things = "old/alt new/neu small/klein red/rot big/groß beautiful/schön black/schwarz green/grün"
    verbs = "see/sees/seen/sehen/sieht/gesehen buy/buys/bought/kaufen/kauft/gekauft find/finds/found/finden/findet/gefunden " \
            "draw/draws/drawn/zeichnen/zeichnet/gezeichnet sell/sells/sold/verkaufen/verkauft/verkauft " \
            "show/shows/shown/zeigen/zeigt/gezeigt carry/carries/carried/tragen/trägt/getragen " \
            "clean/cleans/cleaned/putzen/putzt/geputzt take/takes/taken/nehmen/nimmt/genommen"
    for (made = 0; made < 1700;) {
        sentence()
        if (source in seen)
            continue
        seen[source]
        name = folder (made++ < 1500 ? "/train" : "/test")
        print source >(name ".en")
        print target >(name ".de")
        if (made > 1500)
            print links >(name ".links")
    }
}'
