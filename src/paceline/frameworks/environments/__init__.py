"""Environments of frameworks: one virtual environment each, made from pinned requirements.

The user's own environment is never touched: everything is made below one directory of ours.
"""
