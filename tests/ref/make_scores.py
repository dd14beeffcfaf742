#!/usr/bin/env python3
"""Makes scores.json: lines, references and their scores by the rules of doc/metrics.md, in Python's own terms.

The rules are written here a second time, with Python's regular expressions, counters, white space and small letters, so
that the library is held to another reading of them. Run it as: python3 make_scores.py > scores.json
"""
import json
import math
import random
import re
from collections import Counter

# ---- Lines of many kinds, and what they should have been ---------------------------------------------------------

HYPOTHESES = [
    "The old bridge was closed on Monday, at 7.30 in the morning.",
    "She paid 1,250.75 euros (about $1,400) for both of them!",
    "bread the baker sells and warm rolls before sunrise .",
    "A dog",
    "",
    "Nothing here is shared whatsoever",
    "the the the the the the the",
    "„Wohin gehst du?“, fragte sie den kleinen Jungen leise.",
    "Er kam 1990-91 zu uns; seitdem wohnt er in der Straße Nr. 5-7.",
    "今天天气很好，我们去公园吧。",
    "我买了3.5公斤苹果—“真便宜”！",
    "Ο ΔΡΟΜΟΣ ΤΗΣ ΠΟΛΗΣ ΕΙΝΑΙ ΜΑΚΡΥΣ.",
    "İstanbul'da hava ÇOK güzel.",
    "Tom &amp; Anna said: &quot;2 &lt; 3&quot; <skipped> and left",
    "a\u00a0line\u2003with\u3000odd  blanks\t.",
    "in the evening the children of the village walked down to the lake and swam until it was dark",
    "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen",
    "It costs 5,- or 6.- each...",
    "(yes) \"no\" 'perhaps' - never_mind [ok] {so} ~ `what` ^up",
    "x y z",
]
REFERENCES = [
    [
        "The old bridge was closed on Monday at 7.30 in the morning.",
        "She paid 1,250.75 euros (about $1,400) for the two of them.",
        "the baker sells bread and warm rolls before sunrise .",
        "A dog barks",
        "There is something to say",
        "Entirely other words stand in its place",
        "the cat sat on the mat",
        "„Wohin gehst du denn?“, fragte sie leise den kleinen Jungen.",
        "Er kam 1990-91 zu uns, seither wohnt er in der Straße Nr. 5-7.",
        "今天天气真好，我们一起去公园吧！",
        "我买了3.5公斤的苹果——“很便宜”！",
        "ο δρόμος της πόλης είναι μακρύς.",
        "istanbul'da hava çok güzel.",
        "Tom & Anna said: \"2 < 3\" and left",
        "a line with odd blanks .",
        "the children of the village walked down to the lake in the evening and swam there until it was dark",
        "eight nine ten eleven twelve thirteen fourteen fifteen one two three four five six seven",
        "It costs 5,- or 6,- each ...",
        "(yes) \"no\" 'perhaps' - never_mind [ok] {so} ~ `what` ^up",
        "",
    ],
    [
        "On Monday the old bridge was closed, at 7.30 in the morning.",
        "For both of them she paid 1,250.75 euros (about $1,400)!",
        "before sunrise the baker sells warm rolls and bread .",
        "One dog",
        "Something",
        "Words that nobody said",
        "the the cat and the mat",
        "„Wo gehst du hin?“, fragte sie den Jungen.",
        "1990-91 kam er zu uns; seitdem wohnt er in Nr. 5-7.",
        "今日天气很好，我们去公园。",
        "我买了3.5公斤苹果，“真便宜”。",
        "Ο δρόμος είναι μακρύς.",
        "İstanbul'da hava güzel.",
        "Anna & Tom left and said: \"2 < 3\"",
        "a line with blanks .",
        "that evening the children swam in the lake until it was dark",
        "fifteen fourteen thirteen twelve eleven ten nine eight seven six five four three two one",
        "They cost 5,- each.",
        "yes no perhaps",
        "x y",
    ],
]

# ---- BLEU --------------------------------------------------------------------------------------------------------


def western(text):
    text = re.sub(r"([{-~\[-` -&(-+:-@/])", r" \1 ", text)
    text = re.sub(r"([^0-9])([.,])", r"\1 \2 ", text)
    text = re.sub(r"([.,])([^0-9])", r" \1 \2", text)
    text = re.sub(r"([0-9])(-)", r"\1 \2 ", text)
    return text.split()


