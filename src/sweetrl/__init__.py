"""sweetrl: train and evaluate language-model agents that work with a person over many turns.

    import sweetrl

    tasks = sweetrl.load_tasks("mini-backend:test:20")
    episodes = sweetrl.rollout(tasks, agent="mini", collaborator="colleague")
    verdicts = sweetrl.score(tasks, episodes)
    sweetrl.metrics(tasks, episodes, verdicts).metrics["success"]

Nothing is imported before it is used. `docs/api.md` describes every name.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sweetrl.api import (
        credit,
        credit_async,
        credit_logs,
        credit_logs_async,
        credit_page,
        load_agent,
        load_collaborator,
        load_critic,
        load_episodes,
        load_tasks,
        metrics,
        render,
        render_async,
        rollout,
        rollout_async,
        run_code,
        run_code_async,
        score,
        score_async,
        train,
    )
    from sweetrl.dialogue.agents import ModelAgent, ScriptedAgent
    from sweetrl.dialogue.collaborators import ModelCollaborator, ScriptedCollaborator
    from sweetrl.dialogue.dialogue import Dialogue
    from sweetrl.dialogue.rules import Conclusion, Rules
    from sweetrl.domains.backend.secret import BackendSecret
    from sweetrl.domains.domain import Domain, Labels, Prompts, TaskWriter
    from sweetrl.domains.frontend.secret import FrontendSecret
    from sweetrl.domains.logged import LoggedDialogue
    from sweetrl.domains.registry import find_domain, use_domain
    from sweetrl.domains.scoring import plain_scoring
    from sweetrl.errors import (
        CollaboratorError,
        ConfigError,
        DataError,
        EndpointDown,
        MissingExtra,
        ModelError,
        NoReplyError,
        PageError,
        RenderError,
        SandboxError,
        StageError,
        SweetError,
        TrainingError,
        UsageError,
        WordsError,
    )
    from sweetrl.evaluation.turning_points import CreditReport, Habit, WorstTurn
    from sweetrl.models import open_model
    from sweetrl.prompts import Prompt
    from sweetrl.protocols import (
        Agent,
        BatchCritic,
        ChatModel,
        Collaborator,
        Renderer,
        Scorer,
        TokenCritic,
        TurnCritic,
    )
    from sweetrl.sandbox import Program, Raised, Returned, Sandbox, TimedOut, Unusable
    from sweetrl.seeds import derive_seed
    from sweetrl.settings import ScorerSettings
    from sweetrl.types import (
        Box,
        CandidateSet,
        Check,
        Completion,
        Ending,
        Episode,
        EpisodePair,
        Failure,
        Message,
        Metric,
        Outcome,
        OutputValue,
        Reply,
        Role,
        RunMetrics,
        Sampling,
        Screenshots,
        Secret,
        Shot,
        Task,
        TokenCredit,
        Turn,
        TurnCredit,
        TurnPair,
        TurnValues,
        Unfinished,
        Usage,
        Verdict,
        digest,
    )

    __version__: str

__all__ = [
    "Agent",
    "BackendSecret",
    "BatchCritic",
    "Box",
    "CandidateSet",
    "ChatModel",
    "Check",
    "Collaborator",
    "CollaboratorError",
    "Completion",
    "Conclusion",
    "ConfigError",
    "CreditReport",
    "DataError",
    "Dialogue",
    "Domain",
    "Ending",
    "EndpointDown",
    "Episode",
    "EpisodePair",
    "Failure",
    "FrontendSecret",
    "Habit",
    "Labels",
    "LoggedDialogue",
    "Message",
    "Metric",
    "MissingExtra",
    "ModelAgent",
    "ModelCollaborator",
    "ModelError",
    "NoReplyError",
    "Outcome",
    "OutputValue",
    "PageError",
    "Program",
    "Prompt",
    "Prompts",
    "Raised",
    "RenderError",
    "Renderer",
    "Reply",
    "Returned",
    "Role",
    "Rules",
    "RunMetrics",
    "Sampling",
    "Sandbox",
    "SandboxError",
    "Scorer",
    "ScorerSettings",
    "Screenshots",
    "ScriptedAgent",
    "ScriptedCollaborator",
    "Secret",
    "Shot",
    "StageError",
    "SweetError",
    "Task",
    "TaskWriter",
    "TimedOut",
    "TokenCredit",
    "TokenCritic",
    "TrainingError",
    "Turn",
    "TurnCredit",
    "TurnCritic",
    "TurnPair",
    "TurnValues",
    "Unfinished",
    "Unusable",
    "Usage",
    "UsageError",
    "Verdict",
    "WordsError",
    "WorstTurn",
    "__version__",
    "credit",
    "credit_async",
    "credit_logs",
    "credit_logs_async",
    "credit_page",
    "derive_seed",
    "digest",
    "find_domain",
    "load_agent",
    "load_collaborator",
    "load_critic",
    "load_episodes",
    "load_tasks",
    "metrics",
    "open_model",
    "plain_scoring",
    "render",
    "render_async",
    "rollout",
    "rollout_async",
    "run_code",
    "run_code_async",
    "score",
    "score_async",
    "train",
    "use_domain",
]

_HOMES = (
    "api",
    "types",
    "errors",
    "protocols",
    "seeds",
    "prompts",
    "models",
    "sandbox",
    "domains.domain",
    "domains.registry",
    "domains.scoring",
    "settings",
    "domains.backend.secret",
    "domains.frontend.secret",
    "dialogue.agents",
    "dialogue.collaborators",
    "dialogue.rules",
    "dialogue.dialogue",
    "domains.logged",
    "evaluation.turning_points",
)
"""Where public names live; the first module that has one is its home."""


if not TYPE_CHECKING:  # so that type checkers know which names there are

    def __getattr__(name: str) -> object:
        """A public name, imported when it is first used (PEP 562)."""
        if name == "__version__":
            from importlib.metadata import version

            return version("sweetrl")
        if name in __all__:
            from importlib import import_module

            for home in _HOMES:
                module = import_module(f"sweetrl.{home}")
                if hasattr(module, name):
                    globals()[name] = value = getattr(module, name)
                    return value
        raise AttributeError(f"module 'sweetrl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
