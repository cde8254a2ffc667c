"""Recognising code that can compute, but cannot touch the interpreter that it runs in.

Such code can share a process with other such code, one after the other, which saves the fork that any other code
gets for itself. It is judged by its compiled form and by an allow-list in three parts:

- instructions: nothing that stores or deletes attributes, makes classes, or enters a `with` or `async` block, and
  no generator with a `try`: its last part would run whenever the generator is thrown away, beside other code;
- imports: a few modules without side effects, and of these only the names below: `from` loads submodules, too;
- names: every global and attribute it mentions is either one of the harmless ones below, or one that no builtin
  and no class or module in this interpreter has. It can then only be the code's own.

Code that is harmless but not recognised as such loses nothing but time.
"""

import builtins
import dis
import sys
from types import CodeType

MODULES = frozenset(
    {"collections", "datetime", "itertools", "json", "math", "random", "re", "string", "typing"}
)

_BUILTINS = """
abs all any ascii bin bool bytes chr dict divmod enumerate filter float frozenset hash hex int isinstance iter len
list map max min next oct ord pow print range repr reversed round set slice sorted str sum tuple zip
ArithmeticError AssertionError AttributeError Exception IndexError KeyError LookupError NotImplementedError
OverflowError RuntimeError StopIteration TypeError ValueError ZeroDivisionError
"""
_METHODS = """
add append appendleft bit_count bit_length capitalize casefold center clear conjugate copy count difference discard
elements endswith expandtabs extend extendleft find fromkeys get hex imag index insert intersection
is_integer isalnum isalpha isascii isdecimal isdigit isdisjoint isidentifier islower isnumeric isprintable isspace
issubset issuperset istitle isupper items join keys ljust lower lstrip most_common partition pop popitem popleft real
remove removeprefix removesuffix replace reverse rfind rindex rjust rotate rpartition rsplit rstrip setdefault sort
split splitlines startswith strip swapcase symmetric_difference title translate union update upper values zfill
"""
_LIBRARY = """
Counter OrderedDict defaultdict deque
date datetime time timedelta timezone utc combine day days fromisoformat hour isocalendar isoformat isoweekday
microsecond microseconds minute month now second seconds strftime strptime today total_seconds weekday year
accumulate chain combinations combinations_with_replacement cycle dropwhile groupby islice pairwise permutations
product repeat starmap takewhile zip_longest from_iterable
dumps loads
acos asin atan atan2 ceil comb cos cosh degrees dist e erf exp fabs factorial floor fmod fsum gamma gcd hypot inf
isclose isfinite isinf isnan isqrt lcm lgamma log log10 log1p log2 modf nan perm pi prod radians sin sinh sqrt tan
tanh tau trunc
choice choices gauss randint randrange sample seed shuffle uniform
findall finditer fullmatch group groups match search span start end sub IGNORECASE MULTILINE
ascii_letters ascii_lowercase ascii_uppercase digits punctuation whitespace
Any Dict Iterable List Optional Sequence Set Tuple Union
"""
NAMES = MODULES | frozenset(f"{_BUILTINS} {_METHODS} {_LIBRARY}".split())

