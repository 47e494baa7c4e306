"""Tests of ringtrue.execution.store."""
