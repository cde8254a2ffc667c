"""The records that stages exchange, and nothing else.

All are frozen `msgspec` structs: one definition is the JSON format, its validation and the type.
"""

from sweetrl.types.chats import Completion, Sampling, Usage
from sweetrl.types.dialogues import (
    Ending,
    Episode,
    Failure,
    Message,
    Reply,
    Role,
    Turn,
    Unfinished,
    episode_id,
    history_of,
)
from sweetrl.types.digests import digest, picture_digest
from sweetrl.types.pages import Box, Shot
from sweetrl.types.preferences import (
    Annotation,
    CandidateSet,
    EpisodePair,
    OutputValue,
    TokenCredit,
    TurnCredit,
    TurnPair,
    TurnValues,
    turn_id,
)
from sweetrl.types.scores import Check, Metric, Outcome, RunMetrics, Screenshots, Verdict
from sweetrl.types.tasks import Count, NonEmpty, Secret, Task

__all__ = [
    "Annotation",
    "Box",
    "CandidateSet",
    "Check",
    "Completion",
    "Count",
    "Ending",
    "Episode",
    "EpisodePair",
    "Failure",
    "Message",
    "Metric",
    "NonEmpty",
    "Outcome",
    "OutputValue",
    "Reply",
    "Role",
    "RunMetrics",
    "Sampling",
    "Screenshots",
    "Secret",
    "Shot",
    "Task",
    "TokenCredit",
    "Turn",
    "TurnCredit",
    "TurnPair",
    "TurnValues",
    "Unfinished",
    "Usage",
    "Verdict",
    "digest",
    "episode_id",
    "history_of",
    "picture_digest",
    "turn_id",
]
