"""Environments of frameworks: one virtual environment each, from pinned requirements.

The user's own environments are never changed: all files are below one directory.
"""
