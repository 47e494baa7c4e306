"""Tests of ringtrue.testing."""
