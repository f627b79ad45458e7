"""The words by which the leak guard knows a number, an answer, a result, an assumption."""

import re

SMALL = "zero one two three four five six seven eight nine ten eleven twelve thirteen".split()
SMALL += "fourteen fifteen sixteen seventeen eighteen nineteen".split()
LARGE = "twenty thirty forty fifty sixty seventy eighty ninety hundred thousand dozen".split()
WHOLE = rf"(?:{'|'.join([*SMALL, *LARGE])})\b"
SHARE = r"(?:half|halves|(?:third|quarter|(?:four|fif|six|seven|eigh|nin|ten|hundred)th)s?)\b"
IN_WORDS = re.compile(
    rf"\b(?=[adefhnostz])(?:{WHOLE}(?:(?:(?<=hundred) and |(?<=thousand) and |[ -]){WHOLE})*"
    rf"(?:(?: and (?:a|one))?[ -]{SHARE})?|an? (?:dozen\b|{SHARE}))",
    re.IGNORECASE,
)

# Answers that stand in too many hints by chance.
COMMON = {"60", "90", "100", "180", "360", "1000", "1,000", *map(str, range(13))}
COMMON |= {"1/2", r"\frac{1}{2}", r"\frac12", r"\dfrac{1}{2}", "0.5", ".5"}

