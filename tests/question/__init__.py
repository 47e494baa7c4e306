"""Tests of ringtrue.question."""
