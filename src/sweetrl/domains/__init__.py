"""Domains: what tasks are about, and everything that follows from it."""
