"""Tests of ringtrue.distributions."""
