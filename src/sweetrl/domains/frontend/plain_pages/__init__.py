"""`mini-frontend-plain`: pages of `mini-frontend` with one section and seven open choices, for a tiny page model."""

from sweetrl.domains.frontend.plain_pages.designs import NAME, make_tasks, right_choices

__all__ = ["NAME", "make_tasks", "right_choices"]
