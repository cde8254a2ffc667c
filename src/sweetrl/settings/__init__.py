"""Recipes: one TOML file says a whole experiment, or a study of several, and `--set key=value` changes it."""

from sweetrl.settings.reading import load_experiment, load_recipe, load_study
from sweetrl.settings.recipes import (
    CandidateSettings,
    CriticSettings,
    EstimateSettings,
    EvaluationSettings,
    PlayerSettings,
    Recipe,
    ServerSettings,
    TaskFiles,
    TrainNumbers,
    TrainSettings,
)
from sweetrl.settings.studies import BestOfSettings, Study, StudyCritic, StudyMethod

__all__ = [
    "BestOfSettings",
    "CandidateSettings",
    "CriticSettings",
    "EstimateSettings",
    "EvaluationSettings",
    "PlayerSettings",
    "Recipe",
    "ServerSettings",
    "Study",
    "StudyCritic",
    "StudyMethod",
    "TaskFiles",
    "TrainNumbers",
    "TrainSettings",
    "load_experiment",
    "load_recipe",
    "load_study",
]