OPTION = re.compile(
    r"\b(?i:options?|choices?|answers?|letter|choose|select|pick|go with)\b[^.;\n]{0,12}?"
    r"(?:\bis\b|:)?\s*\(?\b(?P<letter>[A-Z])\b(?!['’]|\s+[a-z])"
)
# Alone on its line, or said to be right; of "angle B is right" nothing is said.
OPTION_ITSELF = re.compile(
    r"^[ .:]*(?P<alone>[A-Z])[ .:]*$"
    r"|\b(?P<said>[A-Z])\b[ ]{1,4}(?i:[a-z]+ ){0,2}?is (?:correct|the (?:correct|right)\b)",
    re.MULTILINE,
)
# No word of these begins another: a text of fillers alone is read in linear time.
_FILLERS = (
    r"(?:(?:exactly|just|simply|only|about|approximately|equal|therefore|then|thus|hence|now|also"
    r"|the (?:number|value|integer|third|second|last|middle)|option|letter|all|it|is|be|of|to|that"
    r"|in|you|them|us|a total)\s+)*"
)
FILL = _FILLERS + "$"
NOT = re.compile(
    r"\b(?:not?|never|cannot|n?either|nor|than|least|most|between|multiple|divisible|digits?)\b|n't\b"
)
_STATED = (
    r"(?:answer|ans|solution|(?:final|right|correct) (?:result|value|number|count|total|sum)"
    r"|correct option)\b"
    r"(?P<gap>[^.;]{0,50}?)(?:\b(?:is|are|be|equals|as|of|gives|becomes|reads?)\b|[:=])\s*"
)
STATED = re.compile(rf"(?i)\b{_STATED}{FILL}")
# A number behind these is a label, or one of several.
LABELLED = re.compile(
    r"(?i)\b(?:(?:part|line|step|equation|question|case|problem|hint|level|figure|table|row|column)"
    r"|the (?:sum|product|difference|quotient) of|(?:consists?|composed|made up) of)\s*$"
)
STATED_AFTER = re.compile(
    r"(?i)[\s,]*(?:(?:\w+\s+){0,3}?(?:the|your|our)\s+(?:(?:final|correct|right)\s+)?"
    r"(?:answer|solution|result)\b(?!\s*(?:is|was|will|must|=|:))|is (?:right|correct)\b)"
)
# Where a statement of the answer may begin; then what its number stands behind: whatever follows
# it, where its clause ends, or as a sentence of its own.
_DIGITS = r"\W{0,4}\d[\d.,/]{0,20}\W{0,4}"
KEY = re.compile(
    r"(?i)\b(?=[acfijnoqrstvy])(?:(?P<answer>ans(?:wer)?|solution|result|final|right|correct)\b"
    r"|(?:just|simply|only|reply|respond|submit|change|replace)\b|not(?=\W+\d)|instead(?=\s+of)"
    r"|(?:value|number|amount|total|quantity)(?=\s+(?:that|which|you|we|they)\b)"
    r"|(?:you|it|this|that)(?=\s+(?:should|must|will|would|ought|has|have|needs?)\b))"
)
SLOTS = {
    "anything": re.compile(rf"(?i){_STATED}{_FILLERS}"),
    "a sentence": re.compile(
        r"(?i)(?:answer|solution|result)\b[^.?!:\n]{0,40}[.?!:]\s+(?:it(?:['’]s|\s+is|\s+equals)\s+)?"
    ),
    "a clause": re.compile(
        r"(?i)(?:ans|(?:(?<!to )(?<!can )(?<!you )(?:answer|solution|result)))\b[\s,:(=–—-]{1,6}"
        r"|(?:just|simply|only)\s+(?:answer|say|write|reply|respond|put|enter)\s+(?:with\s+)?"
        r"|(?:reply|respond|answer)\s+with\s+(?:(?:just|simply)\s+)?|submit\s+"
        rf"|(?:change|correct|replace)\s+(?:your\s+)?{_DIGITS}(?:to|by|with|into)\s+"
        rf"|not\s+{_DIGITS}but\s+"
        rf"|instead\s+of\s+{_DIGITS}(?:you\s+)?(?:should\s+)?(?:write|use|put|say|get|have|be)?\s*"
        r"|(?:value|number|result|amount|total|quantity)\s+(?:(?:that|which)\s+)?(?:you|we|they)"
        r"(?:['’]re|\s+are)?\s+(?:want|need|seek|look(?:ing)? for|asked for|after)\s+(?:is|=|:)\s+"
        r"|(?:you|it|this|that)\s+(?:should|must|will|would|ought\s+to|has\s+to|have\s+to|needs?\s+to)"
        r"\s+(?:(?:now|then|also)\s+)?(?:get|have|find|obtain|see|reach|be|equal|read)\s+"
    ),
}
SLOT_BEFORE = re.compile(
    r"(?i)(?:\b(?:that|this|it)\s*)?(?:\b(?:is|was|as|for|be)\b|['’]s\b)\s+(?:\w+\s+){0,2}?"
    r"(?:the|your|our)\s+(?:(?:final|correct|right)\s+)?(?:answer|solution|result)\b"
    r"(?!\s*(?:is|was|will|must|=|:))|\bis\s+(?:right|correct)\b|\bin (?:the|your) (?:\w+ )?box\b"
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
    rf"\b(?:is|are))\s+{FILL}"
)
SAID = re.compile(
    r"(?i)(?:\b(?:is|are|was|were|be|has|have|so|hence|thus|therefore|do(?:es)? it in)\b|[:,])"
    rf"\s*{FILL}"
)
ASSUMED = re.compile(
    r"(?i)\b(?:let|try|suppose|assum(?:e|ing)|say|with|if|when|where|given|using|put|set|choose|for)"
    r"\s+(?:that\s+|we\s+|you\s+|[^.;,]{0,40}\band\s+)?$"
)
CLAUSE_END = re.compile(
    r"(?i)(?:(?:square |cubic )?(?:units?|[ckm]?m|dollars?|cents?|degrees?|hours?|minutes?|seconds?"
    r"|days?|weeks?|years?|feet|meters?|percent)\b\s*)?(?:$|[.,;:!?–—-]|(?:and|so|which|as|because"
    r"|since|in all|in total|left|altogether|instead|rather|not|at the end|now|of them|again"
    r"|after|before|with|when|if|by|from|each|per)\b)"
)
COMPARED = re.compile(
    r"(?i)(?:times|more|less|fewer|[a-z]+er than|digits?|steps?|cases?|ways? to|of the|out of"
    r"|percent of|units? (?:to|more|less)|too|lines? long|is (?:not|too|wrong|incorrect))\b"
)