_INSTRUCTIONS = """
BINARY_OP BINARY_SLICE BINARY_SUBSCR BUILD_CONST_KEY_MAP BUILD_LIST BUILD_MAP BUILD_SET BUILD_SLICE BUILD_STRING
BUILD_TUPLE CACHE CALL CALL_FUNCTION_EX CALL_INTRINSIC_1 CALL_KW CHECK_EXC_MATCH COMPARE_OP CONTAINS_OP CONVERT_VALUE
COPY COPY_FREE_VARS DELETE_FAST DELETE_GLOBAL DELETE_NAME DELETE_SUBSCR DICT_MERGE DICT_UPDATE END_FOR EXTENDED_ARG
FORMAT_SIMPLE FORMAT_VALUE FORMAT_WITH_SPEC FOR_ITER GET_ITER IMPORT_FROM IMPORT_NAME IS_OP JUMP_BACKWARD
JUMP_BACKWARD_NO_INTERRUPT JUMP_FORWARD JUMP_IF_FALSE_OR_POP JUMP_IF_TRUE_OR_POP KW_NAMES LIST_APPEND LIST_EXTEND
LIST_TO_TUPLE LOAD_ASSERTION_ERROR LOAD_ATTR LOAD_CLOSURE LOAD_CONST LOAD_DEREF LOAD_FAST LOAD_FAST_AND_CLEAR
LOAD_FAST_CHECK LOAD_FAST_LOAD_FAST LOAD_GLOBAL LOAD_METHOD LOAD_NAME MAKE_CELL MAKE_FUNCTION MAP_ADD NOP
POP_EXCEPT POP_JUMP_BACKWARD_IF_FALSE POP_JUMP_BACKWARD_IF_NONE POP_JUMP_BACKWARD_IF_NOT_NONE
POP_JUMP_BACKWARD_IF_TRUE POP_JUMP_FORWARD_IF_FALSE POP_JUMP_FORWARD_IF_NONE POP_JUMP_FORWARD_IF_NOT_NONE
POP_JUMP_FORWARD_IF_TRUE POP_JUMP_IF_FALSE POP_JUMP_IF_NONE POP_JUMP_IF_NOT_NONE POP_JUMP_IF_TRUE POP_TOP PRECALL
PUSH_EXC_INFO PUSH_NULL RAISE_VARARGS RERAISE RESUME RETURN_CONST RETURN_GENERATOR RETURN_VALUE SET_ADD
SET_FUNCTION_ATTRIBUTE SET_UPDATE STORE_DEREF STORE_FAST STORE_FAST_LOAD_FAST STORE_FAST_STORE_FAST STORE_GLOBAL
STORE_NAME STORE_SLICE STORE_SUBSCR SWAP TO_BOOL UNARY_INVERT UNARY_NEGATIVE UNARY_NOT UNARY_POSITIVE UNPACK_EX
UNPACK_SEQUENCE YIELD_VALUE
"""
_ALLOWED = frozenset(dis.opmap[name] for name in _INSTRUCTIONS.split() if name in dis.opmap)
_IMPORT, _IMPORT_FROM, _HANDLE = (dis.opmap[name] for name in ("IMPORT_NAME", "IMPORT_FROM", "PUSH_EXC_INFO"))
_FLAGS = {name: bit for bit, name in dis.COMPILER_FLAG_NAMES.items()}
_GENERATOR, _COROUTINE = _FLAGS["GENERATOR"], _FLAGS["COROUTINE"] | _FLAGS["ASYNC_GENERATOR"]


def known_names() -> frozenset[str]:
    """Every attribute that a class or module in this interpreter has, and every builtin."""
    names = set(dir(builtins))
    for module in list(sys.modules.values()):
        names.update(dir(module))
    kinds: list[type] = [object]
    for kind in kinds:
        names.update(dir(kind))
        kinds += type.__subclasses__(kind)
    return frozenset(names)


def is_plain(code: CodeType, known: frozenset[str]) -> bool:
    """Whether the code is recognised as harmless; `known` is from `known_names`."""
    instructions = set(code.co_code[::2])
    if not instructions <= _ALLOWED:
        return False
    if not all(name in NAMES or _own(name, known) for name in code.co_names):
        return False
    if _IMPORT in instructions and not _imports_are_plain(code):
        return False
    if code.co_flags & _COROUTINE or (code.co_flags & _GENERATOR and _HANDLE in instructions):
        return False
    return all(is_plain(inner, known) for inner in code.co_consts if isinstance(inner, CodeType))


def _own(name: str, known: frozenset[str]) -> bool:
    return name not in known and name.isidentifier() and not name.startswith("_")


def _imports_are_plain(code: CodeType) -> bool:
    allowed = {_IMPORT: MODULES, _IMPORT_FROM: NAMES}
    return all(step.argval in allowed.get(step.opcode, (step.argval,)) for step in dis.get_instructions(code))
