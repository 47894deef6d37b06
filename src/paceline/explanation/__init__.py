"""Breakdown of measured steps by cause, findings and remedies."""
