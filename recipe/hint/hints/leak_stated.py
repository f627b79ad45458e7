"""Whether a number of a text is said to be the answer, or to be a result."""

from __future__ import annotations

import re

WINDOW_CHARS = 160
# No word of these begins another: a text of fillers alone is read in linear time.
_FILLERS = (
    r"(?:(?:exactly|just|simply|only|about|approximately|equal|therefore|then|thus|hence|now|also"
    r"|the (?:number|value|integer|third|second|last|middle)|option|letter|all|it|is|be|of|to|that"
    r"|in|you|them|us|a total)\s+)*"
)
_FILL = _FILLERS + "$"
NOT = re.compile(
    r"\b(?:not?|never|cannot|n?either|nor|than|least|most|between|multiple|divisible|digits?)\b"
    r"|n't\b"
)
# A number after these is a label, or one of several.
LABELLED = re.compile(
    r"(?i)\b(?:(?:part|line|step|equation|question|case|problem|hint|level|figure|table|row|column)"
    r"|the (?:sum|product|difference|quotient) of|(?:consists?|composed|made up) of)\s*$"
)
# Where a statement of the answer may begin; then what precedes its number: whatever follows the
# key, where its clause ends, or as a sentence of its own.
_OLD = r"\W{0,4}\d[\d.,/]{0,20}\W{0,4}"
_KEY = re.compile(
    r"(?i)\b(?=[acfijnoqrstvy])(?:(?P<answer>ans(?:wer)?|solution|result|final|right|correct)\b"
    r"|(?:just|simply|only|reply|respond|submit|change|replace)\b|not(?=\W+\d)|instead(?=\s+of)"
    r"|(?:value|number|amount|total|quantity)(?=\s+(?:that|which|you|we|they)\b)"
    r"|(?:you|it|this|that)(?=\s+(?:should|must|will|would|ought|has|have|needs?)\b))"
)
_SLOT_TEXTS = {
    "anything": (
        r"(?:answer|ans|solution|(?:final|right|correct) (?:result|value|number|count|total|sum)"
        r"|correct option)\b(?P<gap>[^.;]{0,50}?)"
        rf"(?:\b(?:is|are|be|equals|as|of|gives|becomes|reads?)\b|[:=])\s*{_FILLERS}"
    ),
    "a sentence": (
        r"(?:answer|solution|result)\b[^.?!:\n]{0,40}[.?!:]\s+(?:it(?:['’]s|\s+is|\s+equals)\s+)?"
    ),
    "a clause": (
        r"(?:ans|(?:(?<!to )(?<!can )(?<!you )(?:answer|solution|result)))\b[\s,:(=–—-]{1,6}"
        r"|(?:just|simply|only)\s+(?:answer|say|write|reply|respond|put|enter)\s+(?:with\s+)?"
        r"|(?:reply|respond|answer)\s+with\s+(?:(?:just|simply)\s+)?|submit\s+"
        rf"|(?:change|correct|replace)\s+(?:your\s+)?{_OLD}(?:to|by|with|into)\s+|not\s+{_OLD}but\s+"
        rf"|instead\s+of\s+{_OLD}(?:you\s+)?(?:should\s+)?(?:write|use|put|say|get|have|be)?\s*"
        r"|(?:value|number|result|amount|total|quantity)\s+(?:(?:that|which)\s+)?(?:you|we|they)"
        r"(?:['’]re|\s+are)?\s+(?:want|need|seek|look(?:ing)? for|asked for|after)\s+(?:is|=|:)\s+"
        r"|(?:you|it|this|that)\s+(?:should|must|will|would|ought\s+to|has\s+to|have\s+to|needs?\s+to)"
        r"\s+(?:(?:now|then|also)\s+)?(?:get|have|find|obtain|see|reach|be|equal|read)\s+"
    ),
}
_SLOTS = {kind: re.compile(rf"(?i)(?:{slot})[\s=~\\]*") for kind, slot in _SLOT_TEXTS.items()}
_STATED_AFTER = re.compile(
    r"(?i)[\s,:–-]*(?:\.\s*(?=(?-i:[a-z])|-))?[\s-]*(?:(?:\w+\s+){0,3}?(?:the|your|our)\s+(?:(?:final|correct|right)\s+)?"
    r"(?:answer|solution|result)\b(?!\s*(?:is|was|will|must|=|:))|is (?:right|correct)\b"
    r"|in (?:the|your) (?:\w+ )?box\b)"
)
RESULT = re.compile(
    r"(?i)\b(?:giv(?:es?|ing)|get(?:s|ting)?|yield(?:s|ing)?|mak(?:es?|ing)|equals?|left with"
    r"|leav(?:es?|ing)(?: \w+ with)?|lead(?:s|ing) to|(?:result|output|expected):|(?:it|that)['’]s"
    r"|obtain(?:s|ed)?|totals?|(?:comes?|adds? up|amounts?|results?) (?:out )?(?:to|as|at|in)"
    r"|ends? up (?:at|with)|lands? (?:at|on)|arrives? at|reach(?:es)?|namely"
    r"|(?:must|should) (?:be|have (?:been|got|gotten))"
    r"|pays?|needs?|keeps?|takes?|costs?|remains?|there (?:are|is)"
    r"|(?:remainder|total|sum|difference|quotient) of"
    r"|(?:that|which|this|it|value|count|result|total|remainder|quotient|difference) (?:is|was)"
    r"|(?:plus|minus|times|divided by|half of|twice|product of|sum of)\b[^.,;]{0,60}"
    rf"\b(?:is|are))\s+{_FILL}"
)
SAID = re.compile(
    r"(?i)(?:\b(?:is|are|was|were|be|has|have|so|hence|thus|therefore|do(?:es)? it in)\b|[:,])"
    rf"\s*{_FILL}"
)
ASSUMED = re.compile(
    r"(?i)\b(?:let|try|suppose|assum(?:e|ing)|say|with|if|when|where|given|using|put|set|choose|for"
    r"|compare|test|check)\s+(?:that\s+|we\s+|you\s+|[^.;,]{0,40}\band\s+)?$"
)
CLAUSE_END = re.compile(
    r"(?i)(?:(?:square |cubic )?(?:units?|[ckm]?m|dollars?|cents?|degrees?|hours?|minutes?|seconds?"
    r"|days?|weeks?|years?|feet|meters?|percent)\b\s*)?(?:$|[.,;:!?–—-]|(?:and|so|which|as|because"
    r"|since|in all|in total|left|altogether|instead|rather|not|at the end|now|of them|again"
    r"|after|before|with|when|if|by|from|each|per)\b)"
)
_ENDS = {
    "anything": re.compile(""),
    "a sentence": re.compile(r"[.!]?\W*(?:\n|$)"),
    "a clause": CLAUSE_END,
}
COMPARED = re.compile(
    r"(?i)(?:times|more|less|fewer|[a-z]+er than|digits?|steps?|cases?|ways? to|of the|out of"
    r"|percent of|units? (?:to|more|less)|too|lines? long|is (?:not|too|wrong|incorrect))\b"
)
SET_EQUAL = re.compile(
    r"(?i)\b(?:set|let|put|make|making|keep)\b(?:[ ]+[^\s.;,:]+){1,3}?[ ]+equal(?: to)?\s+$"
)
# "So f is odd": what is concluded is said, whatever the question's words are.
_CONCLUDED = re.compile(
    r"(?i)^\s*(?:so|hence|thus|therefore|consequently|it)\b(?:(?!\bif\b)[^;:?]){0,60}?"
    r"\b(?:is|are|turns? out(?: to be)?)\s+$"
)
_YES_OR_NO = re.compile(r"(?i)\s*(?:so|hence|thus|therefore|and)?[\s,]*$")
# Where a word is assumed, asked about, defined, or one of several.
_OPEN = re.compile(
    r"(?i)\b(?:if|iff|whether|when|where|unless|assum\w+|suppos\w+|let|check|or|call(?:ed)?|means?)\b"
)
_OPEN_AFTER = re.compile(r"(?i)(?:if|iff|when|whenever|where|unless)\b|[^.!]{0,160}\?$")
# "No, it does not" or "No, the series ..." replies to the question, "No, look again" to a reader.
_REPLY = re.compile(r"(?i)\s*[,:;–—-]\s*(?P<on>(?:it|they|there|he|she|because|since)\b)?")
# After a number that is only a part of what is stated: 3x, 3-digit, 3rd, 3 of, 40 + y.
_GOES_ON = re.compile(
    r"(?i)-[a-z]|(?:st|[nr]d|th)\b|\s*(?:[+*/^×÷·√\\\d]|[-–−:]\s*\d|[a-z](?![a-z])"
    r"|(?:of|point|plus|minus|over|divided|multiplied|hundred|thousand|million|dozen)\b)"
)
_MARKS = re.compile(r"[\s=~|\\]*(?:\(\w+\))?[\s=~|]*")


