"""What the maker of the allow list is told beside its sources: words that are out, and words that are in."""

NUMBERS = frozenset(
    "zero two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred hundreds thousand thousands "
    "million millions billion billions trillion dozen dozens third fourth fifth sixth seventh eighth ninth tenth "
    "eleventh twelfth twentieth thirties forties fifties sixties seventies eighties nineties teen teens triple "
    "quarter quarters".split()
)
"""Numbers in words: telephone numbers and ages are spoken so. ``one``, ``first`` and ``second`` are more than that."""

DATES = frozenset(
    "monday tuesday wednesday thursday friday saturday sunday january february march april june july august "
    "september october november december spring summer autumn winter easter christmas".split()
)

GROUPS = frozenset(
    "pacific atlantic arctic antarctic catholic catholics protestant protestants jew jewish muslim em ms".split()
)
"""Places, peoples and letters that SCOWL counts as common words."""

COMPANIES = frozenset(
    "amazon apple google meta oracle shell gap target subway visa orange ford chase delta united continental mars "
    "dove twitter sprint boost cricket allstate progressive geico nike puma jaguar ram dodge corona budweiser "
    "pandora slack zoom stripe dropbox monster yelp uber lyft hulu pixel windows excel outlook bing explorer safari "
    "chrome opera firefox android galaxy echo alexa nest kindle prime sky virgin boots argos halifax barclays coach "
    "fossil coke pepsi sprite fanta tide crest bounty dawn viva mint metro vanguard fidelity citizens truist tesla "
    "rivian polestar saturn mercury lincoln fiesta ranger beetle golf polo swift spark bolt volt wrangler compass "
    "patriot charger challenger staples kohls macys marshalls burlington aldi lidl wendys dominos chili applebee "
    "ikea caterpillar deere".split()
)
"""Companies and brands that are words; those that are foremost everyday words (``next``, ``office``) are not here."""

EVERYDAY = frozenset(
    "us great little old big real head house less early hand friend nice watch god crazy super tonight fantastic "
    "sir walk baby job else true ever add soon son brain numbers chance book song law fine police weeks strange".split()
)
"""Everyday words, looked at one by one, that a rare surname or the titles of works would keep out."""

CHAT = (
    "ok okay yeah yep yup nope nah haha hahaha lol hmm hm uh um uhm huh wow hey hi hello bye oh ah aw aww ugh oops "
    "whoa gonna wanna gotta kinda sorta dunno cuz cause til ya pls plz thx btw omg idk imo email emails online "
    "website internet app apps"
).split()
"""Words of typed talk that SCOWL counts as slang; they come in where wordfreq has them among its most frequent."""

CONTRACTIONS = (
    "i'm i'd i'll i've you're you'd you'll you've he's he'd he'll she's she'd she'll it's it'd it'll we're we'd "
    "we'll we've they're they'd they'll they've that's that'd that'll this'll these're those're there's there'd "
    "there'll here's who's who'd who'll who've what's what're what'd what'll where's where'd when's why's how's "
    "how'd let's could've would've should've might've must've isn't aren't wasn't weren't don't doesn't didn't "
    "haven't hasn't hadn't can't couldn't won't wouldn't shouldn't mustn't mightn't needn't ain't shan't ma'am "
    "o'clock y'all"
).split()

ABBREVIATIONS = ("e.g", "i.e", "a.m", "p.m", "etc", "vs")
