"""Learning from stored dialogues: the only stage that needs PyTorch."""