def words_13a(text):
    for name, sign in (("<skipped>", ""), ("&quot;", '"'), ("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">")):
        text = text.replace(name, sign)
    return western(f" {text} ")


CHINESE = re.compile("[\u2001-\u2a6d\u2e80-\u2eff\u2f00-\u2fdf\u2ff0-\u303f\u3100-\u312f\u31a0-\u31bf\u31c0-\u31ef"
                     "\u3200-\u4db5\u4e00-\u9fbb\uf900-\ufa2d\ufa30-\ufa6a\ufa70-\ufad9\ufe10-\ufe1f\ufe30-\ufe4f"
                     "\uff00-\uffef]")

TOKENISERS = {
    "13a": words_13a,
    "none": str.split,
    "char": lambda text: [sign for sign in text if not sign.isspace()],
    "zh": lambda text: western(CHINESE.sub(r" \g<0> ", text.strip())),
}


def ngrams(units, n):
    return Counter(tuple(units[i:i + n]) for i in range(len(units) - n + 1))


def bleu_counts(hypothesis, references, tokenise):
    words, others = tokenise(hypothesis), [tokenise(reference) for reference in references]
    nearest = min((abs(len(other) - len(words)), len(other)) for other in others)[1]
    found, there = [], []
    for n in range(1, 5):
        most = Counter()
        for other in others:
            most |= ngrams(other, n)
        found.append(sum((ngrams(words, n) & most).values()))
        there.append(max(len(words) - n + 1, 0))
    return [len(words), nearest] + found + there


def bleu(sums, effective):
    length, reference, found, there = sums[0], sums[1], sums[2:6], sums[6:]
    if not any(found):
        return 0.0
    orders = sum(count > 0 for count in there)
    if orders < 4 and not effective:
        return 0.0
    logs, halved = 0.0, 1
    for n in range(orders):
        halved *= 1 if found[n] else 2
        logs += math.log(100 * found[n] / there[n] if found[n] else 100 / (halved * there[n]))
    return min(1.0, math.exp(1 - reference / length)) * math.exp(logs / orders)


# ---- chrF --------------------------------------------------------------------------------------------------------


def parted(text):
    words = []
    for word in text.split():
        sign = r"[!-/:-@\[-`{-~]"
        cut = re.fullmatch(f"(.+)({sign})", word, re.S) or re.fullmatch(f"({sign})(.+)", word, re.S)
        words += cut.groups() if cut else [word]
    return words


def chrf(sums):
    used = [sums[i:i + 3] for i in range(0, len(sums), 3) if sums[i] > 0 and sums[i + 1] > 0]
    if not any(common for _, _, common in used):
        return 0.0
    precision = sum(common / hyp for hyp, _, common in used) / len(used)
    recall = sum(common / ref for _, ref, common in used) / len(used)
    return 100 * 5 * precision * recall / (4 * precision + recall)


def chrf_counts(hypothesis, references, word_orders):
    best = None
    for reference in references:
        counts = []
        for n in range(1, 7 + word_orders):
            split = (lambda text: "".join(text.split())) if n <= 6 else parted
            hyp, ref = (ngrams(split(text), n if n <= 6 else n - 6) for text in (hypothesis, reference))
            counts += [sum(hyp.values()) if ref else 0, sum(ref.values()), sum((hyp & ref).values())]
        if best is None or chrf(counts) > chrf(best):
            best = counts
    return best


# ---- TER ---------------------------------------------------------------------------------------------------------


def distance(words, others):
    """The edit distance near the diagonal, and the way to it: s two words stand against each other, h one of `words`
    alone, r one of `others` alone."""
    ratio = len(others) / len(words)
    beam = 25 if ratio / 2 <= 25 else math.ceil(ratio / 2 + 25)
    table = [{j: (j, "r") for j in range(len(others) + 1)}]
    for i, word in enumerate(words, 1):
        middle, row = math.floor(i * ratio), {}
        end = len(others) + 1 if i == len(words) else min(len(others) + 1, middle + beam)
        for j in range(max(0, middle - beam), end):
            ways = []
            if j > 0 and j - 1 in table[-1]:
                ways.append((table[-1][j - 1][0] + (word != others[j - 1]), "s"))
            if j in table[-1]:
                ways.append((table[-1][j][0] + 1, "h"))
            if j > 0 and j - 1 in row:
                ways.append((row[j - 1][0] + 1, "r"))
            row[j] = min(ways, key=lambda way: way[0])
        table.append(row)
    i, j, way = len(words), len(others), []
    while i or j:
        step = table[i][j][1]
        way.append(step)
        i -= step in "sh"
        j -= step in "sr"
    return table[-1][len(others)][0], way[::-1]


def moved(words, start, length, to):
    block, rest = words[start:start + length], words[:start] + words[start + length:]
    if to < start:
        place = to
    elif to > start + length:
        place = to - length
    else:
        place = to
    return rest[:place] + block + rest[place:]


def edits(words, others):
    if not words or not others:
        return len(words) + len(others)
    moves = tried = 0
    while True:
        before, way = distance(words, others)
        place, wrong_word, wrong_other, i = [], [], [], 0
        for step in way:
            differ = step != "s" or words[i] != others[len(place)]
            i += step in "sh"
            if step in "sh":
                wrong_word.append(differ)
            if step in "sr":
                wrong_other.append(differ)
                place.append(i)  # just behind the word that stands against this one
        best = None
        for start in range(len(words)):
            for at in range(max(0, start - 50), min(len(others), start + 51)):
                for length in range(1, 11):
                    end, at_end = start + length, at + length
                    if end > len(words) or at_end > len(others) or words[start:end] != others[at:at_end]:
                        break
                    if not any(wrong_word[start:end]) or not any(wrong_other[at:at_end]) or start < place[at] <= end:
                        continue
                    places = [0 if at == 0 else place[at - 1]] + place[at:at_end]
                    for k, to in enumerate(places):
                        if k > 0 and to == places[k - 1]:
                            continue
                        tried += 1
                        new = moved(words, start, length, to)
                        candidate = (before - distance(new, others)[0], length, -start, -to, new)
                        best = candidate if best is None or candidate > best else best
                    if tried >= 1000:
                        return moves + before
        if best is None or best[0] <= 0:
            return moves + before
        moves, words = moves + 1, best[4]


def ter_counts(hypothesis, references):
    others = [reference.lower().split() for reference in references]
    return [min(edits(hypothesis.lower().split(), other) for other in others), sum(map(len, others)) / len(others)]


def ter(sums):
    return 100 * sums[0] / sums[1] if sums[1] > 0 else 100.0 if sums[0] > 0 else 0.0


# ---- All of it ---------------------------------------------------------------------------------------------------


def judged(metric, tokenise, lowercase, references):
    lower = str.lower if lowercase else str
    rows = []
    for texts in zip(HYPOTHESES, *references):
        hypothesis, *others = map(lower, texts)
        if metric == "bleu":
            rows.append(bleu_counts(hypothesis, others, TOKENISERS[tokenise]))
        elif metric == "ter":
            rows.append(ter_counts(hypothesis, others))
        else:
            rows.append(chrf_counts(hypothesis, others, 2 if metric == "chrf++" else 0))
    sums = [sum(column) for column in zip(*rows)]
    if metric == "bleu":
        return bleu(sums, False), [bleu(row, True) for row in rows]
    score = ter if metric == "ter" else chrf
    return score(sums), [score(row) for row in rows]


def shuffled(count):
    """Pairs of lines over few words, one the other with blocks moved and words changed: there ties are common."""
    dice = random.Random(7)
    pairs = []
    for i in range(count):
        words = [dice.choice("abcdefgh"[:2 + i % 7]) for _ in range(dice.choice((4, 9, 16, 30, 70)))]
        other = words[:]
        for _ in range(1 + i % 4):
            at, length = dice.randrange(len(other)), dice.randrange(1, 13)
            block, other = other[at:at + length], other[:at] + other[at + length:]
            at = dice.randrange(len(other) + 1)
            other = other[:at] + block + other[at:]
        for _ in range(i % 3):
            other[dice.randrange(len(other))] = dice.choice("abcdefgh")
        pairs.append([" ".join(words), " ".join(other), edits(words, other)])
    return pairs


def main():
    cases = []
    kinds = [("bleu", name) for name in TOKENISERS] + [("chrf", None), ("chrf++", None), ("ter", None)]
    for metric, tokenise in kinds:
        for lowercase in (False, True):
            for count in (1, 2):
                total, lines = judged(metric, tokenise, lowercase, REFERENCES[:count])
                case = {"metric": metric, "lowercase": lowercase, "references": count, "total": total, "lines": lines}
                cases.append(case | ({"tokenise": tokenise} if tokenise else {}))
    print('{"hypotheses":', json.dumps(HYPOTHESES, ensure_ascii=False), ",")
    print(' "references":', json.dumps(REFERENCES, ensure_ascii=False), ",")
    print(' "cases": [')
    print(",\n".join("  " + json.dumps(case) for case in cases))
    print(" ],")
    print(' "moves": [')
    print(",\n".join("  " + json.dumps(pair) for pair in shuffled(80)))
    print("]}")


main()
