"""Chats: dialogues of the user's own, with an outcome and perhaps a reference, and no scorer."""
