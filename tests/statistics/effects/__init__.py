"""Tests of ringtrue.statistics.effects."""
