"""Tests of ringtrue.comparison."""
