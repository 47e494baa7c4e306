"""Tests of ringtrue.statistics."""
