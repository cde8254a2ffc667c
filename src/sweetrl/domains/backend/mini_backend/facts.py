"""What there is to know about the functions of `mini-backend`: the facts, their values and their wording.

A function of a family is a chain of steps. A fact stands for one possible step: whether a task has it is hinted
at by a cue in the request, and which of its values the task has is known to the collaborator alone. No two
facts of a family share what tells their values apart, neither in code nor in words.
"""

from functools import cache

from msgspec import Struct


class Value(Struct, frozen=True):
    """One way in which a fact can be settled."""

    code: str
    """The step, one line of Python."""
    phrases: tuple[str, ...]
    """How the collaborator puts it; each completes `it should ...`."""


class Fact(Struct, frozen=True):
    """Something that a programmer may have to ask about."""

    name: str
    cues: tuple[str, ...]
    """Sentences of a request that make the fact likely to matter."""
    questions: tuple[str, ...]
    """The first are those that agents learn to use; people may ask in other words."""
    words: tuple[str, ...]
    """Stems by which a question about this fact is recognised."""
    values: tuple[Value, ...]


class Family(Struct, frozen=True):
    """Functions of one kind of argument."""

    name: str
    argument: str
    functions: tuple[str, ...]
    """Names that a function may have."""
    facts: tuple[Fact, ...]
    """In the order of their steps."""


TEXT = Family(
    "text",
    "text",
    ("label", "badge", "caption", "slogan", "nickname", "heading"),
    (
        Fact("words", ("Only a hint is wanted.", "It goes on a button.", "It must be read at a glance."),
             ("Which words are kept?", "How many words stay?", "Are some words left out?"),
             ("keep", "kept", "stay", "left out", "drop word", "how many words", "which words", "leave out"),
             (Value("text = ' '.join(text.split()[:1])", ("keep just the first word", "use the first word alone")),
              Value("text = ' '.join(text.split()[:2])", ("keep a couple of words", "use the opening couple of words")),
              Value("text = ' '.join(text.split()[-1:])", ("keep just the final word", "use the final word alone")))),
        Fact("order", ("It feeds an index.", "It is for the catalogue.", "People look it up by name."),
             ("In which order are the words?", "Are the words sorted?", "Does the order of words change?"),
             ("order", "sort", "arrang", "reorder", "sequence"),
             (Value("text = ' '.join(sorted(text.split()))", ("go by the alphabet", "follow the alphabet")),
              Value("text = ' '.join(reversed(text.split()))", ("run backwards", "go backwards")),
              Value("text = ' '.join(sorted(text.split(), key=len))",
                    ("put shorter before longer", "grow from shorter to longer")))),
        Fact("case", ("It is painted on a sign.", "It is printed on a banner.", "The font has few glyphs."),
             ("Which letter case is used?", "Are there capital letters?", "What about upper and lower case?"),
             ("case", "capital", "upper", "lower", "small letter"),
             (Value("text = text.upper()", ("be all capitals", "have capitals everywhere")),
              Value("text = text.lower()", ("be all lowercase", "have lowercase everywhere")),
              Value("text = text.swapcase()", ("swap big and little", "exchange big and little")))),
        Fact("letter", ("It must pass a word filter.", "Players like secret writing.", "It becomes a password."),
             ("Is a letter replaced?", "Which letter is exchanged?", "Are letters hidden?"),
             ("letter replac", "letter exchang", "which letter is", "a letter", "letters hidden", "substitut", "mask"),
             (Value("text = text.replace('a', '@')", ("hide each a", "show an at sign for a")),
              Value("text = text.replace('e', '3')", ("hide each e", "show a three for e")),
              Value("text = text.replace('o', '0')", ("hide each o", "show a zero for o")))),
        Fact("spaces", ("It becomes a file name.", "It is part of a web address.", "A machine scans it."),
             ("What happens to spaces?", "Are blanks allowed?", "How are spaces treated?"),
             ("space", "blank", "gap", "whitespace"),
             (Value("text = text.replace(' ', '_')", ("have an underscore there", "put in an underscore")),
              Value("text = text.replace(' ', '-')", ("have a hyphen there", "put in a hyphen")),
              Value("text = text.replace(' ', '')", ("close them up", "have nothing there")))),
        Fact("length", ("The screen is small.", "The ticket is tiny.", "The form has a narrow field."),
             ("How long may it be?", "Is there a longest length?", "Is it cut off somewhere?"),
             ("how long", "length", "longest", "cut off", "truncat", "character", "maximum length"),
             (Value("text = text[:6]", ("stop after six", "be six at most")),
              Value("text = text[:9]", ("stop after nine", "be nine at most")),
              Value("text = text[:12]", ("stop after twelve", "be twelve at most")))),
        Fact("start", ("Several teams share the list.", "It is filed with other papers.", "The inbox has rules."),
             ("What comes in front?", "How does it begin?", "Is there a fixed start?"),
             ("front", "begin", "start", "prefix"),
             (Value("text = 'NEW ' + text", ("say NEW", "carry NEW")),
              Value("text = 'REF ' + text", ("say REF", "carry REF")),
              Value("text = 'TOP ' + text", ("say TOP", "carry TOP")))),
        Fact("end", ("Another line follows it.", "A robot speaks it aloud.", "It closes a paragraph."),
             ("What comes last?", "How does it end?", "Is there a closing mark?"),
             ("last", "end", "closing", "suffix", "behind"),
             (Value("text = text + '!'", ("use an exclamation mark", "shout")),
              Value("text = text + '?'", ("use a question mark", "sound unsure")),
              Value("text = text + ';'", ("use a semicolon", "leave it open")))),
        Fact("frame", ("It is quoted in a letter.", "It appears inside other text.", "The editor marks such items."),
             ("Is it in brackets?", "What surrounds it?", "Which brackets are used?"),
             ("bracket", "surround", "around it", "enclos", "parenthes"),
             (Value("text = '[' + text + ']'", ("have square ones", "use square ones")),
              Value("text = '(' + text + ')'", ("have round ones", "use round ones")),
              Value("text = '{' + text + '}'", ("have curly ones", "use curly ones")))),
        Fact("repeat", ("A choir sings it.", "It is a warning.", "The crowd shouts it."),
             ("Is it repeated?", "How often is it said?", "How many copies are there?"),
             ("repeat", "how often", "copies", "how many times", "twice"),
             (Value("text = text * 2", ("come twice", "be there twice")),
              Value("text = text * 4", ("come four times", "be there four times")),
              Value("text = text * 5", ("come five times", "be there five times")))),
        Fact("side", ("It stands in a table.", "The columns line up.", "An old terminal shows it."),
             ("How is it aligned?", "To which side does it go?", "Is it padded?"),
             ("align", "side", "pad", "justif", "width", "column"),
             (Value("text = text.ljust(40)", ("lean left", "be flush left")),
              Value("text = text.rjust(40)", ("lean right", "be flush right")),
              Value("text = text.center(40)", ("sit in the middle", "be in the middle")))),
    ),
)  # fmt: skip

