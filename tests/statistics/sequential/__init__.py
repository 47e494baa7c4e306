"""Tests of ringtrue.statistics.sequential."""
