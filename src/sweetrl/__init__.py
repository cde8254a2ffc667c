"""sweetrl: train and evaluate language-model agents that work with a person over many turns."""