def is_stated(text: str, start: int, end: int) -> bool:
    """Return whether a number of a text without markup is said to be the answer."""
    after = text[end : end + WINDOW_CHARS]
    if _GOES_ON.match(after) or COMPARED.match(after.lstrip()):
        return False
    if LABELLED.search(text[max(0, start - 30) : start]):
        return False
    rest = _MARKS.sub("", after, count=1)
    for key in _KEY.finditer(text, max(0, start - 100), start):
        for kind in _SLOTS if key["answer"] else ["a clause"]:
            slot = _SLOTS[kind].fullmatch(text, key.start(), start)
            if (
                slot
                and not NOT.search(slot.groupdict().get("gap") or "")
                and _ENDS[kind].match(rest)
            ):
                return True
    return bool(_STATED_AFTER.match(rest)) and not NOT.search(text[max(0, start - 20) : start])


def goes_on(after: str) -> bool:
    """Return whether a word that may be the answer is part of more: "the answer is no larger"."""
    return not CLAUSE_END.match(after) and after.split(" ", 1)[0] not in ("is", "for")


def is_open(clause: str, after: str) -> bool:
    """Return whether a word is assumed, asked about or defined rather than said."""
    return bool(_OPEN.search(clause) or _OPEN_AFTER.match(after))


def is_concluded(before: str, after: str) -> bool:
    """Return whether a word ends a sentence that draws a conclusion: "so f is odd"."""
    return bool(_CONCLUDED.match(before) and CLAUSE_END.match(after))


def is_reply(text: str, before: str, after: str, is_about: bool) -> bool:
    """Return whether a word that begins a sentence replies to the question that is asked."""
    if not _YES_OR_NO.fullmatch(before):
        return False
    if not after.strip(".! "):
        return bool(before.strip()) or text.rstrip().endswith("?")
    found = _REPLY.match(after)
    return found is not None and bool(found["on"] or is_about or ":" in found[0])
