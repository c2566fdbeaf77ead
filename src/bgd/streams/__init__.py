"""Learners for live streams, and alarms when a stream changes."""