NUMBER = Family(
    "number",
    "n",
    ("price", "total", "score", "amount", "level", "budget"),
    (
        Fact("sign", ("Losses occur too.", "The reader shows debts.", "It can freeze outside."),
             ("What about negative numbers?", "How is a minus treated?", "Can it be below zero?"),
             ("negative", "minus", "below zero", "sign"),
             (Value("n = abs(n)", ("ignore the minus", "forget the minus")),
              Value("n = -n", ("turn around", "become its opposite")),
              Value("n = max(n, 0)", ("become nothing then", "count as nothing then")))),
        Fact("most", ("The shelf is full quickly.", "The account is limited.", "The lift carries little."),
             ("Is there an upper limit?", "What is the maximum?", "How high may it go?"),
             ("upper limit", "maximum", "how high", "highest", "ceiling", "at most", "largest"),
             (Value("n = min(n, 70)", ("stay under seventy", "be seventy at most")),
              Value("n = min(n, 80)", ("stay under eighty", "be eighty at most")),
              Value("n = min(n, 90)", ("stay under ninety", "be ninety at most")))),
        Fact("least", ("Small orders do not pay.", "The supplier wants volume.", "Entry is not free."),
             ("Is there a lower limit?", "What is the minimum?", "How low may it go?"),
             ("lower limit", "minimum", "how low", "lowest", "at least", "smallest"),
             (Value("n = max(n, 12)", ("be twelve at least", "never be under twelve")),
              Value("n = max(n, 14)", ("be fourteen at least", "never be under fourteen")),
              Value("n = max(n, 16)", ("be sixteen at least", "never be under sixteen")))),
        Fact("fee", ("Delivery costs money.", "A courier brings it.", "Parcels are wrapped."),
             ("Is a fee added?", "What is the extra charge?", "Are there extra costs?"),
             ("fee", "charge", "extra cost", "surcharge", "added"),
             (Value("n = n + 4", ("gain four", "include four more")),
              Value("n = n + 6", ("gain six", "include six more")),
              Value("n = n + 8", ("gain eight", "include eight more")))),
        Fact("pack", ("Goods come in packs.", "Each box holds several.", "The unit is a bundle."),
             ("How many are in a pack?", "Is it multiplied?", "What is the pack size?"),
             ("pack", "multipl", "box", "bundle", "times"),
             (Value("n = n * 2", ("double", "be doubled")),
              Value("n = n * 3", ("triple", "be tripled")),
              Value("n = n * 5", ("be five times as much", "grow five times")))),
        Fact("discount", ("Members pay less.", "It is sale week.", "Students come often."),
             ("Is there a discount?", "How much is taken off?", "Is it reduced?"),
             ("discount", "taken off", "reduc", "rebate", "cheaper", "percent off"),
             (Value("n = n * 75 // 100", ("fall to three quarters", "be three quarters")),
              Value("n = n * 85 // 100", ("fall to 85 percent", "be 85 percent")),
              Value("n = n * 95 // 100", ("fall to 95 percent", "be 95 percent")))),
        Fact("bonus", ("Big customers are spoilt.", "Loyal guests are thanked.", "High results are celebrated."),
             ("Is there a bonus?", "When is a bonus given?", "Is there a reward?"),
             ("bonus", "reward", "gift"),
             (Value("n = n + 20 if n > 30 else n", ("have one over thirty", "grow by twenty over thirty")),
              Value("n = n + 20 if n > 40 else n", ("have one over forty", "grow by twenty over forty")),
              Value("n = n + 20 if n > 50 else n", ("have one over fifty", "grow by twenty over fifty")))),
        Fact("even", ("People sit in couples.", "Socks are counted.", "Both teams are equal."),
             ("Must it be even?", "What about odd numbers?", "Are odd results fine?"),
             ("even", "odd", "parity"),
             (Value("n = n + n % 2", ("go up to even", "take the even one above")),
              Value("n = n - n % 2", ("go down to even", "take the even one below")),
              Value("n = n | 1", ("always be odd", "take the odd one")))),
        Fact("step", ("Coins are not used.", "The scale is coarse.", "Nobody wants small change."),
             ("Is it rounded?", "To what is it rounded?", "How coarse is the rounding?"),
             ("round", "coarse", "precision", "nearest"),
             (Value("n = n // 10 * 10", ("count in tens", "move in tens")),
              Value("n = n // 25 * 25", ("count in quarters of a hundred", "move in quarters of a hundred")),
              Value("n = n // 50 * 50", ("count in halves of a hundred", "move in halves of a hundred")))),
        Fact("dial", ("It turns a dial.", "A clock shows it.", "The counter is mechanical."),
             ("Does it wrap around?", "Where does it restart?", "When does the counter restart?"),
             ("wrap", "restart", "modulo", "cycle", "start again", "overflow"),
             (Value("n = n % 360", ("restart at 360", "begin again at 360")),
              Value("n = n % 180", ("restart at 180", "begin again at 180")),
              Value("n = n % 240", ("restart at 240", "begin again at 240")))),
        Fact("unit", ("The partner works abroad.", "It is sent to another country.", "The machine has old gauges."),
             ("Which unit is used?", "Is it converted?", "In what is it measured?"),
             ("unit", "convert", "measure", "currency"),
             (Value("n = n * 1000", ("be in grams", "be given in grams")),
              Value("n = n * 60", ("be in minutes", "be given in minutes")),
              Value("n = n * 24", ("be in hours", "be given in hours")))),
    ),
)  # fmt: skip

FAMILIES = (TEXT, NUMBER)

IRRELEVANT = (
    "Who will use it?",
    "When is it needed?",
    "Which version of Python is used?",
    "Should it be fast?",
    "Do you want comments?",
    "Is there old code?",
    "Where does it run?",
    "Should it log anything?",
)
"""Questions that a programmer may ask and that no reference of the benchmark says anything about."""


@cache
def step_owners() -> dict[str, tuple[Family, Fact, Value]]:
    """Which fact and value each line of code stands for."""
    return {
        value.code: (family, fact, value)
        for family in FAMILIES
        for fact in family.facts
        for value in fact.values
    }
